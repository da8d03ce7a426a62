"""The end of a session: what it releases, what it came to, and the notices on the way there."""

from typing import Final

from csp.protocol.enums import ALL, SYSTEM, AgentId, DeliveryState, Mode
from csp.protocol.events import RunEnded, RunSaid
from csp.protocol.review_messages import RunRole, SessionEnd
from csp.protocol.session_parts import Change, EndReason, TurnState
from csp.room.messages.inbox import newer
from csp.room.room_state import Message
from csp.room.runs.run_prompts import summary_of
from csp.room.sessions.cost_estimate import cut
from csp.room.sessions.limits import limits_near, near_text
from csp.room.sessions.modes import respects_final, row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_registry import Sessions
from csp.room.sessions.session_state import BallotVote, Session
from csp.room.sessions.turn_prompt import last_outputs
from csp.room.sessions.votes import tally_of

#: Ends that a person asked for: agents are not notified, because that would wake them.
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


# --- notices as it goes on ---------------------------------------------------------------------------


_RUNNING = "Autopilot running. Say 'Allstop' to end."
_SUGGESTS = "Agent suggests finish: press ALLSTOP to end or let them continue."


def remind(draft: SessionDraft, agent: AgentId) -> None:
    """Say after a reply of `agent` what a person may want to act on."""
    session = draft.session
    is_open = row_of(session.setup).is_limited and not respects_final(session.setup)
    if is_open and session.last is not None and session.last.final:
        draft.notice(f"{_SUGGESTS} ({agent})")
    _, repeats = session.echoes[agent]
    if repeats == 1:
        draft.notice(f"{agent} said the same as before.")
        draft.wake(f"it stalls: {agent} said the same as before")
    warn_of_limits(draft)
    due = max(session.replies // draft.rules.soft_turns, session.used.new // draft.rules.soft_tokens)
    if session.setup.mode is Mode.AUTOPILOT and due > session.reminders:
        draft.change(Change.REMINDED, "reminded", rounds=due)
        draft.notice(_RUNNING)


def warn_of_limits(draft: SessionDraft) -> None:
    """Say once of each limit that it is nearly used up."""
    for reason in limits_near(draft.session):
        if reason not in draft.session.warned:
            draft.change(Change.WARNED, "warned", reason=reason)
            draft.notice(near_text(draft.session, reason))


# --- what it came to ---------------------------------------------------------------------------------


_LINE: Final = 200
_CLOSING: Final[dict[EndReason, str]] = {
    EndReason.STOPPED_BY_USER: "Collaboration stopped by user (Allstop).",
    EndReason.CANCELED: "Collaboration canceled by user.",
    EndReason.DONE: "{mode} complete.",
    EndReason.FINAL: "{mode} complete.",
    EndReason.NO_HANDOFF: "{mode} ended: nobody was named to go on.",
    EndReason.MALFORMED: "{mode} ended: the last reply was malformed, so it named nobody to go on.",
    EndReason.CAP_REACHED: "{mode} ended: cap reached.",
    EndReason.EMERGENCY_TURNS: "{mode} stopped: emergency cap of turns.",
    EndReason.EMERGENCY_TOKENS: "{mode} stopped: emergency cap of tokens.",
    EndReason.EMERGENCY_MINUTES: "{mode} stopped: emergency cap of minutes.",
    EndReason.EMERGENCY_COST: "{mode} stopped: emergency cap of cost.",
    EndReason.TOO_FEW: "{mode} ended: too few participants are left.",
    EndReason.ALL_FAILED: "{mode} ended: nobody could take a turn.",
    EndReason.TIE: "{mode} ended: the vote is tied.",
    EndReason.NO_QUORUM: "{mode} ended: too few have voted.",
    EndReason.ACCEPTED: "{mode} complete: the work is accepted.",
    EndReason.ABORTED: "{mode} ended: it was aborted.",
    EndReason.HALTED: "{mode} ended: it was halted.",
    EndReason.SUPERSEDED: "{mode} ended: another session takes its place.",
}


def closing(session: Session, reason: EndReason) -> str:
    """Return the line with which a session ends."""
    return _CLOSING[reason].format(mode=session.setup.mode.upper())


def outcome(session: Session, reason: EndReason, now: float) -> str:
    """Return what a session has come to: its last word on the whole, else who said what."""
    return session.result.text if session.result is not None else summary(session, reason, now)


def summary(session: Session, reason: EndReason, now: float) -> str:
    """Say who said what, how the vote went, what it took, why it ended."""
    seconds = max(now - session.started_at - session.idle_s, 0.0)
    used = session.used
    about = "about " if used.estimated else ""
    head = (
        f"Summary of {session.id} ({session.setup.mode}): {reason} after {session.replies} replies, {about}"
        f"{used.new:,} new tokens ({used.output:,} output), {used.cached:,} cached, {seconds:.0f} s."
    )
    cost = [f"Cost: {used.cost_usd:.4f} USD ({_costs(session)})."] if used.cost_usd else []
    outputs = last_outputs(session, is_over=True)
    said = [f"- {agent}: {_short(output.text)}" for agent, output in outputs]
    votes = [tally_text(session)] if session.counted or session.stage.candidates else []
    synthesis = [f"Synthesis: {_short(session.synthesis)}"] if session.synthesis else []
    return "\n".join([head, *cost, *said, *votes, *synthesis])


def _costs(session: Session) -> str:
    """Say what each agent has cost, with its model where that is known."""
    return ", ".join(
        f"{row.agent} "
        + ("at an unknown price" if row.known_cost is None else f"{row.cost_usd:.4f}")
        + (f" with {row.model}" if row.model else "")
        for row in session.spent_so_far
    )


def _short(text: str) -> str:
    return cut(" ".join(text.split()), _LINE)


def tally_text(session: Session) -> str:
    """Say how many votes each got, who won, who voted for what with which reason."""
    named = {one.label: one.agent for one in (session.stage.candidates or session.counted)}
    result = tally_of(session)
    counts = ", ".join(f"{label} ({named[label]}) {count}" for label, count in result.counts.items())
    lines = [f"Votes: {counts or 'none'}."]
    if result.winner is not None:
        dissent = [agent for agent, vote in session.votes.items() if vote.label != result.winner.label]
        lines.append(f"Winner: {result.winner.label} ({result.winner.agent}).")
        lines.append(f"Dissent: {', '.join(dissent) or 'none'}.")
    lines += [_vote_line(agent, vote, named) for agent, vote in session.votes.items()]
    models = {session.models.get(agent) for agent in session.votes}
    if len(session.votes) > 1 and len(models) == 1 and None not in models:
        lines.append(f"All voters run the same model, {models.pop()}.")
    return "\n".join(lines)


def _vote_line(agent: AgentId, vote: BallotVote, named: dict[str, AgentId]) -> str:
    itself = " (its own)" if named.get(vote.label) == agent else ""
    reason = f": {_short(vote.reason)}" if vote.reason else ""
    return f"- {agent} voted {vote.label}{itself}{reason}"
