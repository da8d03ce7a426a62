"""A TCP server whose handlers and connections end with it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from tests.closing import take_accepted

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class StreamServer:
    """Run `handle` for each connection, which is reset when it returns or when the server ends.

    `asyncio.start_server` alone leaves both behind: whatever is open when the event loop closes is warned of
    when it is collected, in a test that has nothing to do with it.
    """

    def __init__(self, handle: Handler) -> None:
        self._handle = handle
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await take_accepted(self._server)
        self._server.close()
        served = dict(self._tasks)
        self.cut()
        await asyncio.gather(*served, return_exceptions=True)
        # A task that is cancelled before its first step closes nothing.
        for writer in served.values():
            await abort(writer)

    def cut(self) -> None:
        """Reset every connection at once, and end its handler."""
        for task, writer in self._tasks.items():
            writer.transport.abort()
            task.cancel()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks[task] = writer
        task.add_done_callback(self._tasks.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._handle(reader, writer)
        finally:
            await abort(writer)


async def abort(writer: asyncio.StreamWriter) -> None:
    """Reset a connection; return when its socket is closed."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
