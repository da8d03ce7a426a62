"""Replay the history of a room with its original timing, or show its logs."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from csp.cli.arguments import HISTORY_DIR, WHOLE, read_as, switch, takes, value
from csp.cli.doctor import journal_path
from csp.cli.history import line_of
from csp.cli.output import put, talk
from csp.cli.verb_call import VerbCall
from csp.errors import NotFound
from csp.http_client import Object
from csp.panes.start_gateway import log_path
from csp.setting_types import FROM_ZERO
from csp.sidecar.run_record import agents_dir

#: Nobody watches a night go by.
_LONGEST_PAUSE_S: Final = 3.0
_TAIL_BYTES: Final = 256 * 1024
_POLL_S: Final = 0.2
GATEWAY: Final = "gateway"


@takes(
    value(
        "--speed",
        "X",
        "times as fast as it was; 0 shows all at once; default: 8",
        type=read_as(FROM_ZERO),
        default=8.0,
    ),
    value("--limit", "N", "only the newest N items", type=WHOLE),
    HISTORY_DIR,
    examples=("csp replay --speed 20",),
)
def replay(call: VerbCall) -> int:
    """Print the items of a journal with their pauses, sped up."""
    speed = call.args.speed
    items: Iterable[Object] = journal_items(journal_path(call))
    if call.args.limit is not None:
        items = list(items)[-call.args.limit :] if call.args.limit else []
    before: float | None = None
    for item in items:
        at = float(item["ts"])
        if speed and before is not None:
            time.sleep(min(max(0.0, at - before) / speed, _LONGEST_PAUSE_S))
        before = at
        put(line_of(item))
        sys.stdout.flush()
    return 0


def journal_items(path: Path) -> Iterator[Object]:
    """Yield what a person would see of a journal; skip damaged lines."""
    import json

    from csp.journal.history_query import HIDDEN_TYPES
    from csp.journal.line_reader import intact_seq
    from csp.protocol.events import HISTORY_TYPES

    with path.open("rb") as file:
        for line in file:
            if intact_seq(line.rstrip(b"\n")) is None:
                continue
            item: dict[str, Any] = json.loads(line)
            if item.get("type") in HISTORY_TYPES - HIDDEN_TYPES:
                yield item


# --- logs -----------------------------------------------------------------------------------------


@takes(
    value("name", "NAME", "gateway or an agent's id; default: all", nargs="?"),
    value("--limit", "N", "newest lines of each; default: 50", type=WHOLE, default=50),
    switch("--follow", "keep printing what comes"),
    examples=("csp logs codex",),
)
def logs(call: VerbCall) -> int:
    """Print the newest lines of each log, then follow them if asked to."""
    files = _logs(call)
    width = max(map(len, files))
    found = {name: tail(path, call.args.limit) for name, path in files.items()}
    while True:
        for name, (lines, _) in found.items():
            for line in lines:
                put(line if len(files) == 1 else f"{name:{width}} | {line}")
        sys.stdout.flush()
        if not call.args.follow:
            return 0
        time.sleep(_POLL_S)
        found = {name: news(path, found[name][1]) for name, path in files.items()}


def _logs(call: VerbCall) -> dict[str, Path]:
    """Return the existing logs of the named process, or of all."""
    state_dir, room, wanted = call.settings.state_dir, call.room_name(), call.args.name
    logs = {GATEWAY: log_path(state_dir, room)}
    logs |= {path.name: path / "brain.log" for path in sorted(agents_dir(state_dir, room).glob("*/"))}
    found = {name: path for name, path in logs.items() if path.is_file()}
    if wanted == GATEWAY and GATEWAY not in found:
        raise NotFound(f"the gateway of room {room!r} has no log file", "it logs to the terminal it runs in")
    if not found or (wanted and wanted not in found):
        what = f"no log of {wanted!r}" if wanted else "no logs"
        hint = f"there are: {', '.join(found)}" if found else "they are there while the room is up"
        raise NotFound(f"{what} in room {room!r}", hint)
    if not wanted and GATEWAY not in found:
        talk("the gateway logs to the terminal it runs in")
    return {wanted: found[wanted]} if wanted else found


def tail(path: Path, limit: int) -> tuple[list[str], int]:
    """Return the last lines of a file and the offset after them."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL_BYTES))
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.decode(errors="replace").splitlines()
    return lines[max(0, len(lines) - limit) :], max(0, size - _TAIL_BYTES) + len(whole)


def news(path: Path, place: int) -> tuple[list[str], int]:
    """Return whole lines after an offset; a truncated file is read from its start."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < place:
                place = 0
            file.seek(place)
            data = file.read(_TAIL_BYTES)
    except FileNotFoundError:
        return [], 0
    whole = data[: data.rfind(b"\n") + 1]
    return whole.decode(errors="replace").splitlines(), place + len(whole)
