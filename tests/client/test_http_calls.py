"""Single questions to the gateway: what is asked, and how long is waited."""

from collections.abc import Callable
from typing import Any

import pytest

from csp.client.http_calls import TIMEOUT_S, HttpCalls
from csp.client.incoming_frames import CallAnswer
from csp.errors import NotFound

Exchange = Callable[..., tuple[int, bytes]]


def http_of(monkeypatch: pytest.MonkeyPatch, exchange: Exchange) -> HttpCalls:
    http = HttpCalls("http://room:1/", "token")
    monkeypatch.setattr(http._gateway, "exchange", exchange)
    return http


async def test_a_question_is_asked_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def exchange(method: str, path: str, body: bytes | None, timeout_s: float) -> Any:
        asked.append((method, path, body, timeout_s))
        return 200, b'{"seq":7}'

    http = http_of(monkeypatch, exchange)
    answers = [
        (await http.place()).seq,
        (await http.post(CallAnswer, "/message", b"{}")).seq,
    ]

    assert (answers, http.url, TIMEOUT_S) == ([7] * 2, "http://room:1", 20.0)
    assert asked == [
        ("GET", "/health", None, 20.0),
        ("POST", "/message", b"{}", 20.0),
    ]


async def test_a_refusal_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    http = http_of(monkeypatch, lambda *given: (404, b'{"error":"unknown","hint":"look"}'))
    with pytest.raises(NotFound, match="unknown"):
        await http.place()
