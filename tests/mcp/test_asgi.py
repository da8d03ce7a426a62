"""The application behind /mcp, asked without a server around it."""

import asyncio
import json
import logging
from typing import Any

import pytest

from csp.mcp.asgi import App, Headers, _Body
from tests.mcp.doors import Door

EVENTS = (b"accept", b"application/json, text/event-stream")
JSON = (b"accept", b"application/json")
TYPE = (b"content-type", b"application/json")


def listing(**meta: str) -> bytes:
    params: dict[str, Any] = {"_meta": meta} if meta else {}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}).encode()


async def answered(headers: Headers, body: bytes) -> tuple[int, str]:
    """Return the status of an answer with its type."""
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    app = App()
    async with app.run():
        await app.answer([TYPE, *headers], body, Door(), send)
    types = [value.decode() for name, value in said[0]["headers"] if name == b"content-type"]
    return said[0]["status"], types[0]


@pytest.mark.parametrize(
    ("accept", "body", "kind"),
    [
        (EVENTS, listing(), "application/json"),
        (EVENTS, listing(progressToken="p"), "text/event-stream"),
        (JSON, listing(progressToken="p"), "application/json"),
    ],
)
async def test_events_are_for_those_who_want_progress_and_can_read_them(
    accept: tuple[bytes, bytes], body: bytes, kind: str
) -> None:
    assert await answered([accept], body) == (200, kind)


async def test_a_body_is_given_once_and_then_the_caller_is_still_there() -> None:
    body = _Body(b"{}")
    assert await body.receive() == {"type": "http.request", "body": b"{}", "more_body": False}
    more = asyncio.ensure_future(body.receive())
    for _ in range(3):
        await asyncio.sleep(0)

    assert not more.done()
    more.cancel()


def test_the_sdk_logs_nothing_of_what_was_sent() -> None:
    App()

    assert not logging.getLogger("mcp").isEnabledFor(logging.WARNING)
