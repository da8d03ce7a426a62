"""Report what happened in the room while nobody watched."""

import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from csp.cli.arguments import JSON, takes, value
from csp.cli.mode import WAITS
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput
from csp.http_client import Object, field, objects
from csp.human.safe_text import count, one_line
from csp.human.status_lines import spent_lines
from csp.protocol.catalogue import END_REASONS
from csp.room.sessions.waits import duration

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(m|min|h|d)")
_SPAN_S: Final = {"m": 60, "min": 60, "h": 3600, "d": 86400}
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_TEXT: Final = 70
#: A report fits one screen; the rest of a long list is counted.
_MOST: Final = 5
_ENDS: Final = {str(entry.id): entry.text for entry in END_REASONS}


@takes(
    value("session", "SESSION", "id or thread of a session; default: everything since --since", nargs="?"),
    value("--since", "TIME", "8h, 90min, 22:00 or 2026-11-19T22:00; default: the session's start, else 12h"),
    JSON,
    examples=("csp report", "csp report s-12", "csp report --since 22:00"),
)
def report(call: VerbCall) -> int:
    """Show turns, waits, commits, tests, costs, and what needs you now."""
    query: dict[str, str | float] = {}
    if call.args.session:
        query["session"] = call.args.session
    if call.args.since:
        query["since"] = read_since(call.args.since, time.time())
    answer: Object = call.gateway.get("/report", **query)
    return call.show(answer, report_lines(answer))


def read_since(text: str, now: float) -> float:
    """Return the time that a person means: a span before now, a time of day, or a date."""
    if span := _SPAN.fullmatch(text.strip().lower()):
        return now - float(span[1]) * _SPAN_S[span[2]]
    if clock := _TIME.fullmatch(text.strip()):
        today = datetime.fromtimestamp(now)
        then = today.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        return (then if then <= today else then - timedelta(days=1)).timestamp()
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        hint = "for example: 8h, 90min, 22:00 or 2026-11-19T22:00"
        raise BadInput(f"unknown time {text!r}", hint) from None


def report_lines(view: Object) -> Iterator[str]:
    """Yield a report as at most about thirty lines."""
    since, until = float(view["since"]), float(view["until"])
    yield f"from {_clock(since)} to {_clock(until)} ({duration(until - since)})"
    sessions = objects(field(view, "sessions", list))
    for one in sessions[-_MOST:]:
        yield _session(one)
    if not sessions:
        yield "no session ran"
    for one in objects(field(view, "agents", list))[:8]:
        yield from _agent(one)
    yield from _waits(objects(field(view, "waits", list)), until)
    if view["slept_s"]:
        yield f"this machine slept for {duration(float(view['slept_s']))}"
    yield from _work(view)
    yield from spent_lines({"items": view["spent"], "prices": "of each reply"})[:-1][:8]
    yield from _needs(view)


def _work(view: Object) -> Iterator[str]:
    for one in objects(field(view, "commits", list))[:_MOST]:
        yield f"{count(field(one, 'total', int), 'commit')} in {one['directory']}"
        for subject in one["subjects"][:_MOST]:
            yield f"  {one_line(str(subject), _TEXT)}"
    for one in objects(field(view, "tests", list))[-_MOST:]:
        yield f"tests of {one['run']}: {one_line(str(one['summary']), _TEXT)}"


def _needs(view: Object) -> Iterator[str]:
    needs = field(view, "needs", list)
    for title in needs[:_MOST]:
        yield f"needs you: {title}"
    if len(needs) > _MOST:
        yield f"needs you: {len(needs) - _MOST} more, see csp status"
    if not needs:
        yield "nothing needs you"
    elif line := str(view["next"]):
        is_command = line.startswith("/") and not line.startswith("/focus")
        yield f"next: {line}" + (f"  (in a shell: csp {line.removeprefix('/')})" if is_command else "")


def _clock(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _session(one: Object) -> str:
    state = str(one["status"])
    if one.get("reason"):
        state = _ENDS.get(str(one["reason"]), str(one["reason"]))
    began = float(one["started_at"])
    took = "" if one.get("ended_at") is None else f" after {duration(float(one['ended_at']) - began)}"
    return f"{one['id']} {one['mode']}: {state}{took}; {one_line(str(one['topic']), _TEXT)}"


def _agent(one: Object) -> Iterator[str]:
    turns, replies, cancelled = (field(one, name, int) for name in ("turns", "replies", "cancelled"))
    line = f"{one['agent']}: {count(turns, 'turn')}, {count(replies, 'reply', 'replies')}"
    yield line + (f", {cancelled} cancelled" if cancelled else "")
    for failure in objects(field(one, "failed", list))[:2]:
        times = field(failure, "count", int)
        yield f"  failed {count(times, 'time')}: {one_line(str(failure['reason']), _TEXT)}"


def _waits(waits: list[Object], until: float) -> Iterator[str]:
    shown = [one for one in waits if _lasted(one, until) >= 1]
    for one in shown[-_MOST:]:
        who = str(one["agent"]) or str(one["session"])
        what = WAITS.get(str(one["kind"]), str(one["kind"])) if one["agent"] else "was paused"
        detail = f" ({one['detail']})" if one["detail"] else ""
        still = " until now" if one.get("ended") is None else ""
        yield f"wait: {who} {what}{detail} for {duration(_lasted(one, until))}{still}"
    if len(shown) > _MOST:
        total = duration(sum(_lasted(one, until) for one in shown))
        yield f"wait: {len(shown)} in all, {total} together"


def _lasted(wait: Object, until: float) -> float:
    return float(until if wait.get("ended") is None else wait["ended"]) - float(wait["since"])
