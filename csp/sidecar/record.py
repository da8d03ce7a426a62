"""Follows what a CLI writes down of itself: its hooks, its transcript."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from csp.core.capture import Item
from csp.sidecar.finder import Finder, finder_for
from csp.sidecar.note import Place
from csp.sidecar.run import Run
from csp.sidecar.spool import Event, Spool
from csp.sidecar.tail import Tail, Watcher, new_watcher
from csp.sidecar.transcripts import Line, Reader

log = logging.getLogger(__name__)

OnItems = Callable[[list[Item]], None]


class Record:
    """Reads whatever is new as soon as the system says so."""

    def __init__(self, reader: Reader, watcher: Watcher, spool: Spool, finder: Finder, place: Place) -> None:
        self._reader = reader
        self._watcher = watcher
        self._spool = spool
        self._finder = finder
        self._tails: dict[Path, Tail] = {}
        if place.reader:
            reader.load(place.reader)
        for path, (offset, inode) in place.files.items():
            self._follow(Path(path), offset, inode)
        watcher.watch(spool.directory)

    def _follow(self, path: Path, offset: int = 0, inode: int = 0) -> None:
        if path not in self._tails:
            self._tails[path] = Tail(path, offset, inode)
            self._watcher.watch(path)

    async def run(self, on_items: OnItems) -> None:
        """Hand over what the CLI writes down, until cancelled."""
        while True:
            items = self.read()
            if items:
                on_items(items)
            await self._watcher.wait(self._patience_s())

    def _patience_s(self) -> float | None:
        due = self._reader.due()
        times = [self._finder.due(), None if due is None else max(0.0, due - time.time())]
        return min((time_s for time_s in times if time_s is not None), default=None)

    def read(self) -> list[Item]:
        """Return what is new. Hooks are taken first, so that all lines written before them are there too."""
        events = self._spool.take()
        for event in events:
            if event.hook.transcript_path:
                self._follow(Path(event.hook.transcript_path))
        for folder in self._finder.folders():
            self._watcher.watch(folder)
        for path in self._finder.find():
            self._follow(path)
        lines = [
            Line(path=str(path), data=data) for path, tail in self._tails.items() for data in tail.read()
        ]
        return self._reader.read(events, lines, time.time())

    def end_turn(self) -> None:
        """Note that the turn is over, though the record does not say so."""
        self._reader.end()

    def place(self, tracker: bytes) -> Place:
        """Return how far everything has been read."""
        files = {str(path): tail.position for path, tail in self._tails.items()}
        return Place(tracker=tracker, reader=self._reader.dump(), files=files, taken=self._spool.taken)

    @property
    def files(self) -> list[Path]:
        """The transcripts that are being read."""
        return list(self._tails)

    def settle(self) -> None:
        """Let go of the hooks that were read: the next brain will not need them."""
        self._spool.settle()


def stands_in(path: str, tag: str) -> bool | None:
    """Tell whether a transcript has the prompt `tag`; None where there is none to look at."""
    if not path or not Path(path).is_file():
        return None
    return f"#{tag}]".encode() in Path(path).read_bytes()


def make_record(capture: str, run: Run, place: Place) -> Record:
    """Return the record of a run; to be called in a running event loop."""
    spool = Path(run.spool) if run.spool else Path(run.folder, "spool")
    # The relay's whole family: a CLI that was started again is another process.
    finder = finder_for(capture, run.transcript, run.session_id, run.pid)
    return Record(_reader(capture, run), new_watcher(), Spool(spool, place.taken), finder, place)


def _reader(capture: str, run: Run) -> Reader:
    path = run.transcript if capture == "claude" else ""
    if capture == "claude":
        from csp.sidecar.transcripts.claude import ClaudeReader

        return ClaudeReader(run.started, run.session_id, path)
    if capture == "codex":
        from csp.sidecar.transcripts.codex import CodexReader

        return CodexReader(run.started)
    if capture == "gemini":
        from csp.sidecar.transcripts.gemini import GeminiReader

        return GeminiReader(run.started)
    return NoReader()


class NoReader:
    """Reads nothing: for a CLI that writes nothing down."""

    def read(self, events: Sequence[Event], lines: Sequence[Line], now: float) -> list[Item]:
        return []

    def end(self) -> None:
        pass

    def due(self) -> float | None:
        return None

    def dump(self) -> bytes:
        return b""

    def load(self, dumped: bytes) -> None:
        pass
