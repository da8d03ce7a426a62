"""The end of a session, with everything that has to go with it."""

from typing import Final

from csp.protocol.enums import ALL, SYSTEM, AgentId, DeliveryState
from csp.protocol.events import RunEnded, RunSaid
from csp.protocol.review_messages import RunRole, SessionEnd
from csp.protocol.session_parts import Change, EndReason, TurnState
from csp.room.messages.inbox import newer
from csp.room.room_state import Message
from csp.room.runs.run_prompts import summary_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_registry import Sessions
from csp.room.sessions.session_summary import closing, outcome, summary

#: Ends that a person wanted: whoever is told of them now would only be woken.
BY_HAND: Final = frozenset({EndReason.STOPPED_BY_USER, EndReason.CANCELED, EndReason.SUPERSEDED})


def end(draft: SessionDraft, reason: EndReason, *, by: AgentId = SYSTEM, note: str = "") -> None:
    """End the session: nothing is asked or posted in it any more; `note` says why a run is given up."""
    session = draft.session
    for turn in list(session.turns.values()):
        is_back = draft.withdraw(turn)
        if reason is EndReason.STOPPED_BY_USER and not is_back:
            draft.interrupt(turn)
        draft.move(turn, TurnState.CANCELLED, reason)
    # After a stop nobody wants what was held back for a turn that will not come.
    release_held(draft, DeliveryState.WITHDRAWN if reason in BY_HAND else DeliveryState.QUEUED)
    _end_run(draft, reason, note)
    draft.change(Change.ENDED, f"{session.setup.mode} ended: {reason}", by=by, reason=reason)
    draft.notice(closing(session, reason))
    draft.notice(summary(draft.session, reason, draft.now))
    terms = session.setup.collaboration
    if terms is not None:
        # Where somebody waits for the result; what a person stopped has none.
        text = f"Collaboration {session.id}: {closing(session, reason)}"
        if reason not in BY_HAND:
            text += f"\n{outcome(draft.session, reason, draft.now)}"
        draft.room_draft.notice(ALL, text, session=session.id, thread=terms.thread)
    if reason not in BY_HAND:
        draft.wake(f"it has ended: {reason}")


def _end_run(draft: SessionDraft, reason: EndReason, note: str) -> None:
    """End the run of the session; what its builder did not say at the end is said for it."""
    run = draft.run
    if run is None or run.is_over:
        return
    if run.end is None:
        draft.room_draft.emit(
            RunSaid(
                *draft.run_header(f"session.end: {note or reason}", by=run.builder),
                role=RunRole.BUILDER,
                body=SessionEnd(status=reason, summary=note),
                origin="room",
            )
        )
    text = summary_of(draft.known_run, reason)
    draft.room_draft.emit(RunEnded(*draft.run_header(text), reason=reason))
    place = run.context.worktree if run.context else ""
    if place:
        draft.notice(f"Run {run.id} has ended: {reason}. Its worktree stays at {place}.")


def release_held(draft: SessionDraft, state: DeliveryState, but: tuple[AgentId, ...] = ()) -> None:
    """End the wait of what the session holds back, for all `but` those who get it with their turn.

    What another sealed phase holds back as well waits for that one.
    """
    session, room = draft.session, draft.room
    held: list[tuple[Message, AgentId]] = []
    for agent, participant in room.participants.items():
        # A stop must not take long because queues are: what came before the session is not held by it.
        waiting = room.unfinished(newer(participant.queue, session.seq))
        held += [(one, agent) for one in waiting if one.deliveries[agent].is_held_for_turn]
    # What this command has posted itself comes last, in its own order.
    held.sort(key=lambda one: max(one[0].seq, draft.room_draft.before.seq))
    for message, agent in held:
        if session.id not in (message.session, *message.seals):
            continue
        is_ours = message.session == session.id
        if is_ours and state is DeliveryState.WITHDRAWN:
            is_free = True
        else:
            is_waiting = agent in but if is_ours else _comes_with_turn(room.sessions, message, agent)
            others = {other: phase for other, phase in message.seals.items() if other != session.id}
            is_free = not is_waiting and not room.sessions.is_sealed(others)
        if is_free:
            draft.room_draft.move_delivery(message, agent, state if is_ours else DeliveryState.QUEUED)


def _comes_with_turn(sessions: Sessions, message: Message, agent: AgentId) -> bool:
    """Tell whether a message waits for a turn in the session that it was said in."""
    session = sessions.get(message.session)
    if session is None or session.is_over or session.setup.soft_turns:
        return False
    return agent in session.agents
