"""Boards kept by a provider: its own package against a stub of it, outages included."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import Broken, CallFailed
from csp.gateway import remote_boards as remote_module
from csp.protocol.enums import ALL, SYSTEM, AgentId, MessageId
from csp.protocol.events import AgentResponse, NoteAdded, NoticePosted, Pruned, Redacted
from csp.protocol.notes import FoundBy, HitView, NoteKind, NoteView, Provider
from csp.room.commands import SetBoardProvider
from csp.whiteboard.note_index import Filter
from csp.whiteboard.openai_vector_store import OpenAIStore
from csp.whiteboard.whiteboard import NotePage
from tests.gateway.served import Clock, ServedRoom, served
from tests.gateway.test_board_routes import begin, reply, write
from tests.gateway.vector_stores import VectorStores


@pytest.fixture
async def stores(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[VectorStores]:
    async with VectorStores() as stub:
        monkeypatch.setenv("OPENAI_API_KEY", "a key")
        monkeypatch.setenv("OPENAI_BASE_URL", stub.url)
        yield stub


@pytest.fixture
async def room(tmp_path: Path, stores: VectorStores) -> AsyncIterator[ServedRoom]:
    async with served(tmp_path / "room", board_provider="openai", durability="flush") as room:
        yield room


async def search(room: ServedRoom, session: str, q: str, token: str | None = None) -> tuple[str, list[str]]:
    """Return who answered, with the texts that were found."""
    path = f"/board/search?session={session}&q={q}"
    answer: dict[str, Any] = await room.get(path, token) if token else await room.get(path)
    return answer["provider"], [hit["note"]["text"] for hit in answer["items"]]


async def notices(room: ServedRoom) -> list[str]:
    items = await room.history("?types=system")
    return [item["text"] for item in items if "searched locally" in item["text"]]


async def test_notes_are_kept_and_found_there(room: ServedRoom, stores: VectorStores) -> None:
    session, (claude, _) = await begin(room, "claude", "codex", steps=4)
    await reply(room, claude, "the apple is red, sk-ant-api03-AbCdEf_123-45678901234")
    await write(room, "the pear is green", session=session)
    found = await search(room, session, "green+pear")
    await search(room, session, "apple")
    (store,) = stores.stores.values()

    assert found == ("openai", ["the pear is green", "the apple is red, [redacted api key]"])
    assert store["expires_after"] == {"anchor": "last_active_at", "days": 7}
    assert [told["idx"] for told in store["files"].values()] == [0, 1]
    assert not [text for text in stores.texts.values() if "sk-ant" in text]


async def test_names_come_first_there_too(room: ServedRoom, stores: VectorStores) -> None:
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "parse_apples is slow", session=session)
    await write(room, "who calls apples what", session=session)
    provider, found = await search(room, session, "who+calls+parse_apples")

    assert (provider, found[0]) == ("openai", "parse_apples is slow")


async def test_provider_stays_with_the_session(room: ServedRoom, stores: VectorStores) -> None:
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "first", session=session)
    await search(room, session, "first")
    await room.restart()
    await write(room, "second", session=session)
    found = await search(room, session, "second")

    assert (found[0], found[1][0]) == ("openai", "second")
    assert list(stores.stores) == ["vs_1"]
    assert len(stores.stores["vs_1"]["files"]) == 2
    assert stores.calls.count("POST /vector_stores/vs_1") == 1


async def test_connections_to_it_end_with_the_gateway(room: ServedRoom, stores: VectorStores) -> None:
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "first", session=session)
    await search(room, session, "first")
    store = room.gateway.remote_boards._client
    await room.restart()

    assert store is not None and store._client.is_closed()


async def test_store_that_has_expired_is_made_again(room: ServedRoom, stores: VectorStores) -> None:
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "first", session=session)
    await search(room, session, "first")
    stores.expire()
    await room.restart()

    assert await search(room, session, "first") == ("openai", ["first"])
    assert list(stores.stores) == ["vs_1", "vs_2"]
    assert room.gateway.writer.room.boards.of(session).store == "vs_2"


async def test_store_in_use_is_told_to_live_on_once_an_hour(
    room: ServedRoom, stores: VectorStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(5000.0)
    monkeypatch.setattr(remote_module, "time", SimpleNamespace(monotonic=clock))
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "first", session=session)
    renewals = []
    for passed_s in (0.0, 3599.0, 2.0, 3599.0, 3601.0):
        clock.now += passed_s
        assert await search(room, session, "first") == ("openai", ["first"])
        renewals.append(stores.calls.count("POST /vector_stores/vs_1"))

    assert renewals == [0, 0, 1, 1, 2]
    assert stores.stores["vs_1"]["expires_after"] == {"anchor": "last_active_at", "days": 7}
    assert stores.calls.count("POST /files") == 1


async def test_store_that_expires_in_a_running_room_is_made_again_with_its_notes(
    room: ServedRoom, stores: VectorStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(5000.0)
    monkeypatch.setattr(remote_module, "time", SimpleNamespace(monotonic=clock))
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "first", session=session)
    await search(room, session, "first")
    stores.expire()
    clock.now += 3601

    assert await search(room, session, "first") == ("openai", ["first"])
    assert room.gateway.writer.room.boards.of(session).store == "vs_2"
    assert [note["idx"] for note in stores.stores["vs_2"]["files"].values()] == [0]


@pytest.mark.parametrize("status", [429, 500, 401])
async def test_failure_brings_one_notice(room: ServedRoom, stores: VectorStores, status: int) -> None:
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "the apple is red", session=session)
    await search(room, session, "apple")
    stores.fail_with = status
    await write(room, "the pear is green", session=session)
    first = await search(room, session, "pear")
    calls = len(stores.calls)
    again = await search(room, session, "pear")
    await room.restart()
    after = await search(room, session, "pear")

    assert [(one[0], one[1][0]) for one in (first, again, after)] == [("local", "the pear is green")] * 3
    assert await notices(room) == [
        f"The whiteboard of {session} is searched locally from now on: OpenAI returned status {status}."
    ]
    assert len(stores.calls) == calls


async def test_provider_that_fails_at_once_is_not_asked_again(room: ServedRoom, stores: VectorStores) -> None:
    stores.fail_with = 429
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "the apple is red", session=session)
    found = [await search(room, session, "apple") for _ in range(3)]

    assert found == [("local", ["the apple is red"])] * 3
    assert len(await notices(room)) == 1


async def test_provider_that_is_not_there_falls_back(
    tmp_path: Path, stores: VectorStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    async with served(tmp_path / "room", board_provider="openai") as room:
        session, _ = await begin(room, "claude", "codex", steps=4)
        await write(room, "the apple is red", session=session)

        assert await search(room, session, "apple") == ("local", ["the apple is red"])
        assert len(await notices(room)) == 1


async def test_sealed_words_do_not_leave_the_room(room: ServedRoom, stores: VectorStores) -> None:
    members = [await room.join(name) for name in ("claude", "codex")]
    await room.post("/mode", {"mode": "consensus", "topic": "t", "agents": ["claude", "codex"]})
    session = (await room.get("/mode"))["sessionId"]
    await reply(room, members[0], "I propose marzipan")
    await search(room, session, "marzipan")
    sealed = dict(stores.texts)
    await reply(room, members[1], "I propose nougat")
    found = await search(room, session, "marzipan", members[1].token)

    assert sealed == {}
    assert (found[0], found[1][0]) == ("openai", "I propose marzipan")


async def test_redacted_note_is_taken_away_there(room: ServedRoom, stores: VectorStores) -> None:
    session, _ = await begin(room, "claude", "codex", steps=4)
    note = await write(room, "the marzipan is hidden", session=session)
    await search(room, session, "marzipan")
    await room.post(f"/messages/{note['id']}/redact")
    await search(room, session, "marzipan")

    assert not [text for text in stores.texts.values() if "marzipan" in text]


@pytest.mark.parametrize("provider", ["local", "openai"])
async def test_nobody_is_asked_without_the_setting_and_a_key(
    tmp_path: Path, stores: VectorStores, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    if provider == "openai":
        monkeypatch.delenv("OPENAI_API_KEY")
    async with served(tmp_path / "room", board_provider=provider) as room:
        session, _ = await begin(room, "claude", "codex", steps=4)
        await write(room, "the apple is red", session=session)

        assert await search(room, session, "apple") == ("local", ["the apple is red"])
    assert stores.calls == []


async def test_notes_are_brought_there_by_themselves(room: ServedRoom, stores: VectorStores) -> None:
    room.gateway.spawn(room.gateway.remote_boards.work())
    session, _ = await begin(room, "claude", "codex", steps=4)
    await write(room, "the apple is red", session=session)

    async def is_there() -> bool:
        return "the apple is red" in stores.texts.values()

    await room.until(is_there, "the note is there")


async def test_provider_that_never_answers_is_given_up(stores: VectorStores) -> None:
    stores.fail_with = 0
    store = OpenAIStore("a key", stores.url, timeout_s=0.2)

    with pytest.raises(CallFailed, match="did not respond in time"):
        await asyncio.to_thread(store.create, "csp")


# --- by itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (Filter(), True),
        (Filter(author="claude", kind="note", tag="parser", since=5.0, until=5.0), True),
        (Filter(author="codex"), False),
        (Filter(kind="summary"), False),
        (Filter(tag="lexer"), False),
        (Filter(since=5.1), False),
        (Filter(until=4.9), False),
    ],
)
def test_only_notes_that_are_wanted_are_found_there(wanted: Filter, fits: bool) -> None:
    note = NoteView(
        id=MessageId("n-1"),
        idx=0,
        session="s-1",
        thread="default",
        author=AgentId("claude"),
        text="text",
        tags=("parser",),
        kind=NoteKind.NOTE,
        source=None,
        ts=5.0,
    )

    assert remote_module._fits(note, wanted) is fits


async def test_what_is_redacted_or_pruned_is_taken_away_from_every_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    boards = {"s-1": SimpleNamespace(store="vs_1"), "s-2": SimpleNamespace(store="")}
    room = SimpleNamespace(boards=SimpleNamespace(by_name=boards))
    parts: Any = (SimpleNamespace(board_provider="openai"), SimpleNamespace(room=room), None)
    remote = remote_module.RemoteBoards(*parts)
    remote._news.clear()
    common = (9, 1.0, MessageId("e-9"), SYSTEM, ALL, "default", "")
    remote.observe([NoticePosted(*common)])
    was_news = remote._news.is_set()
    remote.observe([Redacted(*common, message=MessageId("m-4"))])
    remote.observe([Pruned(*common, before=7)])

    assert (was_news, remote._news.is_set()) == (False, True)
    assert remote._gone == {"vs_1": ["m-4", 7]}


class Kept:
    """A board that a provider keeps, and the provider: what is asked of both, without a network."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seqs: int) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "a key")
        self.notes = {f"n-{seq}": a_note(seq) for seq in seqs}
        self.sealed: set[str] = set()
        self.local: list[HitView] = []
        self.found: dict[str, float] = {}
        self.asked: list[tuple[object, ...]] = []
        self.commands: list[SetBoardProvider] = []
        self.error: Broken | None = None
        self.of_board = SimpleNamespace(
            provider=Provider.OPENAI, store="vs_1", holds=lambda note: note.id != "n-9"
        )
        boards = SimpleNamespace(by_name={"s-1": self.of_board}, of={"s-1": self.of_board}.__getitem__)
        settings: Any = SimpleNamespace(board_provider="openai", room="default")
        room = SimpleNamespace(boards=boards)
        writer: Any = SimpleNamespace(room=room, submit=self.submit, is_leading=True)
        board: Any = self
        self.remote = remote_module.RemoteBoards(settings, writer, board)
        self.remote._client = self  # type: ignore[assignment]  # it has what is used

    async def submit(self, command: SetBoardProvider) -> None:
        if self.error is not None:
            raise self.error
        self.commands.append(command)

    # --- the board -------------------------------------------------------------------------------

    def page(self, wanted: Filter, limit: int, audience: AgentId | None) -> NotePage:
        seqs = [note for note in self.notes.values() if int(note.id[2:]) > (wanted.after or 0)]
        seen = [note for note in seqs if audience is None or note.id not in self.sealed]
        return NotePage(seen, has_more=False)

    def get(self, note_id: str, audience: AgentId | None) -> NoteView | None:
        return self.notes.get(note_id)

    # --- the provider ----------------------------------------------------------------------------

    def renew(self, store: str) -> bool:
        self.asked.append(("renew", store))
        return True

    def add(self, store: str, note: NoteView) -> None:
        self.asked.append(("add", store, note.id))

    def remove(self, store: str, what: str | int) -> None:
        self.asked.append(("remove", store, what))

    def search(self, *given: Any) -> Any:
        if given[0] == "vs_1":
            self.asked.append(("search", *given))
            return self.found
        return self.local


