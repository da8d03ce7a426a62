"""The HTTP border: how many requests at once, bodies that nobody asked for, paths and methods."""

import pytest

from csp.gateway import http_server as http_module
from csp.protocol.enums import MAX_BODY_BYTES
from tests.gateway.served import ServedRoom


async def test_a_body_that_nobody_asked_for_is_read_within_limits(room: ServedRoom) -> None:
    small = await room.call("GET", "/agents", data=b"not json")
    large = await room.call("GET", "/agents", data=b"x" * (MAX_BODY_BYTES + 1))

    assert (small.status, small.data) == (200, [])
    assert (large.status, large.is_refusal) == (413, True)


async def test_a_method_that_a_path_does_not_have_is_answered_with_those_it_has(room: ServedRoom) -> None:
    plain = await room.call("DELETE", "/mode")
    pattern = await room.call("POST", "/agents/claude/screen")
    # A plain path is not taken for one of a pattern: there is no file of the page with this name.
    hidden = await room.call("GET", "/page/link")
    nothing = await room.call("GET", "/nowhere/at/all/x")

    assert (hidden.status, hidden.headers["Allow"]) == (405, "POST")
    assert (plain.status, plain.headers["Allow"]) == (405, "GET, POST")
    assert (pattern.status, pattern.headers["Allow"]) == (405, "GET")
    assert (nothing.status, nothing.is_refusal) == (404, True)


async def test_our_own_failure_is_logged_and_told_in_no_detail(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise RuntimeError("the details")

    monkeypatch.setattr(room.gateway, "mark_silent_offline", fail)
    answer = await room.call("GET", "/agents")

    assert (answer.status, answer.data["error"]) == (500, "internal error")
    assert room.gateway.metrics.requests[500] == 1
    assert "request failed" in caplog.messages


async def test_a_stop_gives_callers_a_second(room: ServedRoom) -> None:
    assert http_module.make_runner(room.gateway)._shutdown_timeout == 1.0
