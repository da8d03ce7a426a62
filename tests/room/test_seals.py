"""What each participant can learn is what it may: random sessions at once, members and outsiders."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from csp.protocol.codec import encode
from csp.protocol.enums import AgentId, DeliveryState, HeldReason
from csp.protocol.events import MessageEvent, NoteAdded, StateChanged, Voted, encode_event
from csp.room.messages import pending
from csp.room.room_state import Room
from csp.room.runs.run_protocol import run_detail
from csp.room.sessions.session_views import collaboration_view, mode_view, session_view, spent_view
from csp.room.visibility import is_hidden, is_visible_to, seals_on, visible_spending
from tests.room.sealed_histories import RULES, STEP_BYTES, Step, Word, play_sealed

SCRIPTS = st.integers(0, 40).flatmap(
    lambda steps: st.binary(min_size=steps * STEP_BYTES, max_size=steps * STEP_BYTES)
)


def views_of(room: Room, reader: AgentId) -> Iterator[tuple[str, bytes]]:
    """Yield everything that is shown to a participant without the journal, with its name."""
    sessions = room.sessions
    for session in sessions.by_id.values():
        spent = visible_spending(session.spent, reader, sessions)
        yield "mode", encode(mode_view(room, session, RULES))
        yield "session", encode(session_view(session, spent))
        if session.setup.collaboration is not None:
            yield (
                "collaboration",
                encode(collaboration_view(session, session.setup.collaboration, None, spent)),
            )
    yield "usage", encode(spent_view(visible_spending(room.spent, reader, sessions)))
    for one in room.participants.values():
        detail = "" if is_hidden(one.seals, one.id, reader, sessions) else one.detail
        yield "agents", encode([one.id, one.name, one.capabilities, one.state, detail])
    for run in room.runs.by_id.values():
        yield "run", encode(run_detail(run))
    yield "inbox", encode(list(pending(room, reader)))


def leaks(step: Step) -> list[tuple[AgentId, str, str]]:
    """Return who learns where which word that is still sealed."""
    sealed = [word for word in step.words if word.is_sealed(step.room)]
    if not sealed:
        return []
    found = [leak for event in step.journal for leak in _in_line(event, sealed, step.room)]
    for reader in step.room.participants:
        for name, view in views_of(step.room, reader):
            found += [(reader, name, word.text) for word in _words_in(view, sealed) if word.author != reader]
    return found


def _in_line(event: object, sealed: list[Word], room: Room) -> Iterator[tuple[AgentId, str, str]]:
    line = encode_event(event)  # type: ignore[arg-type]  # every event of a journal is known
    for word in _words_in(line, sealed):
        for reader in room.participants:
            if reader != word.author and is_visible_to(event, reader, room.sessions):  # type: ignore[arg-type]  # as above
                yield reader, type(event).__name__, word.text


def _words_in(data: bytes, words: list[Word]) -> list[Word]:
    return [word for word in words if word.text.encode() in data]


def check_seals(script: bytes) -> None:
    for step in play_sealed(script):
        assert leaks(step) == [], step.command


@given(script=SCRIPTS)
@settings(max_examples=150)
def test_nobody_learns_what_is_sealed(script: bytes) -> None:
    check_seals(script)


@pytest.mark.full
@given(script=SCRIPTS)
@settings(max_examples=3000)
def test_nobody_learns_what_is_sealed_at_length(script: bytes) -> None:
    check_seals(script)


@given(script=SCRIPTS)
@settings(max_examples=60)
def test_what_was_sealed_opens_with_the_last_of_its_phases(script: bytes) -> None:
    for step in play_sealed(script):
        sessions = step.room.sessions
        for event in step.journal:
            if isinstance(event, MessageEvent | Voted | NoteAdded | StateChanged) and not sessions.is_sealed(
                seals_on(event)
            ):
                plain = (
                    replace(event, sealed=0)
                    if isinstance(event, MessageEvent | Voted)
                    else replace(event, seals={})
                )
                for reader in step.room.participants:
                    assert is_visible_to(event, reader, sessions) == is_visible_to(plain, reader, sessions)


@given(script=SCRIPTS)
@settings(max_examples=100)
def test_nothing_waits_for_a_phase_that_is_over(script: bytes) -> None:
    for step in play_sealed(script):
        room = step.room
        for participant in room.participants.values():
            for message in room.unfinished(participant.queue):
                delivery = message.deliveries[participant.id]
                if (delivery.state, delivery.reason) == (DeliveryState.HELD, HeldReason.TURN):
                    session = room.sessions.get(message.session)
                    is_live = session is not None and not session.is_over
                    assert is_live or room.sessions.is_sealed(message.seals), message
