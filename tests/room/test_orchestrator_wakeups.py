"""Which wake-ups are owed an answer."""

from typing import Any

import pytest

from csp.protocol.enums import HUMAN, SYSTEM, AgentId, JoinRole, MessageId, ParticipantKind, SessionId
from csp.protocol.events import (
    AgentResponse,
    AnyEvent,
    Joined,
    LateReply,
    Left,
    ModeChanged,
    NoticePosted,
    SystemReply,
)
from csp.protocol.session_parts import Change
from csp.room.room_reducer import replay
from csp.room.room_state import UnansweredWakeups, Wakeups, dump, load
from tests.room.playing import BOSS

SESSION = SessionId("s-1")


def event(type: Any, sender: AgentId, target: AgentId, ts: float = 5.0, **fields: Any) -> AnyEvent:
    made: AnyEvent = type(1, ts, MessageId("x"), sender, target, "default", "text", **fields)
    return made


def woken(ts: float = 5.0) -> AnyEvent:
    return event(SystemReply, SYSTEM, BOSS, ts, recipients=(BOSS,), session_id=SESSION)


def after(*events: AnyEvent) -> dict[AgentId, UnansweredWakeups]:
    wakeups = Wakeups()
    for one in events:
        wakeups.apply(one)
    return wakeups.by_agent


def test_the_first_two_wakeups_are_remembered() -> None:
    assert after(woken(1.0), woken(2.0), woken(3.0)) == {BOSS: UnansweredWakeups((1.0, 2.0))}


def test_an_answer_of_the_room_is_no_wakeup() -> None:
    assert after(event(SystemReply, SYSTEM, BOSS, recipients=(BOSS,))) == {}


@pytest.mark.parametrize(
    "sign",
    [
        event(AgentResponse, BOSS, HUMAN, recipients=()),
        event(ModeChanged, BOSS, HUMAN, session_id=SESSION, change=Change.STARTED),
        event(LateReply, BOSS, HUMAN, turn="t-1"),
        event(Left, BOSS, HUMAN, reason="closed"),
    ],
)
def test_a_sign_of_life_clears_them(sign: AnyEvent) -> None:
    assert after(woken(), woken(), sign) == {}


@pytest.mark.parametrize(
    "other",
    [
        event(AgentResponse, AgentId("claude"), HUMAN, recipients=()),
        event(NoticePosted, SYSTEM, HUMAN),
        event(Joined, BOSS, HUMAN, name="o", kind=ParticipantKind.CLI, role=JoinRole.ORCHESTRATOR, epoch=1),
    ],
)
def test_what_others_say_does_not(other: AnyEvent) -> None:
    assert after(woken(), other) == {BOSS: UnansweredWakeups((5.0,))}


def test_the_warning_is_remembered_and_so_is_what_came_before_it() -> None:
    warned = event(NoticePosted, SYSTEM, HUMAN, silent=BOSS)

    assert after(woken(1.0), warned, woken(2.0)) == {BOSS: UnansweredWakeups((1.0, 2.0), is_told=True)}
    assert after(warned) == {}


def test_a_snapshot_keeps_them() -> None:
    room = replay([woken(1.0), event(NoticePosted, SYSTEM, HUMAN, silent=BOSS)])

    assert load(dump(room)).wakeups.by_agent == {BOSS: UnansweredWakeups((1.0,), is_told=True)}
