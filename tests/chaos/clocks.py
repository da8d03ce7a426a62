"""Let the clock of the machine jump, forward and back, by seconds and by years."""

import random
import time
from pathlib import Path
from typing import Final

from tests.chaos.cases import Outcome
from tests.chaos.faults import Plan
from tests.chaos.room import ChaosRoom
from tests.chaos.talk import Talk

_YEAR_S: Final = 365 * 86_400.0
#: The last is to about 1971 or 2080: a board without a battery begins in 1970.
_JUMPS_S: Final = (1.0, 90.0, 3600.0, 86_400.0, 8 * 86_400.0, 10 * _YEAR_S, 55 * _YEAR_S)
_LIVES: Final = 3
_LIFE_S: Final = 0.6


def play(folder: Path, seed: str) -> Outcome:
    """Talk while the clock jumps; who talks must not notice."""
    draw = random.Random(seed)
    outcome = Outcome()
    room = ChaosRoom(folder)
    try:
        room.start()
        talk = Talk(room, seed)
        talk.start()
        room.kill()
        for _ in range(_LIVES):
            jumps = [(at * _LIFE_S / 4, draw.choice((-1, 1)) * draw.choice(_JUMPS_S)) for at in range(4)]
            outcome.add(clock_jumps=len(jumps))
            room.begin(Plan(seed=draw.getrandbits(32), clock=jumps))
            outcome.check(room.comes_up(), f"the room does not start with the clock off by {jumps[0][1]} s")
            began = time.monotonic()
            while time.monotonic() - began < _LIFE_S * 1.5:
                room.client().get("/health")
                time.sleep(0.05)
            room.kill() if draw.random() < 0.5 else outcome.check(room.end() == 0, "it does not end in order")
        room.begin()
        outcome.check(room.comes_up(), "the room does not start when the clock is right again")
        talk.finish()
        outcome.wrong += talk.check()
        outcome.add(acknowledged=talk.acknowledged)
        outcome.check(not room.traceback(), f"there is a traceback in the log: {room.traceback()}")
    finally:
        room.stop()
    return outcome
