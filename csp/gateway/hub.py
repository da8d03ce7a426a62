"""Many rooms of a cluster in one process, each at `/r/ROOM/`.

A room is opened by the first request with one of its tokens, and let go when it has been idle for a while;
then any gateway may claim it. What a gateway does for its only room from time to time, such as looking for
silent agents or indexing the journal, the hub does for all rooms in turn: an idle room costs only memory.
"""

import asyncio
import contextlib
import hmac
import logging
import re
import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec
from aiohttp import web

from csp import __version__
from csp.cluster.node import ClusterRoom, Node
from csp.cluster.page_store import PageStore
from csp.cluster.removal import follow_removals, rooms_with_removals
from csp.cluster.rounds import TICK_S
from csp.config import Settings
from csp.errors import CspError, LogLost, NotFound, TooMany, Unauthenticated
from csp.gateway import journal_maintenance
from csp.gateway.auth import PAGE_TOKEN, Caller, HostGuard, TokenStore, read_offered_token, read_token
from csp.gateway.entrance import RoomEntrance
from csp.gateway.gateway import LOST_S, Gateway, SharedParts
from csp.gateway.page_tokens import page_hash
from csp.gateway.responses import HEADERS, json_response
from csp.gateway.rules_from_settings import load_rules
from csp.journal import DiskThread, JsonlJournal
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId
from csp.room.sessions.steering import next_deadline

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

log = logging.getLogger(__name__)

IDLE_S: Final = 600.0
#: A room with a deadline within this time is kept; later ones are handled at the next use.
DEADLINE_S: Final = 3600.0
SWEEP_S: Final = 5.0
INDEX_S: Final = 2.0
#: How many rooms are opened or closed at once.
AT_ONCE: Final = 16
#: The files of a room: its journal and its lock, and a search index for some.
FILES_OF_ROOM: Final = 3
#: When to try again if there are too many rooms.
FULL_S: Final = 5.0
#: How long the first caller waits for the room to have an owner.
CLAIM_S: Final = 2.0
#: A search reads what is not indexed, so an index is only worth its memory for longer journals.
INDEX_FROM_BYTES: Final = 256 * 1024
_PATH: Final = re.compile(r"/r/([a-z0-9-]{1,32})(/.*)?", re.DOTALL)
_HEAD: Final = re.compile(rb"[A-Z]+ /r/([a-z0-9-]{1,32})[/ ?]")


class HubHealth(msgspec.Struct, rename="camel"):
    """The health of a hub."""

    status: str
    version: str
    uptime_s: float
    #: The rooms that are open here, and those of them for which this hub decides.
    rooms: int
    leading: int


