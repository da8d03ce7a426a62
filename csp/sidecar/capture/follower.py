"""Follow the hook events and transcripts of one run of a CLI."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from csp.clis.hook_spool import HookEvent, HookSpool
from csp.clis.registry import find_adapter
from csp.clis.transcript_reader import Line, decoded, seconds
from csp.sidecar.capture.file_tail import FileWatcher, Tail
from csp.terminal.reply_tracker import Ended, Item, Outcome, Switched, Tracker

#: The interval for looking for transcripts that no notification reports.
LOOK_S: Final = 1.0
#: A new file may be reported before its writer is seen to have it open. Looking takes many milliseconds,
#: so it is delayed until nothing was written for this long and the consumers have handled the last outcomes.
_SOON_S: Final = 0.02
_SOON_TIMES: Final = 5
_BATCH_LINES: Final = 2000


class FollowedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a run that are known at its start; `since` is the start time in Unix seconds."""

    kind: str
    child_pid: int
    since: float
    session_id: str = ""
    transcript_hint: str = ""
    spool_dir: str = ""


class _Dump(msgspec.Struct):
    reader: msgspec.Raw
    tracker: msgspec.Raw
    files: dict[str, tuple[int, int]]
    current: list[str]
    taken: list[str]
    sides: dict[str, tuple[int, int]] = {}


class _Timed(msgspec.Struct):
    timestamp: str = ""


