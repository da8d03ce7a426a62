"""Many rooms over several hubs: python -m tests.chaos.hubs --rooms 10000 --active 100.

The rooms are opened one after the other, each at one hub. A part of them is active: a client for each sends
a message again and again, and goes to the next hub when its own does not answer. Then the first hub is
killed. Measured are the memory that a room costs, and how long each active room of the killed hub was silent.
"""

import argparse
import asyncio
import json
import logging
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import aiohttp

from tests.cluster.hubs import Hubs, LiveHub, room_token
from tests.cluster.nats_servers import NatsCluster

OPENED_AT_ONCE: Final = 16
#: A request that has no answer within this is sent to the next hub.
TIMEOUT_S: Final = 1.0
STUCK_S: Final = 60.0


@dataclass
class Report:
    """What a run found."""

    rooms: int
    opened_s: float = 0.0
    #: The memory of each hub before and after, in KB.
    before_kb: list[int] = field(default_factory=list)
    after_kb: list[int] = field(default_factory=list)
    #: The share of a core that each hub uses while its rooms rest.
    cpu_at_rest: list[float] = field(default_factory=list)
    #: How long the slowest message of each active room of the killed hub took, from the kill on.
    silence_s: list[float] = field(default_factory=list)
    #: How long a message took before that.
    answer_s: list[float] = field(default_factory=list)
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    #: How often hubs have lost their connection to NATS, and a room to another hub, though nothing was cut.
    reconnected: int = 0
    taken: int = 0

    @property
    def kb_per_room(self) -> float:
        return (sum(self.after_kb) - sum(self.before_kb)) / self.rooms

    def figures(self) -> dict[str, Any]:
        """Return the figures for people and programs."""
        return {
            "rooms": self.rooms,
            "opened_s": round(self.opened_s, 1),
            "rooms_per_s": round(self.rooms / self.opened_s, 1),
            "hub_mb": [round(kb / 1024) for kb in self.after_kb],
            "kb_per_room": round(self.kb_per_room, 1),
            "cpu_at_rest": self.cpu_at_rest,
            "silence_s": {
                "rooms": len(self.silence_s),
                "p50": round(statistics.median(self.silence_s), 2),
                "max": round(max(self.silence_s), 2),
            },
            "answer_s": {
                "p50": round(statistics.median(self.answer_s), 3),
                "max": round(max(self.answer_s), 3),
            },
            "acknowledged": self.acknowledged,
            "lost": self.lost[:5],
            "doubled": self.doubled[:5],
            "reconnected": self.reconnected,
            "taken": self.taken,
        }


