"""Background work that ends with its caller."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def until_first(*works: Coroutine[Any, Any, T]) -> T:
    """Run all coroutines until one ends, cancel the others, and return or raise its result."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return next(task for task in tasks if task in done).result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def in_thread(function: Callable[[], T]) -> T:
    """Run a blocking function in a thread; a cancelled caller does not wait for it.

    The event loop joins the threads of asyncio.to_thread when it ends, and a long poll cannot be cancelled.
    """
    outcome: Future[T] = Future()
    # Mark it as running, so that it cannot be cancelled; asyncio tracks whether its caller still waits.
    outcome.set_running_or_notify_cancel()

    def work() -> None:
        try:
            outcome.set_result(function())
        except Exception as exc:
            outcome.set_exception(exc)

    threading.Thread(target=work, name="csp-client", daemon=True).start()
    return await asyncio.wrap_future(outcome)
