"""HTTP by hand, for requests that no client library would send."""

import asyncio
import contextlib

from tests.gateway.served import Answer

TIMEOUT_S = 60.0


async def exchange(port: int, request: bytes) -> Answer:
    """Send bytes as they are; return the answer, which must come before the timeout."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        # A server that refuses early may close before everything was sent.
        with contextlib.suppress(ConnectionError):
            writer.write(request)
            await writer.drain()
        return await asyncio.wait_for(_read_answer(reader), TIMEOUT_S)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _read_answer(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("Content-Length", "0")))
    return Answer(int(head[0].split()[1]), body, headers)


def post(path: str, body: bytes, *headers: str) -> bytes:
    """Return the bytes of a POST; its Host and Content-Length are right unless `headers` say otherwise."""
    return request("POST", path, *headers, f"Content-Length: {len(body)}") + body


def request(method: str, path: str, *headers: str) -> bytes:
    """Return the head of a request."""
    given = {header.partition(":")[0].lower() for header in headers}
    lines = [f"{method} {path} HTTP/1.1", *headers]
    if "host" not in given:
        lines.append("Host: localhost")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunked(path: str, chunks: list[bytes], *headers: str) -> bytes:
    """Return the bytes of a POST whose length nobody knows beforehand."""
    head = request("POST", path, *headers, "Transfer-Encoding: chunked")
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
