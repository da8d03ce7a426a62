"""A connection to a NATS cluster that is replaced when it is lost.

The client's own reconnect is not used. It waits for the lost socket to close, which takes minutes if the link
was cut while something was unsent, and after some attempts it gives up.
"""

import asyncio
import contextlib
import json
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from csp.cluster.background import end_task
from csp.cluster.servers import NatsServers
from csp.errors import Broken, LogLost, Refused

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from csp.cluster.nats_client import SafeClient, SubjectListener

log = logging.getLogger(__name__)

#: Older servers let two writers append at the same place.
OLDEST: Final = (2, 11)
PING_S: Final = 0.3
DEAD_S: Final = 0.9
#: A timer that is late by more than this says that this process did not run.
STALL_S: Final = 0.25
CONNECT_S: Final = 2.0
PAUSE_S: Final = 0.1
#: After a loss thousands of rooms may want to read at once, and no request must time out because of that.
READS_AT_ONCE: Final = 64


class Message(Protocol):
    """A message, as its readers see it."""

    data: bytes


#: Called with each message, and with None after messages may have been missed.
OnMessage = Callable[["Msg | None"], None]


class Bus:
    """Requests and subscriptions that outlive a connection."""

    def __init__(self, servers: NatsServers) -> None:
        self._servers = servers
        self._client: SafeClient | None = None
        self._is_connected = asyncio.Event()
        self._readers: dict[str, dict[int, OnMessage]] = {}
        #: Those of the present connection.
        self._listeners: dict[str, SubjectListener] = {}
        self._numbers = iter(range(1 << 62))
        self._keeping: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self._connected_at = self._lost_at = 0.0
        #: Held by those that read from streams.
        self.reading = asyncio.Semaphore(READS_AT_ONCE)
        #: Whether at the last attempt every machine answered, and none of them ran a server.
        self.is_refused = False

    @classmethod
    async def open(cls, servers: NatsServers | Sequence[str]) -> Self:
        """Connect to one of the servers; raise LogLost if none answers, and Broken if they are too old."""
        bus = cls(servers if isinstance(servers, NatsServers) else NatsServers(tuple(servers)))
        await bus._connect_once()
        bus._keeping = asyncio.create_task(bus._keep())
        return bus

    @property
    def is_connected(self) -> bool:
        """Return whether there is a connection, as far as is known."""
        return self._is_connected.is_set()

    @property
    def connected_for_s(self) -> float:
        """The age of the present connection in seconds; 0 if there is none."""
        return time.monotonic() - self._connected_at if self.is_connected else 0.0

    @property
    def lost_for_s(self) -> float:
        """How long there has been no connection, in seconds; 0 if there is one."""
        return 0.0 if self.is_connected else time.monotonic() - self._lost_at

    @property
    def max_payload(self) -> int:
        """The size in bytes of the largest message that the servers accept."""
        return self._client.max_payload if self._client is not None else 0

    @property
    def server_version(self) -> str:
        """The version of the server, as far as is known."""
        found = self._client.connected_server_version if self._client is not None else None
        return "" if found is None else f"{found.major}.{found.minor}.{found.patch}"

    async def request(
        self, subject: str, data: bytes, headers: Mapping[str, str] | None = None, *, timeout_s: float
    ) -> "Msg":
        """Return the answer; after LogLost the request may have been carried out or not."""
        async with self._answering(timeout_s) as client:
            return await client.request(subject, data, timeout=timeout_s, headers=dict(headers or {}) or None)

    async def ask(self, subject: str, body: Mapping[str, object], *, timeout_s: float) -> dict[str, Any]:
        """Return the answer of JetStream's API."""
        answer = await self.request(f"$JS.API.{subject}", json.dumps(body).encode(), timeout_s=timeout_s)
        found: dict[str, Any] = json.loads(answer.data)
        return found

    async def publish_stored(
        self, subject: str, data: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> dict[str, Any]:
        """Publish a message to a stream; return its answer. After LogLost it may be stored or not."""
        answer = await self.request(subject, data, headers, timeout_s=timeout_s)
        try:
            found: dict[str, Any] = json.loads(answer.data)
        except ValueError as exc:
            raise LogLost("the NATS cluster did not answer") from exc
        return found

    async def request_many(self, subject: str, data: bytes, *, timeout_s: float) -> AsyncIterator["Msg"]:
        """Yield the answers, the last of which has a status."""
        async with self._answering(timeout_s) as client:
            inbox = client.new_inbox()
            answers = await client.subscribe(inbox)
            try:
                await client.publish(subject, data, reply=inbox)
                while True:
                    answer = await answers.next_msg(timeout_s)
                    yield answer
                    if "Status" in (answer.headers or {}):
                        return
            finally:
                with contextlib.suppress(Exception):
                    await answers.unsubscribe()

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send a message that may be lost; raise LogLost without a connection.

        If nobody listens to the subject, `reply` gets a message with the status 503.
        """
        client = self._client
        if client is None or not self.is_connected:
            raise LogLost("there is no connection to the NATS cluster")
        try:
            await client.publish(subject, data, reply=reply)
        except Exception as exc:
            raise LogLost(f"the NATS cluster does not answer: {str(exc) or type(exc).__name__}") from exc

    async def follow(self, subject: str, on_message: OnMessage) -> Callable[[], Awaitable[None]]:
        """Call `on_message` with every message from now on; return the function that ends it."""
        number = next(self._numbers)
        self._readers.setdefault(subject, {})[number] = on_message
        if self._client is not None and self.is_connected and subject not in self._listeners:
            with contextlib.suppress(Exception):
                # Without a connection the next one subscribes.
                await self._listen(self._client, subject)

        async def end() -> None:
            readers = self._readers.get(subject, {})
            readers.pop(number, None)
            if not readers:
                self._readers.pop(subject, None)
                listener = self._listeners.pop(subject, None)
                if listener is not None and self._client is not None:
                    with contextlib.suppress(Exception):
                        await self._client.ignore(listener)

        return end

    async def close(self) -> None:
        """Disconnect."""
        await end_task(self._keeping)
        self._is_connected.clear()
        client, self._client = self._client, None
        if client is not None:
            await _abandon(client)

    @contextlib.asynccontextmanager
    async def _answering(self, timeout_s: float) -> AsyncIterator["Client"]:
        try:
            async with asyncio.timeout(timeout_s):
                await self._is_connected.wait()
            assert self._client is not None
            yield self._client
        except Exception as exc:
            # The client has no common base for what may go wrong, and a lost socket shows as any OSError.
            raise LogLost(f"the NATS cluster does not answer: {str(exc) or type(exc).__name__}") from exc

    # --- the connection --------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Replace the connection whenever it is lost."""
        while True:
            client = self._client
            assert client is not None
            await self._until_lost(client)
            log.warning("connection to NATS lost")
            self._lost_at, self.is_refused = time.monotonic(), False
            self._is_connected.clear()
            await _abandon(client)
            while True:
                try:
                    await self._connect_once()
                    break
                except Broken as error:
                    log.info("NATS not reached", extra={"problem": error.message})
                    await asyncio.sleep(PAUSE_S)
            for readers in self._readers.values():
                for on_message in list(readers.values()):
                    on_message(None)

    async def _until_lost(self, client: "Client") -> None:
        while not client.is_closed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_S):
                    await self._lost.wait()
                return
            if not await _answers_ping(client):
                return

    async def _connect_once(self) -> None:
        new_client = _client_class()
        problems: list[str] = []
        refused = 0
        urls = self._servers.urls
        for server in random.sample(urls, len(urls)):
            client, lost, connected = new_client(), asyncio.Event(), asyncio.Event()

            async def on_closed(lost: asyncio.Event = lost) -> None:
                lost.set()

            async def on_error(error: Exception, connected: asyncio.Event = connected) -> None:
                # Otherwise the client waits for two seconds and tries again, without end.
                if not connected.is_set():
                    raise error
                log.debug("NATS client", extra={"problem": str(error)})

            try:
                async with asyncio.timeout(CONNECT_S):
                    await client.connect(
                        servers=[server],
                        allow_reconnect=False,
                        connect_timeout=2,
                        closed_cb=on_closed,
                        disconnected_cb=on_closed,
                        error_cb=on_error,
                        ping_interval=3600,
                        **self._servers.connect_options(server),
                    )
                    connected.set()
                    _check_version(client)
                    self._listeners.clear()
                    # Readers may come meanwhile.
                    while missing := [one for one in self._readers if one not in self._listeners]:
                        for subject in missing:
                            await self._listen(client, subject)
            except (Broken, asyncio.CancelledError):
                await _abandon(client)
                raise
            except Exception as exc:
                problems.append(f"{server}: {str(exc) or type(exc).__name__}")
                refused += isinstance(exc, ConnectionRefusedError)
                await _abandon(client)
                continue
            self._client, self._lost = client, lost
            self._connected_at = time.monotonic()
            self._is_connected.set()
            return
        self.is_refused = refused == len(urls)
        raise LogLost(f"no NATS server can be reached ({'; '.join(problems)})", "are they running?")

    async def _listen(self, client: "SafeClient", subject: str) -> None:
        def on_message(message: "Msg") -> None:
            for reader in list(self._readers.get(subject, {}).values()):
                reader(message)

        self._listeners[subject] = await client.listen(subject, on_message)


