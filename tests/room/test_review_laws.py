"""What holds for the runs of every history, checked on random ones."""

from collections.abc import Iterator

from hypothesis import given

from csp.protocol.enums import SYSTEM
from csp.protocol.events import KnownEvent, RunMoved, RunSaid
from csp.protocol.review_messages import Decision, RunPhase, type_of_body
from csp.room.commands import ActOnRun
from csp.room.room_reducer import apply
from csp.room.room_state import Room
from csp.room.runs.run_protocol import LEGAL
from csp.room.runs.run_state import ReviewRun
from tests.room.session_histories import play_sessions, session_histories


def with_run_before(script: bytes) -> Iterator[tuple[KnownEvent, ReviewRun | None]]:
    """Yield each event with the run that it is about as it was before."""
    room = Room()
    for step, _ in play_sessions(script):
        for event in step.events:
            yield event, room.runs.by_id.get(getattr(event, "run", ""))
            room = apply(room, event)


@given(session_histories())
def test_run_and_its_session_are_in_the_same_phase(script: bytes) -> None:
    for step, _ in play_sessions(script):
        for run in step.room.runs.by_id.values():
            session = step.room.sessions.get(run.session)
            assert session is None or session.is_over == run.is_over
            assert session is None or run.is_over or session.stage.name == run.phase


@given(session_histories())
def test_every_message_stands_in_the_table(script: bytes) -> None:
    for event, run in with_run_before(script):
        if isinstance(event, RunSaid) and event.origin != "room":
            assert run is not None
            assert LEGAL[run.phase][type_of_body(event.body)] is event.role


@given(session_histories())
def test_revision_has_a_weighty_finding_or_a_person_behind_it(script: bytes) -> None:
    for event, run in with_run_before(script):
        if isinstance(event, RunMoved) and run is not None and event.revisions > run.revisions:
            assert event.sender != SYSTEM or any(one.is_weighty for one in run.open_findings)


@given(session_histories())
def test_only_a_person_goes_beyond_the_cap(script: bytes) -> None:
    for step, _ in play_sessions(script):
        is_person = isinstance(step.command, ActOnRun) and step.command.decision is Decision.REVISE
        for event in step.events:
            if isinstance(event, RunMoved) and event.sender == SYSTEM and not is_person:
                run = step.room.runs.by_id[event.run]
                session = step.room.sessions.get(run.session)
                before = event.phase is RunPhase.EXECUTION and not event.why
                assert (
                    session is None
                    or not before
                    or event.revisions < (session.setup.rounds or 1)
                    or (run.escalations)
                )


@given(session_histories())
def test_no_message_is_taken_twice(script: bytes) -> None:
    seen: set[tuple[str, str]] = set()
    for event, _ in with_run_before(script):
        if isinstance(event, RunSaid) and event.key:
            assert (event.run, event.key) not in seen
            seen.add((event.run, event.key))


@given(session_histories())
def test_nothing_is_said_in_a_run_that_is_over(script: bytes) -> None:
    for event, run in with_run_before(script):
        if isinstance(event, RunSaid | RunMoved):
            assert run is not None and not run.is_over
