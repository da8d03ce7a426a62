"""A gateway that says what a test tells it to."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from csp.protocol.enums import ALL, SYSTEM, MessageId
from csp.protocol.events import NoticePosted, encode_event
from tests.closing import take_accepted

#: What goes out over a WebSocket: text, binary, or the code to close it with.
Frame = str | bytes | int
Script = Callable[[int], list[Frame]]


@dataclass
class FakeGateway:
    """Refuses every operation for want of space, but for those that only concern watching."""

    script: Script
    seq: int
    url: str = ""
    connections: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    #: How the next requests for a WebSocket are answered instead of being granted.
    refusals: list[tuple[int, str]] = field(default_factory=list)

    async def talk(self, connection: ServerConnection) -> None:
        self.connections += 1
        for frame in self.script(self.connections):
            if isinstance(frame, int):
                await connection.close(frame, "as the script says")
                return
            await connection.send(frame)
        async for data in connection:
            op = json.loads(data)
            self.asked.append(op)
            full = {"error": "the disk is full", "hint": "free some", "status": 507}
            await connection.send(json.dumps({"ref": op["ref"]} | ({} if "watch" in op["op"] else full)))

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        if not request.path.startswith("/ws"):
            return connection.respond(200, f'{{"seq": {self.seq}}}')
        return connection.respond(*self.refusals.pop(0)) if self.refusals else None


@asynccontextmanager
async def fake_gateway(script: Script, seq: int = 0) -> AsyncIterator[FakeGateway]:
    """Serve /health with `seq`, and to the n-th WebSocket the frames of `script(n)`."""
    fake = FakeGateway(script, seq)
    async with serve(fake.talk, "127.0.0.1", 0, process_request=fake.answer, max_size=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        fake.url = f"http://127.0.0.1:{port}"
        yield fake
        await take_accepted(server.server)


def notice(seq: int, text: str = "") -> str:
    """Return the frame of an event."""
    return encode_event(NoticePosted(seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, ALL, "default", text)).decode()


def sealed(body: bytes) -> str:
    """Return a line whose checksum is right, whatever stands in it."""
    return (b'%b,"crc":"%08x"}' % (body, crc32(body))).decode()
