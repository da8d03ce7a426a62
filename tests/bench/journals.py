"""A journal of a million lines: start, memory, search, a crowd of watchers."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

from csp.errors import NotFound
from csp.journal.jsonl_journal import JOURNAL_NAME
from tests.bench.machine.figures import short
from tests.bench.machine.gateway import NEEDLES, WATCH, WATCH_ALL, closed_plan, search_ms
from tests.bench.machine.plans import Plan
from tests.bench.machine.process import ROOM, Server, finish_load, run_load, start_gateway, start_load
from tests.bench.machine.usage import memory_mb
from tests.bench.results import Rounds, Taken
from tests.bench.setting import LONG, SHORT, Setting
from tests.waiting import wait_until_sync

CROWD: Final = 1000
CROWD_MESSAGES: Final = 300


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
        messages = 2 * setting.rounds * CROWD_MESSAGES
        with _watching(server, CROWD, Plan(**_watch(server), watchers=CROWD, size=messages)):
            variants = {"without": partial(_post_ms, server), "with": partial(_post_beside_bad_ms, server)}
            rounds = Rounds(variants, setting.rounds, setting.on_step)
        plan = Plan(**_watch(server), watch_all=WATCH_ALL, size=server.ask("/health")["seq"])
        setting.on_step("a watcher catches up")
        run_load(plan)
    return [rounds.ratio("with", "without", "ms")]


def _watch(server: Server) -> dict[str, Any]:
    return {"kind": "watch", "port": server.port, "pid": server.pid, "seconds": 0, "watch": WATCH}


@contextmanager
def _watching(server: Server, watchers: int, plan: Plan, *, to_the_end: bool = True) -> Iterator[None]:
    """Have watchers meanwhile; Broken if they do not get every event in the end, where that is waited for."""
    load = start_load(plan)
    try:
        wait_until_sync(lambda: server.ask("/health")["watchers"] >= watchers, 60)
        yield
        if to_the_end:
            finish_load(load)
    finally:
        if load.poll() is None:
            load.kill()
            load.communicate()


def _post_ms(server: Server) -> float:
    plan = closed_plan(server, seconds=60, connections=1)
    return run_load(msgspec.structs.replace(plan, size=CROWD_MESSAGES)).latency_ms(0.5)


def _post_beside_bad_ms(server: Server) -> float:
    seq = server.ask("/health")["seq"]
    plan = Plan(**_watch(server), watch_all=WATCH_ALL, size=seq + CROWD_MESSAGES)
    with _watching(server, CROWD + 2, plan, to_the_end=False):
        taken = _post_ms(server)
    wait_until_sync(lambda: server.ask("/health")["watchers"] <= CROWD, 60)
    return taken
