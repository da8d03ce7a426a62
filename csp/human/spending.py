"""Say what the agents have used, what that cost."""

from csp.human.text import count, one_line, visible
from csp.oneshot import Object, field, objects

_NAME = 60


def spent_lines(usage: object) -> list[str]:
    """Return a line for each agent and model, then whose prices these are; nothing where nothing was used."""
    rows = objects(field(usage, "items", list))
    lines = [_row(row) for row in rows]
    if not lines:
        return []
    prices = usage.get("prices") if isinstance(usage, dict) else None
    source = f"prices: {visible(str(prices))}" if prices else "prices: none, no list of prices is installed"
    return [*lines, source]


def _row(row: Object) -> str:
    replies, unpriced = field(row, "replies", int), field(row, "unpriced", int)
    model = visible(one_line(str(row.get("model") or "a model that it does not name"), _NAME))
    tokens = f"{field(row, 'input', int):,} tokens in, {field(row, 'output', int):,} out"
    about = "about " if row.get("estimated") else ""
    cost = row.get("cost_usd")
    money = f"${cost:.4f}" if isinstance(cost, int | float) else f"no price is known for {model}"
    if isinstance(cost, int | float) and unpriced:
        money += f" without {unpriced} that have no price"
    said = count(replies, "reply", "replies")
    return f"spent by {visible(field(row, 'agent', str))} with {model}: {said}, {about}{tokens}, {money}"


def session_spending(item: Object) -> str:
    """Return what a session has used in all, nothing before its first reply."""
    tokens, cost = field(item, "tokens", int), item.get("cost_usd")
    if not tokens:
        return ""
    money = f", ${cost:.4f}" if isinstance(cost, int | float) and cost else ""
    return f"{tokens:,} tokens{money}"
