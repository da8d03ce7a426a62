"""The routes of the modes by themselves: every word reaches the room."""

from types import SimpleNamespace
from typing import Any

import pytest

from csp.core.commands import CastVote, HandTurn, NextTurn, SetMode, Steer, Stop
from csp.errors import NotFound
from csp.gateway import sessions
from csp.wire import (
    HandoffBody,
    Limits,
    ModeBody,
    SessionAction,
    SessionActionBody,
    StopBody,
    TurnBody,
    VoteBody,
)
from tests.gateway.asked import AGENT, CLAUDE, Recorder

TOLD: dict[str, Any] = {
    "mode": "debate",
    "topic": "tabs",
    "agents": ("claude", "codex"),
    "rounds": 3,
    "steps": 4,
    "first": "codex",
    "synth": "claude",
    "ballot": True,
    "respect_final": True,
    "soft_turns": True,
    "limits": Limits(turns=9),
}


async def test_every_word_of_a_mode_reaches_the_room() -> None:
    gateway = Recorder()
    here = await gateway.command(sessions.set_mode, AGENT, ModeBody(**TOLD))
    there = await gateway.command(sessions.set_mode, AGENT, ModeBody(**TOLD, thread="side"))
    own = await gateway.command(sessions.start_session, AGENT, ModeBody(**TOLD))
    named = await gateway.command(sessions.start_session, AGENT, ModeBody(**TOLD, thread="side"))

    expected = SetMode(sender=CLAUDE, **TOLD, thread="default")
    assert here == expected
    assert [one.thread for one in (there, own, named)] == ["side", None, "side"]


async def test_who_steers_says_what_is_meant() -> None:
    gateway = Recorder()
    body = SessionActionBody(agent="codex", rounds=2, minutes=1.5)
    steered = await gateway.command(sessions.act_on_session, AGENT, body, id="s-1", change="extend")

    assert steered == Steer(
        sender=CLAUDE, session="s-1", action=SessionAction.EXTEND, agent="codex", rounds=2, minutes=1.5
    )
    with pytest.raises(NotFound, match="unknown action 'dance'") as error:
        await sessions.act_on_session(gateway, SimpleNamespace(path={"change": "dance"}))  # type: ignore[arg-type]  # it is enough
    assert "extend" in error.value.hint


@pytest.mark.parametrize(
    ("handler", "body", "expected"),
    [
        (sessions.next_turn, TurnBody(), NextTurn(thread="default")),
        (sessions.next_turn, TurnBody(thread="side"), NextTurn(thread="side")),
        (sessions.stop, StopBody(), Stop(sender=CLAUDE, thread="default")),
        (sessions.stop, StopBody(thread="side"), Stop(sender=CLAUDE, thread="side")),
        (sessions.stop, StopBody(thread="side", all=True), Stop(sender=CLAUDE, thread=None)),
        (
            sessions.vote,
            VoteBody(label="A", reason="why", session="s-1"),
            CastVote(agent=CLAUDE, label="A", reason="why", session="s-1"),
        ),
        (
            sessions.hand_over,
            HandoffBody(to="codex", task="go on", session="s-1"),
            HandTurn(agent=CLAUDE, to="codex", task="go on", session="s-1"),
        ),
    ],
)
async def test_every_word_about_a_turn_reaches_the_room(handler: Any, body: Any, expected: Any) -> None:
    assert await Recorder().command(handler, AGENT, body) == expected


def with_sessions(*names: str) -> Any:
    known = {name: SimpleNamespace(id=name) for name in names}
    sessions_of_room = SimpleNamespace(get=known.get, by_id=known)
    return SimpleNamespace(writer=SimpleNamespace(room=SimpleNamespace(sessions=sessions_of_room)))


def test_a_session_that_is_not_there_is_refused_with_one_that_is() -> None:
    assert sessions._known(with_sessions("s-1"), "s-1").id == "s-1"
    for gateway, hint in ((with_sessions("s-1"), "s-1"), (with_sessions(), "csp mode show")):
        with pytest.raises(NotFound, match="unknown session 's-2'") as error:
            sessions._known(gateway, "s-2")
        assert hint in error.value.hint