def a_note(seq: int, author: str = "claude") -> NoteView:
    return NoteView(
        id=MessageId(f"n-{seq}"),
        idx=seq,
        session="s-1",
        thread="default",
        author=AgentId(author),
        text=f"note {seq}",
        tags=(),
        kind=NoteKind.NOTE,
        source=None,
        ts=5.0,
    )


def kept(monkeypatch: pytest.MonkeyPatch, *seqs: int) -> Kept:
    found = Kept(monkeypatch, *seqs)
    found.remote._has["vs_1"] = set()
    found.remote._renewed["vs_1"] = time.monotonic()
    return found


async def test_names_from_here_come_before_what_is_near_there(monkeypatch: pytest.MonkeyPatch) -> None:
    board = kept(monkeypatch, 1, 2, 3, 4, 9)
    board.notes["n-4"] = a_note(4, "codex")
    hits = {1: FoundBy.WORDS, 3: FoundBy.EXACT}
    board.local = [HitView(note=a_note(seq), score=2.0, how=how) for seq, how in hits.items()]
    # One that was taken off the board, one that nobody knows, one of another author.
    board.found = {"n-3": 0.9, "n-9": 0.8, "n-77": 0.8, "n-4": 0.7, "n-1": 0.60004, "n-2": 0.5}
    found = await board.remote.search("parse_apples", Filter(session="s-1", author="claude"), 2, None)

    assert found is not None
    assert [(hit.note.id, hit.how, hit.score) for hit in found] == [
        ("n-3", FoundBy.EXACT, 2.0),
        ("n-1", FoundBy.MEANING, 0.6),
    ]
    # More than are wanted: some of what is near may not be for who asks.
    assert ("search", "vs_1", "parse_apples", 10) in board.asked


