"""Faults in a gateway's own process, put in before it starts: it dies, its disk fails, its clock jumps.

The product has no switch for this. `install` takes the place of the functions of `os` by which it writes, of
the connections of SQLite, and of `time.time`. Each of these calls is a step, and a plan names steps.
"""

import contextlib
import os
import random
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

#: Calls that change what lies on the disk.
_CALLS: Final = (
    "replace",
    "rename",
    "unlink",
    "ftruncate",
    "mkdir",
    "link",
    "fsync",
    "fdatasync",
    "pwrite",
    "write",
)
_STREAMS: Final = 2


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one life of a gateway."""

    seed: int = 0
    #: The step in the midst of which it is killed; 0 for none.
    kill_at: int = 0
    #: So long after the start it is killed, wherever it is; 0 for never.
    kill_after_s: float = 0.0
    #: From this step on, for so many steps, the disk answers with this error.
    fail_from: int = 0
    fail_steps: int = 0
    fail_errno: int = 0
    #: Pairs: so many seconds after the start the clock is wrong by so many seconds.
    clock: list[tuple[float, float]] = []
    #: A file that is kept up to date with how many bytes of the journal have been synced.
    synced: str = ""
    #: Whether the disk says that it has synced, but has not.
    lies: bool = False
    snapshot_every: int = 25
    #: Whether it checks its journal in a process of its own, and finds notes by meaning; both take long.
    scrub: bool = False
    meaning: bool = False


def install(given: dict[str, Any]) -> None:
    """Put the faults of a plan into this process."""
    _Faults(msgspec.convert(given, Plan)).install()


class _Faults:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._draw = random.Random(plan.seed)
        self._steps = 0
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._pwrite = os.pwrite
        self._synced_fd = -1

    def install(self) -> None:
        plan = self._plan
        if plan.synced:
            self._synced_fd = os.open(plan.synced, os.O_RDWR | os.O_CREAT, 0o600)
        for name in _CALLS:
            setattr(os, name, self._patched(name, getattr(os, name)))
        self._patch_sqlite()
        if plan.clock:
            self._patch_clock()
        self._hurry()
        if plan.kill_after_s:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, plan.kill_after_s)

    # --- steps -----------------------------------------------------------------------------------

    def _next(self) -> int:
        with self._lock:
            self._steps += 1
            return self._steps

    def _is_failing(self, step: int) -> bool:
        plan = self._plan
        return bool(plan.fail_errno) and plan.fail_from <= step < plan.fail_from + plan.fail_steps

    def _fail(self) -> OSError:
        return OSError(self._plan.fail_errno, os.strerror(self._plan.fail_errno))

    def _patched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        is_write, is_sync = name in ("write", "pwrite"), name in ("fsync", "fdatasync")

        def patched(*given: Any, **named: Any) -> Any:
            if is_write and given[0] <= _STREAMS:
                return call(*given, **named)
            step = self._next()
            is_last = step == self._plan.kill_at
            if is_write and (is_last or self._is_failing(step)):
                # Part of it may have come to the disk.
                part = memoryview(given[1])[: self._draw.randint(0, len(given[1]))]
                with contextlib.suppress(OSError):
                    call(given[0], part, *given[2:])
            elif is_last and self._draw.random() < 0.5:
                with contextlib.suppress(OSError):
                    call(*given, **named)
            if is_last:
                _die()
            if self._is_failing(step) and name != "ftruncate":
                raise self._fail()
            if is_sync:
                return self._sync(given[0], call)
            return call(*given, **named)

        return patched

    def _sync(self, fd: int, call: Callable[[int], None]) -> None:
        size = os.fstat(fd).st_size
        if not self._plan.lies:
            call(fd)
        with contextlib.suppress(OSError):
            is_journal = os.readlink(f"/proc/self/fd/{fd}").endswith("/journal.jsonl")
            if is_journal and self._synced_fd >= 0 and not self._plan.lies:
                self._pwrite(self._synced_fd, b"%20d" % size, 0)

    def _patch_sqlite(self) -> None:
        faults = self

        class Connection(sqlite3.Connection):
            """A database in a file; one in memory has no disk that could fail."""

            def execute(self, *given: Any) -> sqlite3.Cursor:
                faults.statement()
                return super().execute(*given)

            def executemany(self, *given: Any) -> sqlite3.Cursor:
                faults.statement()
                return super().executemany(*given)

        connect = sqlite3.connect

        def connected(database: Any, **named: Any) -> sqlite3.Connection:
            kind = sqlite3.Connection if database == ":memory:" else Connection
            return connect(database, factory=kind, **named)

        sqlite3.connect = connected  # type: ignore[assignment]  # the product gives its arguments by name

    def statement(self) -> None:
        """Count a statement of SQLite as a step."""
        step = self._next()
        if step == self._plan.kill_at:
            _die()
        if self._is_failing(step):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
            raise error

    # --- the rest --------------------------------------------------------------------------------

    def _patch_clock(self) -> None:
        real = time.time

        def jumping() -> float:
            past_s = time.monotonic() - self._began
            return real() + next((by for at, by in reversed(self._plan.clock) if at <= past_s), 0.0)

        time.time = jumping

    def _hurry(self) -> None:
        """Have everything happen soon that a room does now and then."""
        from csp.gateway import journal_maintenance, room_writer

        room_writer.SNAPSHOT_EVERY = self._plan.snapshot_every  # type: ignore[misc]
        journal_maintenance.QUIET_S = 0.02  # type: ignore[misc]
        if not self._plan.scrub:
            journal_maintenance.scrub_journal = _nothing
        if not self._plan.meaning:
            sys.modules["csp.whiteboard.semantic_search"] = None  # type: ignore[assignment]  # as if not installed


async def _nothing(gateway: object) -> None:
    """Stand in for the scrub, which starts a process of its own."""


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()
