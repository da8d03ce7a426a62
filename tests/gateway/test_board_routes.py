"""The whiteboard over HTTP: written on, paged through, searched, exported, kept."""

import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from csp.gateway import board_routes as board_module
from csp.gateway.auth import Caller
from csp.gateway.route_table import Call
from csp.journal.rebuildable_files import BOARD_NAME
from csp.protocol.enums import MessageId
from csp.protocol.notes import BoardBody, BoardParams, ExportParams, NoteKind, NoteView, SearchParams
from csp.room import secrets
from csp.room.commands import WriteNote
from csp.whiteboard.note_index import Filter
from csp.whiteboard.whiteboard import NotePage
from tests.gateway.asked import AGENT, CLAUDE, Recorder
from tests.gateway.asked import ROOM as THE_ROOM
from tests.gateway.served import ROOM, Member, ServedRoom, served

KEY = "sk-ant-api03-AbCdEf_123-45678901234"


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[ServedRoom]:
    async with served(tmp_path / "room", durability="flush") as room:
        yield room


async def write(room: ServedRoom, text: str, token: str = ROOM, **fields: object) -> dict[str, Any]:
    note: dict[str, Any] = (await room.post("/board", {"text": text, **fields}, token))["note"]
    return note


async def find(room: ServedRoom, q: str, token: str = ROOM, **more: object) -> list[dict[str, Any]]:
    answer = await room.get(f"/board/search?{urlencode({'q': q, **more})}", token)
    assert (answer["provider"], answer["took_ms"] >= 0) == ("local", True)
    items: list[dict[str, Any]] = answer["items"]
    return items


async def texts(room: ServedRoom, query: str = "", token: str = ROOM) -> list[str]:
    return [note["text"] for note in (await room.get(f"/board{query}", token))["items"]]


async def begin(room: ServedRoom, *names: str, **fields: object) -> tuple[str, list[Member]]:
    """Begin a round robin of these agents; return its id."""
    members = [await room.join(name) for name in names]
    body = {"mode": "round_robin", "agents": list(names), "topic": "t", **fields}
    return (await room.post("/sessions", body))["id"], members


async def reply(room: ServedRoom, member: Member, text: str) -> None:
    inbox = await room.get(f"/inbox/{member.id}", member.token)
    turn = next(item["turn"] for item in inbox["items"] if item["kind"] == "turn")
    await room.post("/agent-output", {"content": text, "turn": turn}, member.token)


# --- writing -------------------------------------------------------------------------------------


async def test_note_has_the_shape_of_the_contract(room: ServedRoom) -> None:
    claude = await room.join("claude")
    note = await write(room, "the parser keeps tabs", claude.token, tags=["parser"])
    seq = (await room.get("/health"))["seq"]
    ts = note.pop("ts")

    assert note == {
        "id": f"n-{seq}",
        "idx": 0,
        "session": "room",
        "thread": "default",
        "author": "claude",
        "text": "the parser keeps tabs",
        "tags": ["parser"],
        "kind": "note",
        "source": None,
    }
    assert await room.get(f"/board/n-{seq}") == {**note, "ts": ts}


async def test_same_id_gets_the_same_answer(room: ServedRoom) -> None:
    first = await write(room, "once", id="own-1")

    assert await write(room, "twice", id="own-1") == first
    assert await texts(room) == ["once"]


async def test_secrets_are_gone_before_anybody_sees_them(room: ServedRoom) -> None:
    socket = await room.connect()
    note = await write(room, f"use {KEY} with {room.token}")
    await room.send("human", "that is all", (await room.join("claude")).token)
    await room.until(_sees(socket, "that is all"), "the watcher is up to date")

    assert note["text"] == "use [redacted api key] with [redacted room token]"
    assert KEY not in json.dumps(socket.events)
    assert KEY not in (room.folder / "journal.jsonl").read_text()


async def test_long_note_is_searched_for_secrets_beside_the_event_loop(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()

    def noted(kind: Any) -> Any:
        def seems(value: str) -> bool:
            threads.add(threading.get_ident())
            return bool(kind.seems(value))

        return kind._replace(seems=seems)

    monkeypatch.setattr(secrets, "PATTERNS", tuple(noted(kind) for kind in secrets.PATTERNS))
    note = await write(room, f"{KEY} " * 1000)

    assert KEY not in note["text"]
    assert threads
    assert threading.get_ident() not in threads


def _sees(socket: Any, text: str) -> Any:
    async def seen() -> bool:
        return any(event.get("text") == text for event in socket.events)

    return seen


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": ""},
        {"text": "  \n"},
        {"text": "x", "session": "s-99"},
        {"text": "x", "session": "../etc"},
        {"text": "x", "tags": ["two words"]},
        {"text": "x", "tags": ["t"] * 17},
        {"text": "x", "id": "n-5"},
    ],
)
async def test_what_is_no_note_is_refused(room: ServedRoom, body: object) -> None:
    answer = await room.call("POST", "/board", body)

    assert answer.is_refusal


