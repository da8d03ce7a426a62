"""The demo room in autopilot for a long time: what grows, and what is left at the end.

    python -m tests.panes.soak --turns 20000

Every sample is a line of JSON; the last line says what the second half took more than the first one.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from csp.panes.processes import Process, family
from tests.panes.place import Place

SAMPLES: Final = 20
#: A room of three agents takes a turn in well under a second.
STALLED_S: Final = 120.0
FREE: Final = {"turns": 1_000_000, "tokens": 2**50, "minutes": 1e5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the room has taken at one moment."""

    turns: int
    seconds: float
    #: Resident memory of each kind of process, in KiB.
    memory: dict[str, int]
    descriptors: dict[str, int]
    processes: int
    journal_bytes: int


def soak(place: Place, turns: int) -> Iterator[Sample]:
    """Let the demo agents speak that often; yield what it takes on the way."""
    place.set(CSP_DEMO_SPEED="0")
    place.up("--demo")
    limits = FREE | {"turns": turns}
    place.gateway.post("/mode", {"mode": "autopilot", "topic": "tabs or spaces", "limits": limits})
    began = time.monotonic()
    for number in range(1, SAMPLES + 1):
        yield take(place, wait_for(place, turns * number // SAMPLES), time.monotonic() - began)


def wait_for(place: Place, turns: int) -> int:
    """Wait until that many turns were asked; raise when nothing moves."""
    seen, moved = -1, time.monotonic()
    while True:
        session = place.gateway.get("/sessions")["items"][-1]
        if session["turns"] >= turns or session["status"] != "running":
            assert session["turns"] >= turns, f"the session ended early: {session}"
            return int(session["turns"])
        if session["turns"] != seen:
            seen, moved = session["turns"], time.monotonic()
        assert time.monotonic() - moved < STALLED_S, f"nothing moves: {session}\n{place.shown()}"
        time.sleep(0.2)


def take(place: Place, turns: int, seconds: float) -> Sample:
    roots = [pid for pid in (place.room.supervisor, place.room.pid) if pid]
    roots += [int(pid) for pid in place.tmux("list-panes", "-a", "-F", "#{pane_pid}").split()]
    memory: dict[str, int] = {}
    descriptors: dict[str, int] = {}
    running = sorted(family(roots))
    for process in running:
        kind = kind_of(process)
        memory[kind] = memory.get(kind, 0) + resident_kib(process)
        descriptors[kind] = descriptors.get(kind, 0) + len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    size = sum(path.stat().st_size for path in place.history.rglob("journal*.jsonl"))
    return Sample(
        turns=turns,
        seconds=round(seconds, 1),
        memory=memory,
        descriptors=descriptors,
        processes=len(running),
        journal_bytes=size,
    )


def kind_of(process: Process) -> str:
    """Return what a process is: gateway, relay, brain, chat, demo, tmux."""
    found = re.search(r"-m csp\.cli (\w+)|csp/sidecar/(\w+)\.py|import (\w+);", process.command)
    return next(filter(None, found.groups())) if found else Path(process.command.split()[0]).name


def resident_kib(process: Process) -> int:
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) if found else 0


def growth(samples: list[Sample]) -> dict[str, Any]:
    """Compare the end with the middle: what a start fills up is full by then."""
    first, middle, last = samples[0], samples[len(samples) // 2 - 1], samples[-1]
    early = (middle.journal_bytes - first.journal_bytes) / (middle.turns - first.turns)
    late = (last.journal_bytes - middle.journal_bytes) / (last.turns - middle.turns)
    return {
        "memory_kib": {kind: last.memory[kind] - middle.memory.get(kind, 0) for kind in last.memory},
        "descriptors": {
            kind: last.descriptors[kind] - middle.descriptors.get(kind, 0) for kind in last.descriptors
        },
        "processes": last.processes - middle.processes,
        "journal_bytes_per_turn": [round(early), round(late)],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=20_000)
    turns = parser.parse_args().turns
    samples = []
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        for sample in soak(place, turns):
            samples.append(sample)
            print(json.dumps(asdict(sample)), flush=True)
        assert place.csp("down").code == 0
        print(json.dumps(growth(samples) | {"left_over": place.left_over()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
