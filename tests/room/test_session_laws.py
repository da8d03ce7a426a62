"""What holds for the sessions of every history, checked on random ones."""

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given

from csp.errors import CspError
from csp.protocol.enums import (
    HUMAN,
    AgentId,
    DeliveryState,
    MessageId,
    Mode,
    SessionAction,
    SessionId,
    TurnId,
)
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    DeliveryMoved,
    Joined,
    KnownEvent,
    Left,
    MessageEvent,
    ModeChanged,
    TurnMoved,
    TurnSignal,
    Voted,
    decode_event,
    encode_event,
)
from csp.protocol.session_parts import Change, OnLimit, PhaseKind, Status, TurnState
from csp.room.commands import SetMode, Steer, Tick
from csp.room.decide import decide, draft_of
from csp.room.messages import pending
from csp.room.room_reducer import replay
from csp.room.room_state import Room, dump, load, may_move
from csp.room.sessions.modes import row_of
from csp.room.sessions.session_limits import minutes_used
from csp.room.sessions.session_state import OPEN, Session
from csp.room.sessions.steering import next_deadline
from csp.room.visibility import is_visible_to
from tests.room.histories import assert_draft_is_replay
from tests.room.session_histories import RULES, play_sessions, session_histories, step_of

ONE_AT_A_TIME = (PhaseKind.RELAY, PhaseKind.SOLO, PhaseKind.REVIEW)


