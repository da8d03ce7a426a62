"""Mirror boards to a provider and search them there.

The provider of a board is chosen once and recorded in the journal. If it fails, the room gets one notice,
and from then on the board is searched locally, where all its notes are kept anyway.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from csp.config import Settings
from csp.errors import Broken, CallFailed
from csp.fast_start.process_environment import process_environment
from csp.gateway.room_writer import RoomWriter
from csp.protocol.enums import AgentId, MessageId
from csp.protocol.events import AgentResponse, AnyEvent, NoteAdded, Pruned, Redacted
from csp.protocol.notes import FoundBy, HitView, NoteView, Provider
from csp.room.board_state import seq_of
from csp.room.commands import SetBoardProvider
from csp.room.visibility import ANYBODY
from csp.whiteboard.note_index import Filter
from csp.whiteboard.openai_vector_store import OpenAIStore
from csp.whiteboard.whiteboard import Whiteboard

log = logging.getLogger(__name__)

T = TypeVar("T")

KEY: Final = "OPENAI_API_KEY"
#: The interval for renewing the lifetime of a store in use.
_RENEW_S: Final = 3600.0
_PAGE: Final = 1000


class RemoteBoards:
    """The boards of one room that a provider mirrors; none unless the settings enable mirroring."""

    def __init__(self, settings: Settings, writer: RoomWriter, board: Whiteboard) -> None:
        self._settings = settings
        self._writer = writer
        self._board = board
        self._env = process_environment()
        self.is_wanted = settings.board_provider == Provider.OPENAI and bool(self._env.get(KEY))
        self._client: OpenAIStore | None = None
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()
        self._news.set()
        #: The notes in each store, and the time at which its lifetime was last renewed.
        self._has: dict[str, set[MessageId]] = {}
        self._renewed: dict[str, float] = {}
        #: The last note up to which each store is complete, and the notes still to be removed from it.
        self._done: dict[str, int] = {}
        self._gone: dict[str, list[str | int]] = {}

    def observe(self, events: Iterable[AnyEvent]) -> None:
        """Record the events that affect the stores."""
        if not self.is_wanted:
            return
        for event in events:
            match event:
                case NoteAdded() | AgentResponse(idx=int()):
                    self._news.set()
                case Redacted():
                    self._remove(event.message)
                case Pruned():
                    self._remove(event.before)

    def _remove(self, what: str | int) -> None:
        """Remove a message, or everything before an event, from every store at the next update."""
        for board in self._writer.room.boards.by_name.values():
            if board.store:
                self._gone.setdefault(board.store, []).append(what)
        self._news.set()

    async def work(self) -> None:
        """Keep the stores up to date until cancelled."""
        while self.is_wanted:
            await self._news.wait()
            self._news.clear()
            if not self._writer.is_leading:
                continue
            for name in list(self._writer.room.boards.by_name):
                async with self._lock:
                    await self._try(name, partial(self._update, name))

    async def search(
        self, q: str, wanted: Filter, limit: int, audience: AgentId | None
    ) -> list[HitView] | None:
        """Return the hits from a board's provider; None if the board is searched locally."""
        name = wanted.session
        if not self.is_wanted or not self._writer.is_leading:
            return None
        if name is None or name not in self._writer.room.boards.by_name:
            return None
        async with self._lock:
            return await self._try(name, lambda: self._search(name, q, wanted, limit, audience))

    def close(self) -> None:
        """Close the connections to the provider."""
        if self._client is not None:
            self._client.close()

    # --- with the lock held ----------------------------------------------------------------------

    async def _try(self, name: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """Run `work` unless the board is local; if it fails, make the board local and post one notice."""
        if self._writer.room.boards.of(name).provider is Provider.LOCAL:
            return None
        try:
            return await work()
        except CallFailed as exc:
            log.warning("provider failed, board is local now", extra={"board": name, "problem": exc.message})
            await self._set_provider(name, Provider.LOCAL, "", exc.message)
            return None

    async def _set_provider(self, name: str, provider: Provider, store: str, problem: str = "") -> None:
        try:
            command = SetBoardProvider(session=name, provider=provider, store=store, problem=problem)
            await self._writer.submit(command)
        except Broken as exc:
            log.warning("provider not recorded", extra={"board": name, "problem": exc.message})

    async def _search(
        self, name: str, q: str, wanted: Filter, limit: int, audience: AgentId | None
    ) -> list[HitView]:
        store = await self._update(name)
        found = await asyncio.to_thread((await self._api()).search, store, q, 5 * limit)
        board = self._board
        local = await asyncio.to_thread(board.search, q, wanted, limit, audience)
        kept = self._writer.room.boards.of(name)
        hits = {hit.note.id: hit for hit in local if hit.how is FoundBy.EXACT}
        for note_id, score in found.items():
            note = await asyncio.to_thread(board.get, note_id, audience)
            if note is not None and note_id not in hits and kept.holds(note) and _fits(note, wanted):
                hits[note_id] = HitView(note=note, score=round(score, 4), how=FoundBy.MEANING)
        return list(hits.values())[:limit]

    async def _update(self, name: str) -> str:
        """Add missing notes to a board's store and delete removed ones; return the store."""
        store = await self._store(name)
        api = await self._api()
        gone = self._gone.setdefault(store, [])
        while gone:
            await asyncio.to_thread(api.remove, store, gone[0])
            gone.pop(0)
        board, known = self._board, self._has[store]
        while True:
            wanted = Filter(session=name, after=self._done.get(store, 0))
            all_notes = await asyncio.to_thread(board.page, wanted, _PAGE, None)
            # Sealed notes are not uploaded until everyone may read them.
            page = await asyncio.to_thread(board.page, wanted, _PAGE, ANYBODY)
            for note in page.notes:
                if note.id not in known:
                    await asyncio.to_thread(api.add, store, note)
                    known.add(note.id)
            if [note.id for note in all_notes.notes] != [note.id for note in page.notes]:
                return store
            if page.notes:
                self._done[store] = seq_of(page.notes[-1].id)
            if not page.has_more:
                return store

    async def _store(self, name: str) -> str:
        """Return a board's store; create one if there is none or if it has expired."""
        board = self._writer.room.boards.of(name)
        store, now = board.store, time.monotonic()
        if store and store in self._has and now - self._renewed[store] < _RENEW_S:
            return store
        api = await self._api()
        is_alive: bool = await asyncio.to_thread(api.renew, store) if store else False
        if is_alive:
            if store not in self._has:
                self._has[store] = await asyncio.to_thread(api.notes, store)
        else:
            store = await asyncio.to_thread(api.create, f"csp {self._settings.room} {name}")
            self._has[store] = set()
            await self._set_provider(name, Provider.OPENAI, store)
        self._renewed[store] = now
        return store

    async def _api(self) -> OpenAIStore:
        if self._client is None:
            # In a thread, because loading the package takes a second.
            url = self._env.get("OPENAI_BASE_URL")
            self._client = await asyncio.to_thread(OpenAIStore, self._env[KEY], url)
        return self._client


def _fits(note: NoteView, wanted: Filter) -> bool:
    """Return whether a note passes the filter."""
    return (
        wanted.author in (None, note.author)
        and wanted.kind in (None, note.kind)
        and (wanted.tag is None or wanted.tag in note.tags)
        and (wanted.since is None or note.ts >= wanted.since)
        and (wanted.until is None or note.ts <= wanted.until)
    )
