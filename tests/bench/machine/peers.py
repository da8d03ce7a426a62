"""The connections of a load generator: bare sockets, so that little of what is measured is its own."""

import re
import selectors
import socket
import time
from collections.abc import Callable
from typing import Final

from csp.errors import Broken
from tests.bench.machine.plans import HOST, MARK, get_request, numbered

_READ_BYTES: Final = 1024 * 1024
_TIMEOUT_S: Final = 60.0
_NUMBER: Final = re.compile(rb"@(\d{7})@")
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_OVERLAP: Final = len(MARK) - 1
# All watchers read into one place, because a thousand buffers would not stay in the cache.
_BUFFER: Final = bytearray(_READ_BYTES + _OVERLAP)
_VIEW: Final = memoryview(_BUFFER)


def connect(port: int, greeting: bytes = b"", end: bytes = b"") -> tuple[socket.socket, bytes]:
    """Open a connection; return it with what came after the answer to the greeting."""
    peer = socket.create_connection((HOST, port), timeout=_TIMEOUT_S)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not greeting:
        return peer, b""
    peer.sendall(greeting)
    answer = b""
    while end not in answer:
        data = peer.recv(65536)
        if not data:
            raise Broken(f"the server hung up, saying {answer[:200]!r}")
        answer += data
    if answer.startswith(b"HTTP") and b" 101 " not in answer[:20]:
        raise Broken(f"expected a WebSocket, got {answer[:200]!r}")
    return peer, answer.partition(end)[2]


class Client:
    """One connection that asks questions, each after the answer to the last."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = connect(port)[0]
        self._token = token

    def get(self, path: str) -> bytes:
        """Return the body a path answers; Broken if it refuses."""
        self._socket.sendall(get_request(path, self._token))
        answer = b""
        while (whole := _whole_bytes(answer)) is None or len(answer) < whole:
            data = self._socket.recv(_READ_BYTES)
            if not data:
                raise Broken(f"the server hung up, saying {answer[:200]!r}")
            answer += data
        if b" 200 " not in answer[:20]:
            raise Broken(f"expected an answer from {path}, got {answer[:200]!r}")
        return answer.partition(b"\r\n\r\n")[2]

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _whole_bytes(answer: bytes) -> int | None:
    head, found, _ = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return len(head) + 4 + int(length[1]) if found and length else None


class Sender:
    """One connection that sends a message over and over."""

    __slots__ = ("answered", "is_busy", "latencies", "on_answer", "request", "sent_at", "socket", "write")

    def __init__(self, peer: socket.socket, request: bytes, on_answer: Callable[["Sender"], None]) -> None:
        self.socket = peer
        self.write: Callable[[bytes], object] = peer.sendall
        self.request = request
        self.on_answer = on_answer
        self.answered = 0
        self.is_busy = False
        self.sent_at = 0.0
        self.latencies: list[float] = []

    def send(self) -> None:
        """Send the message."""
        self._send(self.request)

    def send_numbered(self, number: int) -> float:
        """Send the message with a number in it; return when."""
        self._send(numbered(self.request, number))
        return self.sent_at

    def _send(self, data: bytes) -> None:
        self.is_busy = True
        self.sent_at = time.perf_counter()
        self.write(data)

    def read(self) -> None:
        """Take in an answer, or a piece of one."""
        self.take(self.socket.recv(65536))

    def take(self, data: bytes) -> None:
        """Look at what the server has said."""
        if not data or (data.startswith(b"HTTP") and data[9:11] != b"20"):
            raise Broken(f"a message was refused: {data[:300]!r}")
        # The head of an answer, should it come by itself, ends with an empty line.
        if data.endswith(b"}"):
            self.latencies.append(time.perf_counter() - self.sent_at)
            self.answered += 1
            self.is_busy = False
            self.on_answer(self)


class Watcher:
    """One connection that counts the events it gets."""

    __slots__ = ("_tail", "events", "socket")

    def __init__(self, peer: socket.socket, rest: bytes) -> None:
        self.socket = peer
        self.events = rest.count(MARK)
        self._tail = rest[-_OVERLAP:]

    def read(self) -> None:
        """Count the marks in what has come; one may be cut in two."""
        kept = len(self._tail)
        _BUFFER[:kept] = self._tail
        received = self.socket.recv_into(_VIEW[kept:])
        if received == 0:
            raise Broken("a watcher was disconnected")
        size = kept + received
        self.events += _BUFFER.count(MARK, 0, size)
        self._tail = bytes(_VIEW[max(0, size - _OVERLAP) : size])


class Listener:
    """One connection that notes when each numbered message comes."""

    __slots__ = ("_tail", "on_number", "socket")

    def __init__(self, peer: socket.socket, rest: bytes, on_number: Callable[[int, float], None]) -> None:
        self.socket = peer
        self.on_number = on_number
        self._tail = rest

    def read(self) -> None:
        """Report the numbers in what has come."""
        data = self.socket.recv(_READ_BYTES)
        now = time.perf_counter()
        if not data:
            raise Broken("a watcher was disconnected")
        data = self._tail + data
        end = 0
        for found in _NUMBER.finditer(data):
            end = found.end()
            self.on_number(int(found[1]), now)
        self._tail = data[max(end, len(data) - 8) :]


Peer = Sender | Watcher | Listener


def register(selector: selectors.BaseSelector, peer: Peer) -> None:
    """Have `serve` read for this connection."""
    # With a timeout Python asks the kernel before every read whether there is something.
    peer.socket.settimeout(None)
    selector.register(peer.socket, selectors.EVENT_READ, peer.read)


def serve(selector: selectors.BaseSelector, timeout_s: float) -> bool:
    """Let every connection that has something read it; tell whether any had."""
    ready = selector.select(timeout_s)
    for key, _ in ready:
        key.data()
    return bool(ready)
