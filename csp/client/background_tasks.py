"""Background work that ends when its caller does."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def until_first(*works: Coroutine[Any, Any, T]) -> T:
    """Run all until one ends, cancel the others, and return or raise its result."""
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

    The threads of asyncio.to_thread are waited for when the loop ends, and a long poll cannot be cancelled.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(value)  # type: ignore[arg-type]  # T may itself be None

    def work() -> None:
        value: T | None = None
        error: Exception | None = None
        try:
            value = function()
        except Exception as exc:
            error = exc
        # The loop may have ended in the meantime.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=work, name="csp-client", daemon=True).start()
    return await outcome
