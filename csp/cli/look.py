"""Show the state of things: agents, room, settings."""

import time

from csp.cli.call import Call
from csp.cli.terminal import put, put_json
from csp.config import ROWS, shown
from csp.errors import Forbidden
from csp.oneshot import Object, field, objects


def agents(call: Call) -> int:
    """List the agents with what each does."""
    found = objects(call.gateway.get("/agents"))
    if call.is_json:
        put_json(found)
        return 0
    for line in _agent_lines(found):
        put(line)
    return 0


def status(call: Call) -> int:
    """Show the room, its agents, and each message that waits with what it waits for."""
    health = call.gateway.get("/health")
    found = objects(call.gateway.get("/agents"))
    queue = _queue(call)
    if call.is_json:
        put_json({"url": call.address.url, "health": health, "agents": found, "queue": queue})
        return 0
    for line in (*_health_lines(call.address.url, health), *_agent_lines(found), *_queue_lines(queue)):
        put(line)
    return 0


def token(call: Call) -> int:
    """Print the token that this command would speak with."""
    put(call.address.token)
    return 0


def config(call: Call) -> int:
    """Show every setting with the place its value comes from."""
    settings = call.settings
    rows = [(row.env, shown(settings, row), settings.sources[row.name]) for row in ROWS]
    if call.is_json:
        put_json([{"name": name, "value": value, "source": source} for name, value, source in rows])
        return 0
    for line in _columns([list(row) for row in rows]):
        put(line)
    return 0


def _queue(call: Call) -> list[Object] | None:
    """Return what waits, or None for a token that may not see it."""
    try:
        return objects(field(call.gateway.get("/queue"), "items", list))
    except Forbidden:
        return None


def _agent_lines(found: list[Object]) -> list[str]:
    if not found:
        return ["no agents"]
    return _columns([_agent_row(item) for item in found])


def _agent_row(item: Object) -> list[str]:
    state = field(item, "state", str)
    until, detail = item.get("until"), item.get("detail")
    if isinstance(until, int | float):
        state += time.strftime(" until %H:%M", time.localtime(until))
    if detail:
        state += f" ({detail})"
    role = field(item, "role", str)
    kind = field(item, "kind", str)
    waiting = field(item, "queued", int)
    return [
        field(item, "id", str),
        state,
        kind if role == "agent" else f"{kind}, {role}",
        f"{waiting} waiting" if waiting else "",
        "shares its pane" if item.get("share") else "",
    ]


def _health_lines(url: str, health: object) -> list[str]:
    journal = field(health, "journal", dict)
    damaged = journal.get("damaged") or []
    lines = [
        f"room {field(health, 'room', str)} at {url}: {field(health, 'status', str)},"
        f" seq {field(health, 'seq', int)}, up {_duration(field(health, 'uptime_s', float))}"
    ]
    if not journal.get("writable", True):
        lines.append("journal: cannot be written, nothing new is accepted")
    if damaged:
        lines.append(f"journal: {len(damaged)} damaged lines, see: csp doctor --journal")
    return lines


def _queue_lines(queue: list[Object] | None) -> list[str]:
    if queue is None:
        return ["what waits is shown with the room's token only"]
    return [f"waiting: {_queue_line(item)}" for item in queue]


def _queue_line(item: Object) -> str:
    state = field(item, "state", str)
    reason = str(item.get("reason") or "")
    age = _duration(max(0.0, time.time() - field(item, "at", float)))
    text = " ".join(field(item, "text", str).split())
    text = text if len(text) <= 60 else f"{text[:59]}…"
    way = f"{field(item, 'id', str)} from {field(item, 'sender', str)} to {field(item, 'agent', str)}"
    return f"{way}: {f'{state} ({reason})' if reason else state} for {age}: {text}"


def _duration(seconds: float) -> str:
    whole = int(seconds)
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {name}"
    return f"{whole} s"


def _columns(rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
