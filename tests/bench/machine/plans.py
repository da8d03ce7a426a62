"""Say what a load generator is to do, with what it found.

A plan holds ready bytes, so that one generator can drive any server that talks over TCP.
"""

import json
from typing import Final, Literal

import msgspec

HOST: Final = "127.0.0.1"
#: Stands once in every event, whoever sends it; a watcher counts events by it.
MARK: Final = b'"crc":"'
#: Stands in a text in the place of the message's number.
NUMBER: Final = b"@0000000@"
#: About as long as a line of talk.
TEXT: Final = NUMBER.decode() + " the parser now keeps the order of its arguments, see the test beside it"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One run of load.

    `closed` keeps every connection busy (up to `size` messages, if there is one), `paced` sends at a rate,
    `lone` sends the next message when everybody has the last, `burst` sends `size` messages in one write,
    over and over, `watch` sends none: it ends when each watcher has `size` events.
    """

    kind: Literal["closed", "paced", "lone", "burst", "watch"]
    port: int
    #: The server, whose CPU time is taken from the first message to the last delivery.
    pid: int
    seconds: float
    post: bytes = b""
    connections: int = 1
    watchers: int = 0
    #: What a watcher says first, with the end of what it is answered.
    watch: bytes = b""
    greeted: bytes = b"\r\n\r\n"
    #: What a sender says first, where the protocol has a greeting.
    greet: bytes = b""
    #: Whether each message is answered; an answer ends with a brace.
    is_answered: bool = True
    #: Messages a second, for `paced`.
    rate: float = 0.0
    size: int = 0
    #: What a watcher says first that wants the past too; for `watch`, which then has one that never reads.
    watch_all: bytes = b""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of load has seen; times in seconds."""

    sent: int
    seconds: float
    cpu_s: float | None = None
    #: From the sending of a message to its answer (`closed`), else until the watchers have it.
    latencies: list[float] = []
    #: Events that the watcher with the fewest got.
    least: int = 0

    @property
    def rate(self) -> float:
        """Return the messages per second."""
        return self.sent / self.seconds

    @property
    def cpu_us(self) -> float:
        """Return the server's CPU time per message; not a number where the system does not say."""
        return float("nan") if self.cpu_s is None else self.cpu_s / self.sent * 1e6

    def latency_ms(self, share: float) -> float:
        """Return the latency that this share of the messages did not exceed."""
        return sorted(self.latencies)[int(share * (len(self.latencies) - 1))] * 1e3


def post_request(path: str, token: str, body: dict[str, object]) -> bytes:
    """Return the bytes of one POST."""
    data = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Auth-Token: {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def get_request(path: str, token: str) -> bytes:
    """Return the bytes of one GET."""
    return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Auth-Token: {token}\r\n\r\n".encode()


def watch_request(path: str, token: str) -> bytes:
    """Return the bytes that open a WebSocket."""
    head = (
        f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nX-Auth-Token: {token}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: Y3NwIGJlbmNoIHdhdGNoZQ==\r\n\r\n"
    )
    return head.encode()


def client_frame(payload: bytes) -> bytes:
    """Return a client's text frame; a mask of zeros leaves the payload as it is."""
    size = len(payload)
    head = bytes((0x81, 0x80 | size)) if size < 126 else bytes((0x81, 0xFE)) + size.to_bytes(2, "big")
    return head + bytes(4) + payload


def numbered(request: bytes, number: int) -> bytes:
    """Return a message with its own number in its text."""
    return request.replace(NUMBER, b"@%07d@" % number)
