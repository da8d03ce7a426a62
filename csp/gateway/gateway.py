"""One running room: the writer with everything that must hear what it commits."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec.structs import replace

from csp.config import Settings
from csp.errors import Broken, StorageFull, TooMany, Unauthenticated
from csp.gateway.agent_launcher import AgentLauncher
from csp.gateway.agent_throttle import Throttle
from csp.gateway.auth import PAGE_TOKEN, Caller, HostGuard, TokenStore
from csp.gateway.board_hits import hits_for_all
from csp.gateway.board_summaries import BoardSummaries
from csp.gateway.broadcast import Broadcast
from csp.gateway.connections import AGAIN_S
from csp.gateway.delivery_push import DeliveryPush, Pacer, Push
from csp.gateway.history_queries import HistoryQueries
from csp.gateway.metrics import Metrics
from csp.gateway.page_tokens import PageTokens
from csp.gateway.presence import Presence
from csp.gateway.remote_boards import RemoteBoards
from csp.gateway.room_rules_loader import load_rules
from csp.gateway.room_writer import Committed, RoomWriter
from csp.gateway.run_worker import RunWorker
from csp.gateway.screen_watch import ScreenWatch
from csp.journal import JsonlJournal, load_secret
from csp.journal.history import History
from csp.journal.search_index import SearchIndex
from csp.protocol.enums import AgentId, DeliveryState, Role
from csp.protocol.events import (
    AnyEvent,
    ControlSent,
    DeliveryMoved,
    Joined,
    KnownEvent,
    Left,
    LogRequested,
    MessageEvent,
    ModeChanged,
    StateChanged,
    TurnMoved,
    TurnSignal,
)
from csp.protocol.responses import JournalHealth
from csp.room.commands import AnyCommand, Leave, Rejoin, Tick
from csp.room.timers import next_deadline
from csp.room.visibility import is_visible_to
from csp.whiteboard.whiteboard import Whiteboard

log = logging.getLogger(__name__)

MAX_SOCKETS: Final = 4096
#: Of these an agent has one or two; each is sent everything.
MAX_SOCKETS_OF_AGENT: Final = 16
_MOVES_CLOCKS: Final = (TurnSignal, TurnMoved, ModeChanged)


class OpenSocket(Protocol):
    """What the gateway itself wants of an open WebSocket."""

    def drop(self, code: int, reason: str) -> None: ...
    def drop_if_stale(self) -> None: ...


class Gateway:
    """Everything a request may need; made by `Gateway.open`, ended by `close`."""

    def __init__(self, settings: Settings, folder: Path, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.folder = folder
        self.clock = clock
        self.started = clock()
        journal = JsonlJournal.open(folder)
        self.index = SearchIndex(journal)
        self.history = History(journal, self.index, settings.history_cap, self.concerns)
        self.history.load_recent()
        secret = load_secret(folder)
        self.tokens = TokenStore(secret, settings.auth_token)
        self.pages = PageTokens(folder, secret, self.tokens.room_token, clock)
        self.guard = HostGuard(settings.host)
        self.hub = Broadcast(self.concerns)
        self.throttle = Throttle(self._is_behind)
        # Texts of the board are for everybody; a token that somebody printed must not be among them.
        secrets = (self.tokens.room_token,)
        self.rules = replace(load_rules(settings), secrets=secrets)
        self.board = Whiteboard(journal, self.concerns, secrets)
        self.metrics = Metrics()
        self.presence = Presence(clock, settings.offline_after_s)
        self.writer = RoomWriter(
            folder,
            journal,
            durability=settings.durability,
            clock=clock,
            publish=self._publish,
            rules=self.rules,
        )
        self.scrub = JournalHealth(writable=True, scrub="running")
        self.last_commit = time.monotonic()
        self.sockets: set[OpenSocket] = set()
        #: Held by whoever takes text out of the journal: one rewrite at a time.
        self.removal = asyncio.Lock()
        self.queries = HistoryQueries(self.writer, self.history, settings.message_ttl_s)
        self.screens = ScreenWatch(self._tell_live)
        self.hands = RunWorker(self)
        self.summaries = BoardSummaries(self)
        self.remote = RemoteBoards(self)
        self.starting = AgentLauncher(settings.room)
        self._outboxes: dict[AgentId, set[DeliveryPush]] = {}
        self.pacer = Pacer()
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- commands --------------------------------------------------------------------------------

    def submit(self, command: AnyCommand) -> "asyncio.Future[list[KnownEvent]]":
        """Ask the room; what is returned is done once the events are safe."""
        return self.writer.submit(command)

    def identify(self, token: str) -> Caller:
        """Return who holds `token`, or raise Unauthenticated."""
        if token.startswith(PAGE_TOKEN):
            return self.pages.identify(token)
        return self.tokens.identify(token, self.writer.room)

    async def arrive(self, caller: Caller) -> None:
        """Note a sign of life; whoever was offline is back."""
        if caller.role is Role.ROOM:
            return
        self.presence.touch(caller.id)
        if not self.writer.room.participants[caller.id].online:
            # A full disk must not keep an agent from reading.
            with contextlib.suppress(StorageFull):
                await self.submit(Rejoin(agent=caller.id))

    def recheck(self, caller: Caller) -> None:
        """Raise Unauthenticated if the caller's token has died since the call came in."""
        if caller.page:
            self.pages.check(caller)
        participant = self.writer.room.participants.get(caller.id)
        if caller.role is not Role.ROOM and (participant is None or participant.epoch != caller.epoch):
            raise Unauthenticated("this token is no longer valid", "register again with the room's token")

    def concerns(self, event: AnyEvent, agent: AgentId) -> bool:
        """Tell whether `agent` may read `event` as the room is now."""
        return is_visible_to(event, agent, self.writer.room.sessions)

    @contextlib.contextmanager
    def present(self, caller: Caller) -> Iterator[None]:
        """Count the caller as connected while it waits for an answer."""
        if caller.role is Role.ROOM:
            yield
            return
        self.presence.connect(caller.id)
        try:
            yield
        finally:
            self.presence.disconnect(caller.id)

    # --- what a commit sets in motion ------------------------------------------------------------

    def _publish(self, committed: Committed) -> None:
        self.last_commit = time.monotonic()
        for event, line in committed:
            self.history.remember(line, event)
            if isinstance(event, Joined | Left):
                # Before anything goes out: an old owner must not get what belongs to the new one.
                self._drop_stale(event)
        self.hub.publish(committed)
        self.metrics.count(committed)
        self._push(*[event for event, _ in committed])
        self.hands.take(event for event, _ in committed)
        self.summaries.take(event for event, _ in committed)
        self.remote.take(event for event, _ in committed)
        if any(isinstance(event, _MOVES_CLOCKS) for event, _ in committed):
            self.set_alarm()

    def _push(self, *events: AnyEvent) -> None:
        """Push what has become due, once to each agent however many events a batch has for it."""
        pushed: dict[AgentId, Push] = {}
        is_alarmed = is_asked = False
        for event in events:
            match event:
                case MessageEvent():
                    for agent in event.recipients:
                        pushed.setdefault(agent, DeliveryPush.push)
                    is_alarmed |= event.expires is not None and self._alarm is None
                case ControlSent():
                    # Whatever else waits to be sent, a stop does not.
                    for outbox in self._outboxes_of(event.target):
                        outbox.push()
                    self.hub.wake(event.target)
                    is_alarmed = True
                case StateChanged(paused=False):
                    pushed[event.sender] = DeliveryPush.rewind
                case DeliveryMoved(state=DeliveryState.QUEUED):
                    pushed[event.agent] = DeliveryPush.rewind
                case LogRequested():
                    is_asked = True
                case _:
                    pass
        self.pacer.add(
            [(outbox, push) for agent, push in pushed.items() for outbox in self._outboxes_of(agent)]
        )
        for agent in pushed:
            self.hub.wake(agent)
        if is_alarmed:
            self.set_alarm()
        if is_asked:
            self.spawn(self.queries.answer())

    def _is_behind(self) -> bool:
        """Tell whether agents should wait until what they have said has been passed on."""
        return self.pacer.is_busy or self.hub.is_behind()

    def _drop_stale(self, event: Joined | Left) -> None:
        if isinstance(event, Left) and event.removed:
            self.presence.forget(event.sender)
            self.hub.wake(event.sender)
        self.drop_stale_sockets()

    def drop_stale_sockets(self) -> None:
        """Close the connections whose tokens have died."""
        for socket in list(self.sockets):
            socket.drop_if_stale()

    def _outboxes_of(self, agent: AgentId) -> list[DeliveryPush]:
        return list(self._outboxes.get(agent, ()))

    def check_sockets_of(self, agent: AgentId) -> None:
        """Raise TooMany if an agent has as many WebSockets as it may."""
        if len(self._outboxes.get(agent, ())) >= MAX_SOCKETS_OF_AGENT:
            hint = f"close some of them, or try again in {AGAIN_S:g} s"
            raise TooMany(f"{agent} has {MAX_SOCKETS_OF_AGENT} WebSockets", hint, after_s=AGAIN_S)

    def attach(self, agent: AgentId, outbox: DeliveryPush) -> None:
        """Push what is due for `agent` through `outbox` from now on."""
        self._outboxes.setdefault(agent, set()).add(outbox)
        outbox.tell(self.screens.greeting(agent))
        outbox.push()

    def detach(self, agent: AgentId, outbox: DeliveryPush) -> None:
        """Stop pushing through `outbox`."""
        outbox.close()
        self._outboxes.get(agent, set()).discard(outbox)

    def _tell_live(self, agent: AgentId, frame: bytes) -> int:
        outboxes = self._outboxes.get(agent, set())
        for outbox in outboxes:
            outbox.tell(frame)
        return len(outboxes)

    # --- the clock -------------------------------------------------------------------------------

    def set_alarm(self) -> None:
        """Wake up at the room's next deadline."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        deadline = next_deadline(self.writer.room, self.rules)
        if deadline is not None:
            delay = min(max(deadline - self.clock(), 0.01), 3600.0)
            self._alarm = asyncio.get_running_loop().call_later(delay, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self.spawn(self._tick())

    async def _tick(self) -> None:
        try:
            await self.submit(Tick(hits=await hits_for_all(self)))
        except Broken:
            await asyncio.sleep(1)
        self.set_alarm()

    async def watch_presence(self) -> None:
        """Tell the room who has gone silent, close pages whose time is over, for ever."""
        while True:
            await asyncio.sleep(max(0.02, min(5.0, self.settings.offline_after_s / 4)))
            await self.note_silence()
            self.drop_stale_sockets()

    async def note_silence(self) -> None:
        """Take those for offline who have given no sign of life for too long, as of now."""
        online = [p.id for p in self.writer.room.participants.values() if p.online]
        with contextlib.suppress(Broken):
            # All are decided before anything is awaited, so nobody can come back in between.
            leaving = [Leave(agent=agent, reason="no sign of life") for agent in self.presence.silent(online)]
            await asyncio.gather(*[self.submit(leave) for leave in leaving])

    # --- background work -------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside the requests; a failure is logged, `close` ends it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    async def close(self) -> None:
        """Stop the clock and all work, then bring everything accepted to disk."""
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # In a thread, because it waits for whoever indexes right now.
        await asyncio.to_thread(self.index.close)
        await asyncio.to_thread(self.board.close)
        await self.writer.close()