async def test_unknown_notes_are_not_found(room: ServedRoom) -> None:
    for name in ("n-99", "n-x", "m-1", "n-99999999999999999999", "n-" + "9" * 300):
        assert (await room.call("GET", f"/board/{quote(name)}")).status == 404


# --- a session's board ---------------------------------------------------------------------------


async def test_replies_of_a_session_are_on_its_board(room: ServedRoom) -> None:
    session, (claude, codex) = await begin(room, "claude", "codex", steps=2)
    await reply(room, claude, f"I say {KEY}")
    await reply(room, codex, "and I agree")
    first, second = (await room.get(f"/board?session={session}"))["items"]
    said = (await room.history("?types=agent_response"))[0]

    assert (first["idx"], first["author"], first["kind"]) == (0, "claude", "reply")
    assert first["text"] == "I say [redacted api key]"
    assert first["source"] == {"seq": said["seq"], "type": "agent_response", "id": said["id"]}
    assert (second["idx"], second["author"], second["text"]) == (1, "codex", "and I agree")


async def test_index_goes_on_after_a_restart_and_an_end(room: ServedRoom) -> None:
    session, (claude, _) = await begin(room, "claude", "codex", steps=4)
    await reply(room, claude, "first")
    await write(room, "second", session=session)
    await room.restart()
    await write(room, "third", session=session)
    await room.post(f"/sessions/{session}/stop")
    await write(room, "fourth", session=session)
    notes = (await room.get(f"/board?session={session}"))["items"]

    assert [(note["idx"], note["text"]) for note in notes] == [
        (0, "first"),
        (1, "second"),
        (2, "third"),
        (3, "fourth"),
    ]


async def test_setting_keeps_replies_off_the_board(tmp_path: Path) -> None:
    async with served(tmp_path / "room", board_replies=False) as room:
        session, (claude, _) = await begin(room, "claude", "codex", steps=2)
        await reply(room, claude, "first")

        assert await texts(room, f"?session={session}") == []


async def test_sealed_words_are_not_found_until_they_are_open(room: ServedRoom) -> None:
    members = [await room.join(name) for name in ("claude", "codex")]
    await room.post("/mode", {"mode": "consensus", "topic": "t", "agents": ["claude", "codex"]})
    await reply(room, members[0], "I propose marzipan")
    claude, codex = (member.token for member in members)
    hidden = [await find(room, "marzipan", codex), await texts(room, "", codex)]
    note = (await find(room, "marzipan", claude))[0]["note"]["id"]
    missing = await room.call("GET", f"/board/{note}", token=codex)
    exported = (await room.get("/board/export", codex))["files"]
    await reply(room, members[1], "I propose nougat")

    assert (hidden, missing.status, exported) == ([[], []], 404, [])
    assert [hit["note"]["id"] for hit in await find(room, "marzipan", codex)] == [note]


# --- paging --------------------------------------------------------------------------------------


async def test_pages_lead_through_all_notes_both_ways(room: ServedRoom) -> None:
    for number in range(5):
        await write(room, f"note {number}")
    newest = await room.get("/board?limit=2")
    older = await room.get(f"/board?limit=4&before={newest['next']}")
    forward = await room.get("/board?limit=2&after=0")
    onward = await room.get(f"/board?limit=9&after={forward['next']}")
    end = await room.get(f"/board?limit=9&after={onward['next']}")

    assert [note["text"] for note in older["items"] + newest["items"]] == [f"note {n}" for n in range(5)]
    assert older["next"] is None
    assert [note["text"] for note in forward["items"] + onward["items"]] == [f"note {n}" for n in range(5)]
    assert (end["items"], end["next"]) == ([], onward["next"])


