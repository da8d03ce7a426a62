"""A running room: the writer and the work that follows each commit."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from csp.cluster.node import ClusterRoom
from csp.config import Settings
from csp.errors import Broken, LogLost, NotFound, StorageFull, TooMany, Unauthenticated
from csp.gateway.agent_launcher import AgentLauncher
from csp.gateway.agent_throttle import Throttle
from csp.gateway.auth import PAGE_TOKEN, Caller, HostGuard, TokenStore
from csp.gateway.board_workers import BoardHits, BoardSummaries
from csp.gateway.broadcast import Broadcast, DeliveryPush, Pacer, Push
from csp.gateway.connections import AGAIN_S
from csp.gateway.early_interrupt import EarlyStop
from csp.gateway.metrics import Metrics
from csp.gateway.page_tokens import PageTokens
from csp.gateway.presence import Presence, PresenceSharing
from csp.gateway.remote_boards import RemoteBoards
from csp.gateway.replica_removal import ReplicaRemovals
from csp.gateway.replicated_writer import ReplicatedWriter
from csp.gateway.room_writer import Committed, RoomWriter
from csp.gateway.rules_from_settings import load_rules
from csp.gateway.run_worker import RunWorker
from csp.gateway.screen_watch import ScreenWatch
from csp.gateway.shared_screens import SharedScreens
from csp.journal import DiskThread, JsonlJournal, LocalLog, load_secret, rewrite
from csp.journal.history import History
from csp.journal.history_query import HistoryQuery
from csp.journal.search_index import SearchIndex
from csp.protocol import events
from csp.protocol.enums import AgentId, DeliveryState, Role
from csp.protocol.responses import JournalHealth
from csp.room.commands import AnswerQuery, AnyCommand, Leave, Rejoin, RoomRules, Tick
from csp.room.orchestrator import log_text
from csp.room.sessions.steering import next_deadline
from csp.room.visibility import is_visible_to
from csp.whiteboard.whiteboard import Whiteboard

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_SOCKETS: Final = 4096
#: An agent needs one or two sockets; every event is sent to each of them.
MAX_SOCKETS_OF_AGENT: Final = 16
#: A gateway without the log of its room for longer tells clients to use another one.
LOST_S: Final = 2.0
PAGES_S: Final = 0.2
#: Events that may change the next deadline of the room.
_MOVES_DEADLINES: Final = (events.ControlSent, events.TurnSignal, events.TurnMoved, events.ModeChanged)


class OpenSocket(Protocol):
    """The part of an open WebSocket's interface that the gateway itself uses."""

    def drop(self, code: int, reason: str) -> None: ...
    def drop_if_stale(self) -> None: ...


class SharedParts(NamedTuple):
    """The parts that a process with many rooms opens for one of them, or shares among them."""

    #: Opened in a thread, because that syncs files.
    journal: JsonlJournal
    rules: RoomRules
    disk: DiskThread


