"""Find damaged lines in a journal and damaged snapshots next to it.

The check blocks every other thread, so a gateway runs it in a separate process (`csp doctor --journal`)
unless the journal is small.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from csp.journal.line_reader import HEAD, blocks_forward, read_at, split, type_and_seq
from csp.journal.snapshots import read_snapshot, snapshot_files
from csp.protocol.events import is_intact

_MOST_DAMAGE: Final = 1000


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """One problem, in a line of the journal (numbered from 1) or in a snapshot (line 0)."""

    line_number: int
    offset: int
    after_seq: int
    problem: str


class ScrubReport(msgspec.Struct, frozen=True, kw_only=True):
    """The lines read and the problems found; `problems` counts all, the list contains at most a thousand."""

    checked: int
    problems: int
    damaged: list[Damage]


@dataclass(slots=True)
class _Scrub:
    checked: int = 0
    problems: int = 0
    last_seq: int = 0
    after_damage: bool = False
    damaged: list[Damage] = field(default_factory=list)

    def check(self, offset: int, line: bytes) -> None:
        self.checked += 1
        head = type_and_seq(line)
        if head is None or not is_intact(line):
            self.report(offset, "line does not match its checksum")
            self.after_damage = True
            return
        kind, seq = head
        if seq != self.last_seq + 1:
            if seq <= self.last_seq and self.last_seq:
                self.report(offset, f"seq {seq} is not above {self.last_seq}")
            elif self.checked > 1 and not self.after_damage:
                self.report(offset, f"seqs {self.last_seq + 1} to {seq - 1} are missing")
            elif self.checked == 1 and kind != b"base":
                self.report(offset, f"journal starts at seq {seq} without a base")
        self.last_seq = seq
        self.after_damage = False

    def report(self, offset: int, problem: str, line_number: int | None = None) -> None:
        self.problems += 1
        if len(self.damaged) < _MOST_DAMAGE:
            number = self.checked if line_number is None else line_number
            found = Damage(line_number=number, offset=offset, after_seq=self.last_seq, problem=problem)
            self.damaged.append(found)


def scrub(path: Path, patience_s: float = 1.0) -> ScrubReport:
    """Check the journal file at `path`, up to its current size, and the snapshots next to it.

    If the last line has no newline, a gateway may be writing it: wait up to `patience_s` for the rest.
    """
    state = _Scrub()
    for snapshot in snapshot_files(path.parent):
        try:
            read_snapshot(snapshot)
        except FileNotFoundError:
            # A newer snapshot has replaced it in the meantime.
            continue
        except (OSError, ValueError) as exc:
            state.report(0, f"{snapshot.name}: {exc}", line_number=0)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        for offset, data in blocks_forward(fd, 0, os.fstat(fd).st_size):
            if not data.endswith(b"\n"):
                data = _last_lines(fd, offset, patience_s)
                if data and not data.endswith(b"\n"):
                    state.report(offset, "the last line lacks its newline")
            _scrub_block(state, offset, data)
    finally:
        os.close(fd)
    return ScrubReport(checked=state.checked, problems=state.problems, damaged=state.damaged)


def _last_lines(fd: int, offset: int, patience_s: float) -> bytes:
    deadline = time.monotonic() + patience_s
    while True:
        data = read_at(fd, offset, max(0, os.fstat(fd).st_size - offset))
        if not data or data.endswith(b"\n") or time.monotonic() >= deadline:
            return data
        time.sleep(0.05)


def _scrub_block(state: _Scrub, offset: int, data: bytes) -> None:
    # This runs for up to a million lines, so the usual case does as little as possible.
    head_of, checked, seq, usual = HEAD.match, 0, state.last_seq, not state.after_damage
    for at, line in split(offset, data):
        head = head_of(line)
        if usual and head is not None and int(head[2]) == seq + 1 and is_intact(line):
            seq += 1
            checked += 1
            continue
        state.checked, state.last_seq, checked = state.checked + checked, seq, 0
        state.check(at, line)
        seq, usual = state.last_seq, not state.after_damage
    state.checked, state.last_seq = state.checked + checked, seq
