"""Build HTTP responses; small JSON responses are sent in one write."""

import asyncio
import math
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Final

from aiohttp import web

from csp.errors import CspError, LogLost, TooMany
from csp.protocol.codec import encode
from csp.protocol.responses import ErrorView

_JSON: Final = "application/json"
#: Responses are only for the caller, so caches must not store them and pages must not run them as scripts.
HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HEADER_LINES: Final = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
#: A larger response is streamed at its reader's pace.
MAX_READY_BYTES: Final = 64 * 1024


class _Ready(web.StreamResponse):
    """A small JSON response that is sent in one write.

    aiohttp prepares, frames and drains every response as if it were a stream, which costs more than computing
    the response. Its server needs only these three methods of a response.
    """

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status=status)
        self._ready = body
        self._transport: asyncio.WriteTransport | None = None
        self._stays_open = False

    @property
    def body(self) -> bytes:
        return self._ready

    @property
    def keep_alive(self) -> bool:
        return self._stays_open

    async def prepare(self, request: web.BaseRequest) -> None:
        self._transport = request.transport
        self._stays_open = request.keep_alive

    async def write_eof(self, data: bytes = b"") -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the caller is gone")
        head = _head_at(self.status, self.reason, self._stays_open, int(time.time())) % len(self._ready)
        self._transport.write(head + self._ready)
        # A caller that does not read its responses is held back here.
        while self._transport.get_write_buffer_size() > MAX_READY_BYTES:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def for_friend(response: web.StreamResponse, origin: str) -> web.StreamResponse:
    """Return a response that a browser gives to the page of another gateway."""
    if isinstance(response, _Ready):
        response = web.Response(
            status=response.status, body=response.body, content_type=_JSON, headers=HEADERS
        )
    if not response.prepared:
        response.headers.update(
            {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": "Date", "Vary": "Origin"}
        )
    return response


def preflight_response(origin: str) -> web.Response:
    """Return the answer to a browser that asks whether the page of another gateway may send a request."""
    allowed = {
        "Access-Control-Allow-Methods": "GET, POST, DELETE",
        "Access-Control-Allow-Headers": "X-Auth-Token, Content-Type",
        "Access-Control-Max-Age": "600",
    }
    response = web.Response(status=204, headers=HEADERS | allowed)
    for_friend(response, origin)
    return response


def json_response(status: int, body: bytes) -> web.StreamResponse:
    """Return a response with encoded JSON."""
    if len(body) <= MAX_READY_BYTES:
        return _Ready(status, body)
    return web.Response(status=status, body=body, content_type=_JSON, headers=HEADERS)


def text_response(status: int, text: str) -> web.StreamResponse:
    """Return a plain-text response."""
    return web.Response(status=status, text=text, headers=HEADERS)


def error_response(
    status: int, message: str, hint: str, headers: dict[str, str] | None = None
) -> web.Response:
    """Return an error response in the common format."""
    body = encode(ErrorView(error=message, hint=hint))
    return web.Response(status=status, body=body, content_type=_JSON, headers=HEADERS | (headers or {}))


def refused(error: CspError) -> web.Response:
    """Return the response for an error, with the time after which to try again if it is known."""
    after_s = error.after_s if isinstance(error, TooMany | LogLost) else None
    headers = {} if after_s is None else {"Retry-After": str(math.ceil(after_s))}
    return error_response(error.status, error.message, error.hint, headers)


@lru_cache(maxsize=64)
def refusal_bytes(message: str, hint: str, after_s: float | None) -> bytes:
    """Return the bytes of an error response after which the connection is closed."""
    body = encode(ErrorView(error=message, hint=hint))
    lines = "" if after_s is None else f"Retry-After: {math.ceil(after_s)}\r\n"
    head = (
        f"HTTP/1.1 429 Too Many Requests\r\nContent-Type: {_JSON}\r\n{_HEADER_LINES}{lines}"
        f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@lru_cache(maxsize=16)
def _head_at(status: int, reason: str, stays_open: bool, now: int) -> bytes:
    connection = "keep-alive" if stays_open else "close"
    return (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: {_JSON}\r\nDate: {formatdate(now, usegmt=True)}\r\n"
        f"{_HEADER_LINES}Connection: {connection}\r\nContent-Length: %d\r\n\r\n"
    ).encode()
