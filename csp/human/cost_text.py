"""Say what the agents have used, what that cost."""

from csp.http_client import Object, field, objects
from csp.human.safe_text import count, one_line, visible

_NAME = 60


def spent_lines(usage: object) -> list[str]:
    """Return a line for each agent and model, then whose prices these are; nothing where nothing was used."""
    lines = []
    for row in objects(field(usage, "items", list)):
        name, cost, unpriced = str(row.get("model") or ""), row.get("cost_usd"), field(row, "unpriced", int)
        model = visible(one_line(name, _NAME)) if name else "a model it does not name"
        about = "about " if row.get("estimated") else ""
        money = "no price is known for it"
        if isinstance(cost, int | float):
            money = f"${cost:.4f}"
            money += f" and {count(unpriced, 'reply', 'replies')} without a known price" if unpriced else ""
        said = count(field(row, "replies", int), "reply", "replies")
        who = visible(field(row, "agent", str))
        lines.append(f"spent by {who} with {model}: {said}, {about}{tokens_text(row)}, {money}")
    if not lines:
        return []
    prices = usage.get("prices") if isinstance(usage, dict) else None
    source = f"prices: {visible(str(prices))}" if prices else "prices: none, no list of prices is installed"
    return [*lines, source]


def tokens_text(used: Object) -> str:
    """Return the tokens as limits count them: those that are new, with the output in them; those cached."""
    new, output, cached = (field(used, name, int) for name in ("new", "output", "cached"))
    return f"{new:,} new tokens ({output:,} output), {cached:,} cached"


def session_spending(item: Object) -> str:
    """Return what a session has used in all, nothing before its first reply."""
    tokens, cost = field(item, "tokens", int), item.get("cost_usd")
    if not tokens:
        return ""
    money = f", ${cost:.4f}" if isinstance(cost, int | float) and cost else ""
    return f"{tokens_text(item)}{money}"
