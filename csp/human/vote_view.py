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
    head = _tally(owners, cast) if cast else _open(view, proposals)
    shown = [_proposal(label, owners[label], proposal) for label, proposal in proposals.items()]
    return [visible(line) for line in (head, *shown, *(_vote(owners, *pair) for pair in cast.items()))]


def _open(view: Mapping[str, Any], proposals: Mapping[str, Any]) -> str:
    waiting = ", ".join(map(str, view.get("waitingFor") or ()))
    return f"the vote on {count(len(proposals), 'proposal')} is open" + (
        f", waiting for {waiting}" if waiting else ""
    )


def _tally(owners: Mapping[str, str], cast: Mapping[str, Any]) -> str:
    """Return the counts as the room counts: a vote for oneself only if there are no others."""
    labels = {agent: str(vote.get("label")) for agent, vote in cast.items()}
    others = [label for agent, label in labels.items() if owners.get(label) != agent]
    counts = Counter(others or labels.values())
    named = [f"{_named(label, owners)} {number}" for label, number in counts.most_common()]
    most = [label for label, number in counts.items() if number == max(counts.values())]
    won = f"winner: {_named(most[0], owners)}" if len(most) == 1 else "a tie"
    return f"votes: {', '.join(named)}; {won}"


def _named(label: str, owners: Mapping[str, str]) -> str:
    return f"{label} ({owners[label]})" if owners.get(label) else label


def _proposal(label: str, owner: str, proposal: Mapping[str, Any]) -> str:
    text = one_line(str(proposal.get("text") or ""), _TEXT)
    return f"  {label}{f' by {owner}' if owner else ''}: {text}"


def _vote(owners: Mapping[str, str], agent: str, vote: Mapping[str, Any]) -> str:
    label, reason = str(vote.get("label")), one_line(str(vote.get("reason") or ""), _TEXT)
    own = " (its own)" if owners.get(label) == agent else ""
    return f"  {agent} voted {label}{own}" + (f": {reason}" if reason else "")
