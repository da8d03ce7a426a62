"""The end of a session, with everything that has to go with it."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from csp.protocol.enums import ALL, SYSTEM, AgentId, DeliveryState, HeldReason, MessageId, SessionId
from csp.protocol.events import MessageEvent, RunEnded, RunSaid
from csp.protocol.review_messages import RunRole, SessionEnd
from csp.protocol.session_parts import Change, EndReason, TurnState
from csp.room.messages.inbox import newer
from csp.room.runs.run_prompts import summary_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_summary import closing, outcome, summary
from csp.room.visibility import seals_on

#: Ends that a person wanted: whoever is told of them now would only be woken.
BY_HAND: Final = frozenset({EndReason.STOPPED_BY_USER, EndReason.CANCELED, EndReason.SUPERSEDED})


def end(desk: SessionDraft, reason: EndReason, *, by: AgentId = SYSTEM, note: str = "") -> None:
    """End the session: nothing is asked or posted in it any more; `note` says why a run is given up."""
    session = desk.session
    for turn in list(session.turns.values()):
        is_back = desk.withdraw(turn)
        if reason is EndReason.STOPPED_BY_USER and not is_back:
            desk.interrupt(turn)
        desk.move(turn, TurnState.CANCELLED, reason)
    # After a stop nobody wants what was held back for a turn that will not come.
    release_held(desk, DeliveryState.WITHDRAWN if reason in BY_HAND else DeliveryState.QUEUED)
    _end_run(desk, reason, note)
    desk.change(Change.ENDED, f"{session.setup.mode} ended: {reason}", {"reason": reason}, by=by)
    desk.notice(closing(session, reason))
    desk.notice(summary(desk.session, reason, desk.batch.now))
    _tell_caller(desk, reason)
    if reason not in BY_HAND:
        desk.wake(f"it has ended: {reason}")


def _tell_caller(desk: SessionDraft, reason: EndReason) -> None:
    """Tell the result where somebody waits for it; what a person stopped has none."""
    session = desk.session
    terms = session.setup.collaboration
    if terms is None:
        return
    text = f"Collaboration {session.id}: {closing(session, reason)}"
    if reason not in BY_HAND:
        text += f"\n{outcome(session, reason, desk.batch.now)}"
    desk.batch.notice(ALL, text, session=session.id, thread=terms.thread)


def _end_run(desk: SessionDraft, reason: EndReason, note: str) -> None:
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


def release_held(desk: SessionDraft, state: DeliveryState, but: tuple[AgentId, ...] = ()) -> None:
    """End the wait of what the session holds back, for all `but` those who get it with their turn.

    What another sealed phase holds back as well waits for that one.
    """
    for held in _held_back(desk):
        is_ours = held.session == desk.session.id
        if is_ours and state is DeliveryState.WITHDRAWN:
            is_free = True
        else:
            is_waiting = held.agent in but if is_ours else _comes_with_turn(desk, held)
            others = {session: phase for session, phase in held.seals.items() if session != desk.session.id}
            is_free = not is_waiting and not desk.batch.sessions.is_sealed(others)
        if is_free:
            end_state = state if is_ours else DeliveryState.QUEUED
            desk.batch.step(held.message, held.sender, held.thread, held.agent, end_state)


class _Held(NamedTuple):
    """A message that waits for somebody's turn, or for the end of a sealed phase."""

    message: MessageId
    sender: AgentId
    thread: str
    agent: AgentId
    session: SessionId | None
    seals: Mapping[SessionId, int]


def _held_back(desk: SessionDraft) -> list[_Held]:
    """Return what waits because of the session, those messages with it that the room does not know yet."""
    found: list[_Held] = []
    for participant in desk.room.participants.values():
        # A stop must not take long because queues are: what came before the session is not held by it.
        for one in desk.room.unfinished(newer(participant.queue, desk.session.seq)):
            delivery = one.deliveries[participant.id]
            if (delivery.state, delivery.reason) == (DeliveryState.HELD, HeldReason.TURN):
                found.append(_Held(one.id, one.sender, one.thread, participant.id, one.session, one.seals))
    for event in desk.batch.events:
        if isinstance(event, MessageEvent) and not event.held:
            known = (event.id, event.sender, event.thread)
            found += [_Held(*known, agent, event.session_id, seals_on(event)) for agent in event.waits]
    return [
        one
        for one in found
        if desk.session.id in (one.session, *one.seals) and (one.message, one.agent) not in desk.batch.stepped
    ]


def _comes_with_turn(desk: SessionDraft, held: _Held) -> bool:
    """Tell whether a message waits for a turn in the session that it was said in."""
    session = desk.batch.sessions.get(held.session)
    if session is None or session.is_over or session.setup.soft_turns:
        return False
    return held.agent in session.agents
