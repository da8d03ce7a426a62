"""Generate load: a plan on stdin, what it found on stdout.

Run as a process of its own, so that its work is not the server's.
"""

import contextlib
import resource
import selectors
import socket
import sys
import time
from collections.abc import Callable
from typing import Final

import msgspec

from csp.errors import Broken
from tests.bench.machine.peers import Listener, Sender, Watcher, connect, register, serve
from tests.bench.machine.plans import Found, Plan, client_frame, numbered
from tests.bench.machine.usage import cpu_s

#: How long the last messages may take to arrive.
_ARRIVE_S: Final = 60.0


class Crowd:
    """The watchers of a run."""

    def __init__(self, plan: Plan, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self.watchers = [Watcher(*connect(plan.port, plan.watch, plan.greeted)) for _ in range(plan.watchers)]
        for watcher in self.watchers:
            register(selector, watcher)

    @property
    def least(self) -> int:
        return min((watcher.events for watcher in self.watchers), default=0)

    def wait_for(self, events: int) -> None:
        """Read until every watcher has this many events."""
        deadline = time.perf_counter() + _ARRIVE_S
        while self.watchers and self.least < events:
            serve(self._selector, 0.1)
            if time.perf_counter() > deadline:
                raise Broken(f"a watcher got {self.least} of {events} events")


class Meter:
    """Time and the server's CPU time, from now on."""

    def __init__(self, plan: Plan) -> None:
        self._pid = plan.pid
        self._cpu = cpu_s(plan.pid)
        self.began = time.perf_counter()
        self.end = self.began + plan.seconds
        self._seconds = 0.0

    @property
    def is_on(self) -> bool:
        return time.perf_counter() < self.end

    def stop_clock(self) -> None:
        """Leave what follows out of the time, not out of the CPU time."""
        self._seconds = time.perf_counter() - self.began

    def found(self, crowd: Crowd, sent: int, latencies: list[float]) -> Found:
        """Return what was seen, with what it took."""
        cpu = cpu_s(self._pid)
        return Found(
            sent=sent,
            seconds=self._seconds or time.perf_counter() - self.began,
            cpu_s=None if cpu is None or self._cpu is None else cpu - self._cpu,
            latencies=latencies,
            least=crowd.least,
        )


def make_senders(plan: Plan, on_answer: Callable[[Sender], None]) -> list[Sender]:
    """Open the connections that send."""
    return [
        Sender(connect(plan.port, plan.greet, plan.greeted)[0], plan.post, on_answer)
        for _ in range(plan.connections)
    ]


def closed(plan: Plan) -> Found:
    """Keep every connection busy: the next message goes out when the last is answered."""
    selector = selectors.DefaultSelector()
    crowd = Crowd(plan, selector)

    def send_next(sender: Sender) -> None:
        if meter.is_on and sender.answered != plan.size:
            sender.send()

    senders = make_senders(plan, send_next)
    for sender in senders:
        register(selector, sender)
    meter = Meter(plan)
    for sender in senders:
        sender.send()
    while any(sender.is_busy for sender in senders):
        serve(selector, 0.1)
    return summed(meter, crowd, senders)


def summed(meter: Meter, crowd: Crowd, senders: list[Sender]) -> Found:
    """Return what all senders of a closed run have seen, once everybody has everything."""
    meter.stop_clock()
    answered = sum(sender.answered for sender in senders)
    crowd.wait_for(answered)
    return meter.found(crowd, answered, [latency for sender in senders for latency in sender.latencies])


def paced(plan: Plan) -> Found:
    """Send at a rate, whatever the answers do; note when a watcher has each message."""
    # It waits in microseconds, epoll only in milliseconds.
    selector = selectors.SelectSelector()
    crowd = Crowd(plan, selector)
    sent_at: list[float] = []
    times: list[float] = []
    watcher = connect(plan.port, plan.watch, plan.greeted)
    register(selector, Listener(*watcher, lambda number, now: times.append(now - sent_at[number])))
    senders = make_senders(plan, lambda sender: None)
    for sender in senders:
        register(selector, sender)
    total = int(plan.rate * plan.seconds)
    meter = Meter(plan)
    while len(times) < total:
        now = time.perf_counter()
        due = meter.began + len(sent_at) / plan.rate if len(sent_at) < total else meter.end + _ARRIVE_S
        idle = next((sender for sender in senders if not sender.is_busy), None)
        if now >= due and idle is not None:
            sent_at.append(now)
            sent_at[-1] = idle.send_numbered(len(sent_at) - 1)
            idle.is_busy = plan.is_answered
        else:
            serve(selector, max(0.0, due - now) if idle else 0.1)
        if now > meter.end + _ARRIVE_S:
            raise Broken(f"a watcher got {len(times)} of {total} messages")
    return meter.found(crowd, total, times)


def lone(plan: Plan) -> Found:
    """Send the next message when all watchers have the last."""
    selector = selectors.SelectSelector()
    crowd = Crowd(plan, selector)
    [sender] = make_senders(plan, lambda sender: None)
    register(selector, sender)
    times: list[float] = []
    meter = Meter(plan)
    while meter.is_on:
        sender.send()
        while sender.is_busy or crowd.least <= len(times):
            if not serve(selector, _ARRIVE_S):
                raise Broken(f"a watcher did not get message {len(times)}")
        times.append(time.perf_counter() - sender.sent_at)
    return meter.found(crowd, len(times), times)


def burst(plan: Plan) -> Found:
    """Send many messages over one WebSocket in one write, wait until all watchers have them, again."""
    selector = selectors.DefaultSelector()
    crowd = Crowd(plan, selector)
    peer = connect(plan.port, plan.greet, plan.greeted)[0]
    selector.register(peer, selectors.EVENT_READ, lambda: peer.recv(1 << 20))
    frames = b"".join([client_frame(numbered(plan.post, number)) for number in range(plan.size)])
    times: list[float] = []
    meter = Meter(plan)
    while meter.is_on:
        at = time.perf_counter()
        _send_all(peer, frames, selector)
        crowd.wait_for(plan.size * (len(times) + 1))
        times.append(time.perf_counter() - at)
    return meter.found(crowd, plan.size * len(times), times)


def _send_all(peer: socket.socket, data: bytes, selector: selectors.BaseSelector) -> None:
    """Send everything, reading meanwhile: a server may take no more until it is rid of its answers."""
    peer.setblocking(False)
    rest = memoryview(data)
    while rest:
        with contextlib.suppress(BlockingIOError):
            rest = rest[peer.send(rest) :]
        serve(selector, 0.0)
    peer.setblocking(True)


def watch(plan: Plan) -> Found:
    """Watch until everybody has `size` events; with `watch_all`, beside one that never reads."""
    selector = selectors.DefaultSelector()
    deaf = connect(plan.port, plan.watch, plan.greeted)[0] if plan.watch_all else None
    crowd = Crowd(plan, selector)
    if plan.watch_all:
        crowd.watchers.append(Watcher(*connect(plan.port, plan.watch_all, plan.greeted)))
        register(selector, crowd.watchers[-1])
    meter = Meter(plan)
    crowd.wait_for(plan.size)
    if deaf is not None:
        deaf.close()
    return meter.found(crowd, plan.size, [])


KINDS: Final = {"closed": closed, "paced": paced, "lone": lone, "burst": burst, "watch": watch}


def main() -> None:
    """Do what the plan on stdin says."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    sys.stdout.buffer.write(msgspec.json.encode(KINDS[plan.kind](plan)))


if __name__ == "__main__":
    main()
