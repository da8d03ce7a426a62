"""One WebSocket by itself: what is taken, what is dropped, how events are stopped and begun again."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio import client as websockets_client
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosedError, InvalidHandshake, InvalidStatus
from websockets.http11 import Response

from csp.client import websocket_link as link_module
from csp.client.inbox import Inbox
from csp.client.incoming_frames import NOT_WATCHED, CallAnswer, Live, read_answer, read_error, read_frame
from csp.client.outbox import Outbox
from csp.client.websocket_link import WebSocketLink, open_link
from csp.errors import (
    BadInput,
    Broken,
    CspError,
    Forbidden,
    NotFound,
    Refused,
    TooMany,
    Unauthenticated,
    Unreachable,
)
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId, DeliverKind
from csp.protocol.events import Unknown
from csp.protocol.responses import Deliver, DeliverFrame, ErrorView
from csp.protocol.screen_frames import LiveBody
from tests.gateway.test_broadcast import event

ADA = AgentId("ada")


class FakeSocket:
    """A WebSocket that reads what the test says and keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.frames: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self.closed = 0
        self.aborted = 0
        self.transport = self

    async def send(self, data: bytes, text: bool = False) -> None:
        assert text
        self.sent.append(json.loads(data))

    async def recv(self, decode: bool = True) -> bytes:
        assert not decode
        frame = await self.frames.get()
        if isinstance(frame, Exception):
            raise frame
        return frame

    async def ping(self) -> "asyncio.Future[None]":
        return asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        self.closed += 1
        raise OSError("broken")

    def abort(self) -> None:
        self.aborted += 1


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def deliver_frame(seq: int) -> bytes:
    found = Deliver(id=f"m-{seq}", seq=seq, kind=DeliverKind.MESSAGE, sender="human", text="x", urgent=False)
    return encode(DeliverFrame(deliver=found))


def link_of(first: bytes | None = None) -> tuple[WebSocketLink, FakeSocket, Inbox, Outbox]:
    socket = FakeSocket()
    return WebSocketLink(socket, first), socket, Inbox(0, ADA), Outbox()  # type: ignore[arg-type]  # it has what is used


async def test_everything_that_comes_in_finds_its_place() -> None:
    link, socket, inbox, outbox = link_of(event(1)[1])
    asking = asyncio.ensure_future(outbox.ask("working", LiveBody()))
    running = asyncio.ensure_future(link.run(inbox, outbox, ["codex"]))
    await settle()
    for frame in (b"nonsense", deliver_frame(2), b'{"live":{"watch":true}}', b'{"ref":1,"extended":true}'):
        socket.frames.put_nowait(frame)
    answer = await asking
    socket.frames.put_nowait(ConnectionClosedError(None, None))
    with pytest.raises(Unreachable, match="was lost"):
        await running
    inbox.close()
    items = [item async for item in _all(inbox)]

    assert answer.extended is True
    assert socket.sent == [
        {"op": "watch", "ref": "live", "screen": "codex"},
        {"op": "working", "ref": 1},
    ]
    assert [type(item) for item in items[1:]] == [Deliver, Live, Live]
    # With the link the way to those who watch is lost.
    assert items[-1] == NOT_WATCHED


async def _all(inbox: Inbox) -> Any:
    while (item := await inbox.get()) is not None:
        yield item


async def test_what_says_nothing_of_watching_leaves_it_as_it_was() -> None:
    link, socket, inbox, outbox = link_of()
    for frame in (b'{"live":{"watch":true}}', b'{"live":{"text":"x"}}'):
        socket.frames.put_nowait(frame)
    socket.frames.put_nowait(ConnectionClosedError(None, None))
    with pytest.raises(Unreachable):
        await link.run(inbox, outbox)

    # The third one says that nobody watches any more.
    assert inbox.taken == 3


async def test_an_agent_that_was_not_watched_is_not_told_so() -> None:
    link, socket, inbox, outbox = link_of()
    for frame in (b'{"live":{"watch":true}}', b'{"live":{"watch":false}}', b'{"live":{"text":"x"}}'):
        socket.frames.put_nowait(frame)
    socket.frames.put_nowait(ConnectionClosedError(None, None))
    with pytest.raises(Unreachable):
        await link.run(inbox, outbox)

    assert inbox.taken == 3


