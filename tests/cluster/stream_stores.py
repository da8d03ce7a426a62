"""A stream of a real NATS server as the store of a log under test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from csp.cluster.bus import Bus
from csp.cluster.names import shard_of, stream_name
from csp.cluster.setup import API_S, open_stream
from csp.cluster.stream_log import StreamLog
from csp.journal import Log

_SPARE_BYTES = 100


class StreamStore:
    """One room of its own in the streams of a server."""

    log: Log

    def __init__(self, *servers: str, replicas: int = 1) -> None:
        self.room = f"room-{uuid4().hex[:12]}"
        self._servers = servers
        self._replicas = replicas

    async def open(self) -> None:
        self.bus = await Bus.open(self._servers)
        try:
            await open_stream(self.bus, shard_of(self.room), self._replicas)
        except BaseException:
            await self.bus.close()
            raise
        self.log = StreamLog(self.bus, self.room)

    async def reopen(self) -> None:
        await self.close()
        await self.open()

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        name = stream_name(shard_of(self.room))
        info = await self.bus.ask(f"STREAM.INFO.{name}", {}, timeout_s=API_S)
        limited = info["config"] | {"max_bytes": info["state"]["bytes"] + _SPARE_BYTES}
        await self._change(limited)
        try:
            yield
        finally:
            await self._change(info["config"])

    async def _change(self, config: dict[str, Any]) -> None:
        answer = await self.bus.ask(f"STREAM.UPDATE.{config['name']}", config, timeout_s=API_S)
        assert "error" not in answer, answer

    async def close(self) -> None:
        await self.log.close()
        await self.bus.close()
