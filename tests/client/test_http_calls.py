"""Single questions to the gateway: what is asked, how long is waited, what may still be on its way."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from csp.client.http_calls import TIMEOUT_S, HttpCalls
from csp.client.incoming_frames import CallAnswer
from csp.errors import NotFound, Unreachable

Exchange = Callable[..., tuple[int, bytes]]


def http_of(monkeypatch: pytest.MonkeyPatch, exchange: Exchange) -> HttpCalls:
    http = HttpCalls("http://room:1/", "token")
    monkeypatch.setattr(http._gateway, "exchange", exchange)
    return http


async def test_a_question_waits_beyond_what_it_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def exchange(method: str, path: str, body: bytes | None, timeout_s: float, on_sent: object) -> Any:
        asked.append((method, path, body, timeout_s))
        return 200, b'{"seq":7}'

    http = http_of(monkeypatch, exchange)
    answers = [
        await http.seq(),
        (await http.get(CallAnswer, "/history", after=3)).seq,
        (await http.get(CallAnswer, "/inbox/ada", 25.0, after=3)).seq,
        (await http.post(CallAnswer, "/message", b"{}")).seq,
    ]

    assert (answers, http.url, TIMEOUT_S) == ([7] * 4, "http://room:1", 20.0)
    assert asked == [
        ("GET", "/health", None, 20.0),
        ("GET", "/history?after=3", None, 20.0),
        ("GET", "/inbox/ada?after=3&wait=25.0", None, 45.0),
        ("POST", "/message", b"{}", 20.0),
    ]


async def test_nothing_is_on_its_way_once_it_was_sent_or_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, sent, may_end = threading.Event(), threading.Event(), threading.Event()

    def exchange(method: str, path: str, body: object, timeout_s: float, on_sent: Callable[[], None]) -> Any:
        assert go_on.wait(60)
        on_sent()
        sent.set()
        assert may_end.wait(60)
        return 200, b'{"seq":7}'

    http = http_of(monkeypatch, exchange)
    asking = asyncio.ensure_future(http.seq())
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(http.sent())
    await asyncio.sleep(0)
    was_early = waiting.done()
    asking.cancel()
    go_on.set()
    async with asyncio.timeout(60):
        await waiting

    # The caller has left; its thread still waits for the answer.
    assert (was_early, sent.is_set(), may_end.is_set()) == (False, True, False)
    may_end.set()


async def test_a_question_that_cannot_be_sent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def exchange(*given: object) -> Any:
        raise Unreachable("nobody there")

    http = http_of(monkeypatch, exchange)
    with pytest.raises(Unreachable):
        await http.seq()
    async with asyncio.timeout(60):
        await http.sent()


async def test_a_refusal_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    http = http_of(monkeypatch, lambda *given: (404, b'{"error":"unknown","hint":"look"}'))
    with pytest.raises(NotFound, match="unknown"):
        await http.seq()
