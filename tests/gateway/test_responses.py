"""Answers on their way out: in one write where they are small, never to a peer that is gone."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from csp.gateway.responses import HEADERS, MAX_READY_BYTES, error_response, json_response, text_response


class Peer:
    """A transport that keeps what was written; `unread` is how much of it was not read."""

    def __init__(self) -> None:
        self.written = b""
        self.unread: list[int] = [0]
        self.is_gone = False

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return self.is_gone

    def get_write_buffer_size(self) -> int:
        return self.unread.pop(0) if len(self.unread) > 1 else self.unread[0]


async def sent(peer: Peer, response: web.StreamResponse, *, keep_alive: bool = True) -> list[bytes]:
    request: Any = SimpleNamespace(transport=peer, keep_alive=keep_alive)
    await response.prepare(request)
    await response.write_eof()
    head, _, body = peer.written.partition(b"\r\n\r\n")
    return [*head.split(b"\r\n"), body]


@pytest.mark.parametrize("keep_alive", [True, False])
async def test_a_small_answer_leaves_in_one_piece_with_every_header(keep_alive: bool) -> None:
    response = json_response(201, b'{"a":1}')
    lines = await sent(Peer(), response, keep_alive=keep_alive)

    assert (lines[0], lines[-1]) == (b"HTTP/1.1 201 Created", b'{"a":1}')
    fields = dict(line.split(b": ", 1) for line in lines[1:-1])
    assert fields.pop(b"Date").endswith(b" GMT")
    assert fields == {
        b"Content-Type": b"application/json",
        b"Connection": b"keep-alive" if keep_alive else b"close",
        b"Content-Length": b"7",
        **{name.encode(): value.encode() for name, value in HEADERS.items()},
    }
    assert response.keep_alive is keep_alive


async def test_nothing_is_written_to_a_peer_that_is_gone() -> None:
    peer = Peer()
    peer.is_gone = True
    with pytest.raises(ConnectionResetError):
        await sent(peer, json_response(200, b"{}"))

    assert peer.written == b""


async def test_an_answer_waits_for_a_peer_that_does_not_read() -> None:
    peer = Peer()
    peer.unread = [MAX_READY_BYTES + 1, MAX_READY_BYTES + 1, MAX_READY_BYTES]
    async with asyncio.timeout(60):
        await sent(peer, json_response(200, b"{}"))

    assert peer.unread == [MAX_READY_BYTES]


def test_only_small_answers_are_ready_at_once() -> None:
    small, large = b"x" * MAX_READY_BYTES, b"x" * (MAX_READY_BYTES + 1)

    assert not isinstance(json_response(200, small), web.Response)
    answer = json_response(200, large)
    assert isinstance(answer, web.Response)
    assert (answer.content_type, answer.body) == ("application/json", large)


@pytest.mark.parametrize(
    "response",
    [
        text_response(200, "text"),
        error_response(405, "not here", "use GET", {"Allow": "GET"}),
        json_response(200, b"x" * (MAX_READY_BYTES + 1)),
    ],
)
def test_no_answer_is_for_a_cache_or_another_site(response: web.StreamResponse) -> None:
    assert HEADERS.items() <= dict(response.headers).items()
    assert set(HEADERS) == {"X-Content-Type-Options", "Cache-Control", "Cross-Origin-Resource-Policy"}


def test_an_error_says_what_and_why() -> None:
    response = error_response(405, "not here", "use GET", {"Allow": "GET"})

    assert (response.status, response.headers["Allow"]) == (405, "GET")
    assert response.body == b'{"error":"not here","hint":"use GET"}'
