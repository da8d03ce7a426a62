"""The sessions of a room, as long as they are remembered."""

from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from csp.protocol.enums import HUMAN, MessageId, SessionId
from csp.protocol.events import AgentResponse, Event, Joined, ModeChanged, TurnMoved, TurnSignal
from csp.protocol.requests import Handoff
from csp.protocol.session_parts import Change, TurnState
from csp.room.commands import RedactMessage, SetMode, Stop
from csp.room.room_state import dump, load, without_texts
from csp.room.sessions.session_reducer import KEPT_ENDED, Sessions, step
from csp.room.sessions.session_state import Session
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import Play


def test_only_the_last_ended_sessions_are_remembered() -> None:
    play = Play()
    for number in range(KEPT_ENDED + 3):
        play.do(SetMode(sender=HUMAN, mode="single", thread=f"thread-{number}"))
        play.do(Stop(sender=HUMAN, thread=None))

    assert len(play.room.sessions.by_id) == len(play.room.sessions.threads) == KEPT_ENDED
    assert play.room.sessions.newest_in("thread-0") is None


def test_session_that_outlives_many_others_ends_like_them() -> None:
    play = Play()
    play.start("single", agents=("claude",))
    oldest = play.session.id
    for number in range(KEPT_ENDED + 3):
        play.do(SetMode(sender=HUMAN, mode="single", thread=f"thread-{number}", agents=("codex",)))
        play.do(Stop(sender=HUMAN, thread=f"thread-{number}"))
    play.do(Stop(sender=HUMAN, thread="default"))

    ended = play.room.sessions.get(oldest)
    assert ended is not None and ended.is_over
    assert len(play.room.sessions.by_id) == KEPT_ENDED


def test_thread_whose_old_session_is_forgotten_keeps_its_new_one() -> None:
    play = Play()
    for _ in range(KEPT_ENDED + 3):
        play.start("single")

    assert play.session.is_running
    assert list(play.room.sessions.threads) == ["default"]


def test_sessions_are_known_by_their_agents() -> None:
    play = Play()
    play.start("single", agents=("claude",))

    assert play.room.sessions.live_with(CLAUDE) == [play.session]
    assert play.room.sessions.live_with(CODEX) == []
    assert play.room.sessions.get(None) is None
    assert play.room.sessions.live_in("dev") is None


def test_lost_beginning_of_a_session_is_passed_over() -> None:
    play = Play()
    play.start("single")
    sessions = Sessions()
    for event in play.journal:
        if not isinstance(event, ModeChanged) or event.change is not Change.STARTED:
            sessions.apply(event)

    assert sessions == Sessions()


def test_lost_ask_of_a_turn_is_passed_over() -> None:
    play = Play()
    play.start("round_robin")
    turn = play.turn(CLAUDE)
    play.reply(CLAUDE)
    head = (99, 1.0, MessageId("e-99"), CLAUDE, CLAUDE, "default", "")
    moved = TurnMoved(*head, play.session.id, turn.id, CLAUDE, TurnState.WORKING, 1)

    assert step(play.session, moved) == play.session


def test_change_of_a_newer_kind_is_passed_over() -> None:
    play = Play()
    play.start("single")
    odd = ModeChanged(
        99, 1.0, MessageId("e-99"), CLAUDE, CLAUDE, "default", "", play.session.id, Change.STARTED
    )

    assert step(play.session, odd) == play.session


def test_event_that_is_of_no_session_changes_none() -> None:
    play = Play()
    play.start("single")
    before = play.session
    play.room.sessions.apply(play.journal[0])

    assert isinstance(play.journal[0], Joined) and play.session == before


def test_redacted_reply_is_gone_from_its_session() -> None:
    play = Play()
    play.start("collaborate")
    play.reply(CLAUDE, "a secret", handoff=Handoff(to="codex", task="hide it"))
    (reply,) = play.all(AgentResponse)
    play.do(RedactMessage(message=reply.id))

    assert b"secret" not in dump(play.room).partition(b'"sessions"')[2]
    assert [item.text for item in play.session.items] == []
    assert play.session.outputs[CLAUDE][0].text == ""


def test_room_without_texts_has_none_of_its_sessions() -> None:
    play = Play()
    play.start("collaborate")
    play.reply(CLAUDE, "a secret", handoff=Handoff(to="codex", task="hide it"))
    play.reply(CODEX, "a secret", final=True)
    play.start("round_robin", synth="codex", steps=1)
    play.reply(CLAUDE, "a secret")
    play.reply(CODEX, "all a secret")
    data = dump(without_texts(load(dump(play.room))))

    assert b"secret" not in data
    assert b"hide" not in data


def test_session_of_another_journal_line_is_found_by_its_id() -> None:
    play = Play()
    play.start("single")

    assert play.room.sessions.get(SessionId(play.session.id)) == play.session


def test_event_or_change_of_no_known_kind_is_a_fault_of_ours() -> None:
    play = Play()
    play.start("single")
    change = play.all(ModeChanged)[-1]
    odd = Event(9, 1.0, MessageId("e-9"), HUMAN, HUMAN, "default", "words")

    with pytest.raises(AssertionError):
        step(play.session, cast(Any, odd))
    with pytest.raises(AssertionError):
        step(play.session, replace(change, change=cast(Any, "odd")))


def test_a_turn_that_costs_nothing_is_dumped_alike_before_and_after_a_snapshot() -> None:
    play = Play()
    play.start("single")
    # Integers, which a snapshot brings back as floats.
    free = replace(play.all(TurnSignal)[-1], foreseen_usd=0, allowed_usd=0)
    session = step(play.session, free)
    dumped = msgspec.json.encode(session)

    assert msgspec.json.encode(msgspec.json.decode(dumped, type=Session)) == dumped
