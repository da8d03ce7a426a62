"""Says which transcripts belong to the run, as they come into being."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol

from csp.sidecar.locate import gemini_chat, newest_folders, open_rollouts

#: A new file may not have been opened by its process yet; a resumed one is an old file.
AGAIN_S: Final = 1.0
FRESH_S: Final = 3.0


class Finder(Protocol):
    """Finds the transcripts of one run."""

    def folders(self) -> Iterable[Path]:
        """Return the directories in which a new one would appear."""

    def find(self) -> Iterable[Path]:
        """Return those that there are."""

    def due(self) -> float | None:
        """Return after how many seconds to look again, even if nothing was written."""


class Known:
    """The one path that is known from the start, if any; hooks name the others."""

    def __init__(self, path: str) -> None:
        self._paths = (Path(path),) if path else ()

    def folders(self) -> Iterable[Path]:
        return ()

    def find(self) -> Iterable[Path]:
        return self._paths

    def due(self) -> float | None:
        return None


class OpenRollouts:
    """The rollouts that a running Codex holds open."""

    def __init__(self, sessions: Path, pid: int) -> None:
        self._sessions = sessions
        self._pid = pid
        self._names: frozenset[str] = frozenset()
        self._changed = 0.0
        self._looked = 0.0

    def folders(self) -> Iterable[Path]:
        return newest_folders(self._sessions)

    def find(self) -> Iterable[Path]:
        # Looking at a process tree is not free, and this is asked for every line.
        now = time.monotonic()
        names: frozenset[str] = frozenset()
        with contextlib.suppress(OSError):
            names = frozenset(os.listdir(newest_folders(self._sessions)[-1]))
        if names != self._names:
            self._names, self._changed = names, now
        if now - self._changed > FRESH_S and now - self._looked < AGAIN_S:
            return ()
        self._looked = now
        return open_rollouts(self._pid)

    def due(self) -> float | None:
        return 0.05 if time.monotonic() - self._changed < FRESH_S else AGAIN_S


class GeminiChat:
    """The chat file of a session of Gemini, whose name begins with the minute it was begun in."""

    def __init__(self, tmp: Path, session: str) -> None:
        self._tmp = tmp
        self._session = session
        self._found: Path | None = None

    def folders(self) -> Iterable[Path]:
        return (self._tmp,)

    def find(self) -> Iterable[Path]:
        self._found = self._found or gemini_chat(self._tmp, self._session)
        return (self._found,) if self._found else ()

    def due(self) -> float | None:
        return None if self._found else AGAIN_S


def finder_for(capture: str, hint: str, session: str, pid: int) -> Finder:
    """Return what finds the transcripts of this kind of CLI."""
    if capture == "codex":
        return OpenRollouts(Path(hint), pid)
    if capture == "gemini":
        return GeminiChat(Path(hint), session)
    return Known(hint if capture == "claude" else "")