async def test_filters_leave_what_was_asked_for(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await write(room, "apple pie", claude.token, tags=["food", "red"])
    await write(room, "apple tree", tags=["foo"])

    assert await texts(room, "?author=claude") == ["apple pie"]
    assert await texts(room, "?tag=food") == ["apple pie"]
    assert await texts(room, "?tag=foo") == ["apple tree"]
    assert await texts(room, "?kind=reply") == []
    assert len(await find(room, "apple")) == 2
    for filter in ({"author": "human"}, {"tag": "foo"}, {"since": 0, "tag": "foo"}):
        assert [hit["note"]["text"] for hit in await find(room, "apple", **filter)] == ["apple tree"]
    assert await find(room, "apple", until=1000) == []
    assert await find(room, "apple", session="s-1") == []


# --- searching -----------------------------------------------------------------------------------


async def test_words_are_found_by_their_stem(room: ServedRoom) -> None:
    await write(room, "we retried the connections three times")
    await write(room, "lunch is at noon")
    (hit,) = [hit for hit in await find(room, "retry connecting") if hit["how"] == "words"]

    assert hit["note"]["text"] == "we retried the connections three times"


@pytest.mark.parametrize(
    ("q", "text"),
    [
        ("index.py", "look into csp/journal/index.py:42 for it"),
        ("why does test_roles fail", "test_roles was red on my machine"),
        ("SearchIndex", "the class SearchIndex owns it"),
        ("ECONNREFUSED", "it says ECONNREFUSED at once"),
        ("d49623c", "broken since d49623cabc0123456789abcdef0123456789abcd"),
        ("what is n-12 about", "n-12 was about tabs"),
        ("E0432", "rustc gives E0432 there"),
    ],
)
async def test_names_are_found_exactly_and_first(room: ServedRoom, q: str, text: str) -> None:
    await write(room, text)
    for number in range(5):
        await write(
            room, f"why does the index or the test of roles fail, search index {number}, connection refused"
        )
    first = (await find(room, q))[0]

    assert (first["note"]["text"], first["how"]) == (text, "exact")


async def test_words_inside_names_are_found(room: ServedRoom) -> None:
    await write(room, "renamed fetchUserProfile today")

    assert len(await find(room, "user profile")) == 1


@pytest.mark.parametrize("q", ['"', "a OR", "NEAR(", "*", "-", "'; DROP TABLE notes", "\U0001f600", "of"])
async def test_no_question_breaks_the_search(room: ServedRoom, q: str) -> None:
    await write(room, "something else")

    assert isinstance(await find(room, q), list)


async def test_blank_question_is_refused(room: ServedRoom) -> None:
    assert (await room.call("GET", "/board/search?q=%20")).is_refusal


async def test_limit_is_kept(room: ServedRoom) -> None:
    for number in range(5):
        await write(room, f"apple {number}")

    assert len(await find(room, "apple", limit=3)) == 3


# --- export --------------------------------------------------------------------------------------


async def test_export_names_the_files_by_index_with_speaker(room: ServedRoom) -> None:
    session, (claude, _) = await begin(room, "claude", "codex", steps=2)
    await reply(room, claude, "first")
    await write(room, "second", session=session)
    await write(room, "elsewhere")
    files = (await room.get(f"/board/export?session={session}"))["files"]

    assert files == [
        {"path": f"whiteboard/{session}/0000_claude.txt", "text": "first"},
        {"path": f"whiteboard/{session}/0001_human.txt", "text": "second"},
    ]
    assert len((await room.get("/board/export"))["files"]) == 3


# --- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["missing", "torn", "nonsense", "another"])
async def test_index_is_made_again_from_the_journal(room: ServedRoom, tmp_path: Path, harm: str) -> None:
    await write(room, "apple pie")
    await write(room, "plum cake")
    await find(room, "apple")
    await room.stop()
    path = room.folder / BOARD_NAME
    if harm == "missing":
        path.unlink()
    elif harm == "torn":
        path.write_bytes(path.read_bytes()[:3000])
    elif harm == "nonsense":
        path.write_bytes(b"x" * 9000)
    else:
        async with served(tmp_path / "other") as other:
            await write(other, "banana")
            await write(other, "cherry")
            await find(other, "banana")
        path.write_bytes((other.folder / BOARD_NAME).read_bytes())
    await room.start()

    assert (await find(room, "apple"))[0]["note"]["text"] == "apple pie"
    assert await texts(room) == ["apple pie", "plum cake"]


async def test_where_no_file_can_be_made_the_notes_are_found_all_the_same(room: ServedRoom) -> None:
    (room.folder / BOARD_NAME).mkdir()
    await write(room, "apple pie")

    assert len(await find(room, "apple")) == 1


async def test_redacted_note_is_found_by_nothing(room: ServedRoom) -> None:
    note = await write(room, "the marzipan is hidden in cellar_7", tags=["marzipan"])
    await find(room, "marzipan")
    await room.post(f"/messages/{note['id']}/redact")

    assert (await find(room, "marzipan"), await find(room, "cellar_7")) == ([], [])
    assert await texts(room) == ["[redacted]"]
    assert b"marzipan" not in b"".join(file.read_bytes() for file in room.folder.glob("*") if file.is_file())


async def test_redacted_reply_is_gone_from_the_board_too(room: ServedRoom) -> None:
    _, (claude, _) = await begin(room, "claude", "codex", steps=2)
    await reply(room, claude, "the marzipan is hidden")
    (said,) = await room.history("?q=marzipan")
    await room.post(f"/messages/{said['id']}/redact")

    assert await find(room, "marzipan") == []
    assert await texts(room, "?kind=reply") == ["[redacted]"]


async def test_reply_is_redacted_by_the_id_of_its_note(room: ServedRoom) -> None:
    _, (claude, _) = await begin(room, "claude", "codex", steps=2)
    await reply(room, claude, "the marzipan is hidden")
    (note,) = (await room.get("/board?kind=reply"))["items"]
    await room.post(f"/messages/{note['id']}/redact")

    assert (await texts(room, "?kind=reply"), await room.history("?q=marzipan")) == (["[redacted]"], [])


async def test_pruned_notes_are_gone_while_the_index_goes_on(room: ServedRoom) -> None:
    await write(room, "old")
    await write(room, "new")
    seq = (await room.get("/health"))["seq"]
    await room.post("/history/prune", {"before": seq})
    last = await write(room, "newest")

    assert await texts(room) == ["new", "newest"]
    assert last["idx"] == 2


# --- the routes by themselves --------------------------------------------------------------------


def a_note(seq: int) -> NoteView:
    return NoteView(
        id=MessageId(f"n-{seq}"),
        idx=seq,
        session="room",
        thread="default",
        author=CLAUDE,
        text=f"note {seq}",
        tags=(),
        kind=NoteKind.NOTE,
        source=None,
        ts=1.0,
    )


class Asked:
    """A board that notes what is asked of it; `pages` are its answers."""

    def __init__(self, *pages: NotePage) -> None:
        self.pages = list(pages)
        self.all: list[Any] = []
        self.board = self
        self.remote_boards = SimpleNamespace(search=self.search_there)
        self.writer = SimpleNamespace(settle=self.settle)

    async def settle(self) -> None:
        self.all.append("settled")

    async def search_there(self, *given: Any) -> None:
        return None

    def page(self, *given: Any) -> NotePage:
        self.all.append(given)
        return self.pages.pop(0)

    def search(self, *given: Any, rerank: bool) -> list[Any]:
        self.all.append((*given, rerank))
        return []

    async def ask(self, handler: Any, query: Any, caller: Caller = AGENT) -> Any:
        return await handler(self, Call(caller, {}, query, None))


async def test_every_word_of_a_note_reaches_the_room() -> None:
    body = BoardBody(text="a note", session="s-1", tags=("parser",), id="k")

    assert await Recorder().command(board_module.write, AGENT, body) == WriteNote(
        sender=CLAUDE, text="a note", session="s-1", tags=("parser",), id="k"
    )


async def test_every_condition_reaches_the_board() -> None:
    asked = Asked(NotePage([], has_more=False), NotePage([], has_more=False))
    told: dict[str, Any] = {"session": "s-1", "author": "codex", "kind": NoteKind.REPLY, "tag": "parser"}
    await asked.ask(board_module.list_notes, BoardParams(**told, after=3, before=9, limit=7))
    await asked.ask(board_module.list_notes, BoardParams(), THE_ROOM)
    await asked.ask(board_module.search, SearchParams(q="apple", **told, since=1.0, until=2.0, limit=7))
    await asked.ask(board_module.search, SearchParams(q="apple", rerank=1), THE_ROOM)

    assert asked.all == [
        *("settled", (Filter(**told, after=3, before=9), 7, CLAUDE)),
        *("settled", (Filter(), 50, None)),
        *("settled", ("apple", Filter(**told, since=1.0, until=2.0), 7, CLAUDE, False)),
        *("settled", ("apple", Filter(), 10, None, True)),
    ]


@pytest.mark.parametrize(
    ("seqs", "has_more", "after", "expected"),
    [
        ([4, 7], True, None, 4),
        ([4, 7], False, None, None),
        ([], False, None, None),
        ([4, 7], True, 3, 7),
        ([4, 7], False, 3, 7),
        ([], False, 3, 3),
    ],
)
async def test_a_page_says_where_to_go_on(
    seqs: list[int], has_more: bool, after: int | None, expected: int | None
) -> None:
    asked = Asked(NotePage([a_note(seq) for seq in seqs], has_more=has_more))

    assert (await asked.ask(board_module.list_notes, BoardParams(after=after))).next == expected


async def test_an_export_has_every_page() -> None:
    asked = Asked(NotePage([a_note(4), a_note(7)], has_more=True), NotePage([a_note(9)], has_more=False))
    view = await asked.ask(board_module.export, ExportParams(session="room"))

    assert len(view.files) == 3
    assert [given[0].after for given in asked.all if given != "settled"] == [0, 7]
    assert {given[0].session for given in asked.all if given != "settled"} == {"room"}
