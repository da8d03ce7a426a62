"""The parts that all rooms of a process share in a cluster, and the parts of one room."""

import hmac
import logging
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from csp.cluster.bus import Bus
from csp.cluster.calls import Calls
from csp.cluster.names import shard_of
from csp.cluster.page_store import PageStore
from csp.cluster.peers import Peers
from csp.cluster.rounds import Rounds
from csp.cluster.seat import Seat
from csp.cluster.servers import NatsServers
from csp.cluster.setup import REPLICAS, open_stream
from csp.cluster.starting import START_S, wait_or_raise
from csp.cluster.stream_log import StreamLog
from csp.errors import BadInput, LogLost

log = logging.getLogger(__name__)

_SHORT_SECRET: Final = 16


class Node:
    """A process of the cluster: its connection, the other processes, and the secret."""

    def __init__(self, bus: Bus, secret: bytes) -> None:
        self.bus = bus
        self.peers = Peers(bus)
        self.rounds = Rounds(bus, self.peers)
        self._secret = secret
        #: The streams that this process has found or created.
        self._streams: set[int] = set()

    @classmethod
    async def open(
        cls, servers: NatsServers | Sequence[str], secret: bytes, url: str = "", room: str = ""
    ) -> Self:
        """Connect to the cluster; raise LogLost if it does not answer, and Broken if it is too old.

        `url` is that at which browsers reach this process, and `room` the only one that it serves.
        """
        deadline = time.monotonic() + START_S
        while True:
            try:
                node = cls(await Bus.open(servers), secret)
                break
            except LogLost as error:
                await wait_or_raise(error, deadline)
        node.peers.url, node.peers.room = url, room
        await node.peers.open()
        await node.rounds.open()
        return node

    async def room(self, name: str) -> "ClusterRoom":
        """Return what a room needs; create its stream if there is none."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                room = ClusterRoom(self, name)
                if shard_of(name) not in self._streams:
                    await open_stream(self.bus, shard_of(name), REPLICAS, or_one=True)
                    await room.pages.open(REPLICAS)
                    self._streams.add(shard_of(name))
                return room
            except LogLost as error:
                await wait_or_raise(error, deadline)

    def key_of(self, room: str) -> bytes:
        """Return the key from which the tokens of a room are derived."""
        return room_key(self._secret, room)

    async def close(self) -> None:
        """Say that this process ends, and disconnect."""
        await self.rounds.close()
        await self.peers.close()
        await self.bus.close()


def room_key(secret: bytes, room: str) -> bytes:
    """Return the key from which the tokens of a room are derived, given the secret of the cluster."""
    return hmac.new(secret, room.encode(), sha256).digest()


class ClusterRoom:
    """The log of a room, the calls for it, and the seat of this process in it."""

    def __init__(self, node: Node, name: str) -> None:
        self.node = node
        self.name = name
        self.process = node.peers.me
        self.key = node.key_of(name)
        self.log = StreamLog(node.bus, name)
        self.pages = PageStore(node.bus, name)
        self.calls = Calls(node.bus, self.process, name)
        self.seat = Seat(self.log, node.bus, node.peers, node.rounds, self.calls, name)


def read_secret(path: Path | None) -> bytes:
    """Return the secret of a cluster from its file."""
    if path is None:
        hint = "give all of them the same file: --secret-file FILE or CSP_SECRET_FILE"
        raise BadInput("the gateways of a cluster need a common secret", hint)
    try:
        secret = path.read_bytes().strip()
    except OSError as exc:
        raise BadInput(f"cannot read {str(path)!r}: {(exc.strerror or '').lower()}") from exc
    if not secret:
        hint = f"make one: head -c 32 /dev/urandom | base64 > {path}"
        raise BadInput(f"the secret file {str(path)!r} is empty", hint)
    if len(secret) < _SHORT_SECRET:
        log.warning("secret is short", extra={"path": str(path), "bytes": len(secret)})
    return secret
