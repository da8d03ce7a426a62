"""What the room adds to the turns of agents that answer at once."""

from statistics import median
from typing import Final

from tests.bench.machine.figures import short
from tests.bench.machine.modes import relay_turn
from tests.bench.results import Taken
from tests.bench.setting import Setting

TURNS: Final = 300


def relay(setting: Setting) -> list[Taken]:
    """Let two agents hand the turn to each other; return seconds a turn, commits to disk a turn."""
    times: list[float] = []
    commits: list[float] = []
    for number in range(setting.rounds):
        setting.on_step(f"round {number + 1} of {setting.rounds}")
        spent_ms, written = relay_turn(TURNS)
        times.append(spent_ms / 1000)
        commits.append(written)
    return [Taken(times, f"{short(median(times) * 1000)} ms"), Taken(commits, "")]
