"""Pass connections to a local port on to a Unix socket, as long as there is one."""

import asyncio
import contextlib
from pathlib import Path
from typing import Final

#: How long a new connection waits for the link to be back.
PATIENCE_S: Final = 3.0
_CHUNK: Final = 65536


class Forwarder:
    """Serves a listening socket; connections are passed on to the Unix socket at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_open = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on until either side ends."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(self._is_open.wait(), PATIENCE_S)
                there, here = await asyncio.open_unix_connection(str(self._path))
                try:
                    await asyncio.gather(_pump(reader, here), _pump(there, writer))
                finally:
                    here.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    def open(self) -> None:
        """Pass connections on from now on."""
        self._is_open.set()

    def cut(self) -> None:
        """End all connections, so that clients notice the loss; new ones wait for the next `open`."""
        self._is_open.clear()
        for task in self._tasks:
            task.cancel()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
