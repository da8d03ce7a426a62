"""The client of a room: it sends operations and receives events, deliveries and live frames."""

import asyncio
import contextlib
import logging
import re
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from csp.client.connection import Connection, OnStatus, Status
from csp.client.http_calls import HttpCalls
from csp.client.inbox import Inbox
from csp.client.incoming_frames import CallAnswer, Item
from csp.client.outbox import Outbox
from csp.errors import BadInput, Broken, CspError, Refused, Unreachable
from csp.fast_start.fast_http import split_urls
from csp.protocol import enums, requests
from csp.protocol.codec import check_text, encode
from csp.protocol.enums import PENDING, AgentId, MessageId, Struct
from csp.protocol.requests import AgentNotice, Dialog, Handoff, Usage
from csp.protocol.responses import RegisteredView
from csp.protocol.screen_frames import LiveBody, ScreenView

log = logging.getLogger(__name__)

CLOSE_S: Final = 5.0
_AGENT_TOKEN: Final = re.compile(r"(?P<agent>[a-z0-9-]{1,32})\.\d+\.[0-9a-f]{40}\Z")


class Registered(NamedTuple):
    agent: AgentId
    token: str
    seq: int


class Sent(Struct, frozen=True, kw_only=True):
    """A message that the room has accepted."""

    id: MessageId
    seq: int
    recipients: tuple[AgentId, ...]
    #: Whether the message arrived after its turn had ended.
    late: bool = False
    #: Whether the room posted the message; output that stays in its pane is not posted.
    posted: bool = True


