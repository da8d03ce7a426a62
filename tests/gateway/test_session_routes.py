"""The routes of the modes by themselves: every word reaches the room."""

from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import NotFound
from csp.gateway import session_routes
from csp.protocol.enums import SessionAction
from csp.protocol.requests import HandoffBody, ModeBody, SessionActionBody, StopBody, TurnBody, VoteBody
from csp.protocol.session_parts import Limits
from csp.room.commands import CastVote, HandOffTurn, NextTurn, SetMode, Steer, Stop
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
    here = await gateway.command(session_routes.set_mode, AGENT, ModeBody(**TOLD))
    there = await gateway.command(session_routes.set_mode, AGENT, ModeBody(**TOLD, thread="side"))
    own = await gateway.command(session_routes.start_session, AGENT, ModeBody(**TOLD))
    named = await gateway.command(session_routes.start_session, AGENT, ModeBody(**TOLD, thread="side"))

    expected = SetMode(sender=CLAUDE, **TOLD, thread="default")
    assert here == expected
    assert [one.thread for one in (there, own, named)] == ["side", None, "side"]


async def test_who_steers_says_what_is_meant() -> None:
    gateway = Recorder()
    body = SessionActionBody(agent="codex", rounds=2, minutes=1.5)
    steered = await gateway.command(session_routes.act_on_session, AGENT, body, id="s-1", change="extend")

    assert steered == Steer(
        sender=CLAUDE, session="s-1", action=SessionAction.EXTEND, agent="codex", rounds=2, minutes=1.5
    )
    with pytest.raises(NotFound, match="unknown action 'dance'") as error:
        await gateway.command(session_routes.act_on_session, AGENT, body, id="s-1", change="dance")
    assert "extend" in error.value.hint


@pytest.mark.parametrize(
    ("handler", "body", "expected"),
    [
        (session_routes.next_turn, TurnBody(), NextTurn(thread="default")),
        (session_routes.next_turn, TurnBody(thread="side"), NextTurn(thread="side")),
        (session_routes.stop, StopBody(), Stop(sender=CLAUDE, thread="default")),
        (session_routes.stop, StopBody(thread="side"), Stop(sender=CLAUDE, thread="side")),
        (session_routes.stop, StopBody(thread="side", all=True), Stop(sender=CLAUDE, thread=None)),
        (
            session_routes.vote,
            VoteBody(label="A", reason="why", session="s-1"),
            CastVote(agent=CLAUDE, label="A", reason="why", session="s-1"),
        ),
        (
            session_routes.hand_over,
            HandoffBody(to="codex", task="go on", session="s-1"),
            HandOffTurn(agent=CLAUDE, to="codex", task="go on", session="s-1"),
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
    assert session_routes._known(with_sessions("s-1"), "s-1").id == "s-1"
    for gateway, hint in ((with_sessions("s-1"), "s-1"), (with_sessions(), "csp mode show")):
        with pytest.raises(NotFound, match="unknown session 's-2'") as error:
            session_routes._known(gateway, "s-2")
        assert hint in error.value.hint