def _client_class() -> "type[SafeClient]":
    try:
        from csp.cluster.nats_client import SafeClient
    except ModuleNotFoundError as exc:
        hint = "install the extra nats, for example: pip install 'csp-groupchat[nats]'"
        raise Refused("the package nats-py is not installed", hint) from exc
    return SafeClient


def _check_version(client: "Client") -> None:
    version = client.connected_server_version
    if (version.major, version.minor) < OLDEST:
        found, oldest = f"{version.major}.{version.minor}.{version.patch}", ".".join(map(str, OLDEST))
        hint = "older servers may accept two writers at the same place of a log"
        raise Broken(f"the NATS server is version {found}, expected {oldest} or newer", hint)


async def _answers_ping(client: "Client") -> bool:
    """Return whether the server answers; a process that was held up itself reads what has come meanwhile."""
    asked_at = time.monotonic()
    # Not cancelled in time: the client would take an answer to a cancelled ping for an error.
    ping = asyncio.ensure_future(client.flush(timeout=int(CONNECT_S) * 10))
    try:
        done, _ = await asyncio.wait([ping], timeout=DEAD_S)
        if not done and time.monotonic() - asked_at > DEAD_S + STALL_S:
            done, _ = await asyncio.wait([ping], timeout=DEAD_S)
        return bool(done) and ping.exception() is None
    finally:
        ping.cancel()


async def _abandon(client: "Client") -> None:
    """Close a connection without waiting for its peer, which may never answer."""
    writer = getattr(getattr(client, "_transport", None), "_io_writer", None)
    if writer is not None:
        writer.transport.abort()
    with contextlib.suppress(Exception):
        async with asyncio.timeout(1):
            await client.close()