class Client:
    """A client that acts as the owner of the token, for use in `async with`.

    An operation returns once the room has accepted it, or raises the room's error. When a connection is
    lost, operations without a response are sent again, in order and with the same id, and the room executes
    each of them once. Each event arrives once and in order, over any number of connections; `after` is the
    last event that the caller has, and None means from now on. Each delivery arrives once per process.

    `url` is the room's gateway, or several of them separated by commas: the client uses one, and moves to the
    next one within three seconds if that one is lost or frozen.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        after: int | None = None,
        on_status: OnStatus | None = None,
        give_up_s: float | None = None,
    ) -> None:
        self._http = HttpCalls(_checked(url), token)
        #: The agent of the token; None for the room's token.
        self.agent = owner_of(token)
        self._inbox = Inbox(after, self.agent)
        self._outbox = Outbox()
        self._connection = Connection(self._http, self._inbox, self._outbox, self._on_change, give_up_s)
        self._on_status = on_status
        self._first: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @staticmethod
    async def register(
        url: str,
        token: str,
        name: str,
        *,
        kind: enums.ParticipantKind = enums.ParticipantKind.CLI,
        role: enums.JoinRole = enums.JoinRole.AGENT,
        capabilities: enums.Capabilities | None = None,
    ) -> Registered:
        """Join with the room's token, or rejoin with the agent's own."""
        body = requests.RegisterBody(agent_id=name, kind=kind, role=role, capabilities=capabilities)
        view = await HttpCalls(_checked(url), token).post(RegisteredView, "/register", encode(body))
        return Registered(agent=AgentId(view.agent_id), token=view.token, seq=view.seq)

    @property
    def seq(self) -> int | None:
        """The seq of the last event returned, to pass as `after` to a client that continues from here."""
        return self._inbox.handed_seq

    @property
    def status(self) -> Status:
        """The current state of the connection."""
        return self._connection.status

    # --- from start to end -----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self._first = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._connection.run())
        self._task.add_done_callback(self._on_end)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def connected(self) -> None:
        """Wait for the first connection; raise the error if there can be none."""
        if self._first is None:
            raise _not_started()
        await asyncio.shield(self._first)

    async def close(self, *, leave: bool = False, timeout_s: float = CLOSE_S) -> None:
        """Close once every operation has been answered, or after `timeout_s`; `leave` also leaves the room.

        Operations without a response then raise Unreachable.
        """
        closed = Refused("the client is closed")
        deadline = asyncio.get_running_loop().time() + timeout_s
        if self._task is not None and not self._task.done():
            try:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._outbox.flushed(), timeout_s)
            finally:
                self._task.cancel()
            await asyncio.wait([self._task])
            if leave:
                # Over a separate connection, because any call over the old one would count as a return.
                body = encode(requests.StateBody(state=enums.ReportedAgentState.OFFLINE))
                with contextlib.suppress(TimeoutError, CspError):
                    async with asyncio.timeout_at(deadline):
                        await self._http.post(CallAnswer, "/state", body)
        self._outbox.close(closed, Unreachable("the client was closed before the gateway answered"))
        self._inbox.close()
        self._give_up_first(closed)

    # --- operations ------------------------------------------------------------------------------

    async def send(
        self,
        to: str,
        text: str,
        *,
        thread: str | None = None,
        reply_to: str | None = None,
        urgent: bool = False,
        id: str | None = None,
    ) -> Sent:
        """Send a message to one participant or to all."""
        check_text(text)
        body = requests.MessageBody(
            to=to, content=text, thread=thread, reply_to=reply_to, urgent=urgent, id=id or uuid4().hex
        )
        return msgspec.convert(await self._ask("message", body), Sent, from_attributes=True)

    async def output(
        self,
        text: str,
        *,
        turn: str | None = None,
        reply_to: str | None = None,
        handoff: Handoff | None = None,
        final: bool = False,
        usage: Usage | None = None,
        thread: str | None = None,
        id: str | None = None,
        activity: bool = False,
        local: bool = False,
        ending: enums.Ending = enums.Ending.DONE,
        reason: str = "",
    ) -> Sent:
        """Post this participant's output; with `reply_to`, it goes to that message's sender.

        `activity` is not the answer yet. `local` answers text that a person typed in the pane; it is posted
        only if the pane is shared. An `ending` other than done shows how the turn failed, and `reason` why.
        """
        check_text(text)
        body = requests.OutputBody(
            content=text,
            turn=turn,
            reply_to=reply_to,
            handoff=handoff,
            final=final,
            usage=usage,
            thread=thread,
            id=id or uuid4().hex,
            activity=activity,
            local=local,
            ending=ending,
            reason=reason,
        )
        sent = msgspec.convert(await self._ask("output", body), Sent, from_attributes=True)
        if reply_to is not None:
            self._inbox.end(reply_to)
        return sent

    async def report(
        self, id: str, state: enums.ReportedState, reason: str = "", *, agent: str | None = None
    ) -> None:
        """Report the state of a delivery; with the room's token, `agent` names its recipient."""
        body = requests.DeliveryBody(id=id, state=state, reason=reason, agent=agent)
        await self._ask("delivery", body, subject=f"{agent or ''}:{id}")
        self._forget(id, state)

    async def control_done(
        self, id: str, state: enums.ReportedState = enums.ReportedState.CONFIRMED, reason: str = ""
    ) -> None:
        """Report the result of a control."""
        body = requests.DeliveryBody(id=id, state=state, reason=reason)
        await self._ask("control_done", body, subject=f":{id}")
        self._forget(id, state)

    async def state(
        self,
        state: enums.ReportedAgentState,
        detail: str = "",
        until: float | None = None,
        dialog: Dialog | None = None,
        notice: AgentNotice | None = None,
        *,
        asks: str = "",
        work: str = "",
    ) -> None:
        """Report the state of this participant, its dialog of kind `asks`, and details for people."""
        body = requests.StateBody(
            state=state, detail=detail, until=until, dialog=dialog, notice=notice, asks=asks, work=work
        )
        await self._ask("state", body)

    async def working(self, note: str = "", *, turn: str | None = None, usage: Usage | None = None) -> bool:
        """Ask for more time; return whether a deadline was extended."""
        return (await self._ask("working", requests.WorkingBody(note=note, turn=turn, usage=usage))).extended

    # --- screens ---------------------------------------------------------------------------------

    async def watch_screen(self, agent: str) -> None:
        """Receive the screens of `agent` as Live items, even after a reconnect."""
        self._connection.screens[agent] = None
        try:
            await self._ask("watch", requests.WatchBody(screen=agent))
        except CspError:
            self._connection.screens.pop(agent, None)
            raise

    async def unwatch_screen(self, agent: str) -> None:
        """Stop watching the screen of `agent`."""
        self._connection.screens.pop(agent, None)
        await self._ask("unwatch", requests.WatchBody(screen=agent))

    async def show(self, screen: ScreenView | None = None, text: str | None = None) -> bool:
        """Show watchers this participant's screen or the text that is being written.

        The frame may be dropped. Return False if it was dropped because there is no connection.
        """
        return await self._connection.show(LiveBody(screen=screen, text=text))

    async def _ask(self, name: str, body: Struct, subject: str = "") -> CallAnswer:
        if self._task is None:
            raise _not_started()
        return await self._outbox.ask(name, body, subject)

    def _forget(self, id: str, state: enums.ReportedState) -> None:
        if enums.DeliveryState(state) not in PENDING:
            self._inbox.end(id)

    # --- incoming items --------------------------------------------------------------------------

    def __aiter__(self) -> Self:
        """Yield events, deliveries and live frames to a single consumer until the client is closed."""
        return self

    async def __anext__(self) -> Item:
        item = await self._inbox.get()
        if item is None:
            raise StopAsyncIteration
        return item

    # --- the connection --------------------------------------------------------------------------

    def _on_change(self, status: Status) -> None:
        if status.is_connected and self._first is not None and not self._first.done():
            self._first.set_result(None)
        if self._on_status is not None:
            self._on_status(status)

    def _on_end(self, task: "asyncio.Task[None]") -> None:
        """Pass the error that ended the connection to all waiting calls."""
        if task.cancelled():
            return
        error = task.exception()
        if not isinstance(error, CspError):
            log.error("client failed", exc_info=error)
            error = Broken(f"the client failed: {error!r}")
        self._outbox.close(error)
        self._inbox.close(error)
        self._give_up_first(error)

    def _give_up_first(self, error: CspError) -> None:
        if self._first is not None and not self._first.done():
            self._first.set_exception(error)
            # Mark the exception as retrieved; a waiting caller still gets it.
            self._first.exception()


def _not_started() -> Refused:
    return Refused("the client has not been started", "use: async with Client(...) as client")


def _checked(url: str) -> str:
    for one in split_urls(url) or [url]:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"gateway URL: expected http://host:port, got {one!r}")
    return url


def owner_of(token: str) -> AgentId | None:
    """Return the agent named in a token's prefix; None for the room's token."""
    match = _AGENT_TOKEN.match(token)
    return AgentId(match["agent"]) if match else None
