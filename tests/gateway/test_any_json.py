"""Whatever JSON anybody sends to whichever route: the gateway never fails."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csp.gateway.route_table import Route
from csp.gateway.routes import ROUTES
from csp.gateway.websocket import OPS
from tests.gateway.served import ServedRoom, served

WORDS = st.sampled_from(
    ["claude", "codex", "all", "human", "m-1", "m-2", "m-3", "held", "confirmed", "busy", "freeform", "mine"]
)
NUMBERS = (
    st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([2**53, 2**64, 1e308])
)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text() | WORDS
ANY_JSON = st.recursive(SCALARS, lambda part: st.lists(part) | st.dictionaries(st.text() | WORDS, part))
#: Every field of every body, so that most objects mean something to some route.
FIELDS = sorted({name for route in ROUTES if route.body for name in route.body.__struct_encode_fields__})
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), SCALARS | ANY_JSON, max_size=len(FIELDS))
BODIES = ANY_JSON | OBJECTS
#: Those that read what they are sent; a body sent to any other is dropped unread.
WITH_BODY = [route for route in ROUTES if route.body is not None]


@contextmanager
def _running(folder: Path) -> Iterator[Any]:
    """Serve a room on a loop of its own, because hypothesis calls from outside of one."""
    with asyncio.Runner() as runner:
        room = served(folder, durability="flush")
        runner.run(room.start())
        runner.run(_prepare(room))
        try:
            yield room, runner.run
        finally:
            runner.run(room.stop())


async def _prepare(room: ServedRoom) -> None:
    for name in ("claude", "codex"):
        await room.join(name)
    await room.send("claude", "hello")


def _path(route: Route, action: str, whom: str) -> str:
    return route.path.replace("{id}", whom).replace("{verb}", action).replace("{action}", action)


def _check_routes(tmp_path: Path, routes: Sequence[Route], examples: int) -> None:
    with _running(tmp_path / "room") as (room, run):

        @settings(max_examples=examples)
        @given(
            body=BODIES,
            action=st.sampled_from(["pause", "resume", "approve", "cancel", "redact", "resend", "continue"]),
            whom=st.sampled_from(["claude", "codex", "m-3", "mine", "nobody"]),
        )
        def check(body: object, action: str, whom: str) -> None:
            for route in routes:
                answer = run(room.call(route.method, _path(route, action, whom), body))

                assert answer.status < 300 or answer.is_refusal, (route, body, answer)

        check()


def _check_operations(tmp_path: Path, ops: Sequence[str], examples: int) -> None:
    with _running(tmp_path / "room") as (room, run):
        gemini = run(room.join("gemini"))
        socket = run(room.connect(gemini.token))

        @settings(max_examples=examples)
        @given(body=OBJECTS)
        def check(body: dict[str, object]) -> None:
            for op in ops:
                answer = run(socket.ask(op, **body))

                assert answer.get("ok") is True or (answer["error"] and isinstance(answer["hint"], str)), op

        check()


def test_no_json_is_our_failure_on_any_route(tmp_path: Path) -> None:
    _check_routes(tmp_path, WITH_BODY, 20)


@pytest.mark.full
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_no_long_run_of_json_is_our_failure_on_any_route(tmp_path: Path, route: Route) -> None:
    _check_routes(tmp_path, [route], 60)


OPERATIONS = [*OPS, "watch", "unwatch", "nonsense"]


def test_no_json_is_our_failure_in_any_operation(tmp_path: Path) -> None:
    _check_operations(tmp_path, OPERATIONS, 20)


@pytest.mark.full
@pytest.mark.parametrize("op", OPERATIONS)
def test_no_long_run_of_json_is_our_failure_in_any_operation(tmp_path: Path, op: str) -> None:
    _check_operations(tmp_path, [op], 60)


def test_every_text_arrives_as_it_was_sent(tmp_path: Path) -> None:
    with _running(tmp_path / "room") as (room, run):
        gemini = run(room.join("gemini"))
        socket = run(room.connect(gemini.token))

        @settings(max_examples=30)
        @given(text=st.text(min_size=1))
        def check(text: str) -> None:
            sent = run(room.post("/message", {"to": "gemini", "content": text}))
            run(socket.until_seq(sent["seq"]))
            (item,) = run(room.get(f"/inbox/gemini?after={sent['seq'] - 1}", gemini.token))["items"]

            assert run(room.history("?limit=1"))[0]["text"] == text
            assert (socket.texts[-1], socket.delivers[-1]["text"], item["text"]) == (text, text, text)

        check()
