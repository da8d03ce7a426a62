"""Read and write the record of a sidecar: `run.json` in its own folder, which only its user can read.

Its fields are those of `SidecarRecord`; the launcher, which must import little, uses a plain dictionary.
"""

import os

from csp.fast_start.atomic_files import replace_file
from csp.fast_start.fast_json import dumps, loads
from csp.fast_start.room_files import agents_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Record = dict[str, Any]

_FILE = "run.json"
#: The prefix of the folders that describe sidecars about to join; no agent's name starts with it.
_JOINING = ".joining-"


def capabilities_of(profile: str, duty: str) -> "list[str] | dict[str, str]":
    """Return the capabilities that a sidecar's agent declares to the room."""
    return {"profile": profile, "duty": duty} if duty else [profile]


def write_record(folder: str, record: "Mapping[str, object]") -> None:
    """Write a record atomically."""
    os.makedirs(folder, 0o700, exist_ok=True)
    # It describes running processes, so it need not survive a power cut.
    replace_file(os.path.join(folder, _FILE), dumps(record).encode("ascii"), is_durable=False)


def read_record(folder: str) -> "Record | None":
    """Return the record in a folder, or None if there is no readable one."""
    try:
        with open(os.path.join(folder, _FILE), "rb") as file:
            found = loads(file.read())
    except (OSError, ValueError):
        return None
    is_record = isinstance(found, dict) and isinstance(found.get("pid"), int)
    return found if is_record else None


def left_behind(state_dir: str, room: str, name: str) -> "Record | None":
    """Return the record of a sidecar of that name that has ended, so that its id can be reused."""
    folder = agents_dir(state_dir, room)
    found = (_gone(folder, entry, name) for entry in _entries(folder) if not entry.startswith(_JOINING))
    return next((record for record in found if record), None)


def _entries(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _gone(folder: str, entry: str, name: str) -> "Record | None":
    record = read_record(os.path.join(folder, entry))
    is_gone = record and record.get("name") == name and not is_running(record["pid"])
    return record if is_gone else None


def begin_to_join(state_dir: str, room: str, name: str, launch: str) -> str:
    """Write a note that a sidecar is about to join, and return the launch id to join with.

    A sidecar may be killed after joining but before it could write its record. The next sidecar of that
    name reuses its launch id and thus gets the same agent id. If it cannot be written, joining continues.
    """
    folder = agents_dir(state_dir, room)
    own = os.path.join(folder, f"{_JOINING}{os.getpid()}")
    for entry in _entries(folder):
        record = _gone(folder, entry, name) if entry.startswith(_JOINING) else None
        if record is None:
            continue
        try:
            # If several processes try this at the same time, only one of them can move the folder.
            os.rename(os.path.join(folder, entry), own)
        except OSError:
            continue
        launch = str(record.get("launch"))
        break
    try:
        write_record(own, {"name": name, "pid": os.getpid(), "launch": launch})
    except OSError:
        return launch
    return launch


def end_to_join(state_dir: str, room: str) -> None:
    """Remove the note written by `begin_to_join`, because the record replaces it or nobody has joined."""
    own = os.path.join(agents_dir(state_dir, room), f"{_JOINING}{os.getpid()}")
    for remove, path in ((os.unlink, os.path.join(own, _FILE)), (os.rmdir, own)):
        try:
            remove(path)
        except OSError:
            return


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # Z is the state of a zombie. The name before the state may contain anything, even ") ".
            return file.read().rpartition(b")")[2].split()[:1] != [b"Z"]
    except OSError:
        # Without /proc, zombies cannot be recognised.
        return True
