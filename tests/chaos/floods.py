"""Press ALLSTOP in an idle room, then in one that agents and slow clients flood."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from csp.errors import CspError
from tests.chaos.cases import Outcome
from tests.chaos.faults import Plan
from tests.chaos.room import ChaosRoom
from tests.chaos.soak import resident_mb
from tests.rooms import ROOT

AGENTS: Final = 100
PRESSES: Final = 100
_TIMEOUT_S: Final = 10.0


def play(folder: Path, seed: str, *, agents: int = AGENTS, presses: int = PRESSES) -> Outcome:
    """Time ALLSTOP; every press must be answered, and health with it."""
    outcome = Outcome()
    room = ChaosRoom(folder)
    try:
        room.begin(Plan(snapshot_every=4096))
        outcome.check(room.comes_up(), "the room does not start")
        tokens = [room.client().post("/register", {"agentId": f"a{n}"})["token"] for n in range(agents)]
        _press(room, outcome, "ALLSTOP when idle", presses)
        before = room.client().get("/health")["seq"]
        with _flooded(room, tokens):
            _press(room, outcome, "ALLSTOP under flood", presses)
            outcome.add(flood_messages=room.client().get("/health")["seq"] - before)
            outcome.notes["memory under flood, MB"] = resident_mb(room)
        outcome.check(room.end() == 0, "the room does not end in order")
        outcome.check(not room.traceback(), f"there is a traceback in the log: {room.traceback()}")
    finally:
        room.stop()
    return outcome


def _press(room: ChaosRoom, outcome: Outcome, name: str, presses: int) -> None:
    client = room.client()
    for _ in range(presses):
        began = time.monotonic()
        try:
            status, _ = client.exchange("POST", "/stop", b'{"all":true}', _TIMEOUT_S)
            outcome.check(status == 200, f"{name} was answered with {status}")
        except CspError as error:
            outcome.wrong.append(f"{name}: {error.message}")
        outcome.times.setdefault(name, []).append(time.monotonic() - began)
        time.sleep(0.02)


@contextmanager
def _flooded(room: ChaosRoom, tokens: list[str]) -> Iterator[None]:
    flooder = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.flooder", room.url, *tokens],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert flooder.stdout is not None and flooder.stdout.readline() == b"ready\n"
        start = room.client().get("/health")["seq"]
        deadline = time.monotonic() + _TIMEOUT_S
        while room.client().get("/health")["seq"] < start + len(tokens) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield
    finally:
        flooder.kill()
        flooder.communicate()