class Gateway:
    """The parts of one room that request handlers use; `close` ends it."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        clock: Callable[[], float],
        cluster: ClusterRoom | None = None,
        shared: "SharedParts | None" = None,
    ) -> None:
        self.cluster = cluster
        self.settings = settings
        self.folder = folder
        self.clock = clock
        self.started = clock()
        journal = shared.journal if shared is not None else JsonlJournal.open(folder)
        self.index = SearchIndex(journal)
        self.history = History(journal, self.index, settings.history_cap, self.is_visible)
        self.history.load_recent()
        secret = load_secret(folder) if cluster is None else cluster.key
        self.tokens = TokenStore(secret, settings.auth_token)
        pages = None if cluster is None else cluster.pages
        self.page_tokens = PageTokens(folder, secret, self.tokens.room_token, clock, pages)
        self.host_guard = HostGuard(
            settings.host,
            settings.public_name,
            settings.public_url,
            tuple if cluster is None else cluster.node.peers.urls,
        )
        self.broadcast = Broadcast(self.is_visible)
        self.pacer = Pacer()
        # Agents wait until their earlier messages have been forwarded.
        self.throttle = Throttle(lambda: self.pacer.is_busy or self.broadcast.is_behind())
        # All participants can read the boards, so a token that an agent printed must not be stored there.
        secrets = (self.tokens.room_token,)
        rules = shared.rules if shared is not None else load_rules(settings)
        self.rules = replace(rules, secrets=secrets)
        self.board = Whiteboard(journal, self.is_visible, secrets)
        self.metrics = Metrics()
        self.presence = Presence(clock, settings.offline_after_s)
        self.writer = self._open_writer(journal, DiskThread() if shared is None else shared.disk)
        self.journal_health = JournalHealth(writable=True, scrub="running")
        self.last_commit = time.monotonic()
        self._pages_read_at = 0.0
        #: Whether review runs may work with the files of this machine.
        self.hosts_runs = cluster is None
        #: Whether the room's log has been out of reach for too long.
        self.has_lost_log = False
        self.sockets: set[OpenSocket] = set()
        #: Held while text is removed from the journal, so that only one rewrite runs at a time.
        self.rewrite_lock = asyncio.Lock()
        self.removals = None if cluster is None else ReplicaRemovals(self, cluster, folder)
        self.screen_watch = ScreenWatch(self._send_live)
        self.board_hits = BoardHits(self.writer, self.board, self.rules)
        self.run_worker = RunWorker(folder, self.writer, self.history, secrets, self.spawn)
        self.board_summaries = BoardSummaries(
            self.writer, self.board, self.rules, settings.message_ttl_s, clock
        )
        self.remote_boards = RemoteBoards(settings, self.writer, self.board)
        self.agent_launcher = AgentLauncher(settings.room)
        self._pushes: dict[AgentId, set[DeliveryPush]] = {}
        self._early_stop: EarlyStop | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def _open_writer(self, journal: JsonlJournal, disk: DiskThread) -> RoomWriter:
        cluster, settings = self.cluster, self.settings
        if cluster is None:
            commit_log = LocalLog(journal, disk, is_synced=settings.durability == "fsync")
            return RoomWriter(
                journal, commit_log, disk, settings.durability, self.clock, self._publish, self.rules
            )
        writer = ReplicatedWriter(journal, cluster, disk, self.clock, self._publish, self.rules)
        writer.on_lead = self._begin_to_lead
        writer.on_restart = self.history.load_recent
        return writer

    async def join_cluster(self) -> None:
        """Bring the replica of a room in a cluster up to date, and follow it from now on."""
        if self.cluster is not None:
            assert isinstance(self.writer, ReplicatedWriter)
            self.cluster.seat.on_failure = self.writer.fail
            await self.cluster.seat.open(self.writer, self.writer.start)
            self._early_stop = EarlyStop(self.cluster, self._send_live)
            self.writer.on_stop = self._early_stop.send_unless
            await self._early_stop.open()
            await self.cluster.pages.follow(self._note_page)
            await self.cluster.pages.read(self.page_tokens.record)
            self.spawn(PresenceSharing(self.presence, self.cluster).work())
            self.spawn(SharedScreens(self.screen_watch, self.presence, self.cluster).work())
            assert self.removals is not None
            await self.removals.start()
            self.spawn(self.removals.work())

    def _note_page(self, page: str, expires: float) -> None:
        """Note the login or the logout of a page at another gateway."""
        self.page_tokens.record(page, expires)
        self.drop_stale_sockets()
        self.broadcast.wake(None)

    def check_log(self) -> None:
        """Notice that the log is out of reach, and send the clients of this gateway to another one."""
        assert self.cluster is not None
        bus = self.cluster.node.bus
        had_lost, self.has_lost_log = self.has_lost_log, bus.lost_for_s > LOST_S
        # If the machine of the servers refuses connections, no server runs, for other gateways either.
        if self.has_lost_log and not had_lost and not bus.is_refused:
            log.warning("the log is out of reach", extra={"room": self.settings.room})
            for socket in list(self.sockets):
                socket.drop(1013, "this gateway cannot reach the room's log; use another one")

    async def watch_log(self) -> None:
        """Check the log from time to time, until cancelled."""
        while True:
            await asyncio.sleep(LOST_S / 8)
            self.check_log()

    def _begin_to_lead(self) -> None:
        """Do what only the owner of a room does, and what the last owner may have left undone."""
        self.set_alarm()
        self.spawn(self.answer_queries())
        self.board_summaries.look()
        if self.removals is not None:
            self.removals.look()

    # --- commands --------------------------------------------------------------------------------

    def submit(self, command: AnyCommand) -> "asyncio.Future[list[events.KnownEvent]]":
        """Submit a command to the room; the future's result is set once the events are on disk."""
        return self.writer.submit(command)

    def identify(self, token: str) -> Caller:
        """Return the holder of `token`, or raise Unauthenticated."""
        if token.startswith(PAGE_TOKEN):
            return self.page_tokens.identify(token)
        return self.tokens.identify(token, self.writer.room)

    async def identify_at_latest(self, token: str) -> Caller:
        """Like `identify`; another gateway may have given the token out just now."""
        try:
            return self.identify(token)
        except Unauthenticated:
            if self.cluster is None:
                raise
            if token.startswith(PAGE_TOKEN):
                await self._read_pages(self.cluster)
            elif self.tokens.is_signed(token):
                await self.writer.catch_up()
            return self.identify(token)

    async def _read_pages(self, cluster: ClusterRoom) -> None:
        """Look for new logins, but not more often than a stranger with wrong tokens should cause."""
        if time.monotonic() - self._pages_read_at > PAGES_S:
            self._pages_read_at = time.monotonic()
            with contextlib.suppress(LogLost):
                await cluster.pages.read(self.page_tokens.record)

    async def at_latest(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work that reads the room; if it does not find something, do it again with the latest room."""
        if self.writer.is_leading:
            return await work()
        seq = self.writer.room.seq
        try:
            return await work()
        except NotFound:
            await self.writer.catch_up()
            if self.writer.room.seq == seq:
                raise
            return await work()

    async def arrive(self, caller: Caller) -> None:
        """Record that the caller is alive, and mark it online again if it was offline."""
        if caller.role is Role.ROOM:
            return
        self.presence.touch(caller.id)
        if not self.writer.room.participants[caller.id].online:
            # A full disk must not keep an agent from reading.
            with contextlib.suppress(StorageFull):
                await self.submit(Rejoin(agent=caller.id))

    def recheck(self, caller: Caller) -> None:
        """Raise Unauthenticated if the caller's token was revoked after the call arrived."""
        if caller.page:
            self.page_tokens.check(caller)
        participant = self.writer.room.participants.get(caller.id)
        if caller.role is not Role.ROOM and (participant is None or participant.epoch != caller.epoch):
            raise Unauthenticated("this token is no longer valid", "register again with the room's token")

    def is_visible(self, event: events.AnyEvent, agent: AgentId) -> bool:
        """Return whether `agent` may read `event` in the current state of the room."""
        return is_visible_to(event, agent, self.writer.room.sessions)

    @contextlib.contextmanager
    def connected(self, caller: Caller) -> Iterator[None]:
        """Count the caller as connected while it waits for a response."""
        if caller.role is Role.ROOM:
            yield
            return
        self.presence.connect(caller.id)
        try:
            yield
        finally:
            self.presence.disconnect(caller.id)

    # --- after a commit --------------------------------------------------------------------------

    def _publish(self, committed: Committed) -> None:
        self.last_commit = time.monotonic()
        for event, line in committed:
            self.history.remember(line, event)
            if isinstance(event, events.Joined | events.Left):
                # Before anything is sent: a name's old owner must not receive messages for the new one.
                if isinstance(event, events.Left) and event.removed:
                    self.presence.forget(event.sender)
                    self.broadcast.wake(event.sender)
                self.drop_stale_sockets()
        news = [event for event, _ in committed]
        self.broadcast.publish(committed)
        self.metrics.count(committed)
        self._push(*news)
        if any(isinstance(event, events.LogRequested) for event in news):
            self.spawn(self.answer_queries())
        self.run_worker.observe(news)
        self.board_summaries.observe(news)
        self.remote_boards.observe(news)
        if self.removals is not None:
            self.removals.observe(news)

    def _push(self, *news: events.AnyEvent) -> None:
        """Push new deliveries, once per agent, and set the alarm for new deadlines."""
        #: The agents with new deliveries, and whether to push only these or everything due again.
        due: dict[AgentId, Push] = {}
        for event in news:
            match event:
                case events.ControlSent():
                    # A stop is sent before anything else in the queue.
                    for outbox in self._pushes_of(event.target):
                        outbox.push()
                    self.broadcast.wake(event.target)
                case events.MessageEvent():
                    for agent in event.recipients:
                        due.setdefault(agent, DeliveryPush.push)
                case events.StateChanged(paused=False):
                    due[event.sender] = DeliveryPush.rewind
                case events.DeliveryMoved(state=DeliveryState.QUEUED):
                    due[event.agent] = DeliveryPush.rewind
        self.pacer.add([(outbox, push) for agent, push in due.items() for outbox in self._pushes_of(agent)])
        for agent in due:
            self.broadcast.wake(agent)
        if any(
            isinstance(event, _MOVES_DEADLINES)
            or (isinstance(event, events.MessageEvent) and event.expires is not None and self._alarm is None)
            for event in news
        ):
            self.set_alarm()

    def drop_stale_sockets(self) -> None:
        """Close the connections whose tokens were revoked."""
        for socket in list(self.sockets):
            socket.drop_if_stale()

    def _pushes_of(self, agent: AgentId) -> list[DeliveryPush]:
        return list(self._pushes.get(agent, ()))

    def check_sockets_of(self, agent: AgentId) -> None:
        """Raise TooMany if an agent already has the maximum number of WebSockets."""
        if len(self._pushes.get(agent, ())) >= MAX_SOCKETS_OF_AGENT:
            hint = f"close some of them, or try again in {AGAIN_S:g} s"
            raise TooMany(f"{agent} has {MAX_SOCKETS_OF_AGENT} WebSockets", hint, after_s=AGAIN_S)

    def attach(self, agent: AgentId, outbox: DeliveryPush) -> None:
        """Push deliveries for `agent` through `outbox` from now on."""
        self._pushes.setdefault(agent, set()).add(outbox)
        outbox.tell(self.screen_watch.greeting(agent))
        outbox.push()

    def detach(self, agent: AgentId, outbox: DeliveryPush) -> None:
        """Stop pushing through `outbox`."""
        outbox.close()
        self._pushes.get(agent, set()).discard(outbox)

    def _send_live(self, agent: AgentId, frame: bytes) -> int:
        outboxes = self._pushes.get(agent, set())
        for outbox in outboxes:
            outbox.tell(frame)
        return len(outboxes)

    # --- the clock -------------------------------------------------------------------------------

    def set_alarm(self) -> None:
        """Set a timer for the room's next deadline."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if not self.writer.is_leading:
            return
        deadline = next_deadline(self.writer.room, self.rules)
        if deadline is not None:
            delay = min(max(deadline - self.clock(), 0.01), 3600.0)

            def on_alarm() -> None:
                self._alarm = None
                self.spawn(self._tick())

            self._alarm = asyncio.get_running_loop().call_later(delay, on_alarm)

    async def _tick(self) -> None:
        try:
            await self.submit(Tick(hits=await self.board_hits.for_all()))
        except Broken:
            await asyncio.sleep(1)
        self.set_alarm()

    async def watch_presence(self) -> None:
        """Mark silent agents as offline and close expired pages, until cancelled."""
        while True:
            await asyncio.sleep(max(0.02, min(5.0, self.settings.offline_after_s / 4)))
            # Timers stand still in a sleep, so deadlines that have passed meanwhile are looked at now.
            self.writer.note_sleep()
            await self.mark_silent_offline()
            self.drop_stale_sockets()

    async def mark_silent_offline(self) -> None:
        """Mark agents as offline if they have been silent for too long."""
        if not self.writer.is_leading:
            return
        online = [p.id for p in self.writer.room.participants.values() if p.online]
        with contextlib.suppress(Broken):
            # All commands are submitted before the first await, so no agent can come back online in between.
            leaving = [Leave(agent=agent, reason="no sign of life") for agent in self.presence.silent(online)]
            await asyncio.gather(*[self.submit(leave) for leave in leaving])

    # --- rewriting the journal -------------------------------------------------------------------

    @property
    def journal(self) -> JsonlJournal:
        """The journal of the room."""
        return self.writer.journal

    @property
    def is_leading(self) -> bool:
        """Whether commands are decided here."""
        return self.writer.is_leading

    async def replace_journal(self, prepared: rewrite.Rewrite, pruned_before: int = 0) -> None:
        """Replace the journal by a copy without removed text."""
        await self.writer.alone(lambda: rewrite.finish(prepared))
        self.history.load_recent()
        if pruned_before:
            await self.run_worker.forget(pruned_before)

    # --- background work -------------------------------------------------------------------------

    async def answer_queries(self) -> None:
        """Answer pending history queries, each with only the events that its agent may read."""
        for query_id in list(self.writer.room.queries) if self.writer.is_leading else ():
            query = self.writer.room.queries.get(query_id)
            if query is None:
                continue
            asked = HistoryQuery(
                limit=query.count, before=query.seq, types=events.HISTORY_TYPES, audience=query.agent
            )
            page = await self.history.page(asked)
            text = log_text(events.decode_event(line) for line in page.lines)
            # If the answer cannot be written now, the next query or the next start tries again.
            with contextlib.suppress(Broken):
                await self.submit(AnswerQuery(query=query_id, text=text, ttl_s=self.settings.message_ttl_s))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` in the background; failures are logged, and `close` cancels it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)

        def end(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and task.exception() is not None:
                log.error("background work failed", exc_info=task.exception())

        task.add_done_callback(end)

    async def close(self, *, is_leaving: bool = False) -> None:
        """Stop the clock and the background work, then write all accepted events to disk.

        With `is_leaving` the process goes on, and leaves the room of a cluster to the others.
        """
        if self._alarm is not None:
            self._alarm.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.remote_boards.close()
        # In a thread, because closing waits for a running indexer.
        await asyncio.to_thread(self.index.close)
        await asyncio.to_thread(self.board.close)
        if self.cluster is not None:
            if self._early_stop is not None:
                await self._early_stop.close()
            await (self.cluster.seat.leave() if is_leaving else self.cluster.seat.close())
            await self.cluster.pages.close()
        await self.writer.close()
