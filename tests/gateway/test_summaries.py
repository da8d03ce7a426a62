"""Summaries of a whiteboard: asked for, written, failed, due by themselves."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.served import Clock, Member, ServedRoom, served
from tests.gateway.test_board import begin, find, reply, write


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[ServedRoom]:
    settings: dict[str, Any] = {"board_summary_after": 3, "board_summariser": "scribe", "durability": "flush"}
    async with served(tmp_path / "room", Clock(), **settings) as room:
        room.gateway.spawn(room.gateway.summaries.work())
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
    summaries = room.gateway.summaries
    assert summaries.summariser("room") is None
    await room.join("boss", role="orchestrator")
    assert summaries.summariser("room") == "boss"
    session, _ = await begin(room, "claude", "codex", steps=2, synth="codex")
    assert summaries.summariser(session) == "codex"
    await room.join("scribe")
    assert summaries.summariser(session) == "scribe"
