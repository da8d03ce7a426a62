"""The least an asyncio server can do: find the end of a request, answer it."""

import asyncio
import sys
from typing import Final, cast

_ANSWER: Final = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{"success":true}'
)
_LENGTH: Final = b"Content-Length: "


class BareProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := _request_bytes(self._buffer)) <= len(self._buffer):
            self._buffer = self._buffer[end:]
            self._transport.write(_ANSWER)


def _request_bytes(data: bytes) -> int:
    """Return how long the first request is; more than there is while its head is not all there."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return len(data) + 1
    at = data.find(_LENGTH, 0, head)
    body = int(data[at + len(_LENGTH) : data.index(b"\r\n", at)]) if at >= 0 else 0
    return head + 4 + body


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(BareProtocol, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
