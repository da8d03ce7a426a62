"""Whom a run waits for, when somebody is reminded of it."""

from typing import Final

from csp.protocol.enums import HUMAN, AgentId
from csp.protocol.events import RunReminded
from csp.protocol.review_messages import MAILBOX
from csp.room.runs.run_protocol import CALLS, TURN_OF
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.session_draft import SessionDraft

#: After so long the first reminder comes, then each after twice the time: it waits for days without nagging.
REMIND_S: Final = 600.0
CSP: Final = AgentId("csp")


def waits_for(run: ReviewRun) -> AgentId | None:
    """Return whom a run waits for, None if it is over."""
    if run.is_over:
        return None
    if run.phase in TURN_OF:
        return run.agent_of(TURN_OF[run.phase])
    return HUMAN if run.phase in CALLS else CSP


def remind_at(run: ReviewRun) -> float | None:
    """Return when the next reminder is due: only people and files have no clock of their own."""
    if waits_for(run) not in (HUMAN, MAILBOX):
        return None
    return (run.since or run.started_at) + REMIND_S * float(2 ** (run.reminded + 1) - 1)


def remind(draft: SessionDraft) -> None:
    """Say of a run that has waited for long that it still does, once even if many reminders were missed."""
    run, now = draft.run, draft.clock
    at = None if run is None else remind_at(run)
    if run is None or at is None or at > now:
        return
    waited_s = now - (run.since or run.started_at)
    number = int(waited_s / REMIND_S + 1).bit_length() - 1
    what = f"Run {run.id} has waited for {_whom(run)} for {waited_s / 60:.0f} minutes"
    draft.room_draft.emit(RunReminded(*draft.run_header(what), number=number))
    draft.notice(f"{what}. {_call(run)}")


def _whom(run: ReviewRun) -> str:
    return "a person" if run.phase in CALLS else f"a file of the {TURN_OF[run.phase]}"


def _call(run: ReviewRun) -> str:
    if run.phase in CALLS:
        return f"Answer with: {CALLS[run.phase].format(run=run.id)}"
    return f"It goes into mailbox/{TURN_OF[run.phase]}/. To give up: csp review abort {run.id} WHY"