async def test_a_note_is_brought_there_once_and_a_sealed_one_when_it_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = kept(monkeypatch, 1, 2, 3)
    board.sealed = {"n-2"}
    for _ in range(2):
        await board.remote._update("s-1")
    sealed = [what for _, _, what in board.asked]
    board.sealed.clear()
    board.notes["n-4"] = a_note(4)
    await board.remote._update("s-1")

    assert sealed == ["n-1", "n-3"]
    assert [what for _, _, what in board.asked] == ["n-1", "n-3", "n-2", "n-4"]
    assert board.remote._done == {"vs_1": 4}


async def test_what_is_gone_is_taken_away_once_unless_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    board = kept(monkeypatch)
    board.remote._gone["vs_1"] = ["m-4", 7]

    def fail(store: str, what: str | int) -> None:
        raise CallFailed("not now")

    with monkeypatch.context() as patch:
        patch.setattr(board, "remove", fail)
        with pytest.raises(CallFailed):
            await board.remote._update("s-1")
    for _ in range(2):
        await board.remote._update("s-1")

    assert board.asked == [("remove", "vs_1", "m-4"), ("remove", "vs_1", 7)]


async def test_a_provider_that_cannot_be_noted_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    board = kept(monkeypatch)
    board.error = Broken("no disk")
    await board.remote._set_provider("s-1", Provider.LOCAL, "")

    assert "provider not recorded" in caplog.messages


async def test_boards_are_brought_up_to_date_at_the_start_and_with_each_news(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = kept(monkeypatch)
    brought: list[str] = []

    async def bring(name: str) -> str:
        brought.append(name)
        return "vs_1"

    monkeypatch.setattr(board.remote, "_update", bring)
    working = asyncio.ensure_future(board.remote.work())
    common = (9, 1.0, MessageId("e-9"), SYSTEM, ALL, "default", "")
    for event in (
        NoticePosted(*common),
        NoteAdded(*common, idx=0),
        AgentResponse(*common, (), idx=1),
        AgentResponse(*common, ()),
    ):
        for _ in range(5):
            await asyncio.sleep(0)
        board.remote.observe([event])
    for _ in range(5):
        await asyncio.sleep(0)
    working.cancel()

    assert brought == ["s-1"] * 3


async def test_a_board_that_is_kept_here_is_not_asked_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    board = kept(monkeypatch, 1)
    board.of_board.provider = Provider.LOCAL
    wanted = Filter(session="s-1")

    assert await board.remote.search("note", wanted, 5, None) is None
    assert await board.remote.search("note", Filter(session="s-2"), 5, None) is None
    assert await board.remote.search("note", Filter(), 5, None) is None
    assert board.asked == []
