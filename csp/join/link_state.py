"""The state file of a link, read by `csp status` and by its next start."""

import json
import time
from pathlib import Path
from typing import NamedTuple

from csp.fast_start.atomic_files import read_plain, replace_file


class LinkState(NamedTuple):
    """The state of a link; `problem` is empty while the room can be reached."""

    target: str
    port: int = 0
    problem: str = ""
    since: float = 0.0

    @classmethod
    def load(cls, state_dir: Path, room: str) -> "LinkState | None":
        """Return what the link of a room wrote last, or None."""
        try:
            found = json.loads(read_plain(_path(state_dir, room)))
            return cls(str(found["target"]), int(found["port"]), str(found["problem"]), float(found["since"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self, state_dir: Path, room: str) -> None:
        """Write the state with the current time."""
        row = self._replace(since=time.time())._asdict()
        replace_file(_path(state_dir, room), json.dumps(row).encode(), is_durable=False)


def _path(state_dir: Path, room: str) -> Path:
    # Not *.json, because those files announce running rooms.
    return state_dir / f"{room}.link"
