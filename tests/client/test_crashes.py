"""Nothing is lost, doubled or reordered while the gateway dies again and again."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from csp.client import Client, Deliver, Item
from csp.protocol.enums import ReportedState
from csp.protocol.events import AnyEvent, MessageEvent
from tests.client.reading import events
from tests.rooms import LiveRoom
from tests.waiting import wait_until

IN_FLIGHT: Final = 64
LIMIT_S: Final = 240.0


@dataclass(frozen=True)
class Load:
    """How much is written, and how often the gateway dies meanwhile."""

    senders: int
    messages: int
    crashes: int


@dataclass
class Sender:
    """An agent that writes to its neighbour and reads what its other neighbour writes."""

    client: Client
    name: str
    neighbour: str
    messages: int
    reports: bool
    acknowledged: list[str] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)

    async def write(self) -> None:
        window = asyncio.Semaphore(IN_FLIGHT)
        async with asyncio.TaskGroup() as group:
            for number in range(self.messages):
                await window.acquire()
                group.create_task(self._say(f"{self.name} {number}", window))

    async def _say(self, text: str, window: asyncio.Semaphore) -> None:
        sent = await self.client.send(self.neighbour, text)
        self.acknowledged.append(sent.id)
        window.release()

    async def read(self) -> None:
        async with asyncio.TaskGroup() as group:
            async for item in self.client:
                if isinstance(item, Deliver):
                    self.delivered.append(item.text)
                    if self.reports:
                        group.create_task(self.client.report(item.id, ReportedState.CONFIRMED))


async def watch(client: Client, seen: list[Item]) -> None:
    async for item in client:
        seen.append(item)


async def crash(room: LiveRoom, senders: list[Sender], load: Load) -> None:
    """Kill the gateway so many times, spread over the work."""
    for number in range(1, load.crashes + 1):
        goal = number * load.senders * load.messages // (load.crashes + 1)
        await wait_until(partial(_has_acknowledged, senders, goal), LIMIT_S)
        await asyncio.to_thread(room.kill9)
        await asyncio.to_thread(room.wait)


def _has_acknowledged(senders: list[Sender], goal: int) -> bool:
    return sum(len(sender.acknowledged) for sender in senders) >= goal


def said_by(history: list[AnyEvent], name: str) -> list[str]:
    return [event.text for event in history if isinstance(event, MessageEvent) and event.sender == name]


async def join(room: LiveRoom, load: Load) -> list[Sender]:
    names = [f"agent-{number}" for number in range(load.senders)]
    tokens = [(await Client.register(room.url, room.token, name)).token for name in names]
    return [
        Sender(
            Client(room.url, token),
            name,
            neighbour=names[number - 1],
            messages=load.messages,
            reports=number % 2 == 0,
        )
        for number, (name, token) in enumerate(zip(names, tokens, strict=True))
    ]


async def work_through(room: LiveRoom, senders: list[Sender], load: Load) -> list[Item]:
    """Let everybody write and read while the gateway dies; return what a watcher saw."""
    seen: list[Item] = []
    watcher = Client(room.url, room.token, after=0)
    async with asyncio.timeout(LIMIT_S), AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for client in (watcher, *(sender.client for sender in senders)):
            await stack.enter_async_context(client)
        group.create_task(watch(watcher, seen))
        for sender in senders:
            group.create_task(sender.read())
        writers = [group.create_task(sender.write()) for sender in senders]
        await crash(room, senders, load)
        await asyncio.gather(*writers)
        await wait_until(lambda: all(len(s.delivered) >= load.messages for s in senders), LIMIT_S)
        for sender in senders:
            await sender.client.close()
        # Said last and by nobody else, it is the end of what there is to see.
        end = await watcher.send("all", "the end")
        await wait_until(lambda: (watcher.seq or 0) >= end.seq, LIMIT_S)
        await watcher.close()
    return seen


@pytest.mark.parametrize(
    "load",
    [
        Load(senders=3, messages=100, crashes=2),
        pytest.param(Load(senders=8, messages=1250, crashes=5), marks=pytest.mark.full),
    ],
    ids=lambda load: f"{load.crashes} crashes",
)
async def test_crashes_lose_nothing_and_double_nothing(tmp_path: Path, load: Load) -> None:
    with LiveRoom(tmp_path / "room", "--supervise") as room:
        senders = await join(room, load)
        seen = await work_through(room, senders, load)
        history = room.journal()

    written = {s.name: [f"{s.name} {number}" for number in range(load.messages)] for s in senders}
    assert {s.name: said_by(history, s.name) for s in senders} == written
    assert sum(isinstance(event, MessageEvent) for event in history) == load.senders * load.messages + 1
    assert events(seen) == history
    for sender, neighbour in zip(senders, [*senders[1:], senders[0]], strict=True):
        assert sender.delivered == written[neighbour.name]
        ids = [
            event.id for event in history if isinstance(event, MessageEvent) and event.sender == sender.name
        ]
        assert sorted(sender.acknowledged) == sorted(ids)
