"""Chaos in a cluster: python -m tests.chaos.cluster --kills 200 --seed 7.

Three NATS servers, three gateways of one room, and clients that know all three URLs and send all the time.
Faults come one after the other; afterwards nothing that was acknowledged may be lost, doubled or out of
order, and the journals of all gateways and the lines of the stream are the same bytes.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import logging
import math
import os
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from csp.client.client import Client
from csp.cluster.bus import Bus
from csp.cluster.names import news_subject, shard_of, stream_name
from csp.cluster.rounds import ELECTED
from csp.cluster.stream_log import StreamLog
from csp.errors import CspError
from tests.cluster.gateways import ROOM, TOKEN, Gateways
from tests.cluster.nats_servers import NatsCluster, NatsServer
from tests.journal.log_stores import replayed
from tests.rooms import LiveRoom
from tests.waiting import wait_until

#: The pause of a stopped gateway.
STOPPED_S: Final = 3.0
#: The room is calm when messages have been acknowledged for so long.
CALM_S: Final = 1.5
#: A new gateway claims nothing in its first second.
READY_S: Final = 1.2
#: A message that is not acknowledged within this is a failure.
STUCK_S: Final = 90.0
#: After a fault, the longest hole between two acknowledgements counts within this.
WINDOW_S: Final = 10.0
FAULTS: Final = (
    "owner kill",
    "owner stop",
    "owner term",
    "edge kill",
    "nats follower",
    "nats leader",
    "nats term",
)


@dataclass
class Report:
    """What a run found."""

    seed: int
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    reordered: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    #: The longest hole between two acknowledgements, by fault.
    silence_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    #: The same for faults of gateways during which NATS servers elected a leader by themselves.
    elected_s: list[float] = field(default_factory=list)
    #: For each fault of an owner, how long after it the next claim was committed.
    claimed_s: list[float] = field(default_factory=list)
    are_mirrors_equal: bool = False
    is_stream_equal: bool = False

    @property
    def is_good(self) -> bool:
        is_whole = not (self.lost or self.doubled or self.reordered or self.failures)
        return is_whole and self.are_mirrors_equal and self.is_stream_equal and self.acknowledged > 0

    def figures(self) -> dict[str, Any]:
        """Return the figures for people and programs."""
        return {
            "seed": self.seed,
            "faults": {name: len(holes) for name, holes in self.silence_s.items()},
            "acknowledged": self.acknowledged,
            "lost": len(self.lost),
            "doubled": len(self.doubled),
            "reordered": len(self.reordered),
            "failures": self.failures[:5],
            "silence_s": {name: _spread(holes) for name, holes in self.silence_s.items()},
            "with_election_s": [round(hole, 2) for hole in self.elected_s],
            "claimed_s": _spread(self.claimed_s),
            "mirrors_equal": self.are_mirrors_equal,
            "stream_equal": self.is_stream_equal,
        }


def _spread(times: list[float]) -> dict[str, float]:
    if not times:
        return {}
    p95 = sorted(times)[math.ceil(0.95 * len(times)) - 1]
    return {"p50": round(statistics.median(times), 2), "p95": round(p95, 2), "max": round(max(times), 2)}


class Sender:
    """One client that sends a message when the last one is acknowledged."""

    def __init__(self, name: str, urls: list[str], pause_s: float) -> None:
        self.name = name
        self._urls = urls
        self._pause_s = pause_s
        self.acknowledged: list[tuple[str, int]] = []
        self.times: list[float] = []
        self.failures: list[str] = []
        self.is_over = False

    async def run(self) -> None:
        agent = await Client.register(self._urls[0], TOKEN, self.name)
        async with Client(",".join(self._urls), agent.token) as client:
            number = 0
            while not self.is_over:
                number += 1
                await self._send(client, f"{self.name} {number}", number)
                await asyncio.sleep(self._pause_s)

    async def _send(self, client: Client, text: str, number: int) -> None:
        deadline = time.monotonic() + STUCK_S
        while True:
            try:
                async with asyncio.timeout_at(
                    deadline - time.monotonic() + asyncio.get_running_loop().time()
                ):
                    sent = await client.send("human", text, id=f"{self.name}-{number}")
                break
            except TimeoutError:
                self.failures.append(f"{text}: no answer within {STUCK_S:g} s")
                return
            except CspError as error:
                # Unknown outcome: the same message goes out again, with the same id.
                if error.status != 503 or time.monotonic() > deadline:
                    self.failures.append(f"{text}: {error.message}")
                    return
                await asyncio.sleep(0.2)
        self.acknowledged.append((text, sent.seq))
        self.times.append(time.monotonic())


class Scene:
    """The servers, the gateways and the senders of a run."""

    def __init__(self, folder: Path, seed: int, senders: int, pause_s: float, calm_s: float = CALM_S) -> None:
        self.random = random.Random(seed)
        self.report = Report(seed)
        self._folder = folder
        self.nats = NatsCluster(folder / "nats")
        self._senders = senders
        self._pause_s = pause_s
        self._calm_s = calm_s
        #: When a claim was committed, and when servers elected a leader of the room's stream.
        self._claims: list[float] = []
        self._elections: list[float] = []

    async def play(self, faults: list[str], tell: Callable[[str], None] = lambda text: None) -> Report:
        """Run the faults under load, then compare everything."""
        with contextlib.ExitStack() as stack:
            await asyncio.to_thread(stack.enter_context, self.nats)
            self.gateways = Gateways(self._folder / "gateways", self.nats.urls)
            await asyncio.to_thread(stack.enter_context, self.gateways)
            self.bus = await Bus.open(self.nats.urls)
            try:
                await self._run(faults, tell)
            finally:
                await self.bus.close()
        return self.report

    async def _run(self, faults: list[str], tell: Callable[[str], None]) -> None:
        urls = self.gateways.urls
        senders = [
            Sender(f"s{number}", urls[number % 3 :] + urls[: number % 3], self._pause_s)
            for number in range(self._senders)
        ]
        self.senders = senders
        await self._watch()
        working = [asyncio.create_task(sender.run()) for sender in senders]
        for number, name in enumerate(faults, 1):
            await self._calm()
            began = time.monotonic()
            await self._inflict(name)
            await self._calm(began)
            hole = self._hole_after(began)
            self.report.silence_s[name].append(hole)
            tell(f"{number}/{len(faults)} {name}: {hole:.2f} s{self._cause(name, began, hole)}")
        for sender in senders:
            sender.is_over = True
        for end in await asyncio.gather(*working, return_exceptions=True):
            if isinstance(end, BaseException):
                self.report.failures.append(f"a client ended: {end!r}")
        await self._compare()

    async def _watch(self) -> None:
        """Note claims and elections, which explain a silence."""

        def hear_batch(message: Any) -> None:
            if message is not None and not message.data:
                self._claims.append(time.monotonic())

        def hear_election(message: Any) -> None:
            if message is not None:
                self._elections.append(time.monotonic())

        await self.bus.follow(news_subject(ROOM), hear_batch)
        await self.bus.follow(f"{ELECTED}.{stream_name(shard_of(ROOM))}", hear_election)

    def _cause(self, name: str, began: float, hole: float) -> str:
        """Note what happened during a fault; return it in words."""
        whom = name.split()[0]
        claims = [at - began for at in self._claims if at > began]
        said = ""
        if whom == "owner" and claims:
            self.report.claimed_s.append(claims[0])
            said += f", claimed after {claims[0]:.2f} s"
        if whom != "nats" and any(began - 1 < at < began + WINDOW_S for at in self._elections):
            self.report.elected_s.append(hole)
            said += ", and the servers elected a leader"
        return said

    async def _calm(self, since: float = 0.0) -> None:
        """Wait until every sender is acknowledged, and everything has been up for a while."""
        start = max(time.monotonic(), since + READY_S)

        def is_calm() -> bool:
            return all(sender.times and sender.times[-1] > start for sender in self.senders)

        await wait_until(is_calm, STUCK_S + 10, "every sender acknowledged")
        await asyncio.sleep(self._calm_s)

    def _hole_after(self, began: float) -> float:
        times = sorted(
            at for sender in self.senders for at in sender.times if began - 1 < at < began + WINDOW_S
        )
        return max((after - before for before, after in itertools.pairwise(times)), default=WINDOW_S)

    # --- faults ----------------------------------------------------------------------------------

    async def _inflict(self, name: str) -> None:
        whom, what = name.split()
        if whom == "nats":
            server = await self._server(is_leader=what == "leader")
            await asyncio.to_thread(server.stop if what == "term" else server.kill)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(server.start)
            return
        owner = await asyncio.to_thread(self.gateways.owner)
        others = [one for one in self.gateways.all if one is not owner]
        gateway: LiveRoom = owner if whom == "owner" else self.random.choice(others)
        if what == "stop":
            pid = gateway.pid
            os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(STOPPED_S)
            os.kill(pid, signal.SIGCONT)
            return
        await asyncio.to_thread(gateway.kill9 if what == "kill" else gateway.stop)
        await asyncio.to_thread(gateway.start)

    async def _server(self, *, is_leader: bool) -> NatsServer:
        name = stream_name(shard_of(ROOM))

        async def leader() -> str:
            with contextlib.suppress(CspError):
                info = await self.bus.ask(f"STREAM.INFO.{name}", {}, timeout_s=5)
                return str(info.get("cluster", {}).get("leader", ""))
            return ""

        asked: Callable[[], str | Awaitable[str]] = leader
        leading = await wait_until(asked, what="a leader of the stream")
        if is_leader:
            return self.nats.named(leading)
        return self.random.choice([server for server in self.nats.servers if server.name != leading])

    # --- afterwards ------------------------------------------------------------------------------

    async def _compare(self) -> None:
        report = self.report
        report.failures += [failure for sender in self.senders for failure in sender.failures]
        try:
            journal = await asyncio.to_thread(self.gateways.wait_equal)
            report.are_mirrors_equal = True
        except AssertionError:
            journal = max(self.gateways.mirrors(), key=len)
        lines = await replayed(StreamLog(self.bus, ROOM))
        report.is_stream_equal = journal == b"".join(line + b"\n" for line in lines)
        places: dict[str, list[int]] = defaultdict(list)
        for line in journal.splitlines():
            event = msgspec.json.decode(line)
            places[str(event["text"])].append(int(event["seq"]))
        for sender in self.senders:
            report.acknowledged += len(sender.acknowledged)
            report.lost += [text for text, seq in sender.acknowledged if seq not in places[text]]
            seqs = [seq for _, seq in sender.acknowledged]
            report.reordered += [f"{sender.name}: {seqs}"] if seqs != sorted(seqs) else []
        own = {sender.name for sender in self.senders}
        report.doubled = [
            text
            for text, seqs in places.items()
            if len(seqs) > 1 and text.split(" ")[0] in own and text[-1].isdigit()
        ]


def faults_of(kills: int, mix: int, seed: int) -> list[str]:
    """Return so many kills of the owner, and so many faults of all kinds."""
    chosen = random.Random(seed)
    faults = ["owner kill"] * kills + [FAULTS[number % len(FAULTS)] for number in range(mix)]
    chosen.shuffle(faults)
    return faults


def main(argv: list[str] | None = None) -> int:
    """Run chaos; return 1 if an invariant broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.cluster", description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="kills of the owner")
    parser.add_argument("--mix", type=int, default=0, help="faults of all kinds beside them")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0.2, help="seconds between two messages of a client")
    options = parser.parse_args(argv)
    logging.getLogger("csp").setLevel(logging.ERROR)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="csp-chaos-") as folder:
        scene = Scene(Path(folder), options.seed, options.clients, options.pause)
        faults = faults_of(options.kills, options.mix, options.seed)
        tell = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
        report = asyncio.run(scene.play(faults, tell))
    figures = report.figures() | {
        "seconds": round(time.monotonic() - began),
        "load": [round(load, 1) for load in os.getloadavg()],
        "faults": dict(Counter(faults)),
    }
    print(json.dumps(figures, indent=1))
    return 0 if report.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
