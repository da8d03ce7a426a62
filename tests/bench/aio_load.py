"""Generate load with the clients that people use: asyncio, websockets, nats-py.

They cost several times what bare sockets do; the limits were measured with them.
"""

import asyncio
import re
import selectors
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, cast

import msgspec

from tests.bench.machine.load import Crowd, Meter, make_senders, summed
from tests.bench.machine.peers import Sender
from tests.bench.machine.plans import HOST, Found, Plan, numbered
from tests.bench.machine.process import TOKEN

_NUMBER: Final = re.compile(rb"@(\d{7})@")
_ARRIVE_S: Final = 60.0


class _Answers(asyncio.Protocol):
    """The answers to one sender."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._sender.write = cast(asyncio.WriteTransport, transport).write

    def data_received(self, data: bytes) -> None:
        self._sender.take(data)


async def _senders(plan: Plan, on_answer: Callable[[Sender], None]) -> list[Sender]:
    senders = make_senders(plan, on_answer)
    loop = asyncio.get_running_loop()
    for sender in senders:
        sender.socket.setblocking(False)
        await loop.create_connection(partial(_Answers, sender), sock=sender.socket)
    return senders


async def closed(plan: Plan) -> Found:
    """Keep every connection busy."""
    crowd = Crowd(plan, selectors.DefaultSelector())
    for watcher in crowd.watchers:
        asyncio.get_running_loop().add_reader(watcher.socket, watcher.read)
    senders = await _senders(plan, lambda sender: sender.send() if meter.is_on else None)
    meter = Meter(plan)
    for sender in senders:
        sender.send()
    await asyncio.sleep(plan.seconds)
    return summed(meter, crowd, senders)


class _Pace:
    """Messages sent at a rate, with the times at which they come back."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._total = int(plan.rate * plan.seconds)
        self._sent_at: list[float] = []
        self._times: list[float] = []
        self._done = asyncio.Event()

    def take(self, data: bytes) -> None:
        """Note that a message has come."""
        now = time.perf_counter()
        found = _NUMBER.search(data)
        if found is not None:
            self._times.append(now - self._sent_at[int(found[1])])
            if len(self._times) == self._total:
                self._done.set()

    async def run(self, send: Callable[[int], Awaitable[None]]) -> Found:
        """Send all messages; return when all have come."""
        meter = Meter(self._plan)
        for number in range(self._total):
            delay = meter.began + number / self._plan.rate - time.perf_counter()
            if delay > 0:
                await asyncio.sleep(delay)
            self._sent_at.append(time.perf_counter())
            await send(number)
        await asyncio.wait_for(self._done.wait(), _ARRIVE_S)
        nobody = Crowd(msgspec.structs.replace(self._plan, watchers=0), selectors.DefaultSelector())
        return meter.found(nobody, self._total, self._times)


async def paced_gateway(plan: Plan) -> Found:
    """POST at a rate; a client of websockets watches."""
    from websockets.asyncio.client import connect

    pace = _Pace(plan)
    idle: asyncio.Queue[Sender] = asyncio.Queue()
    for sender in await _senders(plan, idle.put_nowait):
        idle.put_nowait(sender)

    async def send(number: int) -> None:
        (await idle.get()).send_numbered(number)

    headers = {"X-Auth-Token": TOKEN}
    async with connect(f"ws://{HOST}:{plan.port}/ws", additional_headers=headers, compression=None) as socket:

        async def watch() -> None:
            while True:
                pace.take(await socket.recv(decode=False))

        watching = asyncio.ensure_future(watch())
        found = await pace.run(send)
        watching.cancel()
    return found


async def paced_nats(plan: Plan) -> Found:
    """Publish at a rate with one client of nats-py; another one subscribes."""
    import nats
    from nats.aio.msg import Msg

    pace = _Pace(plan)
    publisher, subscriber = [await nats.connect(f"nats://{HOST}:{plan.port}") for _ in range(2)]

    async def take(message: Msg) -> None:
        pace.take(message.data)

    async def send(number: int) -> None:
        await publisher.publish("room", numbered(plan.post, number))

    await subscriber.subscribe("room", cb=take)
    await subscriber.flush()
    found = await pace.run(send)
    await publisher.close()
    await subscriber.close()
    return found


KINDS: Final = {"closed": closed, "gateway": paced_gateway, "nats": paced_nats}


if __name__ == "__main__":
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(KINDS[sys.argv[1]](given))))
