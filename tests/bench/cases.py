"""The limits, one row each, with what measures them."""

from collections.abc import Callable
from typing import Final, NamedTuple

from csp.bench.gateway import NEEDLES
from csp.errors import NotFound
from tests.bench import journals, messages
from tests.bench.results import Limit, Result, Taken
from tests.bench.setting import Setting


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
)
# fmt: on
