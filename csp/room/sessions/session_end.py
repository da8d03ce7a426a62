"""The end of a session: messages to release, the summary, and the notices while it is running."""

from typing import Final

from csp.protocol.enums import ALL, SYSTEM, AgentId, DeliveryState, Mode
from csp.protocol.events import RunEnded, RunSaid
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.review_messages import RunRole, SessionEnd
from csp.protocol.session_parts import Change, EndReason, PhaseKind, TurnState
from csp.room.messages import newer
from csp.room.room_draft import SessionDraft
from csp.room.room_state import Message
from csp.room.runs.run_state import summary_of
from csp.room.sessions.modes import respects_final, row_of
from csp.room.sessions.session_limits import limit_near, limits_near
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import Session, cut
from csp.room.sessions.turn_prompt import last_outputs
from csp.room.sessions.votes import tally_of

#: Ends requested by a person: agents are not notified, because that would wake them.
BY_HAND: Final = frozenset({EndReason.STOPPED_BY_USER, EndReason.CANCELED, EndReason.SUPERSEDED})


def end(draft: SessionDraft, reason: EndReason, *, by: AgentId = SYSTEM, note: str = "") -> None:
    """End the session, so that no turns or messages follow; `note` is the reason why a run is given up."""
    session = draft.session
    for turn in list(session.turns.values()):
        is_back = draft.withdraw(turn)
        if reason is EndReason.STOPPED_BY_USER and not is_back:
            draft.interrupt(turn)
        draft.move(turn, TurnState.CANCELLED, reason)
    # After a stop by a person, messages held for a turn that will not take place are unwanted.
    release_held(draft, DeliveryState.WITHDRAWN if reason in BY_HAND else DeliveryState.QUEUED)
    _end_run(draft, reason, note)
    draft.change(Change.ENDED, f"{session.setup.mode} ended: {reason}", by=by, reason=reason)
    closing = NoticeCode[f"ENDED_{reason.name}"](mode=session.setup.mode.upper())
    draft.notice(closing)
    draft.notice(summary(draft.session, reason, draft.now))
    terms = session.setup.collaboration
    if terms is not None:
        # Posted where the caller is waiting for the result; a collaboration stopped by a person has none.
        told = NoticeCode.COLLABORATION_ENDED(session=session.id, closing=closing.text)
        if reason not in BY_HAND:
            result = outcome(draft.session, reason, draft.now)
            told = NoticeCode.COLLABORATION_RESULT(session=session.id, closing=closing.text, outcome=result)
        draft.room_draft.notice(ALL, told, session=session.id, thread=terms.thread)
    if reason not in BY_HAND:
        draft.wake(f"it has ended: {reason}")


def _end_run(draft: SessionDraft, reason: EndReason, note: str) -> None:
    """End the session's run; if the builder's final message is missing, the room writes it."""
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
        draft.notice(NoticeCode.RUN_ENDED(run=run.id, reason=reason, place=place))


def release_held(draft: SessionDraft, state: DeliveryState, but: tuple[AgentId, ...] = ()) -> None:
    """Release the messages held by the session, except those that the agents in `but` get with their turn.

    Messages also held by another sealed phase remain held until that phase ends.
    """
    session, room = draft.session, draft.room
    held: list[tuple[Message, AgentId]] = []
    for agent, participant in room.participants.items():
        # A stop must be fast even with long queues, so messages from before the session are skipped.
        waiting = room.unfinished(newer(participant.queue, session.seq))
        held += [(one, agent) for one in waiting if one.deliveries[agent].is_held_for_turn]
    # Messages posted by this command follow, in their own order.
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
    """Return whether a message waits for a turn in the session in which it was sent."""
    session = sessions.get(message.session)
    if session is None or session.is_over or session.setup.soft_turns:
        return False
    return agent in session.agents


# --- notices while it runs ---------------------------------------------------------------------------


