"""Read hook events from a run's spool directory.

A hook writes its complete event under a hidden name and renames it to `<pid>.json`, so it never waits for a
reader. An event stays on disk until it is settled, so an event read by a brain that died is read again.
"""

import contextlib
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

log = logging.getLogger(__name__)

MAX_EVENT_BYTES: Final = 64 << 20
_NOTHING: Final = msgspec.Raw(b"")


class Hook(msgspec.Struct, frozen=True):
    """The fields of hook input that are used, for all CLIs."""

    hook_event_name: str = ""
    session_id: str = ""
    transcript_path: str | None = None
    prompt: str = ""
    prompt_id: str = ""
    source: str = ""
    last_assistant_message: str | None = None
    stop_hook_active: bool = False
    error: str | None = None
    tool_name: str = ""
    tool_use_id: str = ""
    tool_input: msgspec.Raw = _NOTHING
    notification_type: str = ""
    details: msgspec.Raw = _NOTHING
    agent_id: str | None = None
    timestamp: str = ""


class HookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One hook event and the time when its file was written, in Unix seconds."""

    at: float
    hook: Hook


class HookSpool:
    """A reader that returns each event in the directory once, oldest first."""

    def __init__(self, directory: Path, taken: Iterable[str] = ()) -> None:
        """Skip the events that an earlier reader had already read (`taken`)."""
        self.directory = directory
        self._taken = dict.fromkeys(taken)

    @property
    def taken(self) -> tuple[str, ...]:
        """The keys of the events that have been read but not settled."""
        return tuple(self._taken)

    def read_new(self) -> list[HookEvent]:
        """Return the new events."""
        found: list[tuple[int, str]] = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self.directory) as entries,
        ):
            for entry in entries:
                # The entry may have disappeared or be a broken link.
                with contextlib.suppress(OSError):
                    if entry.name.endswith(".json"):
                        found.append((entry.stat().st_mtime_ns, entry.name))
        events = []
        for at, name in sorted(found):
            # A process id may be reused, so the name alone does not identify an event.
            key = f"{at} {name}"
            hook = None if key in self._taken else self._read(name)
            self._taken[key] = None
            if hook:
                events.append(HookEvent(at=at / 1e9, hook=hook))
        return events

    def settle(self) -> None:
        """Remove the events that have been read, because their outcomes are safe."""
        for key in self._taken:
            at, _, name = key.partition(" ")
            path = self.directory / name
            with contextlib.suppress(OSError):
                if path.stat().st_mtime_ns == int(at):
                    path.unlink()
        self._taken.clear()

    def _read(self, name: str) -> Hook | None:
        path = self.directory / name
        try:
            is_readable = path.stat().st_size <= MAX_EVENT_BYTES
            return msgspec.json.decode(path.read_bytes(), type=Hook) if is_readable else None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            log.warning("hook event skipped", extra={"file": name, "reason": str(exc)})
            return None
