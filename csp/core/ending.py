"""The end of a session, with everything that has to go with it."""

from typing import Final

from csp.core.desk import Desk
from csp.core.queues import newer
from csp.core.run_text import summary_of
from csp.core.summary import closing, outcome, summary
from csp.events import RunEnded, RunSaid
from csp.wire import (
    ALL,
    SYSTEM,
    AgentId,
    Change,
    DeliveryState,
    EndReason,
    HeldReason,
    RunRole,
    SessionEnd,
    TurnState,
)

#: Ends that a person wanted: whoever is told of them now would only be woken.
BY_HAND: Final = frozenset({EndReason.STOPPED_BY_USER, EndReason.CANCELED, EndReason.SUPERSEDED})


def end(desk: Desk, reason: EndReason, *, by: AgentId = SYSTEM, note: str = "") -> None:
    """End the session: nothing is asked or posted in it any more; `note` says why a run is given up."""
    session = desk.session
    for turn in list(session.turns.values()):
        is_back = desk.withdraw(turn)
        if reason is EndReason.STOPPED_BY_USER and not is_back:
            desk.interrupt(turn)
        desk.move(turn, TurnState.CANCELLED, reason)
    # After a stop nobody wants what was held back for a turn that will not come.
    let_go(desk, DeliveryState.WITHDRAWN if reason in BY_HAND else DeliveryState.QUEUED)
    _end_run(desk, reason, note)
    desk.change(Change.ENDED, f"{session.setup.mode} ended: {reason}", {"reason": reason}, by=by)
    desk.notice(closing(session, reason))
    desk.notice(summary(desk.session, reason, desk.batch.now))
    _tell_caller(desk, reason)
    if reason not in BY_HAND:
        desk.wake(f"it has ended: {reason}")


def _tell_caller(desk: Desk, reason: EndReason) -> None:
    """Tell the result where somebody waits for it; what a person stopped has none."""
    session = desk.session
    terms = session.setup.collaboration
    if terms is None:
        return
    text = f"Collaboration {session.id}: {closing(session, reason)}"
    if reason not in BY_HAND:
        text += f"\n{outcome(session, reason, desk.batch.now)}"
    desk.batch.notice(ALL, text, session=session.id, thread=terms.thread)


def _end_run(desk: Desk, reason: EndReason, note: str) -> None:
    """End the run of the session; what its builder did not say at the end is said for it."""
    run = desk.run
    if run is None or run.is_over:
        return
    if run.end is None:
        body = SessionEnd(status=reason, summary=note)
        fields = {"role": RunRole.BUILDER, "body": body, "origin": "room"}
        desk.add_run(RunSaid, f"session.end: {note or reason}", fields, by=run.builder)
    desk.add_run(RunEnded, summary_of(desk.known_run, reason), {"reason": reason})
    place = run.context.worktree if run.context else ""
    if place:
        desk.notice(f"Run {run.id} has ended: {reason}. Its worktree stays at {place}.")


def let_go(desk: Desk, state: DeliveryState, but: tuple[AgentId, ...] = ()) -> None:
    """End the wait of what the session holds back, for all `but` those who get it with their turn."""
    session = desk.session
    for participant in desk.room.participants.values():
        if participant.id in but:
            continue
        # A stop must not take long because queues are: what came before the session is not its own.
        for message in desk.room.unfinished(newer(participant.queue, session.seq)):
            if message.session != session.id:
                continue
            delivery = message.deliveries[participant.id]
            is_held = (delivery.state, delivery.reason) == (DeliveryState.HELD, HeldReason.TURN)
            if is_held and (message.id, participant.id) not in desk.batch.stepped:
                desk.batch.deliver(message, participant.id, state)