@pytest.fixture(scope="module", autouse=True)
def _small_window() -> Iterator[None]:
    """Make messages be forgotten so early that turns outlive their asks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("csp.room.room_reducer.WINDOW", 12)
        yield


def journal_of(script: bytes) -> list[KnownEvent]:
    return [event for step, _ in play_sessions(script) for event in step.events]


@given(session_histories())
def test_nothing_is_asked_or_posted_after_the_end(script: bytes) -> None:
    over: set[SessionId] = set()
    for event in journal_of(script):
        if isinstance(event, ModeChanged) and event.change is Change.CONTINUED:
            over.discard(event.session_id)
        if isinstance(event, TurnSignal | AgentResponse | AgentCall | Activity | Voted):
            assert event.session_id not in over
        if isinstance(event, ModeChanged | TurnMoved):
            assert event.session_id not in over
        if isinstance(event, ModeChanged) and event.change is Change.ENDED:
            over.add(event.session_id)


@given(session_histories())
def test_running_session_waits_for_somebody(script: bytes) -> None:
    for step, _ in play_sessions(script):
        for session in step.room.sessions.live():
            assert session.turns or session.status is Status.PAUSED or session.stage.is_waiting
            # A collaboration that goes on with fewer places keeps the turns that it asked for before.
            is_asking = any(
                isinstance(one, TurnSignal) and one.session_id == session.id for one in step.events
            )
            is_wide = session.stage.kind not in ONE_AT_A_TIME
            assert len(session.turns) <= session.width or is_wide or not is_asking
            assert len(session.turns) <= 1 or session.stage.kind is not PhaseKind.SOLO
            for agent, turn in session.turns.items():
                ask = step.room.message(turn.message)
                assert ask is not None or turn.state is not TurnState.ASKED
                assert ask is None or (ask.turn, list(ask.deliveries)) == (turn.id, [agent])


@given(session_histories())
def test_nobody_is_asked_who_is_not_here(script: bytes) -> None:
    for step, _ in play_sessions(script):
        asked = {event.target for event in step.events if isinstance(event, TurnSignal)}
        assert asked <= set(step.room.participants)


@given(session_histories())
def test_ended_session_has_a_reason_and_no_turns(script: bytes) -> None:
    for step, _ in play_sessions(script):
        for session in step.room.sessions.by_id.values():
            assert session.is_over == (session.reason is not None) == (session.ended_at is not None)
            assert not (session.is_over and session.turns)


@given(session_histories())
def test_turn_is_closed_once(script: bytes) -> None:
    open_turns: dict[tuple[SessionId | None, AgentId], TurnId] = {}
    for event in journal_of(script):
        if isinstance(event, TurnSignal):
            key = (event.session_id, event.target)
            assert key not in open_turns or event.is_repair or event.is_again
            open_turns[key] = TurnId(event.turn or "")
        elif isinstance(event, TurnMoved):
            known = open_turns.get((event.session_id, event.agent))
            # One that nobody could take was never asked for.
            assert known in (event.turn, None)
            if event.state not in OPEN:
                open_turns.pop((event.session_id, event.agent), None)


def _most_turns(session: Session) -> int | None:
    """Return how many turns a session may ask for, its synthesis among them."""
    setup, row = session.setup, row_of(session.setup)
    if setup.mode is Mode.REVIEW:
        return setup.limits.turns  # else its people see to it, who are asked what to do
    own = setup.rounds if row.is_round_a_turn else (setup.rounds or 1) * len(setup.agents) * 3
    limits = [most for most in (own, setup.limits.turns) if most is not None]
    return min(limits) + 1 if limits else None


@given(session_histories())
def test_turns_stay_within_the_cap(script: bytes) -> None:
    asked: dict[SessionId | None, int] = {}
    for step, _ in play_sessions(script):
        for event in step.events:
            if isinstance(event, TurnSignal) and not event.is_repair and not event.is_again:
                asked[event.session_id] = asked.get(event.session_id, 0) + 1
            if isinstance(event, ModeChanged) and event.change is Change.CONTINUED:
                # Each time that it goes on it may end with a synthesis, or break one off.
                asked[event.session_id] = asked.get(event.session_id, 0) - 1
        for session in step.room.sessions.by_id.values():
            most = _most_turns(session)
            assert most is None or asked.get(session.id, 0) <= most


@given(session_histories())
def test_replay_equals_live(script: bytes) -> None:
    events: list[KnownEvent] = []
    room = Room()
    for step, _ in play_sessions(script):
        events += step.events
        room = step.room
    read = [decode_event(encode_event(event)) for event in events]

    assert dump(replay(read)) == dump(room)
    assert dump(load(dump(room))) == dump(room)


@given(session_histories())
def test_deciding_never_changes_the_room(script: bytes) -> None:
    for step, now in play_sessions(script):
        before = dump(step.room)
        for command in (Tick(), SetMode(sender=HUMAN, mode="debate", rounds=1), step.command):
            with contextlib.suppress(CspError):
                decide(step.room, command, now + 200, RULES)
            assert dump(step.room) == before


@given(session_histories())
def test_draft_is_the_room_after_its_events(script: bytes) -> None:
    for step, now in play_sessions(script):
        for command in (Tick(), SetMode(sender=HUMAN, mode="debate", rounds=1), step.command):
            with contextlib.suppress(CspError):
                assert_draft_is_replay(step.room, draft_of(step.room, command, now + 200, RULES))


@given(session_histories())
def test_clock_alone_ends_every_session(script: bytes) -> None:
    room, now = Room(), 0.0
    for step, clock in play_sessions(script):
        room, now = step.room, clock
    for session in list(room.sessions.live()):
        command = Steer(sender=HUMAN, session=session.id, action=SessionAction.RESUME)
        room = step_of(room, command, now).room
    for _ in range(400):
        deadline = next_deadline(room, RULES)
        if deadline is None or not any(room.sessions.live()):
            break
        now = max(now, deadline)
        room = step_of(room, Tick(), now).room

    # A run that waits for a person, for a file or for CSP itself has no clock, nor has a session at a limit
    # that asks, or one that waits for an agent.
    for session in room.sessions.live():
        is_waiting = any(turn.is_waiting for turn in session.turns.values())
        assert session.stage.is_waiting or session.held is not None or is_waiting


@given(session_histories())
def test_wait_ends_with_one_prompt(script: bytes) -> None:
    """An agent is asked again once after each wait, or once for each new process, and never otherwise."""
    may_ask: set[tuple[SessionId | None, AgentId]] = set()
    new: set[AgentId] = set()
    for event in journal_of(script):
        if isinstance(event, TurnSignal) and event.is_again:
            key = (event.session_id, event.target)
            assert key in may_ask or event.target in new
            may_ask.discard(key)
        elif isinstance(event, TurnMoved) and event.state is TurnState.WAITING:
            may_ask.add((event.session_id, event.agent))
        elif isinstance(event, TurnMoved):
            may_ask.discard((event.session_id, event.agent))
        elif isinstance(event, Joined):
            new.add(event.sender)
        elif isinstance(event, Left):
            new.discard(event.sender)


@given(session_histories())
def test_session_that_waits_never_fails_a_turn_for_a_limit(script: bytes) -> None:
    for step, _ in play_sessions(script):
        for event in step.events:
            session = step.room.sessions.get(getattr(event, "session_id", None))
            if (
                session is not None
                and session.setup.on_limit is OnLimit.WAIT
                and isinstance(event, TurnMoved)
            ):
                assert not (event.state is TurnState.FAILED and "limit" in event.reason)


@given(session_histories())
def test_time_that_counts_only_grows(script: bytes) -> None:
    used: dict[SessionId, float] = {}
    for step, now in play_sessions(script):
        for session in step.room.sessions.live():
            # An event never has a time before the last one, even if the clock has.
            minutes = minutes_used(session, max(now, step.room.ts))
            assert minutes >= used.get(session.id, 0.0) - 1e-6
            used[session.id] = minutes


@given(session_histories())
def test_nothing_is_asked_while_a_session_is_held(script: bytes) -> None:
    held: set[SessionId] = set()
    for event in journal_of(script):
        if isinstance(event, ModeChanged) and event.change is Change.PAUSED:
            held.add(event.session_id)
        elif isinstance(event, ModeChanged) and event.change is not Change.EXTENDED:
            held.discard(event.session_id)
        assert not isinstance(event, TurnSignal) or event.session_id not in held or event.is_repair


@given(session_histories())
def test_deadline_and_tick_agree(script: bytes) -> None:
    for step, _ in play_sessions(script):
        deadline = next_deadline(step.room, RULES)
        if deadline is None:
            continue
        assert decide(step.room, Tick(), deadline - 0.125, RULES) == []
        room = load(dump(step.room))
        after = step_of(room, Tick(), deadline)
        following = next_deadline(after.room, RULES)
        assert after.events
        assert following is None or following > deadline


@given(session_histories())
def test_delivery_moves_only_forward(script: bytes) -> None:
    states: dict[tuple[MessageId, AgentId], DeliveryState] = {}
    for event in journal_of(script):
        if isinstance(event, MessageEvent):
            for agent in event.recipients:
                is_held = event.held or agent in event.waits
                states[event.id, agent] = DeliveryState.HELD if is_held else DeliveryState.QUEUED
        elif isinstance(event, DeliveryMoved) and (event.message, event.agent) in states:
            assert may_move(states[event.message, event.agent], event.state)
            states[event.message, event.agent] = event.state


@given(session_histories())
def test_nobody_reads_what_is_sealed(script: bytes) -> None:
    said: list[AgentResponse | AgentCall | Activity | Voted] = []
    for step, _ in play_sessions(script):
        said += [one for one in step.events if isinstance(one, AgentResponse | AgentCall | Activity | Voted)]
        sessions = step.room.sessions
        hidden = [
            event
            for event in said
            if event.sealed
            and event.session_id in sessions.by_id
            and sessions.by_id[event.session_id].seal == event.sealed
        ]
        for agent in step.room.participants:
            for event in hidden:
                if event.sender == agent:
                    continue
                assert not is_visible_to(event, agent, sessions)
                if event.text.startswith("<text"):
                    words = event.text.split(">")[0] + ">"
                    assert not any(words in item.text for item in pending(step.room, agent))


@given(session_histories())
def test_seqs_have_no_gap(script: bytes) -> None:
    events = journal_of(script)

    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len({event.id for event in events}) == len(events)
