"""Measure in a gateway's own process how long its event loop was kept from running.

The loop beats every few milliseconds. Between two beats the process has used some CPU time: what the loop
itself used, and what another thread used that did not let it run. On a busy machine this says what a clock
on the wall cannot: how long the room would have been silent if it had the machine to itself.
"""

import asyncio
import contextlib
import cProfile
import faulthandler
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO

_EVERY_S: Final = 0.002
#: Shorter pauses are not written down.
_SHORT_S: Final = 0.004
#: After so long without a beat the stacks of all threads are written down, if that was asked for.
_LONG_S: Final = 0.03


class Beat(NamedTuple):
    """A pause of the loop: when it began and ended, the CPU time of the process and of the loop's thread."""

    began: float
    ended: float
    process_s: float
    loop_s: float


def install(given: dict[str, Any]) -> None:
    """Let the event loop of this process write its pauses to the file `into`.

    With `profile` it writes what it ran, with `stacks` where all threads were in the longest pauses.
    """
    stacks = open(given["stacks"], "a") if given["stacks"] else None  # noqa: SIM115
    fd = os.open(given["into"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    run_forever = asyncio.BaseEventLoop.run_forever

    def run_with_beats(loop: asyncio.BaseEventLoop) -> None:
        if threading.current_thread() is threading.main_thread():
            loop.call_soon(_beat, loop, fd, _clocks(), stacks)
        profile = cProfile.Profile() if given["profile"] else contextlib.nullcontext()
        with profile:
            run_forever(loop)
        if isinstance(profile, cProfile.Profile):
            profile.dump_stats(f"{given['profile']}.{os.getpid()}.{time.monotonic_ns()}")

    setattr(asyncio.BaseEventLoop, "run_forever", run_with_beats)  # noqa: B010


def _clocks() -> tuple[float, float, float]:
    return time.monotonic(), time.process_time(), time.thread_time()


def _beat(
    loop: asyncio.BaseEventLoop, fd: int, before: tuple[float, float, float], stacks: TextIO | None
) -> None:
    now = _clocks()
    process_s, loop_s = now[1] - before[1], now[2] - before[2]
    if process_s > _SHORT_S:
        os.write(fd, f"{before[0]:.6f} {now[0]:.6f} {process_s:.6f} {loop_s:.6f}\n".encode())
    if stacks is not None:
        # This needs no lock of the interpreter, so it sees who keeps it.
        faulthandler.dump_traceback_later(_LONG_S, file=stacks)
    loop.call_later(_EVERY_S, _beat, loop, fd, _clocks(), stacks)


def read(file: Path) -> Iterator[Beat]:
    """Yield the pauses that were written down."""
    with contextlib.suppress(FileNotFoundError):
        for line in file.read_text().splitlines():
            yield Beat(*map(float, line.split()))
