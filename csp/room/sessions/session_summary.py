"""What a session came to, in a few lines."""

from typing import Final

from csp.protocol.enums import AgentId
from csp.protocol.session_parts import EndReason
from csp.room.sessions.session_state import BallotVote, Session
from csp.room.sessions.spending import Spent
from csp.room.sessions.token_estimate import cut
from csp.room.sessions.turn_prompt import last_outputs
from csp.room.sessions.votes import tally_of

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
    votes = [tally_text(session)] if session.counted or session.stage.candidates else []
    synthesis = [f"Synthesis: {_short(session.synthesis)}"] if session.synthesis else []
    return "\n".join([head, *cost, *_said(session), *votes, *synthesis])


def _costs(session: Session) -> str:
    """Say what each agent has cost, with its model where that is known."""
    return ", ".join(
        f"{row.agent} {_price(row)}" + (f" with {row.model}" if row.model else "")
        for row in session.spent_so_far
    )


def _price(row: Spent) -> str:
    return "at an unknown price" if row.known_cost is None else f"{row.cost_usd:.4f}"


def _said(session: Session) -> list[str]:
    return [f"- {agent}: {_short(output.text)}" for agent, output in last_outputs(session, is_over=True)]


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