class Scene:
    """The servers, the hubs and the clients of a run."""

    def __init__(self, folder: Path, rooms: int, active: int, hubs: int = 3, pause_s: float = 1.0) -> None:
        self._nats = NatsCluster(folder / "nats")
        self._folder = folder
        self._names = [f"room-{number}" for number in range(rooms)]
        self._active = self._names[:active]
        self._count = hubs
        self._pause_s = pause_s
        self._times: dict[str, list[float]] = {name: [] for name in self._active}
        self._texts: dict[str, list[str]] = {name: [] for name in self._active}
        #: When each message was first sent, and how long it took to be acknowledged.
        self._answers: dict[str, list[tuple[float, float]]] = {name: [] for name in self._active}
        self._is_over = False
        self.report = Report(rooms)

    async def play(self, rest_s: float = 5.0, after_s: float = 5.0) -> Report:
        """Open the rooms, kill a hub, and measure."""
        await asyncio.to_thread(self._nats.__enter__)
        self._hubs = Hubs(self._folder / "hubs", self._nats.urls, self._count)
        try:
            await asyncio.to_thread(self._hubs.__enter__)
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as self._http:
                await self._run(rest_s, after_s)
        finally:
            await asyncio.to_thread(self._hubs.__exit__, None, None, None)
            await asyncio.to_thread(self._nats.__exit__, None, None, None)
        return self.report

    async def _run(self, rest_s: float, after_s: float) -> None:
        report, hubs = self.report, self._hubs.all
        # The first room loads what all of them need.
        await asyncio.gather(*(self._post(hub, f"warm-{n}", "a") for n, hub in enumerate(hubs)))
        report.before_kb = [rss_kb(hub.pid) for hub in hubs]
        began, slots = time.monotonic(), asyncio.Semaphore(OPENED_AT_ONCE)

        async def open_room(number: int, name: str) -> None:
            async with slots:
                while not await self._post(hubs[number % len(hubs)], name, "the first message"):
                    assert time.monotonic() - began < STUCK_S * (1 + report.rooms / 100), f"{name} not opened"

        await asyncio.gather(*(open_room(number, name) for number, name in enumerate(self._names)))
        report.opened_s = time.monotonic() - began
        cpu = [cpu_s(hub.pid) for hub in hubs]
        await asyncio.sleep(rest_s)
        spent = [cpu_s(hub.pid) - before for hub, before in zip(hubs, cpu, strict=True)]
        report.cpu_at_rest = [round(one / rest_s, 3) for one in spent] if rest_s else []
        report.after_kb = [rss_kb(hub.pid) for hub in hubs]
        working = [asyncio.create_task(self._send(n, name)) for n, name in enumerate(self._active)]
        await self._until(lambda: all(len(times) > 3 for times in self._times.values()))
        report.answer_s = [took for answers in self._answers.values() for _, took in answers]
        killed_at = time.monotonic()
        await asyncio.to_thread(hubs[0].kill9)
        await self._until(lambda: all(times[-1] > killed_at + after_s for times in self._times.values()))
        self._is_over = True
        await asyncio.gather(*working)
        for name in self._active[:: len(hubs)]:
            took = [took for began, took in self._answers[name] if began + took > killed_at]
            report.silence_s.append(max(took))
        report.acknowledged = sum(len(times) for times in self._times.values())
        await self._compare(hubs[1])

    async def _until(self, condition: Any) -> None:
        async with asyncio.timeout(STUCK_S + len(self._names) / 10):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def _send(self, number: int, name: str) -> None:
        """Send messages to a room, at its own hub first."""
        hubs, at, sent = self._hubs.all, number, 0
        began = time.monotonic()
        while not self._is_over:
            text = f"message {sent}"
            if await self._post(hubs[at % len(hubs)], name, text):
                self._answers[name].append((began, time.monotonic() - began))
                self._times[name].append(time.monotonic())
                self._texts[name].append(text)
                sent += 1
                await asyncio.sleep(self._pause_s)
                began = time.monotonic()
            else:
                at += 1

    async def _post(self, hub: LiveHub, name: str, text: str) -> bool:
        headers = {"X-Auth-Token": room_token(name)}
        # The same id at every hub: the message is posted once.
        body = json.dumps({"to": "all", "content": text, "id": f"{name}-{text}".replace(" ", "-")})
        try:
            async with self._http.post(
                f"{hub.url}/r/{name}/message",
                data=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
            ) as answer:
                await answer.read()
                return answer.status < 300
        except (aiohttp.ClientError, TimeoutError, OSError):
            await asyncio.sleep(0.05)
            return False

    async def _compare(self, hub: LiveHub) -> None:
        """Note what was acknowledged and is not in the history exactly once."""
        for name in self._active:
            # Its answer comes after everything before it.
            await self._until_sent(hub, name)
            counts = Counter(await asyncio.to_thread(all_texts, hub, name))
            self.report.lost += [f"{name}: {text}" for text in self._texts[name] if not counts[text]]
            self.report.doubled += [f"{name}: {text}" for text in self._texts[name] if counts[text] > 1]
        logs = [one.said() for one in self._hubs.all]
        self.report.reconnected = sum(log.count("connection to NATS lost") for log in logs)
        self.report.taken = sum(log.count("another gateway has taken the room") for log in logs)

    async def _until_sent(self, hub: LiveHub, name: str) -> None:
        async with asyncio.timeout(STUCK_S):
            while not await self._post(hub, name, "the last message"):
                pass


def all_texts(hub: LiveHub, name: str) -> list[str]:
    """Return the texts of a room."""
    client, texts, after = hub.at(name), list[str](), 0
    while items := client.get(f"/history?after={after}&limit=500")["items"]:
        texts += [item.get("text", "") for item in items]
        after = items[-1]["seq"]
    return texts


def rss_kb(pid: int) -> int:
    """Return the memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def main(argv: list[str] | None = None) -> int:
    """Run it; return 1 if something was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.hubs", description=__doc__)
    parser.add_argument("--rooms", type=int, default=10_000)
    parser.add_argument("--active", type=int, default=100)
    parser.add_argument("--hubs", type=int, default=3)
    options = parser.parse_args(argv)
    logging.getLogger("csp").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="csp-hubs-") as folder:
        scene = Scene(Path(folder), options.rooms, options.active, options.hubs)
        report = asyncio.run(scene.play())
    load = [round(load, 1) for load in os.getloadavg()]
    print(json.dumps(report.figures() | {"load": load}, indent=1))
    return 1 if report.lost or report.doubled else 0


if __name__ == "__main__":
    sys.exit(main())
