"""One WebSocket to the gateway, from its handshake to its loss."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Never

from csp.client.background_tasks import until_first
from csp.client.http_calls import HttpCalls
from csp.client.inbox import Inbox
from csp.client.incoming_frames import NOT_WATCHED, CallAnswer, Live, read_error, read_frame
from csp.client.outbox import Outbox, to_frame
from csp.errors import BadInput, CspError, Unauthenticated, Unreachable
from csp.fast_start.fast_http import tls_context
from csp.protocol.codec import encode
from csp.protocol.enums import Struct
from csp.protocol.requests import WatchBody
from csp.protocol.responses import Deliver
from csp.protocol.screen_frames import LiveBody

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection
    from websockets.exceptions import ConnectionClosed

log = logging.getLogger(__name__)

OPEN_S: Final = 10.0
KEEPALIVE_S: Final = 20.0
CLOSE_S: Final = 1.0
#: The first line of a pruned journal contains a whole room; everything else is far smaller.
MAX_FRAME_BYTES: Final = 64 * 1024 * 1024
MAX_FRAMES_UNREAD: Final = 64
TOKEN_DIED: Final = 4001
#: The refs of our own requests; those of callers' requests are numbers.
_WATCH: Final = "watch"
_UNWATCH: Final = "unwatch"
_LIVE: Final = "live"
#: The HTTP statuses with which a gateway refuses the handshake.
_REFUSALS: Final = frozenset({401, 403, 429})


async def open_link(http: HttpCalls, after: int, patience_s: float = KEEPALIVE_S) -> "WebSocketLink":
    """Return a working link; raise Unreachable if there is none, or the gateway's error.

    A gateway is lost once it has been silent for twice `patience_s`.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

    blocked = f"cannot open a working WebSocket to {http.url}"
    is_tls = http.url.startswith("https")
    open_s = min(OPEN_S, patience_s)
    try:
        socket = await connect(
            f"ws{http.url.removeprefix('http')}/ws?after={after}",
            # Unlike X-Auth-Token, this header is not sent to another host after a redirect.
            additional_headers={"Authorization": f"Bearer {http.token}"},
            compression=None,
            proxy=None,
            ssl=tls_context(http.url) if is_tls else None,
            open_timeout=open_s,
            # A lost gateway does not close its end, and the loss is reported only after this time.
            close_timeout=min(CLOSE_S, patience_s / 4),
            ping_interval=min(KEEPALIVE_S, patience_s),
            ping_timeout=min(KEEPALIVE_S, patience_s),
            max_size=MAX_FRAME_BYTES,
            max_queue=MAX_FRAMES_UNREAD,
        )
    except InvalidStatus as exc:
        status, body = exc.response.status_code, bytes(exc.response.body or b"")
        if status in _REFUSALS:
            raise read_error(status, body, http.url) from exc
        raise Unreachable(blocked, "is there a proxy in between?") from exc
    except (WebSocketException, OSError) as exc:
        raise Unreachable(f"cannot open a WebSocket to {http.url}: {str(exc) or 'timed out'}") from exc

    async def pong() -> None:
        await (await socket.ping())

    try:
        async with asyncio.timeout(open_s):
            # Wait until the gateway has sent a frame or answered a ping.
            first: bytes | None = await until_first(socket.recv(decode=False), pong())
        return WebSocketLink(socket, first)
    except TimeoutError as exc:
        await _hang_up(socket)
        raise Unreachable(blocked, "is there a proxy in between?") from exc
    except ConnectionClosed as exc:
        raise _loss(exc) from exc
    except asyncio.CancelledError:
        socket.transport.abort()
        raise


async def _hang_up(socket: "ClientConnection") -> None:
    with contextlib.suppress(OSError):
        await socket.close()
    socket.transport.abort()


def _loss(exc: "ConnectionClosed") -> CspError:
    close = exc.rcvd
    if close is not None and close.code == TOKEN_DIED:
        return Unauthenticated(close.reason or "this token is no longer valid", "register again")
    if close is not None:
        return Unreachable(f"the gateway closed the connection: {close.reason or close.code}")
    return Unreachable("the connection to the gateway was lost")


class WebSocketLink:
    """An open WebSocket; `first` is a frame that has already been read from it.

    It is read continuously, because acknowledgements arrive in the same stream as events. If the consumer is
    slow, the gateway is asked to stop sending events instead, and later to resume after the last one queued.
    """

    def __init__(self, socket: "ClientConnection", first: bytes | None) -> None:
        self._socket = socket
        self._first = first
        self._is_paused = False
        self._overflow = asyncio.Event()
        self._watching: asyncio.Future[CallAnswer] | None = None
        self._is_watched = False

    async def run(self, inbox: Inbox, outbox: Outbox, screens: Iterable[str] = ()) -> None:
        """Send and receive; raise Unreachable or Unauthenticated when the link is lost.

        `screens` are the agents whose screens are watched.
        """
        from websockets.exceptions import ConnectionClosed

        async def send() -> Never:
            while True:
                pending = await outbox.next()
                await self._socket.send(to_frame(pending.name, pending.ref, pending.body), text=True)

        outbox.rewind()
        try:
            for agent in screens:
                await self._send_op(_WATCH, _LIVE, WatchBody(screen=agent))
            await until_first(self._receive(inbox, outbox), send(), self._make_room(inbox))
        except ConnectionClosed as exc:
            raise _loss(exc) from exc
        finally:
            if self._is_watched:
                inbox.add_live(NOT_WATCHED, 0)

    async def show(self, body: LiveBody) -> None:
        """Send a live frame; it is not repeated if the link is lost."""
        from websockets.exceptions import ConnectionClosed

        with contextlib.suppress(ConnectionClosed):
            await self._send_op(_LIVE, _LIVE, body)

    async def _send_op(self, name: str, ref: str, body: Struct) -> None:
        await self._socket.send(to_frame(name, ref, encode(body)), text=True)

    async def close(self) -> None:
        """Close the link."""
        await _hang_up(self._socket)

    async def _receive(self, inbox: Inbox, outbox: Outbox) -> Never:
        if self._first is not None:
            self._handle_frame(self._first, inbox, outbox)
        while True:
            self._handle_frame(await self._socket.recv(decode=False), inbox, outbox)

    def _handle_frame(self, data: bytes, inbox: Inbox, outbox: Outbox) -> None:
        try:
            item = read_frame(data)
        except BadInput as exc:
            log.warning("frame could not be decoded", extra={"problem": exc.message, "size": len(data)})
            return
        match item:
            case CallAnswer(ref=int(ref)):
                outbox.settle(ref, item)
            case CallAnswer():
                if item.ref == _WATCH and self._watching is not None and not self._watching.done():
                    # Everything before this response was sent before the gateway resumed.
                    self._is_paused = False
                    self._watching.set_result(item)
            case Deliver():
                inbox.add_delivery(item, len(data))
            case Live():
                self._is_watched = self._is_watched if item.watch is None else item.watch
                inbox.add_live(item, len(data))
            case _ if self._is_paused:
                pass
            case _ if inbox.is_full:
                self._is_paused = True
                self._overflow.set()
            case _:
                inbox.add_event(item, len(data))

    async def _make_room(self, inbox: Inbox) -> Never:
        while True:
            await self._overflow.wait()
            self._overflow.clear()
            await self._send_op(_UNWATCH, _UNWATCH, WatchBody())
            await inbox.drained()
            self._watching = asyncio.get_running_loop().create_future()
            await self._send_op(_WATCH, _WATCH, WatchBody(after=inbox.last_seq))
            error = (await self._watching).to_error()
            if error is not None:
                raise error