def remind(draft: SessionDraft, agent: AgentId) -> None:
    """Post reminders after a reply by `agent` if a person may want to act."""
    session = draft.session
    is_open = row_of(session.setup).is_limited and not respects_final(session.setup)
    if is_open and session.last is not None and session.last.final:
        draft.notice(NoticeCode.SUGGESTS_FINISH(agent=agent))
    _, repeats = session.echoes[agent]
    # A repeated vote does not mean that the session has stalled.
    if repeats == 1 and session.stage.kind is not PhaseKind.BALLOT:
        draft.notice(NoticeCode.SAID_THE_SAME(agent=agent))
        draft.wake(f"it has stalled: {agent} repeated itself")
    warn_of_limits(draft)
    due = max(session.replies // draft.rules.soft_turns, session.used.new // draft.rules.soft_tokens)
    if session.setup.mode is Mode.AUTOPILOT and due > session.reminders:
        draft.change(Change.REMINDED, "reminded", rounds=due)
        draft.notice(NoticeCode.AUTOPILOT_RUNNING())


def warn_of_limits(draft: SessionDraft) -> None:
    """Post one notice for each limit that is nearly used up."""
    for reason in limits_near(draft.session):
        if reason not in draft.session.warned:
            draft.change(Change.WARNED, "warned", reason=reason)
            draft.notice(limit_near(draft.session, reason))


# --- the result --------------------------------------------------------------------------------------


_LINE: Final = 200


def outcome(session: Session, reason: EndReason, now: float) -> str:
    """Return a session's result, or else a summary of its messages."""
    return session.result.text if session.result is not None else summary(session, reason, now).text


def summary(session: Session, reason: EndReason, now: float) -> NoticeWords:
    """Return a summary: the statements, the vote, the usage and the reason for the end."""
    used = session.used
    # The cost of each agent, with its model if known.
    costs = ", ".join(
        f"{row.agent} "
        + ("at an unknown price" if row.known_cost is None else f"{row.cost_usd:.4f}")
        + (f" with {row.model}" if row.model else "")
        for row in session.spent_so_far
    )
    cost = [f"Cost: {used.cost_usd:.4f} USD ({costs})."] if used.cost_usd else []
    outputs = last_outputs(session, is_over=True)
    said = [f"- {agent}: {_short(output.text)}" for agent, output in outputs]
    votes = [votes_counted(session).text] if session.counted or session.stage.candidates else []
    synthesis = [f"Synthesis: {_short(session.synthesis)}"] if session.synthesis else []
    return NoticeCode.SESSION_SUMMARY(
        session=session.id,
        mode=session.setup.mode,
        reason=reason,
        replies=session.replies,
        about="about " if used.estimated else "",
        tokens=used.new,
        output=used.output,
        cached=used.cached,
        seconds=max(now - session.started_at - session.idle_s, 0.0),
        details="".join(f"\n{line}" for line in (*cost, *said, *votes, *synthesis)),
    )


def _short(text: str) -> str:
    return cut(" ".join(text.split()), _LINE)


def votes_counted(session: Session) -> NoticeWords:
    """Return the vote count, the winner, and each vote with its reason."""
    named = {one.label: one.agent for one in (session.stage.candidates or session.counted)}
    result = tally_of(session)
    counts = ", ".join(f"{label} ({named[label]}) {count}" for label, count in result.counts.items())
    lines = []
    if result.winner is not None:
        dissent = [agent for agent, vote in session.votes.items() if vote.label != result.winner.label]
        lines.append(f"Winner: {result.winner.label} ({result.winner.agent}).")
        lines.append(f"Dissent: {', '.join(dissent) or 'none'}.")
    for agent, vote in session.votes.items():
        itself = " (its own)" if named.get(vote.label) == agent else ""
        reason = f": {_short(vote.reason)}" if vote.reason else ""
        lines.append(f"- {agent} voted {vote.label}{itself}{reason}")
    models = {session.models.get(agent) for agent in session.votes}
    if len(session.votes) > 1 and len(models) == 1 and None not in models:
        lines.append(f"All voters run the same model, {models.pop()}.")
    return NoticeCode.VOTES_COUNTED(counts=counts or "none", details="".join(f"\n{line}" for line in lines))
