"""The whiteboard notes that the next turns of a collaboration get."""

from types import SimpleNamespace
from typing import Any

import pytest

from csp.gateway.board_workers import MAX_HITS, BoardHits
from csp.protocol.enums import AgentId, MessageId
from csp.protocol.notes import FoundBy, HitView, NoteKind, NoteView
from csp.whiteboard.note_index import Filter
from tests.gateway.served import ServedRoom


async def begun(room: ServedRoom) -> tuple[str, str]:
    """Have one agent collaborate; return its token, the handle."""
    joined = await room.join("gpt", kind="api")
    answer = await room.post("/collaborations", {"objective": "move the piano", "models": ["gpt"]})
    return joined.token, str(answer["handle"])


async def ask_of(room: ServedRoom, token: str) -> dict[str, Any]:
    """Return the turn that waits for the agent."""
    answer = await room.call("GET", "/inbox/gpt?wait=20", token=token)
    (item,) = answer.data["items"]
    return dict(item)


async def reply(room: ServedRoom, token: str, text: str) -> None:
    item = await ask_of(room, token)
    await room.call("POST", "/agent-output", {"content": text, "turn": item["turn"]}, token=token)


async def test_notes_of_the_room_come_with_the_first_turn(room: ServedRoom) -> None:
    await room.post("/board", {"text": "the piano weighs 400 kg"})
    token, _ = await begun(room)

    assert "human: the piano weighs 400 kg" in (await ask_of(room, token))["text"]


async def test_without_notes_nothing_is_looked_for(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object, **__: object) -> None:
        raise AssertionError("there is nothing to find")

    monkeypatch.setattr(room.gateway.board, "search", search)
    token, _ = await begun(room)
    await reply(room, token, "first")

    assert "gpt: first" in (await ask_of(room, token))["text"]


async def test_note_that_comes_later_is_found_with_the_next_reply(room: ServedRoom) -> None:
    token, handle = await begun(room)
    await room.post("/board", {"text": "the stairs are narrow for a piano", "session": handle})
    await room.post("/board", {"text": "nothing to do with it: a recipe"})
    await reply(room, token, "how are the stairs?")
    text = (await ask_of(room, token))["text"]

    assert "human: the stairs are narrow for a piano" in text
    assert "a recipe" not in text


async def test_board_that_cannot_be_read_does_not_stop_the_room(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: object, **__: object) -> None:
        raise OSError("the disk is gone")

    token, _ = await begun(room)
    await room.post("/board", {"text": "the piano weighs 400 kg"})
    monkeypatch.setattr(room.gateway.board, "search", search)
    await reply(room, token, "first")

    assert "gpt: first" in (await ask_of(room, token))["text"]


# --- what is looked for, and what of it is taken -------------------------------------------------


def hit(number: int, score: float, kind: NoteKind = NoteKind.NOTE) -> HitView:
    note = NoteView(
        id=MessageId(f"n-{number}"),
        idx=number,
        session="s-1",
        thread="default",
        author=AgentId("claude"),
        text=str(number),
        tags=(),
        kind=kind,
        source=None,
        ts=1.0,
    )
    return HitView(note=note, score=score, how=FoundBy.WORDS)


class Found:
    """A gateway whose board finds what it is told to, and remembers what it was asked."""

    def __init__(self, *, notes: int = 1, items: int = 8) -> None:
        self.hits: dict[str | None, list[HitView]] = {}
        self.summaries: list[HitView] = []
        self.asked: list[tuple[str, str | None, int, str]] = []
        self.board = SimpleNamespace(page=self._page, search=self._search)
        self.rules = SimpleNamespace(window=SimpleNamespace(items=items))
        self.sessions: list[Any] = []
        boards = {None: SimpleNamespace(next_idx=notes), "s-1": SimpleNamespace(next_idx=0)}
        by_name = SimpleNamespace(
            live=lambda: self.sessions, live_with=lambda agent: self.sessions, find=lambda name: None
        )
        room = SimpleNamespace(sessions=by_name, boards=SimpleNamespace(of=boards.__getitem__))
        self.boards = boards
        self.writer = SimpleNamespace(room=room)
        parts: Any = (self.writer, self.board, self.rules)
        self.finder = BoardHits(*parts)

    def _page(self, wanted: Filter, limit: int, audience: AgentId) -> SimpleNamespace:
        assert (wanted, limit, audience) == (Filter(session="s-1", kind=NoteKind.SUMMARY), 1, "none")
        return SimpleNamespace(notes=[one.note for one in self.summaries])

    def _search(self, q: str, wanted: Filter, limit: int, audience: AgentId) -> list[HitView]:
        self.asked.append((q, wanted.session, limit, audience))
        return self.hits.get(wanted.session, [])


