"""Summaries of a whiteboard: asked for, written, failed, due by themselves."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import BadInput, Broken, CspError, Refused
from csp.gateway.board_workers import BoardSummaries
from csp.protocol.enums import ALL, SYSTEM, AgentId, JoinRole, MessageId
from csp.protocol.events import AgentResponse, AnyEvent, BoardChanged, NoteAdded, NoticePosted
from csp.protocol.notes import BoardChange
from csp.room.commands import CompactBoard, Summarise
from tests.gateway.served import Clock, Member, ServedRoom, served
from tests.gateway.test_board_routes import begin, find, reply, write


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[ServedRoom]:
    settings: dict[str, Any] = {"board_summary_after": 3, "board_summariser": "scribe", "durability": "flush"}
    async with served(tmp_path / "room", Clock(), **settings) as room:
        room.gateway.spawn(room.gateway.board_summaries.work())
        yield room


async def asked(room: ServedRoom, scribe: Member) -> dict[str, Any]:
    """Return the message that asks for a summary, once it is there."""
    found: list[dict[str, Any]] = []

    async def is_there() -> bool:
        found[:] = (await room.get(f"/inbox/{scribe.id}", scribe.token))["items"]
        return bool(found)

    await room.until(is_there, "a summary is asked for")
    return found[0]


async def answer(room: ServedRoom, scribe: Member, message: str, text: str) -> None:
    await room.post("/agent-output", {"content": text, "replyTo": message}, scribe.token)


async def summaries(room: ServedRoom) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await room.get("/board?kind=summary"))["items"]
    return items


async def test_summary_is_asked_for_at_the_threshold_then_the_index_goes_on(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    notes = [(await write(room, f"apple number {number}"))["id"] for number in range(3)]
    ask = await asked(room, scribe)
    await write(room, "came meanwhile")
    await answer(room, scribe, ask["id"], "three apples, see parse_apples")
    (summary,) = await summaries(room)
    after = await write(room, "and on")

    assert all(f"[{note}] human: apple number" in ask["text"] for note in notes)
    assert (summary["stands_for"], summary["author"], summary["idx"]) == (notes, "scribe", 4)
    assert summary["source"]["type"] == "agent_response"
    assert after["idx"] == 5
    assert {hit["note"]["id"] for hit in await find(room, "apple number")} >= set(notes)
    assert room.gateway.writer.room.boards.of(None).fresh == 2


async def test_summary_is_redacted_with_the_reply_that_it_was(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    for number in range(3):
        await write(room, f"apple number {number}")
    ask = await asked(room, scribe)
    await answer(room, scribe, ask["id"], "the marzipan is hidden")
    (summary,) = await summaries(room)
    await room.post(f"/messages/{summary['id']}/redact")

    assert [one["text"] for one in await summaries(room)] == ["[redacted]"]
    assert await room.history("?q=marzipan") == []


@pytest.mark.parametrize("text", [" \n", "@working on it\n "])
async def test_blank_summary_changes_nothing(room: ServedRoom, text: str) -> None:
    scribe = await room.join("scribe")
    for number in range(3):
        await write(room, f"note {number}")
    ask = await asked(room, scribe)
    before = room.gateway.writer.room.boards.of(None)
    await answer(room, scribe, ask["id"], text)
    now = room.gateway.writer.room.boards.of(None)

    assert await summaries(room) == []
    assert (now.next_idx, now.fresh) == (before.next_idx, before.fresh)


async def test_no_second_summary_while_one_is_written(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    for number in range(3):
        await write(room, f"note {number}")
    await asked(room, scribe)
    again = await room.call("POST", "/board/summarise", {"by": "scribe"})
    for number in range(5):
        await write(room, f"more {number}")
    await asyncio.sleep(0)

    assert (again.status, again.is_refusal) == (409, True)
    assert len(await room.inbox(scribe)) == 1


async def test_summary_survives_a_restart_in_the_midst(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    notes = [(await write(room, f"note {number}"))["id"] for number in range(3)]
    ask = await asked(room, scribe)
    await room.restart()
    await answer(room, scribe, ask["id"], "all of it")

    assert [one["stands_for"] for one in await summaries(room)] == [notes]


async def test_what_is_sealed_is_not_summed_up(room: ServedRoom) -> None:
    scribe, claude, _ = [await room.join(name) for name in ("scribe", "claude", "codex")]
    await room.post("/mode", {"mode": "consensus", "topic": "t", "agents": ["claude", "codex"]})
    session = (await room.get("/mode"))["sessionId"]
    await write(room, "open words", session=session)
    await reply(room, claude, "I propose marzipan")
    asked_for = await room.post("/board/summarise", {"by": "scribe", "session": session})
    ask = await asked(room, scribe)

    assert "open words" in ask["text"]
    assert "marzipan" not in ask["text"]
    assert len(asked_for["stands_for"]) == 1


async def test_next_summary_begins_where_the_last_one_ended(room: ServedRoom) -> None:
    scribe = await room.join("scribe")
    session, (claude, _) = await begin(room, "claude", "codex", steps=4)
    await reply(room, claude, "first of all")
    await room.post("/board/summarise", {"by": "scribe", "session": session})
    await answer(room, scribe, (await asked(room, scribe))["id"], "so far so good")
    second = await write(room, "then this", session=session)
    view = await room.post("/board/summarise", {"by": "scribe", "session": session})
    ask = await asked(room, scribe)

    assert view["stands_for"] == [second["id"]]
    assert "so far so good" in ask["text"]
    assert "first of all" not in ask["text"]


async def test_summariser_is_chosen_by_settings_session_or_role(
    room: ServedRoom,
) -> None:
    summaries = room.gateway.board_summaries
    assert summaries.summariser("room") is None
    await room.join("boss", role="orchestrator")
    assert summaries.summariser("room") == "boss"
    session, _ = await begin(room, "claude", "codex", steps=2, synth="codex")
    assert summaries.summariser(session) == "codex"
    await room.join("scribe")
    assert summaries.summariser(session) == "scribe"


# --- by themselves -------------------------------------------------------------------------------

#: Where every event begins.
COMMON = (9, 1.0, MessageId("e-9"), SYSTEM, ALL, "default", "")
LIMIT = 1000


def a_board(*, is_crowded: bool = False, summed: int = 0, compacted: int = 0) -> SimpleNamespace:
    return SimpleNamespace(
        is_crowded=lambda limit: is_crowded and limit == LIMIT,
        is_due=lambda after, now: after == 3 and now == 12.0,
        summed=summed,
        compacted=compacted,
    )


def a_session(
    summarise_at: int | None, cost: float | None = None, synth: str | None = None
) -> SimpleNamespace:
    terms = None if summarise_at is None else SimpleNamespace(summarise_at=summarise_at)
    limits = SimpleNamespace(cost=cost)
    return SimpleNamespace(setup=SimpleNamespace(collaboration=terms, limits=limits, synth=synth))


def a_participant(name: str, *, online: bool = True, role: JoinRole = JoinRole.AGENT) -> SimpleNamespace:
    return SimpleNamespace(id=name, online=online, role=role)


def of_gateway(
    boards: dict[str, SimpleNamespace],
    sessions: dict[str, SimpleNamespace] | None = None,
    people: list[SimpleNamespace] | None = None,
    *,
    after: int = 50,
    summariser: str = "",
    submit: Any = None,
) -> BoardSummaries:
    """Return the summaries of a gateway that has these boards and nothing else."""

    async def settle() -> None:
        return

    room = SimpleNamespace(
        boards=SimpleNamespace(by_name=boards, of=boards.__getitem__),
        sessions=sessions or {},
        participants={one.id: one for one in people or []},
    )
    writer: Any = SimpleNamespace(room=room, settle=settle, submit=submit, is_leading=True)
    rules: Any = SimpleNamespace(
        summary_after=after, board_max_bytes=LIMIT, summariser=summariser, prompts={"summary": "{notes}"}
    )
    board: Any = SimpleNamespace(bytes_until=lambda name, upto: 100 * upto)
    return BoardSummaries(writer, board, rules, 77.0, lambda: 12.0)


@pytest.mark.parametrize(
    ("session", "setting", "is_crowded", "expected"),
    [
        (None, 50, False, 50),
        (None, 50, True, 1),
        (None, 0, True, 0),
        (a_session(None), 50, False, 50),
        (a_session(7), 50, False, 7),
        (a_session(7), 50, True, 1),
        (a_session(7), 0, False, 0),
        (a_session(7, cost=1.0), 50, False, 0),
        (a_session(7, cost=1.0), 50, True, 0),
    ],
)
async def test_the_number_of_notes_that_makes_a_summary_due(
    session: SimpleNamespace | None, setting: int, is_crowded: bool, expected: int
) -> None:
    sessions = {} if session is None else {"s-1": session}
    summaries = of_gateway({"s-1": a_board(is_crowded=is_crowded)}, sessions, after=setting)

    assert summaries._after("s-1") == expected


async def test_only_boards_with_enough_notes_are_due() -> None:
    summaries = of_gateway({"s-1": a_board(), "room": a_board()}, {"s-1": a_session(3)})

    assert summaries.due() == ["s-1"]


async def test_a_board_is_compacted_only_where_a_summary_stands_for_more() -> None:
    boards = {
        "s-1": a_board(is_crowded=True, summed=9, compacted=4),
        "s-2": a_board(is_crowded=True, summed=9, compacted=9),
        "s-3": a_board(summed=9, compacted=4),
    }

    assert of_gateway(boards).crowded() == ["s-1"]


@pytest.mark.parametrize(
    ("wanted", "synth", "expected"),
    [("scribe", "codex", "codex"), ("gemini", "codex", "gemini"), ("", "scribe", "boss"), ("", None, "boss")],
)
async def test_who_is_offline_sums_nothing_up(wanted: str, synth: str | None, expected: str) -> None:
    people = [
        a_participant("away", online=False, role=JoinRole.ORCHESTRATOR),
        a_participant("boss", role=JoinRole.ORCHESTRATOR),
        a_participant("scribe", online=False),
        a_participant("codex"),
        a_participant("gemini"),
    ]
    session = a_session(None, synth=synth)
    summaries = of_gateway({}, {"s-1": session}, people, summariser=wanted)

    assert summaries.summariser("s-1") == expected


async def test_what_changes_a_board_is_news() -> None:
    reply = (*COMMON, ())
    events: dict[str, AnyEvent] = {
        "a note": NoteAdded(*COMMON, idx=0),
        "a reply on the board": AgentResponse(*reply, idx=0),
        "a change": BoardChanged(*COMMON, change=BoardChange.FAILED),
        "a reply beside it": AgentResponse(*reply),
        "a notice": NoticePosted(*COMMON),
    }
    summaries = of_gateway({})
    heard = []
    for name, event in events.items():
        summaries._news.clear()
        summaries.observe([event])
        if summaries._news.is_set():
            heard.append(name)

    assert heard == ["a note", "a reply on the board", "a change"]


async def test_each_look_at_the_boards_waits_for_news(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    async def compact(name: str) -> None:
        done.append(f"compact {name}")

    async def ask(name: str, by: str) -> None:
        done.append(f"{by} sums up {name}")

    summaries = of_gateway({})
    monkeypatch.setattr(summaries, "crowded", lambda: ["s-1"])
    monkeypatch.setattr(summaries, "due", lambda: ["s-1", "s-2"])
    monkeypatch.setattr(summaries, "summariser", {"s-1": "codex"}.get)
    monkeypatch.setattr(summaries, "compact", compact)
    monkeypatch.setattr(summaries, "ask", ask)
    working = asyncio.ensure_future(summaries.work())
    looks = []
    for events in ([], [NoticePosted(*COMMON)], [NoteAdded(*COMMON, idx=0)]):
        summaries.observe(events)
        for _ in range(5):
            await asyncio.sleep(0)
        looks.append(len(done) // 2)
    working.cancel()

    # The first look needs no news: a summary may have become due before the start.
    assert looks == [1, 1, 2]
    assert done[:2] == ["compact s-1", "codex sums up s-1"]


async def test_a_board_is_compacted_up_to_its_last_summary() -> None:
    commands: list[CompactBoard] = []

    async def submit(command: CompactBoard) -> None:
        commands.append(command)

    await of_gateway({"s-1": a_board(summed=9)}, submit=submit).compact("s-1")

    assert commands == [CompactBoard(session="s-1", upto=9, freed=900)]


@pytest.mark.parametrize("error", [Refused("no"), BadInput("no"), Broken("no")])
async def test_what_the_room_refuses_does_not_end_the_work(
    error: CspError, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def submit(command: object) -> None:
        raise error

    async def ask(session: str, by: str) -> None:
        boards.append(session)
        raise error

    boards: list[str] = []
    summaries = of_gateway({"s-1": a_board(summed=9)}, submit=submit)
    await summaries.compact("s-1")
    monkeypatch.setattr(summaries, "crowded", list)
    monkeypatch.setattr(summaries, "due", lambda: ["s-1", "s-2"])
    monkeypatch.setattr(summaries, "summariser", lambda name: "codex")
    monkeypatch.setattr(summaries, "ask", ask)
    working = asyncio.ensure_future(summaries.work())
    for _ in range(5):
        await asyncio.sleep(0)
    working.cancel()

    assert boards == ["s-1", "s-2"]


async def test_what_asks_for_a_summary_lives_as_long_as_any_message(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Summarise] = []

    async def submit(command: Summarise) -> list[BoardChanged]:
        commands.append(command)
        told = {"message": MessageId("m-1"), "by": AgentId("codex")}
        return [BoardChanged(*COMMON, change=BoardChange.ASKED, **told)]  # type: ignore[arg-type]  # by name

    async def fresh(name: str) -> tuple[list[Any], None]:
        return [], None

    summaries = of_gateway({}, submit=submit)
    monkeypatch.setattr(summaries, "_fresh", fresh)
    monkeypatch.setattr("csp.gateway.board_workers.summary_prompt", lambda *given: "sum it up")
    await summaries.ask(None, "codex")

    assert commands == [Summarise(by="codex", session="room", text="sum it up", stands_for=(), ttl_s=77.0)]


async def test_what_was_acknowledged_a_moment_ago_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[CompactBoard] = []
    boards = {"s-1": a_board(summed=4)}
    seen: list[int] = []

    async def submit(command: CompactBoard) -> None:
        commands.append(command)

    async def settle() -> None:
        boards["s-1"].summed = 9

    def page(*given: object) -> SimpleNamespace:
        seen.append(boards["s-1"].summed)
        return SimpleNamespace(notes=[])

    summaries = of_gateway(boards, submit=submit)
    monkeypatch.setattr(summaries._writer, "settle", settle)
    monkeypatch.setattr(summaries._board, "page", page, raising=False)
    await summaries.compact("s-1")
    boards["s-1"].summed = 4

    assert await summaries._fresh("s-1") == ([], None)
    assert ([command.upto for command in commands], seen) == ([9], [9, 9, 9])
