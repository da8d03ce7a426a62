"""Show the history of a room as it came, or its logs."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from csp.cli.doctor import journal_path
from csp.cli.history import line_of
from csp.cli.output import put, talk
from csp.cli.verb_call import VerbCall
from csp.errors import CspError, NotFound
from csp.http_client import Object
from csp.panes.start_gateway import log_path
from csp.room_registry import running_rooms
from csp.sidecar.run_record import agents_dir

#: Nobody watches a night go by.
_LONGEST_PAUSE_S: Final = 3.0
_TAIL_BYTES: Final = 256 * 1024
_POLL_S: Final = 0.2
GATEWAY: Final = "gateway"


def replay(call: VerbCall) -> int:
    """Print the items of a journal with their pauses, sped up."""
    speed = call.args.speed
    items: Iterable[Object] = _items(journal_path(call))
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


def _items(path: Path) -> Iterator[Object]:
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


def logs(call: VerbCall) -> int:
    """Print the newest lines of each log, then follow them if asked to."""
    files = _logs(call)
    width = max(map(len, files))
    places: dict[str, int] = {}
    for name, path in files.items():
        lines, places[name] = _tail(path, call.args.limit)
        for line in lines:
            _put_line(name, line, width, is_alone=len(files) == 1)
    while call.args.follow:
        for name, path in files.items():
            lines, places[name] = _news(path, places[name])
            for line in lines:
                _put_line(name, line, width, is_alone=len(files) == 1)
        time.sleep(_POLL_S)
    return 0


def _put_line(name: str, line: str, width: int, *, is_alone: bool) -> None:
    put(line if is_alone else f"{name:{width}} | {line}")
    sys.stdout.flush()


def _logs(call: VerbCall) -> dict[str, Path]:
    """Return the existing logs of the named process, or of all."""
    state_dir, room = call.settings.state_dir, _room(call)
    found = {GATEWAY: log_path(state_dir, room)}
    for folder in sorted(agents_dir(state_dir, room).glob("*/")):
        found[folder.name] = folder / "brain.log"
    found = {name: path for name, path in found.items() if path.is_file()}
    wanted = call.args.name
    if wanted == GATEWAY and GATEWAY not in found:
        raise NotFound(f"the gateway of room {room!r} has no log file", "it logs to the terminal it runs in")
    if not found or (wanted and wanted not in found):
        what = f"no log of {wanted!r}" if wanted else "no logs"
        hint = f"there are: {', '.join(found)}" if found else "they are there while the room is up"
        raise NotFound(f"{what} in room {room!r}", hint)
    if not wanted and GATEWAY not in found:
        talk("the gateway logs to the terminal it runs in")
    return {wanted: found[wanted]} if wanted else found


def _room(call: VerbCall) -> str:
    if call.settings.is_set("room"):
        return call.settings.room
    try:
        return call.address.room or call.settings.room
    except CspError:
        # Logs are wanted most when the gateway has died.
        names = [room.room for room in running_rooms(call.settings.state_dir)]
        return names[0] if len(names) == 1 else call.settings.room


def _tail(path: Path, limit: int) -> tuple[list[str], int]:
    """Return the last lines of a file and the offset after them."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL_BYTES))
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.decode(errors="replace").splitlines()
    return lines[max(0, len(lines) - limit) :], max(0, size - _TAIL_BYTES) + len(whole)


def _news(path: Path, place: int) -> tuple[list[str], int]:
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
