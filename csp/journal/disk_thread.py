"""Blocking work on the files of a room, in one thread."""

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class DiskThread:
    """A thread that runs blocking work in order.

    Every commit goes through it, and the futures of a thread pool would cost as much as the sync itself.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._todo: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Do `work` in the thread after everything queued so far; the future is its result."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._todo.put((work, done))
        return done

    async def settle(self) -> None:
        """Wait until the thread has done all work queued so far."""
        await self.run(lambda: None)

    async def close(self) -> None:
        """Wait until the thread has done all its work and has ended."""
        self._todo.put(None)
        await asyncio.to_thread(self._thread.join)

    def shared(self) -> "DiskThread":
        """Return this thread for one of many users; closing it waits, but does not end the thread."""
        return _Shared(self)

    def _run(self) -> None:
        while (task := self._todo.get()) is not None:
            work, done = task
            result, error = None, None
            try:
                result = work()
            except BaseException as exc:
                error = exc
            self._loop.call_soon_threadsafe(_end, done, result, error)


class _Shared(DiskThread):
    """A user of a thread that others use too."""

    def __init__(self, disk: DiskThread) -> None:
        self._disk = disk

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return self._disk.run(work)

    async def close(self) -> None:
        await self._disk.settle()


def _end(done: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    if done.done():
        # Its caller no longer waits.
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
