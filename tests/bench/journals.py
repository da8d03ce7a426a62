"""A journal of a million lines: start, memory, search, a crowd of watchers."""

import shutil
import subprocess
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from csp.bench.figures import short
from csp.bench.gateway import NEEDLES, WATCH, WATCH_ALL, closed_plan, search_ms
from csp.bench.plans import Plan
from csp.bench.process import ROOM, Server, finish_load, run_load, start_gateway, start_load
from csp.bench.usage import memory_mb
from csp.errors import NotFound
from csp.journal.jsonl import JOURNAL_NAME
from tests.bench.results import Rounds, Taken
from tests.bench.setting import LONG, SHORT, Setting
from tests.waiting import wait_until_sync

CROWD: Final = 1000
CROWD_MESSAGES: Final = 100


def start(setting: Setting) -> list[Taken]:
    """Start on a long journal, as quickly as on a short one."""
    memories: dict[int, list[float]] = {SHORT: [], LONG: []}

    def ready_ms(lines: int) -> float:
        with start_gateway(setting.journal(lines)) as server:
            memories[lines].append(memory_mb(server.pid) or float("nan"))
            return server.ready_s * 1e3

    for lines in memories:
        setting.journal(lines)
    few, many = f"{SHORT} lines", f"{LONG:,} lines"
    variants = {few: partial(ready_ms, SHORT), many: partial(ready_ms, LONG)}
    rounds = Rounds(variants, setting.rounds, setting.on_step)
    ratios = [more / less for less, more in zip(memories[SHORT], memories[LONG], strict=True)]
    note = f"{many} {short(median(memories[LONG]))} MB, {few} {short(median(memories[SHORT]))} MB"
    return [rounds.ratio(many, few, "ms"), Taken(ratios, note)]


def search(setting: Setting) -> list[Taken]:
    """Find the newest 50 lines with a text."""
    if shutil.which("rg") is None:
        raise NotFound("ripgrep is not installed", "run: apt-get install ripgrep")
    folder = setting.journal(LONG)
    journal = folder / ROOM / JOURNAL_NAME
    taken: dict[str, Rounds] = {}
    with start_gateway(folder) as server:
        server.settle()
        for name, needle in NEEDLES.items():
            variants = {
                f"ripgrep, {name}": partial(_ripgrep_ms, journal, needle),
                f"CSP, {name}": partial(search_ms, server, needle),
            }
            taken[name] = Rounds(variants, setting.rounds, setting.on_step)
    each = [rounds.ratio(f"CSP, {name}", f"ripgrep, {name}", "ms") for name, rounds in taken.items()]
    typical = [median(ratios) for ratios in zip(*(one.ratios for one in each), strict=True)]
    worst = max(each, key=lambda one: median(one.ratios))
    return [Taken(typical, "the median of the five texts"), worst, *each]


def _ripgrep_ms(journal: Path, needle: str) -> float:
    began = time.perf_counter()
    found = subprocess.Popen(["rg", "--fixed-strings", needle, str(journal)], stdout=subprocess.PIPE)
    subprocess.run(["tail", "-50"], stdin=found.stdout, stdout=subprocess.DEVNULL, check=True)
    found.wait()
    return (time.perf_counter() - began) * 1e3


def crowd(setting: Setting) -> list[Taken]:
    """Serve a thousand watchers, while one does not read and another wants the whole past."""
    folder = setting.fresh()
    shutil.copytree(setting.journal(LONG), folder, dirs_exist_ok=True)
    with start_gateway(folder) as server:
        server.settle()
        variants = {
            "without": lambda: _crowd_ms(server),
            "with": lambda: _crowd_ms(server, with_bad=True),
        }
        rounds = Rounds(variants, setting.rounds, setting.on_step)
    return [rounds.ratio("with", "without", "ms")]


def _crowd_ms(server: Server, *, with_bad: bool = False) -> float:
    """Return the median time of a POST; Broken if somebody does not get every event in the end."""
    watch = Plan(kind="watch", port=server.port, pid=server.pid, seconds=0, watch=WATCH, size=CROWD_MESSAGES)
    plans = [msgspec.structs.replace(watch, watchers=CROWD)]
    if with_bad:
        seq = server.ask("/health")["seq"]
        plans.append(msgspec.structs.replace(watch, watch_all=WATCH_ALL, size=seq + CROWD_MESSAGES))
    loads = [start_load(plan) for plan in plans]
    try:
        wait_until_sync(lambda: server.ask("/health")["watchers"] >= CROWD + 2 * with_bad, 60)
        plan = closed_plan(server, seconds=60, connections=1)
        found = run_load(msgspec.structs.replace(plan, size=CROWD_MESSAGES))
        for load in loads:
            finish_load(load)
        wait_until_sync(lambda: server.ask("/health")["watchers"] == 0, 60)
    finally:
        for load in loads:
            if load.poll() is None:
                load.kill()
                load.communicate()
    return found.latency_ms(0.5)