class Hub:
    """The rooms of one process; see `Entrance`."""

    def __init__(
        self, node: Node, settings: Settings, clock: Callable[[], float], idle_s: float = IDLE_S
    ) -> None:
        self._node = node
        self._settings = settings
        self._clock = clock
        self._idle_s = idle_s
        self._started = clock()
        self.host_guard = HostGuard(settings.host, settings.public_name, settings.public_url, node.peers.urls)
        self.requests: Counter[int] = Counter()
        # One half of the files is for the rooms.
        self.max_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        self._most_rooms = max(1, self.max_files // FILES_OF_ROOM)
        self.rooms: dict[str, RoomEntrance] = {}
        #: When each open room was last used.
        self._used: dict[str, float] = {}
        #: How far each journal was indexed, with its generation.
        self._indexed: dict[str, tuple[int, int]] = {}
        #: The rooms that are just being opened or closed.
        self._opening: dict[str, asyncio.Task[RoomEntrance]] = {}
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._rules = load_rules(settings)
        self._disk = DiskThread()
        self._slots = asyncio.Semaphore(AT_ONCE)
        #: Journals are scrubbed one after the other.
        self._scrubbing = asyncio.Semaphore(1)
        self._is_closed = False
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Begin the work for all rooms."""
        await follow_removals(
            self._node.bus, self._on_removal, on_gap=lambda: self._spawn(self._remove_missed())
        )
        for work in (self._sweep(), self._watch_log(), self._index(), self._remove_missed()):
            self._spawn(work)

    async def close(self) -> None:
        """Close all rooms; the other gateways claim them, because this process leaves."""
        self._is_closed = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._opening.values(), return_exceptions=True)
        for room in self.rooms.values():
            room.gateway.broadcast.close()
            for socket in list(room.gateway.sockets):
                socket.drop(1001, "the gateway is shutting down")

    async def close_rooms(self) -> None:
        """Write and close everything, after the last request has ended."""
        await asyncio.gather(*(self._let_go(name, is_leaving=False) for name in list(self.rooms)))
        await asyncio.gather(*self._closing.values(), return_exceptions=True)
        await self._disk.close()

    def health(self) -> HubHealth:
        """Return the health of the hub."""
        is_lost = self._node.bus.lost_for_s > LOST_S
        return HubHealth(
            status="degraded" if is_lost else "ok",
            version=__version__,
            uptime_s=round(self._clock() - self._started, 3),
            rooms=len(self.rooms),
            leading=sum(room.gateway.is_leading for room in self.rooms.values()),
        )

    # --- requests --------------------------------------------------------------------------------

    def own_answer(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """See `Entrance.own_answer`."""
        if request.method == "GET" and request.path == "/health":
            health = self.health()
            return json_response(200 if health.status == "ok" else LogLost.status, encode(health))
        found = _PATH.fullmatch(request.path)
        if request.method == "GET" and found is not None and found[2] is None:
            # The files of the page are found relative to the room.
            return web.Response(status=308, headers=HEADERS | {"Location": f"{found[1]}/"})
        return None

    def split(self, path: str) -> tuple[str, str]:
        """See `Entrance.split`."""
        found = _PATH.fullmatch(path)
        if found is None:
            raise NotFound(f"no room at {path[:80]!r}", "the rooms of this hub are at /r/ROOM/")
        return found[1], found[2] or "/"

    def identify(self, token: str, head: bytes) -> Caller:
        """See `Entrance.identify`."""
        found = _HEAD.match(head)
        room = self.rooms.get(found[1].decode()) if found is not None else None
        if room is None:
            raise NotFound("the room is not open", "send the whole request")
        return room.as_guest(room.gateway.identify(token))

    def too_fast(self, agent: AgentId) -> TooMany | None:
        """See `Entrance.too_fast`."""
        name, _, rest = agent.partition("/")
        room = self.rooms.get(name)
        return None if room is None else room.gateway.throttle.refusal(AgentId(rest))

    async def enter(self, name: str, request: web.BaseRequest) -> RoomEntrance:
        """See `Entrance.enter`."""
        room = self.rooms.get(name)
        if room is None:
            await self._check_stranger(name, request)
            room = await self.room(name)
        room.callers += 1
        return room

    def leave(self, room: RoomEntrance) -> None:
        """See `Entrance.leave`."""
        room.callers -= 1
        self._used[room.name] = time.monotonic()

    async def _check_stranger(self, name: str, request: web.BaseRequest) -> None:
        """Raise Unauthenticated unless the caller has a token of a room; strangers must not open rooms."""
        token = read_offered_token(request) or read_token(request)
        key = self._node.key_of(name)
        tokens = TokenStore(key, self._settings.auth_token)
        is_of_room = hmac.compare_digest(token.encode(errors="replace"), tokens.room_token.encode())
        if is_of_room or tokens.is_signed(token):
            return
        if token.startswith(PAGE_TOKEN):
            page = page_hash(key, tokens.room_token, token)
            if await PageStore(self._node.bus, name).expiry(page) > self._clock():
                return
        hint = "csp cluster token prints a room's token"
        raise Unauthenticated(f"token is not valid in room {name!r}", hint)

    # --- rooms -----------------------------------------------------------------------------------

    async def room(self, name: str) -> RoomEntrance:
        """Return a room, which is opened if need be."""
        while (closing := self._closing.get(name)) is not None:
            await asyncio.wait([closing])
        if (found := self.rooms.get(name)) is not None:
            return found
        if self._is_closed:
            raise LogLost("this hub is shutting down", "use another one", after_s=1.0)
        opening = self._opening.get(name)
        if opening is None:
            if len(self.rooms) + len(self._opening) >= self._most_rooms:
                hint = "let it open more files (LimitNOFILE), or add another hub"
                raise TooMany(f"this hub has {self._most_rooms} open rooms", hint, after_s=FULL_S)
            opening = self._opening[name] = asyncio.create_task(self._open(name))
            opening.add_done_callback(lambda _: self._opening.pop(name, None))
        # A caller that disconnects must not end it for the others.
        return await asyncio.shield(opening)

    async def _open(self, name: str) -> RoomEntrance:
        settings = replace(self._settings, room=name)
        async with self._slots:
            cluster = await self._node.room(name)
            folder = settings.history_dir / name
            journal = await asyncio.to_thread(JsonlJournal.open, folder)
            parts = SharedParts(journal, self._rules, self._disk.shared())
            try:
                gateway = Gateway(settings, folder, self._clock, cluster, parts)
            except BaseException:
                journal.close()
                raise
            try:
                await gateway.join_cluster()
                await self._wait_for_owner(cluster)
            except BaseException:
                await gateway.close()
                raise
        gateway.set_alarm()
        gateway.spawn(gateway.answer_queries())
        gateway.spawn(self._scrub(gateway))
        for worker in (gateway.board_summaries, gateway.remote_boards):
            gateway.spawn(worker.work())
        room = self.rooms[name] = RoomEntrance(gateway, name)
        self._used[name] = time.monotonic()
        gateway.writer.broken.add_done_callback(lambda _: self._on_broken(room))
        log.info("room opened", extra={"room": name, "seq": gateway.writer.room.seq})
        return room

    async def _wait_for_owner(self, cluster: ClusterRoom) -> None:
        """Wait a moment for the first claim of a new room, because it decides what the id of the room is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLAIM_S):
                while not cluster.seat.owner:  # noqa: ASYNC110
                    await asyncio.sleep(TICK_S / 2)

    def _on_broken(self, room: RoomEntrance) -> None:
        error = room.gateway.writer.broken.exception()
        log.error("room failed", extra={"room": room.name, "problem": str(error)})
        if self.rooms.get(room.name) is room:
            self._spawn(self._let_go(room.name, is_leaving=True))

    async def _let_go(self, name: str, *, is_leaving: bool) -> None:
        """Close a room; a request for it waits, and opens it again."""
        room = self.rooms.pop(name, None)
        if room is None:
            return
        self._used.pop(name, None)
        self._indexed.pop(name, None)
        closing = self._closing[name] = asyncio.create_task(self._close(room, is_leaving=is_leaving))
        closing.add_done_callback(lambda _: self._closing.pop(name, None))
        await asyncio.wait([closing])

    async def _let_go_if_idle(self, room: RoomEntrance) -> None:
        # A request may have come since it was found idle.
        if self.rooms.get(room.name) is room and self._is_idle(room):
            await self._let_go(room.name, is_leaving=True)

    async def _close(self, room: RoomEntrance, *, is_leaving: bool) -> None:
        for socket in list(room.gateway.sockets):
            socket.drop(1012, "the room is opened again")
        async with self._slots:
            try:
                await room.gateway.close(is_leaving=is_leaving)
            except Exception:
                log.exception("room not closed in order", extra={"room": room.name})
        log.info("room let go", extra={"room": room.name})

    # --- the work for all rooms ------------------------------------------------------------------

    def _spawn(self, work: "Coroutine[Any, Any, None]") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)

        def end(task: "asyncio.Task[None]") -> None:
            self._tasks.discard(task)
            if not task.cancelled() and task.exception() is not None:
                log.error("background work failed", exc_info=task.exception())

        task.add_done_callback(end)

    async def _sweep(self) -> None:
        """Let idle rooms go, and do for the others what a gateway does for its room from time to time."""
        while True:
            await asyncio.sleep(min(SWEEP_S, self._idle_s / 4, self._settings.offline_after_s / 4))
            for number, room in enumerate(list(self.rooms.values())):
                if number % 100 == 0:
                    await asyncio.sleep(0)
                if self._is_idle(room):
                    self._spawn(self._let_go_if_idle(room))
                    continue
                gateway = room.gateway
                if gateway.sockets:
                    gateway.drop_stale_sockets()
                if any(one.online for one in gateway.writer.room.participants.values()):
                    await gateway.mark_silent_offline()

    def _is_idle(self, room: RoomEntrance) -> bool:
        gateway = room.gateway
        used = max(self._used.get(room.name, 0.0), gateway.last_commit)
        if room.callers or gateway.sockets or time.monotonic() - used < self._idle_s:
            return False
        deadline = next_deadline(gateway.writer.room, gateway.rules) if gateway.is_leading else None
        return deadline is None or deadline - self._clock() > DEADLINE_S

    async def _watch_log(self) -> None:
        while True:
            await asyncio.sleep(LOST_S / 8)
            for room in list(self.rooms.values()):
                room.gateway.check_log()

    async def _index(self) -> None:
        """Index the journals that are long enough for it, one after the other, then close the indexes."""
        while True:
            await asyncio.sleep(INDEX_S)
            for name, room in list(self.rooms.items()):
                view = room.gateway.journal.view
                state = view.generation, view.end
                if view.end < INDEX_FROM_BYTES or self._indexed.get(name) == state:
                    continue
                index = room.gateway.index
                left = 1
                while left and self.rooms.get(name) is room:
                    left = await asyncio.to_thread(index.catch_up, journal_maintenance.INDEX_LINES)
                await asyncio.to_thread(index.close)
                self._indexed[name] = state

    async def _scrub(self, gateway: Gateway) -> None:
        async with self._scrubbing:
            await journal_maintenance.scrub_journal(gateway)

    # --- removed text ----------------------------------------------------------------------------

    def _on_removal(self, name: str) -> None:
        """Remove text from the copy of a room that is not open here: opening it does that."""
        if name not in self.rooms and (self._settings.history_dir / name).is_dir():
            self._spawn(self._open_for_removal(name))

    async def _remove_missed(self) -> None:
        """Remove what was removed elsewhere while this hub was off."""
        with contextlib.suppress(LogLost):
            for name in await rooms_with_removals(self._node.bus):
                self._on_removal(name)

    async def _open_for_removal(self, name: str) -> None:
        try:
            await self.room(name)
        except CspError as error:
            log.warning("removal postponed", extra={"room": name, "problem": error.message})