async def test_events_stop_while_the_inbox_is_full_and_go_on_after_the_last_one_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("csp.client.inbox.MAX_ITEMS", 2)
    link, socket, inbox, outbox = link_of()
    running = asyncio.ensure_future(link.run(inbox, outbox))
    for seq in (1, 2, 3, 4):
        socket.frames.put_nowait(event(seq)[1])
    socket.frames.put_nowait(deliver_frame(9))
    await settle()
    stopped = list(socket.sent)
    full = inbox.taken
    while inbox._items:
        await inbox.get()
    await settle()
    socket.frames.put_nowait(event(4)[1])
    for _ in range(2):
        socket.frames.put_nowait(b'{"ref":"watch"}')
    socket.frames.put_nowait(event(3)[1])
    await settle()

    assert not running.done()
    assert stopped == [{"op": "unwatch", "ref": "unwatch"}]
    assert socket.sent[1:] == [{"op": "watch", "ref": "watch", "after": 2}]
    assert (full, inbox.taken, inbox.last_seq) == (3, 4, 3)
    running.cancel()


async def test_events_go_on_after_those_that_still_wait_for_the_consumer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("csp.client.inbox.MAX_ITEMS", 4)
    link, socket, inbox, outbox = link_of()
    running = asyncio.ensure_future(link.run(inbox, outbox))
    for seq in range(1, 6):
        socket.frames.put_nowait(event(seq)[1])
    await settle()
    for _ in range(2):
        await inbox.get()
    await settle()

    assert socket.sent[1:] == [{"op": "watch", "ref": "watch", "after": 4}]
    assert inbox.handed_seq == 2
    running.cancel()


async def test_a_watch_that_is_refused_ends_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    link, socket, inbox, outbox = link_of()
    link._overflow.set()
    running = asyncio.ensure_future(link.run(inbox, outbox))
    await settle()
    socket.frames.put_nowait(b'{"ref":"watch","error":"no","status":409}')
    with pytest.raises(Refused, match="no"):
        await running


async def test_hanging_up_is_done_whatever_the_socket_says() -> None:
    link, socket, _, _ = link_of()
    await link.close()

    assert (socket.closed, socket.aborted) == (1, 1)


async def test_what_is_shown_over_a_lost_link_is_lost() -> None:
    link, socket, _, _ = link_of()
    await link.show(LiveBody(text="so far"))

    async def fail(data: bytes, text: bool = False) -> None:
        raise ConnectionClosedError(None, None)

    socket.send = fail  # type: ignore[method-assign]  # for this test
    await link.show(LiveBody(text="lost"))

    assert socket.sent == [{"op": "live", "ref": "live", "text": "so far"}]


# --- the handshake -------------------------------------------------------------------------------


async def test_a_link_is_opened_from_the_last_event_with_our_keepalive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []
    socket = FakeSocket()
    socket.frames.put_nowait(b"first")

    async def connect(url: str, **options: Any) -> FakeSocket:
        asked.append((url, options))
        return socket

    monkeypatch.setattr(websockets_client, "connect", connect)
    http: Any = type("Http", (), {"url": "https://room/x", "token": "t"})()
    link = await open_link(http, 7)
    ((url, options),) = asked

    assert link._first == b"first"
    assert url == "wss://room/x/ws?after=7"
    assert options["additional_headers"] == {"Authorization": "Bearer t"}
    assert (options["ping_interval"], options["ping_timeout"]) == (20.0, 20.0)
    assert (options["compression"], options["proxy"]) == (None, None)
    assert (options["open_timeout"], options["close_timeout"]) == (10.0, 1.0)
    assert (options["max_size"], options["max_queue"]) == (64 * 1024 * 1024, 64)


async def test_a_socket_that_carries_nothing_is_no_link(monkeypatch: pytest.MonkeyPatch) -> None:
    socket = FakeSocket()
    monkeypatch.setattr(link_module, "OPEN_S", 0.0)
    with pytest.raises(Unreachable, match="cannot open a working WebSocket to https://room/x"):
        await opened(monkeypatch, socket)

    assert (socket.closed, socket.aborted) == (1, 1)


async def opened(monkeypatch: pytest.MonkeyPatch, socket: FakeSocket) -> WebSocketLink:
    """Open a link over a socket whose handshake has gone well."""

    async def connect(url: str, **options: Any) -> FakeSocket:
        return socket

    monkeypatch.setattr(websockets_client, "connect", connect)
    http: Any = type("Http", (), {"url": "https://room/x", "token": "t"})()
    return await open_link(http, 7)


async def test_the_answer_to_a_ping_shows_that_a_link_carries_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    socket = FakeSocket()

    async def ping() -> "asyncio.Future[None]":
        pong = asyncio.get_running_loop().create_future()
        pong.set_result(None)
        return pong

    monkeypatch.setattr(socket, "ping", ping)
    link = await opened(monkeypatch, socket)
    socket.frames.put_nowait(b"later")
    await settle()

    assert link._first is None
    # Nobody reads any more until the link runs, so no frame gets lost.
    assert socket.frames.qsize() == 1


