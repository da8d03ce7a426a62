"""Measure a gateway by itself: throughput, latency, fan-out, start, search, memory."""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tests.bench.machine.figures import Figures
from tests.bench.machine.journals import CJK, COMMON, EMOJI, MISSING, RARE, make_journal
from tests.bench.machine.peers import Client
from tests.bench.machine.plans import TEXT, Plan, post_request, watch_request
from tests.bench.machine.process import TOKEN, Server, run_load, start_gateway
from tests.bench.machine.usage import memory_mb

POST: Final = post_request("/message", TOKEN, {"to": "all", "content": TEXT})
WATCH: Final = watch_request("/ws", TOKEN)
WATCH_ALL: Final = watch_request("/ws?after=0", TOKEN)
OPERATION: Final = json.dumps({"op": "message", "ref": 1, "to": "all", "content": TEXT}).encode()
DURABILITIES: Final = ("none", "flush", "fsync")
BURST_WATCHERS: Final = 100
BURST_SIZE: Final = 200
NEEDLES: Final = {
    "common word": COMMON,
    "rare word": RARE,
    "missing word": MISSING,
    "CJK text": CJK,
    "emoji": EMOJI,
}
_FEW_LINES: Final = 10
_ASKS: Final = 5

OnStep = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured: `seconds` is of one load in one round."""

    seconds: float
    lines: int
    rounds: int = 3


QUICK: Final = Effort(seconds=0.3, lines=100_000)
FULL: Final = Effort(seconds=1.0, lines=1_000_000)


def measure(effort: Effort, on_step: OnStep) -> Figures:
    """Measure everything; `on_step` hears what comes next."""
    figures = Figures()
    with tempfile.TemporaryDirectory(prefix="csp-bench-") as name:
        folder = Path(name)
        for turn in range(effort.rounds):
            for durability in DURABILITIES:
                on_step(f"round {turn + 1} of {effort.rounds}: messages, durability {durability}")
                _measure_messages(_fresh(folder, f"{durability}-{turn}"), durability, effort, figures)
        _measure_journals(folder, effort, figures, on_step)
    return figures


def _fresh(folder: Path, name: str) -> Path:
    path = folder / name
    path.mkdir()
    return path


def _measure_messages(folder: Path, durability: str, effort: Effort, figures: Figures) -> None:
    with start_gateway(folder, durability) as server:
        server.settle()
        for connections in (1, 16, 128):
            found = run_load(closed_plan(server, effort.seconds, connections))
            figures.add(f"POST, {durability}, {_plural(connections, 'connection')}", "req/s", found.rate)
        for name, plan in (("1000/s", paced_plan(server, effort.seconds)), ("lone", _lone(server, effort))):
            found = run_load(plan)
            figures.add(f"POST to WebSocket, {durability}, {name}, p50", "ms", found.latency_ms(0.5))
            figures.add(f"POST to WebSocket, {durability}, {name}, p99", "ms", found.latency_ms(0.99))
        found = run_load(burst_plan(server, effort.seconds))
        name = f"burst to {BURST_WATCHERS} watchers, {durability}, CPU per delivery"
        figures.add(name, "us", found.cpu_us / (BURST_WATCHERS + 1))


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def closed_plan(server: Server, seconds: float, connections: int, watchers: int = 0) -> Plan:
    """Return the plan of as many messages as the server takes."""
    return Plan(
        kind="closed",
        port=server.port,
        pid=server.pid,
        seconds=seconds,
        post=POST,
        connections=connections,
        watchers=watchers,
        watch=WATCH,
    )


def paced_plan(server: Server, seconds: float) -> Plan:
    """Return the plan of a thousand messages a second to one watcher."""
    return Plan(
        kind="paced",
        port=server.port,
        pid=server.pid,
        seconds=seconds,
        post=POST,
        connections=16,
        rate=1000.0,
        watch=WATCH,
    )


def lone_plan(server: Server, seconds: float, watchers: int) -> Plan:
    """Return the plan of one message at a time."""
    return Plan(
        kind="lone",
        port=server.port,
        pid=server.pid,
        seconds=seconds,
        post=POST,
        watchers=watchers,
        watch=WATCH,
    )


def _lone(server: Server, effort: Effort) -> Plan:
    return lone_plan(server, effort.seconds, 1)


def burst_plan(server: Server, seconds: float, watchers: int = BURST_WATCHERS) -> Plan:
    """Return the plan of many messages at once to many watchers; their sender is a watcher too."""
    return Plan(
        kind="burst",
        port=server.port,
        pid=server.pid,
        seconds=seconds,
        post=OPERATION,
        size=BURST_SIZE,
        greet=WATCH,
        watchers=watchers,
        watch=WATCH,
    )


# --- journals ------------------------------------------------------------------------------------


def _measure_journals(folder: Path, effort: Effort, figures: Figures, on_step: OnStep) -> None:
    folders = {}
    for lines in (_FEW_LINES, effort.lines):
        on_step(f"writing a journal of {lines:,} lines")
        folders[lines] = _fresh(folder, f"journal-{lines}")
        make_journal(folders[lines], lines)
    for turn in range(effort.rounds):
        for lines, path in folders.items():
            on_step(f"round {turn + 1} of {effort.rounds}: start, memory, search with {lines:,} lines")
            _measure_journal(path, lines, figures, with_search=lines == effort.lines)


def _measure_journal(folder: Path, lines: int, figures: Figures, *, with_search: bool) -> None:
    with start_gateway(folder) as server:
        figures.add(f"start, {lines:,} lines", "ms", server.ready_s * 1e3)
        server.settle()
        memory = memory_mb(server.pid)
        if memory is not None:
            figures.add(f"memory, {lines:,} lines", "MB", memory)
        if with_search:
            for name, needle in NEEDLES.items():
                figures.add(f"search, {lines:,} lines, {name}", "ms", search_ms(server, needle))


def search_ms(server: Server, needle: str) -> float:
    """Return how long the newest 50 items with this text take to find, over HTTP, at the median."""
    client = Client(server.port, TOKEN)
    path = f"/history?limit=50&q={quote(needle)}"
    times = []
    for _ in range(_ASKS):
        began = time.perf_counter()
        client.get(path)
        times.append(time.perf_counter() - began)
    client.close()
    return sorted(times)[_ASKS // 2] * 1e3
