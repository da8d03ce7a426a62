"""Messages in, messages out: beside FastAPI, a bare protocol, NATS."""

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from tests.bench.machine.gateway import BURST_WATCHERS, burst_plan, closed_plan, lone_plan, paced_plan
from tests.bench.machine.plans import Plan
from tests.bench.machine.process import Server, run_load
from tests.bench.results import Rounds, Taken, Variant
from tests.bench.rivals import (
    NATS_GREETED,
    NATS_GREETING,
    NATS_PAYLOAD,
    NATS_PUBLISH,
    NATS_SUBSCRIPTION,
    start_bare,
    start_fastapi,
    start_nats,
)
from tests.bench.setting import Setting

CLOSED: Final = ("tests.bench.aio_load", "closed")
PACED: Final = ("tests.bench.aio_load", "gateway")
PACED_NATS: Final = ("tests.bench.aio_load", "nats")
CLIENTS: Final = ("", ", light client")

Measure = Callable[[Server], float]


def _on_gateway(setting: Setting, durability: str, measure: Measure) -> Variant:
    def run() -> float:
        with setting.gateway(durability) as server:
            return measure(server)

    return run


def burst(setting: Setting) -> list[Taken]:
    """Fan out bursts of messages."""

    def cpu_us(server: Server) -> float:
        return run_load(burst_plan(server, setting.seconds)).cpu_us / (BURST_WATCHERS + 1)

    with start_fastapi(setting.fresh()) as rival:
        variants = {"FastAPI": lambda: cpu_us(rival), "CSP": _on_gateway(setting, "fsync", cpu_us)}
        rounds = Rounds(variants, setting.rounds, setting.on_step)
    return [rounds.ratio("FastAPI", "CSP", "us")]


def lone(setting: Setting) -> list[Taken]:
    """Send one message at a time."""

    def cpu_us(server: Server) -> float:
        return run_load(lone_plan(server, setting.seconds, 10)).cpu_us

    with start_fastapi(setting.fresh()) as rival:
        variants = {
            "FastAPI": lambda: cpu_us(rival),
            "CSP": _on_gateway(setting, "flush", cpu_us),
            "CSP fsync": _on_gateway(setting, "fsync", cpu_us),
        }
        rounds = Rounds(variants, setting.rounds, setting.on_step)
    return [rounds.ratio(name, "FastAPI", "us") for name in ("CSP", "CSP fsync")]


def post(setting: Setting) -> list[Taken]:
    """Take as many messages as go in, from a client of asyncio, then from one of bare sockets."""

    def rate(watchers: int, *generator: str) -> Measure:
        return lambda server: run_load(closed_plan(server, setting.seconds, 16, watchers), *generator).rate

    with start_bare(setting.fresh()) as rival:
        variants = {
            "bare": lambda: rate(0, *CLOSED)(rival),
            "CSP": _on_gateway(setting, "flush", rate(10, *CLOSED)),
            "bare, light client": lambda: rate(0)(rival),
            "CSP, light client": _on_gateway(setting, "flush", rate(10)),
        }
        rounds = Rounds(variants, setting.rounds, setting.on_step)
    return [
        rounds.ratio("CSP", "bare", "req/s"),
        rounds.ratio("CSP, light client", "bare, light client", "req/s"),
    ]


def commit(setting: Setting) -> list[Taken]:
    """Compare a durable room with one that promises nothing."""

    def rate(server: Server) -> float:
        return run_load(closed_plan(server, setting.seconds, 128)).rate

    variants = {name: _on_gateway(setting, name, rate) for name in ("none", "fsync")}
    rounds = Rounds(variants, setting.rounds, setting.on_step)
    return [rounds.ratio("fsync", "none", "req/s")]


def latency(setting: Setting) -> list[Taken]:
    """Send a thousand messages a second to one watcher, with usual clients, then with bare sockets."""

    def p50_ms(plan: Callable[[Server], Plan], *generator: str) -> Measure:
        return lambda server: run_load(plan(server), *generator).latency_ms(0.5)

    def gateway_plan(server: Server) -> Plan:
        return paced_plan(server, setting.seconds)

    usual, light = p50_ms(gateway_plan, *PACED), p50_ms(gateway_plan)
    with start_nats(setting.fresh()) as rival:
        variants = {
            "NATS": lambda: p50_ms(partial(_nats_plan, setting), *PACED_NATS)(rival),
            "flush": _on_gateway(setting, "flush", usual),
            "fsync": _on_gateway(setting, "fsync", usual),
            "NATS, light client": lambda: p50_ms(partial(_bare_nats_plan, setting))(rival),
            "flush, light client": _on_gateway(setting, "flush", light),
            "fsync, light client": _on_gateway(setting, "fsync", light),
        }
        rounds = Rounds(variants, setting.rounds, setting.on_step)
    pairs = [(f"{name}{client}", f"NATS{client}") for client in CLIENTS for name in ("fsync", "flush")]
    return [rounds.ratio(name, over, "ms") for name, over in pairs]


def _nats_plan(setting: Setting, server: Server) -> Plan:
    return msgspec.structs.replace(paced_plan(server, setting.seconds), post=NATS_PAYLOAD)


def _bare_nats_plan(setting: Setting, server: Server) -> Plan:
    return msgspec.structs.replace(
        paced_plan(server, setting.seconds),
        connections=1,
        post=NATS_PUBLISH,
        greet=NATS_GREETING,
        watch=NATS_SUBSCRIPTION,
        greeted=NATS_GREETED,
        is_answered=False,
    )
