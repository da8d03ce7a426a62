"""A thread for blocking disk work, done in order."""

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

Work = Callable[[], None]
Done = Callable[[BaseException | None], None]


class DiskThread:
    """Runs work outside the event loop and reports back to it.

    Every commit passes through here, and the futures of a pool would cost as much as the sync itself.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._todo: SimpleQueue[tuple[Work, Done] | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def start(self, work: Work, done: Done) -> None:
        """Do `work` in the thread, then call `done` with the outcome on the loop."""
        self._todo.put((work, done))

    async def do(self, work: Work) -> None:
        """Do `work` in the thread and wait for it."""
        finished: asyncio.Future[None] = self._loop.create_future()

        def done(error: BaseException | None) -> None:
            if error is None:
                finished.set_result(None)
            else:
                finished.set_exception(error)

        self.start(work, done)
        await finished

    async def close(self) -> None:
        """Wait until the thread has done all its work, then end it."""
        self._todo.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        while (task := self._todo.get()) is not None:
            work, done = task
            error: BaseException | None = None
            try:
                work()
            except BaseException as exc:
                error = exc
            self._loop.call_soon_threadsafe(done, error)
