"""A large room over three gateways: python -m tests.chaos.crowd --minutes 10.

Agents of all gateways speak in turn, and everybody watches. Afterwards every watcher must have received every
event once and in order over its first connection, and the gateways must not have grown.
"""

import argparse
import asyncio
import base64
import itertools
import json
import logging
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from csp.cluster.bus import Bus
from csp.cluster.names import shard_of, stream_name
from csp.cluster.rounds import ELECTED
from tests.chaos.hubs import cpu_s, rss_kb
from tests.cluster.gateways import ROOM, TOKEN, Gateways
from tests.cluster.nats_servers import NatsCluster

CONNECTED_AT_ONCE: Final = 50
SAMPLE_S: Final = 5.0
#: How long the last event may take.
PATIENCE_S: Final = 120.0
#: Growth below this is that of the newest events, which every gateway keeps.
FLAT_KB: Final = 8192
_SEQ: Final = re.compile(rb'"seq":(\d+)')
_PING: Final = 9
_TEXT: Final = 1


class Watcher(asyncio.Protocol):
    """A WebSocket that only counts: each event must follow the last one."""

    def __init__(self, port: int, token: str, on_event: Callable[[int], None]) -> None:
        self._port = port
        self._token = token
        self._on_event = on_event
        self._buffer = bytearray()
        self._is_open = asyncio.get_running_loop().create_future()
        self.last = 0
        self.count = 0
        self.gaps = 0
        self.is_lost = False
        self._transport: asyncio.Transport | None = None

    async def connect(self) -> None:
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)
        await self._is_open

    def send(self, body: dict[str, Any]) -> None:
        """Send an operation."""
        self._write(_TEXT, json.dumps(body).encode())

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nX-Auth-Token: {self._token}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._is_open.done():
            head, found, rest = self._buffer.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 101 " not in head.split(b"\r\n")[0]:
                self._is_open.set_exception(ConnectionError(bytes(head[:200])))
                return
            self._buffer = rest
            self._is_open.set_result(None)
        while (frame := self._next_frame()) is not None:
            kind, payload = frame
            if kind == _TEXT:
                self._take(payload)
            elif kind == _PING:
                self._write(0xA, payload)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        if not self._is_open.done():
            self._is_open.set_exception(ConnectionError("closed"))

    def _next_frame(self) -> tuple[int, bytes] | None:
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        size, start = buffer[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            if len(buffer) < start:
                return None
            size = int.from_bytes(buffer[2:start], "big")
        if len(buffer) < start + size:
            return None
        kind, payload = buffer[0] & 0xF, bytes(buffer[start : start + size])
        del buffer[: start + size]
        return kind, payload

    def _take(self, payload: bytes) -> None:
        # An event begins with its version and type; answers and deliveries do not.
        if not payload.startswith(b'{"v":'):
            return
        found = _SEQ.search(payload)
        if found is None:
            return
        seq = int(found[1])
        self.gaps += self.last != 0 and seq != self.last + 1
        self.last = seq
        self.count += 1
        self._on_event(seq)

    def _write(self, kind: int, payload: bytes) -> None:
        assert self._transport is not None
        head = bytes([0x80 | kind, 0x80 | len(payload)] if len(payload) < 126 else [0x80 | kind, 0xFE])
        head += len(payload).to_bytes(2, "big") if len(payload) >= 126 else b""
        # A mask of zeros changes nothing.
        self._transport.write(head + bytes(4) + payload)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


@dataclass
class Report:
    """What a run found."""

    watchers: int
    agents: int
    minutes: float
    events: int = 0
    connected_s: float = 0.0
    lost: int = 0
    gaps: int = 0
    missing: int = 0
    #: Elections of a leader by the NATS servers, during which nothing is committed.
    elections: int = 0
    #: From the sending of a message to its arrival at the last watcher.
    last_s: list[float] = field(default_factory=list)
    #: The memory of each gateway over time, in KB.
    memory_kb: list[list[int]] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def growth_kb(self) -> list[int]:
        """The growth of each gateway between the first quarter of the time and the last."""
        quarter = max(1, len(self.memory_kb) // 4)
        first, last = self.memory_kb[:quarter], self.memory_kb[-quarter:]
        columns = range(len(self.memory_kb[0]))
        return [
            round(statistics.mean(row[at] for row in last) - statistics.mean(row[at] for row in first))
            for at in columns
        ]

    @property
    def is_good(self) -> bool:
        is_flat = all(kb < FLAT_KB for kb in self.growth_kb)
        return not (self.lost or self.gaps or self.missing) and is_flat and self.events > 0

    def figures(self) -> dict[str, Any]:
        return {
            "watchers": self.watchers,
            "agents": self.agents,
            "minutes": round(self.minutes, 2),
            "events": self.events,
            "connected_s": round(self.connected_s, 1),
            "connections_lost": self.lost,
            "gaps": self.gaps,
            "missing": self.missing,
            "elections": self.elections,
            "last_watcher_s": {
                "p50": round(statistics.median(self.last_s), 3),
                "max": round(max(self.last_s), 3),
            }
            if self.last_s
            else {},
            "gateway_mb": [round(kb / 1024) for kb in self.memory_kb[-1]],
            "growth_mb": [round(kb / 1024, 1) for kb in self.growth_kb],
            "gateway_cpu": self.cpu,
        }


async def play(folder: Path, watchers: int, agents: int, per_s: float, minutes: float) -> Report:
    """Connect everybody, let the agents speak, and compare."""
    report = Report(watchers, agents, minutes)
    with NatsCluster(folder / "nats") as nats, Gateways(folder / "gateways", nats.urls) as gateways:
        await asyncio.to_thread(gateways.owner)
        bus = await Bus.open(nats.urls)
        elections: list[object] = []
        await bus.follow(f"{ELECTED}.{stream_name(shard_of(ROOM))}", elections.append)
        ports = [gateway.port for gateway in gateways.all]
        arrived: dict[int, int] = {}
        complete: dict[int, float] = {}

        def on_event(seq: int) -> None:
            arrived[seq] = arrived.get(seq, 0) + 1
            if arrived[seq] == watchers:
                complete[seq] = time.monotonic()

        tokens = await asyncio.to_thread(register_all, gateways, agents)
        began, slots = time.monotonic(), asyncio.Semaphore(CONNECTED_AT_ONCE)
        watching = [Watcher(ports[n % 3], TOKEN, on_event) for n in range(watchers)]
        # An agent does not see what others say to people.
        speakers = [Watcher(ports[n % 3], token, lambda seq: None) for n, token in enumerate(tokens)]
        everybody = watching + speakers

        async def connect(one: Watcher) -> None:
            async with slots:
                await one.connect()

        await asyncio.gather(*(connect(one) for one in everybody))
        report.connected_s = time.monotonic() - began
        pids = [gateway.pid for gateway in gateways.all]
        cpu = [cpu_s(pid) for pid in pids]
        first = int((await asyncio.to_thread(gateways.all[0].gateway.get, "/health"))["seq"])
        sent, started, sampled_at = list[float](), time.monotonic(), 0.0
        for number in itertools.count():
            now = time.monotonic()
            if now - started > minutes * 60:
                break
            if now - sampled_at > SAMPLE_S:
                report.memory_kb.append([rss_kb(pid) for pid in pids])
                sampled_at = now
            speaker = speakers[number % len(speakers)]
            sent.append(time.monotonic())
            speaker.send({"op": "message", "ref": number, "to": "human", "content": f"message {number}"})
            await asyncio.sleep(max(0.0, started + (number + 1) / per_s - time.monotonic()))
        took = time.monotonic() - started
        report.cpu = [round((cpu_s(pid) - before) / took, 2) for pid, before in zip(pids, cpu, strict=True)]
        last = await settled(gateways, first + len(sent))
        deadline = time.monotonic() + PATIENCE_S
        while len(complete) < last - first and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        report.events = last - first
        report.lost = sum(one.is_lost for one in everybody)
        report.gaps = sum(one.gaps for one in watching)
        report.missing = sum(last - first - one.count for one in watching)
        # With one event for each message, the nth message is the nth event.
        report.last_s = [
            complete[seq] - at
            for seq, at in zip(range(first + 1, last + 1), sent, strict=False)
            if seq in complete
        ]
        report.elections = len(elections)
        for one in everybody:
            one.close()
        await bus.close()
    return report


def register_all(gateways: Gateways, agents: int) -> list[str]:
    """Register the agents, in turn at each gateway; return their tokens."""
    clients = [gateway.gateway for gateway in gateways.all]
    return [
        str(clients[n % len(clients)].post("/register", {"agentId": f"agent-{n}"})["token"])
        for n in range(agents)
    ]


async def settled(gateways: Gateways, at_least: int) -> int:
    """Return the last event, once all messages have been accepted and all gateways agree."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        health = [await asyncio.to_thread(one.gateway.get, "/health") for one in gateways.all]
        seqs = {int(one["seq"]) for one in health}
        if (len(seqs) == 1 and min(seqs) >= at_least) or time.monotonic() > deadline:
            return max(seqs)
        await asyncio.sleep(0.2)


def main(argv: list[str] | None = None) -> int:
    """Run it; return 1 if something was dropped or memory grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.crowd", description=__doc__)
    parser.add_argument("--watchers", type=int, default=10_000)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--per-second", type=float, default=2.0, help="messages per second")
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args(argv)
    logging.getLogger("csp").setLevel(logging.ERROR)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="csp-crowd-") as folder:
        report = asyncio.run(
            play(Path(folder), options.watchers, options.agents, options.per_second, options.minutes)
        )
    load = [round(load, 1) for load in os.getloadavg()]
    print(json.dumps(report.figures() | {"load": load}, indent=1))
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
