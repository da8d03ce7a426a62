"""Print the whole history as one document."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from typing import Final

from csp.cli.output import put
from csp.cli.verb_call import VerbCall
from csp.http_client import Object, field, newest, oldest

#: Every line ending that Markdown knows: a missed one would end the quote.
_LINE_ENDING: Final = re.compile(r"\r\n|\r|\n")


def export(call: VerbCall) -> int:
    """Print every item, oldest first, page by page, so that the length of the history does not matter."""
    gateway = call.gateway
    items = newest(gateway, call.args.limit) if call.args.limit else oldest(gateway)
    if call.args.format == "json":
        lines = json_lines(items)
    else:
        lines = markdown_lines(field(gateway.get("/health"), "room", str), items)
    for line in lines:
        put(line)
    return 0


def json_lines(items: Iterable[Object]) -> Iterator[str]:
    """Yield the lines of one JSON array."""
    lead = "["
    for item in items:
        yield lead + json.dumps(item)
        lead = ","
    yield "]" if lead == "," else "[]"


def markdown_lines(room: str, items: Iterable[Object]) -> Iterator[str]:
    """Yield the lines of a document with a heading per day; a quote ends with its text, a fence might not."""
    yield f"# Room {room}"
    day = ""
    for item in items:
        when = time.localtime(field(item, "ts", float))
        today = time.strftime("%Y-%m-%d", when)
        if today != day:
            day = today
            yield f"\n## {day}"
        clock = time.strftime("%H:%M:%S", when)
        yield f"\n**{item.get('sender')}**{_to(item)} · {clock} · {item.get('id')}\n"
        for line in _LINE_ENDING.split(field(item, "text", str)):
            yield f"> {line}".rstrip()


def _to(item: Object) -> str:
    target = item.get("target")
    return f" to {target}" if target else ""