def session(collaboration: object = object(), **more: Any) -> SimpleNamespace:
    setup = SimpleNamespace(collaboration=collaboration, topic="the piano")
    return SimpleNamespace(id="s-1", setup=setup, items=[], turns={}, **more)


def ids(found: Any) -> list[str]:
    return [one.note.id for one in found]


async def test_the_last_summary_comes_first_then_the_best_of_both_boards() -> None:
    gateway: Any = Found()
    gateway.sessions = [session()]
    gateway.summaries = [hit(9, 0.0, NoteKind.SUMMARY)]
    gateway.hits = {"s-1": [hit(1, 0.2), hit(8, 0.9, NoteKind.SUMMARY)], "room": [hit(2, 0.5)]}
    found = (await gateway.finder.for_all())["s-1"]

    assert ids(found) == ["n-9", "n-2", "n-1"]
    assert (found[0].score, found[0].how) == (1.0, FoundBy.EXACT)
    assert gateway.asked == [("the piano ", "s-1", 24, "none"), ("the piano ", "room", 24, "none")]
    gateway.summaries = []
    assert ids((await gateway.finder.for_all())["s-1"]) == ["n-8", "n-2", "n-1"]


async def test_no_more_is_taken_than_fits_beside_a_window() -> None:
    gateway: Any = Found()
    gateway.sessions = [session()]
    gateway.hits = {"room": [hit(number, 1.0 - number / 100) for number in range(30)]}

    assert len((await gateway.finder.for_all())["s-1"]) == MAX_HITS == 24


async def test_only_collaborations_look_for_notes() -> None:
    gateway: Any = Found()
    gateway.sessions = [session(collaboration=None)]

    assert await gateway.finder.for_all() == {}
    assert gateway.asked == []


@pytest.mark.parametrize(("of_room", "of_session", "is_asked"), [(0, 8, False), (0, 9, True), (1, 0, True)])
async def test_notes_that_the_window_shows_are_not_looked_for(
    of_room: int, of_session: int, is_asked: bool
) -> None:
    gateway: Any = Found(notes=of_room)
    gateway.boards["s-1"].next_idx = of_session
    gateway.sessions = [session()]

    assert bool(await gateway.finder.for_all()) is is_asked


@pytest.mark.parametrize(("turn", "is_asked"), [("t-1", True), ("m-1", True), ("t-2", False)])
async def test_a_reply_looks_for_its_own_words_in_the_session_of_its_turn(turn: str, is_asked: bool) -> None:
    gateway: Any = Found()
    mine = session()
    mine.turns = {"claude": SimpleNamespace(id="t-1", message="m-1")}
    gateway.sessions = [mine]
    await gateway.finder.for_reply(AgentId("claude"), turn, "x" * 500)

    assert [asked[0] for asked in gateway.asked] == ["the piano " + "x" * 400] * 2 * is_asked


async def test_without_words_the_last_ones_of_the_session_are_looked_for() -> None:
    gateway: Any = Found()
    mine = session()
    mine.items = [SimpleNamespace(text="old"), SimpleNamespace(text="y" * 500)]
    gateway.sessions = [mine]
    await gateway.finder.for_all()

    assert gateway.asked[0][0] == "the piano " + "y" * 400


@pytest.mark.parametrize("notes", [0, 1])
async def test_a_beginning_looks_on_the_rooms_board_alone(notes: int) -> None:
    gateway: Any = Found(notes=notes)
    gateway.hits = {"room": [hit(1, 0.5)]}
    found = await gateway.finder.for_start("s-1", "a" * 500, "b" * 500)

    assert {key: ids(hits) for key, hits in found.items()} == ({"": ["n-1"]} if notes else {})
    assert [asked[:2] for asked in gateway.asked] == [("a" * 400 + " " + "b" * 400, "room")] * notes


async def test_what_goes_on_is_looked_for_as_the_session_that_it_is() -> None:
    gateway: Any = Found()
    gateway.writer.room.sessions.find = lambda name: session() if name == "plan" else None
    found = await gateway.finder.for_start("plan", "unused", "go on")

    assert list(found) == ["s-1"]
    assert gateway.asked[0][0] == "the piano go on"
