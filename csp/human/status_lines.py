"""Lines about agents, votes and costs, for `csp status`, `csp mode` and the human pane."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from csp.http_client import Object, field, objects
from csp.human.safe_text import clock, columns, count, one_line, visible
from csp.room.agent_roles import duty_of

#: Descriptions of what was done to an agent or a message, by verb.
DONE: Final = {
    "pause": "paused",
    "resume": "resumed",
    "share": "sharing",
    "noshare": "no longer sharing",
    "interrupt": "interrupted",
    "approve": "approved",
    "deny": "denied",
    "restart": "asked to restart",
    "resend": "sent again as",
    "cancel": "cancelled",
    "continue": "released",
}
#: Actions that count only once the agent is seen to have reacted.
PROVED: Final = ("interrupt", "approve", "deny")
_NAME: Final = 60
_WORK: Final = 120
#: Bold text in markdown.
_BOLD: Final = re.compile(r"\*\*([^*\n]+)\*\*")
_VOTED_TEXT: Final = 200


def agent_row(item: Object, word: str, max_detail: int, model: str = "") -> list[str]:
    """Return the columns of one agent; `word` is its state, or whether it is its turn.

    The last column may be long, so it is the one that is wrapped in a narrow pane.
    """
    until, queued = item.get("until"), field(item, "queued", int)
    word += f" until {clock(until)}" if isinstance(until, int | float) else ""
    more = (
        f"{queued} waiting" if queued else "",
        "shares its pane" if item.get("share") else "",
        one_line(str(item.get("work") or ""), _WORK),
        one_line(doing_of(item), max_detail),
    )
    return [field(item, "id", str), word, about_agent(item, model), " · ".join(filter(None, more))]


def doing_of(item: Object) -> str:
    """Return what an agent does or asks, as far as it is known; what it did before it left is over."""
    if item.get("online") is False:
        return ""
    dialog = item.get("dialog")
    if not isinstance(dialog, dict):
        return str(item.get("detail") or "")
    tool, command = dialog.get("tool"), dialog.get("runs") or dialog.get("arguments")
    return ": ".join(map(str, filter(None, (tool, command)))) or str(item.get("detail") or "")


def about_agent(item: Object, model: str) -> str:
    """Return an agent's role, program and model, or its kind if nothing else is known."""
    agent, kind, role = (field(item, name, str) for name in ("id", "kind", "role"))
    known = item.get("capabilities")
    program = str(known[0]) if isinstance(known, list) and known else ""
    if isinstance(known, dict):
        program = str(known.get("profile") or known.get("provider") or "")
        model = model or str(known.get("model") or "")
    duty, part = duty_of(known), role if role != "agent" else ""
    parts = [duty, part, program if program != agent else "", model]
    parts += [] if program or model else [kind]
    about = ", ".join(dict.fromkeys(filter(None, parts))) or program
    return ", ".join(filter(None, (about, context_text(item))))


def context_text(item: Object) -> str:
    """Return how much of an agent's context is left, or its size if the limit is unknown; else nothing."""
    used, window = int(item.get("context") or 0), int(item.get("window") or 0)
    if used and window:
        return f"{max(0, 100 * (window - used) // window)}% context left"
    size = f"{round(used / 1000)}k" if used >= 1000 else str(used)
    return f"{size} tokens in context" if used else ""


def models_of(usage: object) -> dict[str, str]:
    """Return the model of each agent's last replies, as far as one is named."""
    rows = objects(field(usage, "items", list))
    return {field(row, "agent", str): str(row["model"]) for row in rows if row.get("model")}


# --- approval rules -------------------------------------------------------------------------------


def rule_lines(items: list[Object]) -> list[str]:
    """Return a line for each rule."""
    rows = []
    for item in items:
        number = f"#{item.get('number')}" if item.get("number") else "csp.toml"
        rows.append([number, str(item.get("agent")), "may run:", str(item.get("pattern"))])
        if item.get("problem"):
            rows[-1][-1] += f" ({item['problem']})"
    return columns(rows)


# --- costs -----------------------------------------------------------------------------------------


def spent_lines(usage: object) -> list[str]:
    """Return a line per agent and model, then the source of the prices; nothing without usage."""
    lines = []
    for row in sorted(objects(field(usage, "items", list)), key=lambda row: field(row, "agent", str)):
        name, cost, unpriced = str(row.get("model") or ""), row.get("cost_usd"), field(row, "unpriced", int)
        model = visible(one_line(name, _NAME)) if name else "a model it does not name"
        about = "about " if row.get("estimated") else ""
        money = "price unknown"
        if isinstance(cost, int | float):
            money = f"${cost:.4f}"
            money += f" and {count(unpriced, 'reply', 'replies')} without a known price" if unpriced else ""
        said = count(field(row, "replies", int), "reply", "replies")
        who = visible(field(row, "agent", str))
        lines.append(f"{who} ({model}): {said}, {about}{tokens_text(row)}, {money}")
    if not lines:
        return []
    prices = usage.get("prices") if isinstance(usage, dict) else None
    source = f"prices: {visible(str(prices))}" if prices else "no price list installed; costs not shown"
    return [*lines, source]


def tokens_text(used: Object) -> str:
    """Return token counts as used by limits: new tokens, including the output, and cached ones."""
    new, output, cached = (field(used, name, int) for name in ("new", "output", "cached"))
    return f"{new:,} new tokens ({output:,} output), {cached:,} cached"


def session_spending(item: Object) -> str:
    """Return a session's total usage; empty before its first reply."""
    tokens, cost = field(item, "tokens", int), item.get("cost_usd")
    if not tokens:
        return ""
    money = f", ${cost:.4f}" if isinstance(cost, int | float) and cost else ""
    return f"{tokens_text(item)}{money}"


# --- votes -----------------------------------------------------------------------------------------


def vote_lines(view: Mapping[str, Any]) -> list[str]:
    """Return the tally, the proposals, and the votes with their reasons, as far as they are unsealed."""
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
        text = _BOLD.sub(r"\1", str(proposal.get("text") or ""))
        lines.append(f"  {label}{owner}: {one_line(text, _VOTED_TEXT)}")
    for agent, vote in cast.items():
        label, reason = str(vote.get("label")), one_line(str(vote.get("reason") or ""), _VOTED_TEXT)
        own = " (its own)" if owners.get(label) == agent else ""
        lines.append(f"  {agent} voted {label}{own}" + (f": {reason}" if reason else ""))
    return list(map(visible, lines))


def _tally(owners: Mapping[str, str], cast: Mapping[str, Any]) -> str:
    """Return the vote counts by the room's rule: votes for one's own proposal count only if all are."""
    labels = {agent: str(vote.get("label")) for agent, vote in cast.items()}
    others = [label for agent, label in labels.items() if owners.get(label) != agent]
    counts = Counter(others or labels.values())
    names = {label: f"{label} ({owners[label]})" if owners.get(label) else label for label in counts}
    named = [f"{names[label]} {number}" for label, number in counts.most_common()]
    most = [label for label, number in counts.items() if number == max(counts.values())]
    won = f"winner: {names[most[0]]}" if len(most) == 1 else "a tie"
    return f"votes: {', '.join(named)}; {won}"