async def test_a_socket_that_is_closed_at_once_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    for broken in ("recv", "ping"):
        socket = FakeSocket()

        async def fail(decode: bool = True) -> Any:
            raise ConnectionClosedError(None, None)

        monkeypatch.setattr(socket, broken, fail)
        with pytest.raises(Unreachable, match="was lost"):
            await opened(monkeypatch, socket)


async def test_a_client_that_is_closed_meanwhile_leaves_no_socket_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    socket = FakeSocket()
    opening = asyncio.ensure_future(opened(monkeypatch, socket))
    await settle()
    opening.cancel()
    await asyncio.wait([opening], timeout=60)

    assert (opening.cancelled(), socket.aborted) == (True, 1)


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (401, Unauthenticated, "no"),
        (403, Forbidden, "no"),
        (429, TooMany, "no"),
        (404, Unreachable, "cannot open a working WebSocket to https://room/x"),
        (502, Unreachable, "cannot open a working WebSocket to https://room/x"),
        (507, Unreachable, "cannot open a working WebSocket to https://room/x"),
    ],
)
async def test_a_handshake_that_is_answered_with_a_status_is_refused_or_blocked(
    monkeypatch: pytest.MonkeyPatch, status: int, kind: type[CspError], text: str
) -> None:
    async def connect(url: str, **options: Any) -> FakeSocket:
        raise InvalidStatus(Response(status, "no", Headers(), b'{"error":"no","hint":""}'))

    monkeypatch.setattr(websockets_client, "connect", connect)
    http: Any = type("Http", (), {"url": "https://room/x", "token": "t"})()
    with pytest.raises(CspError) as raised:
        await open_link(http, 7)

    assert (type(raised.value), raised.value.message) == (kind, text)


@pytest.mark.parametrize("error", [OSError("no way"), TimeoutError(), InvalidHandshake("odd")])
async def test_a_handshake_that_breaks_is_nobody_reached(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def connect(url: str, **options: Any) -> FakeSocket:
        raise error

    monkeypatch.setattr(websockets_client, "connect", connect)
    http: Any = type("Http", (), {"url": "https://room/x", "token": "t"})()
    with pytest.raises(
        Unreachable, match=f"cannot open a WebSocket to https://room/x: {str(error) or 'timed out'}"
    ):
        await open_link(http, 7)


async def test_what_was_unanswered_goes_out_again_over_a_new_link() -> None:
    link, socket, inbox, outbox = link_of()
    asking = asyncio.ensure_future(outbox.ask("working", LiveBody()))
    await settle()
    await outbox.next()
    running = asyncio.ensure_future(link.run(inbox, outbox))
    await settle()

    assert socket.sent == [{"op": "working", "ref": 1}]
    for one in (running, asking):
        one.cancel()


# --- frames --------------------------------------------------------------------------------------


def test_frames_are_told_apart() -> None:
    assert read_frame(b'{"ref":"a","seq":4}') == CallAnswer(ref="a", seq=4)
    assert read_frame(b'{"error":"no","hint":"why","status":404}') == CallAnswer(
        error="no", hint="why", status=404
    )
    live = read_frame(b'{"live":{"watch":true,"text":"x"}}')
    assert isinstance(live, Live) and (live.watch, live.read().text) == (True, "x")
    odd = read_frame(b'{"live":[1]}')
    assert isinstance(odd, Live) and odd.watch is None
    assert not isinstance(read_frame(event(4)[1]), CallAnswer | Live | Unknown)
    with pytest.raises(BadInput):
        read_frame(b"{}")


def test_an_answer_has_an_error_only_where_there_is_one() -> None:
    assert CallAnswer(seq=1).to_error() is None
    refused, odd = (
        CallAnswer(error="no", hint="why", status=409).to_error(),
        CallAnswer(error="no").to_error(),
    )

    assert (type(refused), type(odd)) == (Refused, Broken)
    assert refused is not None and (refused.message, refused.hint) == ("no", "why")
    assert CallAnswer().posted is True


def test_an_http_answer_is_the_gateways_or_a_proxys() -> None:
    said = encode(ErrorView(error="no", hint="why"))

    assert read_answer(CallAnswer, 399, b'{"seq":4}', "u").seq == 4
    with pytest.raises(NotFound, match="no"):
        read_answer(CallAnswer, 404, said, "u")
    with pytest.raises(BadInput):
        read_answer(CallAnswer, 400, said, "u")
    with pytest.raises(Unreachable, match="u answered 200, but is not a gateway"):
        read_answer(CallAnswer, 200, b"<html>", "u")
    assert isinstance(read_error(502, b"<html>", "u"), Unreachable)
    assert isinstance(read_error(429, said, "u"), TooMany)
    assert type(read_error(500, said, "u")) is Broken
