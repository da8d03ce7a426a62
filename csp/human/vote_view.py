"""Show how a vote stands."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from csp.human.safe_text import count, one_line, visible

_TEXT = 200


def vote_lines(view: Mapping[str, Any]) -> list[str]:
    """Return the tally, what was voted on, who voted for what and why, as far as it is unsealed."""
    proposals: Mapping[str, Any] = view.get("proposals") or {}
    cast: Mapping[str, Any] = view.get("votes") or {}
    if not proposals and not cast:
        return ["there are no votes to show"]
    owners = {label: str(proposal.get("agent") or "") for label, proposal in proposals.items()}
    if cast:
        lines = [_tally(owners, cast)]
    else:
        waiting = ", ".join(map(str, view.get("waitingFor") or ()))
        lines = [f"the vote on {count(len(proposals), 'proposal')} is open"]
        lines[0] += f", waiting for {waiting}" if waiting else ""
    for label, proposal in proposals.items():
        owner = f" by {owners[label]}" if owners[label] else ""
        lines.append(f"  {label}{owner}: {one_line(str(proposal.get('text') or ''), _TEXT)}")
    for agent, vote in cast.items():
        label, reason = str(vote.get("label")), one_line(str(vote.get("reason") or ""), _TEXT)
        own = " (its own)" if owners.get(label) == agent else ""
        lines.append(f"  {agent} voted {label}{own}" + (f": {reason}" if reason else ""))
    return list(map(visible, lines))


def _tally(owners: Mapping[str, str], cast: Mapping[str, Any]) -> str:
    """Return the counts as the room counts: a vote for oneself only if there are no others."""
    labels = {agent: str(vote.get("label")) for agent, vote in cast.items()}
    others = [label for agent, label in labels.items() if owners.get(label) != agent]
    counts = Counter(others or labels.values())
    names = {label: f"{label} ({owners[label]})" if owners.get(label) else label for label in counts}
    named = [f"{names[label]} {number}" for label, number in counts.most_common()]
    most = [label for label, number in counts.items() if number == max(counts.values())]
    won = f"winner: {names[most[0]]}" if len(most) == 1 else "a tie"
    return f"votes: {', '.join(named)}; {won}"
