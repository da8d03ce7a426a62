"""Kill the gateway at the steps of its work, and at any moment; cut the power; start it again."""

import contextlib
import random
import signal
from pathlib import Path
from typing import Final

from tests.chaos.cases import Outcome
from tests.chaos.faults import Plan
from tests.chaos.room import HANGS_S, ChaosRoom
from tests.chaos.talk import Talk

LIVES: Final = 8
#: A lying disk takes back ids that listeners know already, so some of them wait for ever.
_LYING_DISK_S: Final = 10.0
_KILLED: Final = (-signal.SIGKILL, -signal.SIGALRM)


def play(folder: Path, seed: str, *, lies: bool = False) -> Outcome:
    """Talk in a room whose gateway dies several times; return what was counted and what was broken."""
    draw = random.Random(seed)
    outcome = Outcome()
    room = ChaosRoom(folder)
    try:
        room.start()
        patience_s = _LYING_DISK_S if lies else HANGS_S
        talk = Talk(room, seed, patience_s)
        talk.start()
        room.kill()
        for _ in range(LIVES):
            _live_and_die(room, draw, outcome, patience_s, lies=lies)
        room.begin()
        outcome.check(room.comes_up(), "the room does not start after the last kill")
        _disturb(room, draw, outcome)
        talk.finish()
        outcome.wrong += talk.check()
        promises = talk.promises
        outcome.add(acknowledged=talk.acknowledged, debates=promises.debates, removed=len(promises.removed))
        outcome.check(room.end() == 0, "the room does not end in order")
        room.begin()
        outcome.check(room.comes_up(), "the room does not start after an orderly end")
        outcome.wrong += [one for one in talk.check() if one not in outcome.wrong]
        outcome.check(not room.traceback(), f"there is a traceback in the log: {room.traceback()}")
    finally:
        room.stop()
    return outcome


def _disturb(room: ChaosRoom, draw: random.Random, outcome: Outcome) -> None:
    """Let the gateway stand still while another one tries to take its place; people delete lock files."""
    outcome.add(intruders=1)
    with room.frozen() if draw.random() < 0.5 else contextlib.nullcontext():
        if draw.random() < 0.5:
            (room.folder / "journal.lock").unlink()
        outcome.check(not (problem := room.intrude()), problem)


def _live_and_die(
    room: ChaosRoom, draw: random.Random, outcome: Outcome, patience_s: float, *, lies: bool
) -> None:
    is_power_cut = lies or draw.random() < 0.3
    at_a_step = draw.random() < 0.8
    plan = Plan(
        seed=draw.getrandbits(32),
        kill_at=1 + int(draw.expovariate(1 / 60)) if at_a_step else 0,
        kill_after_s=0.0 if at_a_step else 0.05 + draw.expovariate(1 / 0.4),
        lies=lies,
        snapshot_every=draw.choice((5, 25, 200)),
    )
    room.begin(plan)
    code = room.wait_for_end(patience_s)
    if code is None:
        outcome.wrong.append(f"the gateway did not come to step {plan.kill_at} in time")
        room.kill()
        return
    outcome.check(code in _KILLED, f"the gateway ended with {code} instead of being killed")
    outcome.add(kills=1)
    if is_power_cut:
        outcome.add(power_cuts=1)
        _cut_power(room, draw)


def _cut_power(room: ChaosRoom, draw: random.Random) -> None:
    """Leave of what was not synced a part, or nothing that makes sense."""
    safe = room.synced_bytes()
    with (room.folder / "journal.jsonl").open("r+b") as file:
        size = file.seek(0, 2)
        if size <= safe:
            return
        at = draw.randint(safe, size)
        if draw.random() < 0.5:
            file.truncate(at)
        else:
            # The size was written, the blocks were not.
            file.seek(at)
            file.write(bytes(size - at))