class Follower:
    """A follower that yields the outcomes of one run, across /clear, /resume and restarts of the brain."""

    def __init__(self, run: FollowedRun, dumped: bytes = b"") -> None:
        """Continue where the `dumped` follower ended, or else from the start of the run."""
        self.run = run
        self.tracker = Tracker()
        self._adapter = find_adapter(run.kind)
        path = run.transcript_hint if self._adapter.knows_transcript else ""
        self._reader = self._adapter.new_reader(run.since, run.session_id, path)
        self._positions: dict[str, tuple[int, int]] = {}
        self._tails: dict[str, Tail] = {}
        self._held: dict[str, list[Line]] = {}
        #: The transcripts of subagents, with the positions up to which they have been read.
        self._sides: dict[str, Tail] = {}
        self._watcher: FileWatcher | None = None
        self._looks = 0
        self._look_at = 0.0
        taken: list[str] = []
        if dumped:
            known = msgspec.json.decode(dumped, type=_Dump)
            self._reader.load(bytes(known.reader))
            self.tracker = Tracker.load(bytes(known.tracker))
            self._positions, taken = known.files, known.taken
            for name in known.current:
                self._tail(name)
            for name, (offset, inode) in known.sides.items():
                self._sides[name] = Tail(Path(name), offset, inode)
        elif path:
            self._tail(path)
        self._spool = HookSpool(Path(run.spool_dir), taken) if run.spool_dir else None

    def dump(self) -> bytes:
        """Return the whole state for a follower that takes over; call it before `settle`."""
        for name, tail in self._tails.items():
            self._positions[name] = tail.position
        return msgspec.json.encode(
            _Dump(
                reader=msgspec.Raw(self._reader.dump()),
                tracker=msgspec.Raw(self.tracker.dump()),
                files=self._positions,
                current=list(self._tails),
                taken=list(self._spool.taken) if self._spool else [],
                sides={name: tail.position for name, tail in self._sides.items()},
            )
        )

    def settle(self) -> None:
        """Remove the processed hook events, once their outcomes or a dump are safe."""
        if self._spool:
            self._spool.settle()

    def feed(self, item: Item) -> list[Outcome]:
        """Process an item missing from the CLI's record, such as an interrupt before the first word."""
        if isinstance(item, Ended):
            self._reader.end()
        return self.tracker.feed(item)

    @property
    def lacks_ends(self) -> bool:
        """Return whether nothing but the screen shows that a turn is over."""
        return self._reader.lacks_ends

    def look(self) -> None:
        """Look for transcripts soon, for example after an Enter that may have changed the session."""
        self._look_soon()
        if self._watcher:
            self._watcher.wake()

    def catch_up(self) -> list[Outcome]:
        """Return the outcomes of everything that is currently on disk."""
        if self._needs_looks():
            self._locate()
        outcomes, has_news = self._step()
        # A batch has a maximum number of lines, and one that switches transcripts has none of the new one.
        while has_news:
            more, has_news = self._step()
            outcomes += more
        return outcomes

    @property
    def files(self) -> list[str]:
        """The existing transcripts of this run."""
        return [name for name in {**self._positions, **self._tails} if Path(name).is_file()]

    async def outcomes(self) -> AsyncIterator[list[Outcome]]:
        """Yield the outcomes of the CLI's record as it is written, indefinitely."""
        self._watcher = FileWatcher()
        try:
            if self._spool:
                self._watcher.watch(self._spool.directory)
            for name in self._tails:
                self._watcher.watch(Path(name))
            is_woken = False
            while True:
                outcomes, has_news = self._step()
                if outcomes:
                    yield outcomes
                    # Let the consumers of outcomes run first.
                    await asyncio.sleep(0)
                if is_woken and not has_news:
                    # None of the followed files has changed, so there may be a new one.
                    self._look_soon()
                elif has_news:
                    self._look_at = max(self._look_at, time.time() + _SOON_S)
                if self._needs_looks() and time.time() >= self._look_at:
                    self._locate()
                is_woken = not has_news and await self._watcher.wait(self._pause_s())
        finally:
            self._watcher.close()
            self._watcher = None
            for tail in (*self._tails.values(), *self._sides.values()):
                tail.close()

    def _step(self) -> tuple[list[Outcome], bool]:
        """Process one batch; return its outcomes and whether it contained anything."""
        outcomes: list[Outcome] = []
        has_news, waiting = False, list[HookEvent]()
        while True:
            events, lines = self._gather(waiting)
            events, waiting = self._until_switch(events)
            if waiting:
                lines = self._hold_back(lines, events[-1])
            items = self._reader.read(events, lines, time.time())
            for item in items:
                if isinstance(item, Switched) and not self._adapter.has_several_transcripts:
                    for old in [old for old in self._tails if old != item.path]:
                        tail = self._tails.pop(old)
                        self._positions[old] = tail.position
                        tail.close()
                        if self._watcher:
                            self._watcher.unwatch(Path(old))
                    self._tail(item.path)
                outcomes += self.tracker.feed(item)
            has_news = has_news or bool(events or lines or items)
            if not waiting:
                return outcomes, has_news

    def _gather(self, events: list[HookEvent]) -> tuple[list[HookEvent], list[Line]]:
        """Read until nothing is new, so that the batch contains everything written before any part of it."""
        events = events + (self._spool.read_new() if self._spool else [])
        lines = [line for name in self._tails for line in self._held.pop(name, [])]
        while True:
            for name, tail in self._tails.items():
                left = _BATCH_LINES - len(lines)
                lines += [Line(path=name, data=data) for data in islice(tail.read(), left)]
            more = self._spool.read_new() if self._spool else []
            events += more
            if not more or len(lines) >= _BATCH_LINES:
                # Read last but placed first: a subagent finishes before its caller continues.
                return events, [*self._side_lines(), *lines]

    def _side_lines(self) -> list[Line]:
        """Read the lines written by subagents of the current turn, which no hook reports in time."""
        if not self.tracker.is_open:
            return []
        for main in self._tails:
            for path in self._adapter.find_subagents(Path(main)):
                self._sides.setdefault(str(path), Tail(path))
        lines = []
        for name, tail in self._sides.items():
            lines += [Line(path=name, data=data, is_side=True) for data in tail.read()]
            # There may be many subagents, most of them finished.
            tail.close()
        return lines

    def _until_switch(self, events: list[HookEvent]) -> tuple[list[HookEvent], list[HookEvent]]:
        """Split events after the first one that names another transcript, whose lines must be read first."""
        path = next(iter(self._tails), "")
        for at, event in enumerate([] if self._adapter.has_several_transcripts else events):
            if event.hook.transcript_path not in (None, "", path):
                return events[: at + 1], events[at + 1 :]
        return events, []

    def _hold_back(self, lines: list[Line], switch: HookEvent) -> list[Line]:
        """Defer lines written after the switch: their session was left at that point and resumed later."""
        moment = seconds(switch.hook.timestamp) or switch.at
        later = []
        for line in lines:
            timed = decoded(line.data, _Timed)
            if timed and not line.is_side and seconds(timed.timestamp) > moment:
                later.append(line)
                self._held.setdefault(line.path, []).append(line)
        return [line for line in lines if line not in later]

    def _tail(self, name: str) -> None:
        if name not in self._tails:
            offset, inode = self._positions.get(name, (0, 0))
            self._tails[name] = Tail(Path(name), offset, inode)
            if self._watcher:
                self._watcher.watch(Path(name))

    def _pause_s(self) -> float | None:
        now = time.time()
        due = self._reader.due()
        waits = [] if due is None else [max(0.0, due - now)]
        if self._needs_looks():
            waits.append(max(0.0, self._look_at - now))
        elif self.tracker.runs_tool:
            # The tool may be a subagent.
            waits.append(LOOK_S)
        return min(waits, default=None)

    def _look_soon(self) -> None:
        self._looks, self._look_at = _SOON_TIMES, time.time() + _SOON_S

    def _needs_looks(self) -> bool:
        return self._adapter.has_several_transcripts or not self._tails

    def _locate(self) -> None:
        """Look for transcripts that no hook names."""
        self._looks = max(0, self._looks - 1)
        self._look_at = time.time() + (_SOON_S if self._looks else LOOK_S)
        run = self.run
        found = self._adapter.find_transcripts(Path(run.transcript_hint), run.session_id, run.child_pid)
        for path in found.main:
            self._tail(str(path))
        for path in found.subagents:
            self._sides.setdefault(str(path), Tail(path))
        if self._watcher:
            for folder in found.folders:
                self._watcher.watch(folder)
