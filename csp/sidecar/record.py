"""The record of a sidecar as a file: `run.json` in its own folder, which only its user can read.

What stands in it is `Run`; the launcher, which must load little, has it as a plain dictionary.
"""

import os

from csp.light.plain_json import dumps, loads
from csp.light.room_files import agents_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Record = dict[str, Any]

_FILE = "run.json"


def write_record(folder: str, record: "Mapping[str, object]") -> None:
    """Write a record whole or not at all."""
    os.makedirs(folder, 0o700, exist_ok=True)
    fresh = os.path.join(folder, f".{_FILE}.{record['pid']}")
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with open(fd, "w", encoding="ascii") as file:
            file.write(dumps(record))
        os.replace(fresh, os.path.join(folder, _FILE))
    except OSError:
        os.unlink(fresh)
        raise


def read_record(folder: str) -> "Record | None":
    """Return the record of a folder, None if there is none that can be read."""
    try:
        with open(os.path.join(folder, _FILE), "rb") as file:
            found = loads(file.read())
    except (OSError, ValueError):
        return None
    is_record = isinstance(found, dict) and isinstance(found.get("pid"), int)
    return found if is_record else None


def left_behind(state_dir: str, room: str, name: str) -> "Record | None":
    """Return the record of a sidecar of that name which no longer runs, so that its id can be had again."""
    folder = agents_dir(state_dir, room)
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return None
    for entry in entries:
        record = read_record(os.path.join(folder, entry))
        if record and record.get("name") == name and not is_running(record["pid"]):
            return record
    return None


def is_running(pid: int) -> bool:
    """Tell whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return False
    except PermissionError:
        return True
    return True
