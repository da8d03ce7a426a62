"""Show, follow or export the history, or remove parts of it."""

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

from csp.cli.arguments import JSON, WHOLE, YES, switch, takes, value
from csp.cli.output import Progress, confirm, put_lines, talk
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, Unreachable
from csp.http_client import Object, field, follow, newest, oldest, segment

_LIMIT: Final = 50
_RETRY_S: Final = 0.5
_COMMON: Final = frozenset({"v", "seq", "ts", "id", "type", "sender", "target", "thread", "text", "crc"})
#: All line endings in Markdown, because a missed one would end the quote.
_LINE_ENDING: Final = re.compile(r"\r\n|\r|\n")


@takes(
    value("form", "FORM", "prune or redact ID; default: show the history", nargs="*"),
    value("--limit", "N", "number of newest items to show; default: 50", type=WHOLE),
    value("--search", "Q", "only items with this text"),
    switch("--follow", "keep printing new items"),
    value("--agent", "A", "only items from or to this agent"),
    value("--types", "A,B", "only these types of events"),
    value("--before", "SEQ", "only items before this one; with prune: remove them", type=WHOLE),
    value("--after", "SEQ", "only items after this one", type=WHOLE),
    value("--keep", "N", "with prune: number of newest events to keep", type=WHOLE),
    YES,
    JSON,
    examples=("csp history --follow",),
)
def history(call: VerbCall) -> int:
    """Show, prune or redact the history."""
    match call.args.form:
        case [] if call.args.follow:
            return _follow(call)
        case []:
            items = _items(call)
            return call.show(items, map(line_of, items))
        case ["prune"]:
            return _prune(call)
        case ["redact", message]:
            question = f"permanently remove the text of {message} from the history?"
            if not call.args.yes and not confirm(question):
                talk("nothing was redacted")
                return 1
            return call.tell(call.gateway.post(f"/messages/{segment(message)}/redact"), f"redacted {message}")
        case other:
            raise BadInput(f"expected prune or redact ID, got {' '.join(other)!r}")


def _query(call: VerbCall) -> dict[str, Any]:
    return {"q": call.args.search, "agent": call.args.agent, "types": call.args.types}


def _items(call: VerbCall) -> list[Object]:
    """Return the newest items; with --after, the first ones, so that the next call can continue."""
    args, limit = call.args, call.args.limit or _LIMIT
    if args.after is not None:
        found: Iterable[Object] = oldest(call.gateway, args.after, before=args.before, **_query(call))
        return list(islice(found, limit))
    return newest(call.gateway, limit, before=args.before, **_query(call))


def _follow(call: VerbCall) -> int:
    if call.args.before is not None:
        raise BadInput("--before cannot be combined with --follow")
    seq = field(call.gateway.get("/health"), "seq", int)
    items = _items(call)
    if call.args.after is not None:
        seq = call.args.after
    last = max([seq, *(field(item, "seq", int) for item in items)])

    def tell(error: Unreachable | None) -> None:
        """Report that the gateway is unreachable until it is back."""
        if error is None:
            progress.clear()
            return
        progress.show(f"{error.message}; waiting for it…")
        time.sleep(_RETRY_S)

    with Progress() as progress:
        for item in chain(items, follow(call.reconnect, last, tell, **_query(call))):
            call.show(item, [line_of(item)])
            sys.stdout.flush()
    return 0


def line_of(item: Object) -> str:
    """Return an item as a line, with further lines of its text indented."""
    clock = time.strftime("%H:%M:%S", time.localtime(field(item, "ts", float)))
    sender, target = str(item.get("sender", "")), str(item.get("target", ""))
    way = f"{sender} -> {target}" if target and target != "all" else sender
    ending = f"({item['ending']}) " if item.get("ending") else ""
    text = str(item.get("text") or "")
    if not text and not ending:
        extra = " ".join(f"{key}={value}" for key, value in item.items() if key not in _COMMON)
        text = f"{item.get('type')} {extra}"
    return f"#{item.get('seq')} {clock} {way}: {ending}{text}".rstrip(" ").replace("\n", "\n    ")


@takes(
    value("--format", "F", "md or json; default: md", choices=("md", "json"), default="md"),
    value("--limit", "N", "only the newest N items", type=WHOLE),
    examples=("csp export --format md > chat.md",),
)
def export(call: VerbCall) -> int:
    """Print all items, oldest first, in pages, so that the length of the history does not matter."""
    gateway = call.gateway
    items = newest(gateway, call.args.limit) if call.args.limit else oldest(gateway)
    if call.args.format == "json":
        put_lines(json_lines(items))
    else:
        put_lines(markdown_lines(field(gateway.get("/health"), "room", str), items))
    return 0


def json_lines(items: Iterable[Object]) -> Iterator[str]:
    """Yield the lines of a JSON array."""
    lead = "["
    for item in items:
        yield lead + json.dumps(item)
        lead = ","
    yield "]" if lead == "," else "[]"


def markdown_lines(room: str, items: Iterable[Object]) -> Iterator[str]:
    """Yield the lines of a document with a heading per day and quoted text, because a fence might not end."""
    yield f"# Room {room}"
    day = ""
    for item in items:
        when = time.localtime(field(item, "ts", float))
        today = time.strftime("%Y-%m-%d", when)
        if today != day:
            day = today
            yield f"\n## {day}"
        clock = time.strftime("%H:%M:%S", when)
        to = f" to {item['target']}" if item.get("target") else ""
        yield f"\n**{item.get('sender')}**{to} · {clock} · #{item.get('seq')}\n"
        for line in _LINE_ENDING.split(field(item, "text", str)):
            yield f"> {line}".rstrip()


# --- removing ------------------------------------------------------------------------------------


def _prune(call: VerbCall) -> int:
    before, keep = call.args.before, call.args.keep
    if (before is None) == (keep is None):
        raise BadInput("expected prune with --before SEQ or with --keep N")
    if before is None:
        before = field(call.gateway.get("/health"), "seq", int) - int(keep) + 1
    if before <= 1:
        talk("nothing to prune")
        return 0
    if not call.args.yes and not confirm(f"permanently remove all events before #{before}?"):
        talk("nothing was removed")
        return 1
    answer = call.gateway.post("/history/prune", {"before": before})
    return call.tell(answer, f"removed all events before #{before}")
