"""Run parts of the suite in lanes beside each other, and print the time that each part took."""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Part:
    """One or more commands of the Python of this environment; the part fails with the first that fails."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    seconds: float = field(default=0.0, init=False)
    code: int | None = field(default=None, init=False)

    def __init__(self, name: str, *commands: tuple[str, ...]) -> None:
        self.name = name
        self.commands = commands
        self.seconds = 0.0
        self.code = None


def run_lanes(lanes: Sequence[Sequence[Part]]) -> int:
    """Run the lanes at the same time, the parts of a lane one after the other; return the exit code.

    The first lane writes to the terminal as it goes; the output of another lane's part is shown when the
    part ends. All parts run, so that one run shows every failure.
    """
    began = time.monotonic()
    others = [threading.Thread(target=_run_quietly, args=(lane,)) for lane in lanes[1:]]
    for thread in others:
        thread.start()
    for part in lanes[0]:
        _run(part, None)
    for thread in others:
        thread.join()
    parts = [part for lane in lanes for part in lane]
    _print_times(parts, time.monotonic() - began)
    return 0 if all(part.code == 0 for part in parts) else 1


def _run_quietly(lane: Sequence[Part]) -> None:
    for part in lane:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            _run(part, output.fileno())
            output.seek(0)
            print(f"== {part.name}: {_outcome(part)} in {part.seconds:.0f} s\n{output.read()}", flush=True)


def _run(part: Part, output: int | None) -> None:
    began = time.monotonic()
    for words in part.commands:
        if output is None:
            print("== python", *words, flush=True)
        run = subprocess.run([sys.executable, *words], stdout=output, stderr=output, check=False)
        part.code = run.returncode
        if part.code != 0:
            break
    part.seconds = time.monotonic() - began


def _print_times(parts: Sequence[Part], seconds: float) -> None:
    print("\npart        seconds")
    for part in parts:
        print(f"{part.name:<12}{part.seconds:>7.0f}  {_outcome(part)}")
    print(f"{'together':<12}{seconds:>7.0f}", flush=True)


def _outcome(part: Part) -> str:
    return "ok" if part.code == 0 else f"FAILED (exit {part.code})"
