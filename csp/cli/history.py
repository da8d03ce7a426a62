"""Show the history, follow it, or take something out of it."""

import sys
import time
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from csp.cli.output import Progress, confirm, put, put_json, talk
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, Unreachable
from csp.http_client import Object, field, follow, newest, oldest, segment

_LIMIT: Final = 50
_RETRY_S: Final = 0.5
_COMMON: Final = frozenset({"v", "seq", "ts", "id", "type", "sender", "target", "thread", "text", "crc"})


def history(call: VerbCall) -> int:
    """Show, prune or redact the history."""
    match call.args.form:
        case []:
            return _follow(call) if call.args.follow else _show(call)
        case ["prune"]:
            return _prune(call)
        case ["redact", message]:
            return _redact(call, message)
        case other:
            raise BadInput(f"expected nothing, prune, or redact ID, got {' '.join(other)!r}")


def _query(call: VerbCall) -> dict[str, Any]:
    return {"q": call.args.search, "agent": call.args.agent, "types": call.args.types}


def _items(call: VerbCall) -> list[Object]:
    """Return the newest items; with --after the first ones, so that the next call can continue."""
    args, limit = call.args, call.args.limit or _LIMIT
    if args.after is not None:
        found: Iterable[Object] = oldest(call.gateway, args.after, before=args.before, **_query(call))
        return list(islice(found, limit))
    return newest(call.gateway, limit, before=args.before, **_query(call))


def _show(call: VerbCall) -> int:
    items = _items(call)
    if call.is_json:
        put_json(items)
        return 0
    for item in items:
        put(line_of(item))
    return 0


def _follow(call: VerbCall) -> int:
    if call.args.before is not None:
        raise BadInput("--before does not go with --follow")
    seq = field(call.gateway.get("/health"), "seq", int)
    items = _items(call)
    if call.args.after is not None:
        seq = call.args.after
    last = max([seq, *(field(item, "seq", int) for item in items)])
    away = _Away()
    for item in items:
        _put_item(call, item)
    try:
        for item in follow(call.reconnect, last, away.tell, **_query(call)):
            _put_item(call, item)
    finally:
        away.tell(None)
    return 0


def _put_item(call: VerbCall, item: Object) -> None:
    if call.is_json:
        put_json(item)
    else:
        put(line_of(item))
    sys.stdout.flush()


class _Away:
    """Say that the gateway is away, for as long as it is."""

    def __init__(self) -> None:
        self._progress = Progress()

    def tell(self, error: Unreachable | None) -> None:
        if error is None:
            self._progress.clear()
            return
        self._progress.show(f"{error.message}; waiting for it…")
        time.sleep(_RETRY_S)


def line_of(item: Object) -> str:
    """Return an item as one line, further lines of its text indented."""
    clock = time.strftime("%H:%M:%S", time.localtime(field(item, "ts", float)))
    sender, target = str(item.get("sender", "")), str(item.get("target", ""))
    way = f"{sender} -> {target}" if target and target != "all" else sender
    ending = f"({item['ending']}) " if item.get("ending") else ""
    text = str(item.get("text") or "") or ("" if ending else _details(item))
    return f"#{item.get('seq')} {clock} {way}: {ending}{text}".rstrip(" ").replace("\n", "\n    ")


def _details(item: Object) -> str:
    extra = " ".join(f"{key}={value}" for key, value in item.items() if key not in _COMMON)
    return f"{item.get('type')} {extra}".rstrip()


# --- taking out ----------------------------------------------------------------------------------


def _prune(call: VerbCall) -> int:
    before = _prune_before(call)
    if before <= 1:
        talk("nothing to prune")
        return 0
    if not call.args.yes and not confirm(f"permanently remove all events before #{before}?"):
        talk("nothing was removed")
        return 1
    answer = call.gateway.post("/history/prune", {"before": before})
    if call.is_json:
        put_json(answer)
    else:
        talk(f"removed all events before #{before}")
    return 0


def _prune_before(call: VerbCall) -> int:
    before, keep = call.args.before, call.args.keep
    if (before is None) == (keep is None):
        raise BadInput("expected prune with --before SEQ or with --keep N")
    if before is not None:
        return int(before)
    return field(call.gateway.get("/health"), "seq", int) - int(keep) + 1


def _redact(call: VerbCall, message: str) -> int:
    if not call.args.yes and not confirm(f"permanently remove the text of {message} from the history?"):
        talk("nothing was redacted")
        return 1
    answer = call.gateway.post(f"/messages/{segment(message)}/redact")
    if call.is_json:
        put_json(answer)
    else:
        talk(f"redacted {message}")
    return 0
