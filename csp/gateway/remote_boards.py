"""Boards that a provider keeps: brought up to date, searched there, given up when it fails.

Who keeps a board is settled once and stands in the journal. A provider that fails is told of once; from then
on the board is searched here, where all its notes are anyway.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from csp.errors import Broken, CallFailed
from csp.fast_start.process_environment import process_environment
from csp.protocol.enums import AgentId, MessageId
from csp.protocol.events import AgentResponse, AnyEvent, NoteAdded, Pruned, Redacted
from csp.protocol.notes import FoundBy, HitView, NoteView, Provider
from csp.room.board.board_state import seq_of
from csp.room.commands import SetBoardProvider
from csp.room.visibility import ANYBODY
from csp.whiteboard.note_index import Filter
from csp.whiteboard.openai_store import OpenAIStore

if TYPE_CHECKING:
    from csp.gateway.gateway import Gateway

log = logging.getLogger(__name__)

T = TypeVar("T")

KEY: Final = "OPENAI_API_KEY"
#: How often a store that is in use is told to live on.
_RENEW_S: Final = 3600.0
_PAGE: Final = 1000


class RemoteBoards:
    """The boards of one gateway that are kept elsewhere; none, unless the settings ask for it."""

    def __init__(self, gateway: "Gateway") -> None:
        self._gateway = gateway
        self._env = process_environment()
        self.is_wanted = gateway.settings.board_provider == Provider.OPENAI and bool(self._env.get(KEY))
        self._client: OpenAIStore | None = None
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()
        self._news.set()
        #: The notes that each store has, when it was last told to live on.
        self._has: dict[str, set[MessageId]] = {}
        self._renewed: dict[str, float] = {}
        #: Up to which note everything of a store is there; what is to be taken away from it.
        self._done: dict[str, int] = {}
        self._gone: dict[str, list[str | int]] = {}

    def take(self, events: Iterable[AnyEvent]) -> None:
        """Hear of what was committed."""
        if not self.is_wanted:
            return
        for event in events:
            match event:
                case NoteAdded() | AgentResponse(idx=int()):
                    self._news.set()
                case Redacted():
                    self._lose(event.message)
                case Pruned():
                    self._lose(event.before)
                case _:
                    pass

    def _lose(self, what: str | int) -> None:
        """Have a message, or everything before an event, taken away from every store."""
        for board in self._gateway.writer.room.boards.by_name.values():
            if board.store:
                self._gone.setdefault(board.store, []).append(what)
        self._news.set()

    async def work(self) -> None:
        """Bring the boards up to date there, for as long as the gateway lives."""
        while self.is_wanted:
            await self._news.wait()
            self._news.clear()
            for name in list(self._gateway.writer.room.boards.by_name):
                async with self._lock:
                    await self._tried(name, partial(self._bring, name))

    async def search(
        self, q: str, wanted: Filter, limit: int, audience: AgentId | None
    ) -> list[HitView] | None:
        """Return what the provider of a board finds; None if it is to be searched here."""
        name = wanted.session
        if not self.is_wanted or name is None or name not in self._gateway.writer.room.boards.by_name:
            return None
        async with self._lock:
            return await self._tried(name, lambda: self._search(name, q, wanted, limit, audience))

    # --- with the lock held ----------------------------------------------------------------------

    async def _tried(self, name: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """Do it, unless the board is kept here; if it fails, keep it here from now on and say so once."""
        if self._gateway.writer.room.boards.of(name).provider is Provider.LOCAL:
            return None
        try:
            return await work()
        except CallFailed as exc:
            log.warning("provider given up", extra={"board": name, "problem": exc.message})
            notice = f"The board of {name} is searched here from now on: {exc.message}."
            await self._keep(name, Provider.LOCAL, "", notice)
            return None

    async def _keep(self, name: str, provider: Provider, store: str, notice: str = "") -> None:
        try:
            command = SetBoardProvider(session=name, provider=provider, store=store, notice=notice)
            await self._gateway.submit(command)
        except Broken as exc:
            log.warning("provider not noted", extra={"board": name, "problem": exc.message})

    async def _search(
        self, name: str, q: str, wanted: Filter, limit: int, audience: AgentId | None
    ) -> list[HitView]:
        store = await self._bring(name)
        found = await asyncio.to_thread((await self._api()).search, store, q, 5 * limit)
        board = self._gateway.board
        local = await asyncio.to_thread(board.search, q, wanted, limit, audience)
        kept = self._gateway.writer.room.boards.of(name)
        hits = {hit.note.id: hit for hit in local if hit.how is FoundBy.EXACT}
        for note_id, score in found.items():
            note = await asyncio.to_thread(board.get, note_id, audience)
            if note is None or note_id in hits or not kept.holds(note):
                continue
            if _fits(note, wanted):
                hits[note_id] = HitView(note=note, score=round(score, 4), how=FoundBy.MEANING)
        return list(hits.values())[:limit]

    async def _bring(self, name: str) -> str:
        """Put the notes there that are missing, take away what was removed here; return the store."""
        store = await self._store(name)
        await self._forget(store)
        api, board, known = await self._api(), self._gateway.board, self._has[store]
        while True:
            wanted = Filter(session=name, after=self._done.get(store, 0))
            all_notes = await asyncio.to_thread(board.page, wanted, _PAGE, None)
            # Sealed words stay here until all may read them.
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

    async def _forget(self, store: str) -> None:
        gone = self._gone.setdefault(store, [])
        while gone:
            await asyncio.to_thread((await self._api()).remove, store, gone[0])
            gone.pop(0)

    async def _store(self, name: str) -> str:
        """Return the store of a board, a new one if there is none or if it has come to its end."""
        board = self._gateway.writer.room.boards.of(name)
        store, now = board.store, time.monotonic()
        if store and store in self._has and now - self._renewed[store] < _RENEW_S:
            return store
        api = await self._api()
        is_alive: bool = await asyncio.to_thread(api.renew, store) if store else False
        if is_alive:
            if store not in self._has:
                self._has[store] = await asyncio.to_thread(api.notes, store)
        else:
            store = await asyncio.to_thread(api.create, f"csp {self._gateway.settings.room} {name}")
            self._has[store] = set()
            await self._keep(name, Provider.OPENAI, store)
        self._renewed[store] = now
        return store

    async def _api(self) -> OpenAIStore:
        if self._client is None:
            # In a thread: the package alone takes a second to load.
            url = self._env.get("OPENAI_BASE_URL")
            self._client = await asyncio.to_thread(OpenAIStore, self._env[KEY], url)
        return self._client


def _fits(note: NoteView, wanted: Filter) -> bool:
    """Tell whether a note is one of those that are wanted."""
    return (
        wanted.author in (None, note.author)
        and wanted.kind in (None, note.kind)
        and (wanted.tag is None or wanted.tag in note.tags)
        and (wanted.since is None or note.ts >= wanted.since)
        and (wanted.until is None or note.ts <= wanted.until)
    )
