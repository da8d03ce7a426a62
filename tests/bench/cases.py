"""The limits, one row each, with what measures them."""

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from csp.errors import NotFound
from tests.bench import journals, messages, modes, sidecar, turns
from tests.bench.machine.gateway import NEEDLES
from tests.bench.results import Limit, Result, Taken
from tests.bench.setting import Setting
from tests.clis.bringup import CLIS


class Case(NamedTuple):
    """Limits that one measurement answers; `run` returns a ratio for each, in order."""

    name: str
    run: Callable[[Setting], list[Taken]]
    limits: tuple[Limit, ...]

    def results(self, setting: Setting) -> list[Result]:
        """Measure; where something is not installed, say so."""
        try:
            taken = self.run(setting)
        except NotFound as exc:
            return [Result(limit, missing=f"{exc.message}; {exc.hint}") for limit in self.limits]
        return [Result(limit, ratios, note) for limit, (ratios, note) in zip(self.limits, taken, strict=True)]


def _turns(name: str) -> Case:
    return Case(
        name,
        partial(turns.turns, name),
        (
            Limit(
                f"send to confirmed, {name}: over its own floor (gap, Enter to first proof)",
                0.15,
                0.05,
                unit="s",
            ),
            Limit(f"reply known, {name}: CSP / its own first signal, after the end of the stream", 1.3, 1.15),
        ),
    )


# fmt: off
CASES: Final = (
    Case("burst", messages.burst, (
        Limit("burst to 100 watchers, CPU per delivery: FastAPI / CSP (fsync)", 10, 20, more_is_better=True),
    )),
    Case("lone", messages.lone, (
        Limit("lone message to 10 watchers, CPU: CSP / FastAPI", 0.65, 0.55),
        Limit("the same with fsync"),
    )),
    Case("post", messages.post, (
        Limit("POST with 10 watchers: CSP / bare asyncio.Protocol", 0.30, 0.40, more_is_better=True),
        Limit("the same with a client of bare sockets"),
    )),
    Case("commit", messages.commit, (
        Limit("POST, 128 connections: fsync / none", 0.85, 0.95, more_is_better=True),
    )),
    Case("latency", messages.latency, (
        Limit("POST to WebSocket, p50 at 1000/s: CSP with fsync / NATS core", 7, 5),
        Limit("the same without fsync", 3.5, 2.5),
        Limit("with fsync, clients of bare sockets"),
        Limit("without fsync, clients of bare sockets"),
    )),
    Case("start", journals.start, (
        Limit("start: 1,000,000 lines / 10 lines", 1.5, 1.1),
        Limit("memory: 1,000,000 lines / 10 lines"),
    )),
    Case("search", journals.search, (
        Limit("search newest first in 1,000,000 lines: CSP / ripgrep", 1 / 50, 1 / 200),
        Limit("the same for the slowest text", 1, 1 / 50),
        *(Limit(f"the same: {name}") for name in NEEDLES),
    )),
    Case("crowd", journals.crowd, (
        Limit("POST p50 with 1,000 watchers: with two bad ones / without", 1.3, 1.1),
    )),
    Case("modes", modes.relay, (
        Limit("orchestration overhead per turn, instant repliers, fsync", 0.010, 0.003, unit="s"),
        Limit("commits to disk from a reply to the next ask", 1, 1),
    )),
    Case("flood", sidecar.floods, (
        Limit("flood in a tmux pane: relay, no screen kept / direct", 0.70, 0.85, more_is_better=True),
        Limit("the same: whole sidecar, screen kept", 0.50, 0.60, more_is_better=True),
        Limit("the same: relay, a brain that only keeps the screen"),
    )),
    Case("echo", sidecar.echoes, (
        Limit("key echo in a tmux pane, p50: whole sidecar / direct", 1.7, 1.5),
        Limit("the same: relay, a brain that only reads"),
    )),
    Case("screen", sidecar.screens, (
        Limit("screen feed, CPU, worst sample: CSP / pyte", 40, 60, more_is_better=True),
        *(Limit(f"the same: {name}") for name in sidecar.SAMPLES),
    )),
    *map(_turns, CLIS),
    Case("launch", sidecar.starts, (
        Limit("start of a sidecar, its child's first byte: CSP / bare Python", 3, 2),
        Limit("the same until it is connected", 20, 12),
    )),
    Case("memory", sidecar.memory, (
        Limit("resident memory, relay + brain / bare Python", 4, 3),
        Limit("the same: relay alone"),
    )),
)
# fmt: on
