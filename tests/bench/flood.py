"""Flood a server over bare sockets: python -m tests.bench.flood PORT < plan.json

Every agent has a WebSocket that sends without reading and HTTP connections that never pause; one agent
also opens long polls and WebSockets by the thousand. Who is refused or closed comes back at once.
"""

import contextlib
import os
import selectors
import socket
import sys
import time
from collections import Counter
from typing import Final

import msgspec

HOST: Final = "127.0.0.1"
#: So many connections are opened before the others get their turn.
OPENED_AT_ONCE: Final = 64


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Who floods, and how; tokens are those of the agents."""

    tokens: list[str]
    polls: int = 0
    sockets: int = 0
    #: HTTP connections of each agent that are kept busy.
    busy: int = 1
    #: Whether each of them is closed after every request.
    is_fresh: bool = False
    #: How long a long poll or a WebSocket that was refused waits before it tries again.
    again_s: float = 60.0
    text: str = "are you there"


class Peer:
    """One connection; `greeting` is sent first, `more` again and again."""

    def __init__(self, greeting: bytes, more: bytes = b"", *, is_closed_loop: bool = False) -> None:
        self.greeting = greeting
        self.more = more
        self.is_closed_loop = is_closed_loop
        self.socket: socket.socket | None = None
        self.unsent = b""
        self.is_ready = False


def _head(method: str, path: str, token: str, extra: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Auth-Token: {token}\r\n{extra}\r\n".encode()


_UPGRADE: Final = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


def _frame(payload: bytes) -> bytes:
    """Return a masked text frame; a mask of zeros leaves the payload as it is."""
    size = len(payload)
    head = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0xFE]) + size.to_bytes(2, "big")
    return head + bytes(4) + payload


def peers_of(plan: Plan) -> list[Peer]:
    """Return all connections of a plan."""
    body = msgspec.json.encode({"to": "all", "content": plan.text})
    found: list[Peer] = []
    for token in plan.tokens:
        op = _frame(msgspec.json.encode({"op": "message", "to": "all", "content": plan.text}))
        found.append(Peer(_head("GET", "/ws", token, _UPGRADE), op * 16))
        closing = "Connection: close\r\n" if plan.is_fresh else ""
        post = _head("POST", "/message", token, f"{closing}Content-Length: {len(body)}\r\n") + body
        found += [Peer(post, post, is_closed_loop=True) for _ in range(plan.busy)]
    greedy = plan.tokens[0]
    found += [Peer(_head("GET", "/history?after=999999999&wait=30", greedy)) for _ in range(plan.polls)]
    found += [Peer(_head("GET", "/ws", greedy, _UPGRADE)) for _ in range(plan.sockets)]
    return found


class Flood:
    """All peers on one selector."""

    def __init__(self, port: int, peers: list[Peer], again_s: float) -> None:
        self._again_s = again_s
        self._address = (HOST, port)
        self._selector = selectors.DefaultSelector()
        self._closed: list[tuple[float, Peer]] = [(0.0, peer) for peer in peers]
        self.counts: Counter[str] = Counter()

    def run(self, until: float) -> None:
        """Flood until then."""
        while time.monotonic() < until:
            self._open_some()
            for key, events in self._selector.select(0.01):
                self._serve(key.data, events)

    def _open_some(self) -> None:
        now = time.monotonic()
        later = [item for item in self._closed if item[0] > now]
        due = [item for item in self._closed if item[0] <= now]
        self._closed = later + due[OPENED_AT_ONCE:]
        for _, peer in due[:OPENED_AT_ONCE]:
            peer.socket = socket.socket()
            peer.socket.setblocking(False)
            peer.unsent, peer.is_ready = peer.greeting, False
            with contextlib.suppress(BlockingIOError):
                peer.socket.connect(self._address)
            self._selector.register(peer.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)
            self.counts["opened"] += 1

    def _serve(self, peer: Peer, events: int) -> None:
        assert peer.socket is not None
        try:
            if events & selectors.EVENT_READ:
                self._read(peer, peer.socket.recv(65536))
            if events & selectors.EVENT_WRITE and peer.socket is not None:
                self._write(peer)
        except BlockingIOError:
            pass
        except OSError:
            self._close(peer)

    def _read(self, peer: Peer, data: bytes) -> None:
        if not data:
            self._close(peer)
            return
        status = data[9:12].decode(errors="replace") if data.startswith(b"HTTP/1.1") else "frames"
        self.counts[status] += 1
        if not peer.is_ready and not peer.is_closed_loop:
            peer.is_ready = True
        if peer.more and not peer.unsent:
            peer.unsent = peer.more
            self._selector.modify(peer.socket or -1, selectors.EVENT_READ | selectors.EVENT_WRITE, peer)

    def _write(self, peer: Peer) -> None:
        assert peer.socket is not None
        sent = peer.socket.send(peer.unsent) if peer.unsent else 0
        peer.unsent = peer.unsent[sent:]
        if peer.unsent:
            return
        if peer.more and peer.is_ready and not peer.is_closed_loop:
            peer.unsent = peer.more
            self.counts["sent"] += 16
        else:
            self._selector.modify(peer.socket, selectors.EVENT_READ, peer)

    def _close(self, peer: Peer) -> None:
        assert peer.socket is not None
        self._selector.unregister(peer.socket)
        peer.socket.close()
        peer.socket = None
        self.counts["closed"] += 1
        pause = 0.0 if peer.is_closed_loop else self._again_s
        self._closed.append((time.monotonic() + pause, peer))


def main() -> None:
    """Flood until standard input ends the plan's time."""
    port, seconds = int(sys.argv[1]), float(sys.argv[2])
    os.setpriority(os.PRIO_PROCESS, 0, 19)
    plan = msgspec.json.decode(sys.stdin.buffer.read(), type=Plan)
    flood = Flood(port, peers_of(plan), plan.again_s)
    flood.run(time.monotonic() + seconds)
    sys.stdout.buffer.write(msgspec.json.encode(flood.counts))


if __name__ == "__main__":
    main()
