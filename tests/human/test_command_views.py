"""What the commands of the human pane show, before a gateway that answers what a test says."""

import time
from pathlib import Path
from typing import Any

import pytest

from csp.errors import BadInput
from csp.human import command_views
from csp.human.safe_text import clock
from tests.human.fakes import AGENTS, RUNNING, Modes


@pytest.fixture
async def chat(tmp_path: Path) -> Modes:
    return Modes(tmp_path)


def said(seq: int, text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"seq": seq, "ts": 0.0, "sender": "claude", "target": "human", "type": "agent_call"} | {
        "text": text,
        **more,
    }


def words(lines: list[str]) -> list[str]:
    """Return the lines without the time before them."""
    return [line.partition("#")[2] if "#" in line else line for line in lines]


# --- agents, status, queue -----------------------------------------------------------------------


async def test_an_agent_is_a_row_of_what_matters(chat: Modes) -> None:
    until = 86400.0 * 365
    chat.answers["/mode"] = {}
    chat.answers["/agents"] = [
        AGENTS[0] | {"state": "needs_approval", "queued": 2, "share": True},
        AGENTS[1] | {"state": "limited", "until": until, "detail": "d\n" * 60, "role": "orchestrator"},
    ]
    first, second = await chat.do("/agents")

    assert first.split("  ", 1)[0] == "claude"
    assert " ".join(first.split()) == "claude needs approval cli 2 waiting · shares its pane"
    shown = " ".join(["d"] * 40)[:79] + "…"
    assert " ".join(second.split()) == f"codex limited until {clock(until)} orchestrator, cli {shown}"


async def test_a_turn_stands_in_brackets(chat: Modes) -> None:
    chat.answers["/mode"] = RUNNING | {"turnOrder": ["claude", "codex"], "waitingFor": ["codex"]}

    assert await chat.do("/agents") == ["claude  [WAITING]    cli", "codex   [YOUR TURN]  cli"]


async def test_an_empty_room_says_how_to_start_somebody(chat: Modes) -> None:
    chat.answers["/agents"] = []

    assert await chat.do("/agents") == ["no agents yet; start one with /add NAME -- COMMAND"]


async def test_the_status_has_the_phase_the_clock_and_who_is_waited_for(chat: Modes) -> None:
    chat.answers["/mode"] = RUNNING | {"phase": "ballot", "deadline": time.time() + 90.5, "waitingFor": []}
    lines = await chat.do("/status")

    assert lines[0].startswith("Consensus 1/2 ballot · codex 1:")
    assert lines[2] == "  ballot, waiting for nobody"


async def test_the_mode_alone_shows_no_topic_that_is_not_there(chat: Modes) -> None:
    chat.answers["/mode"] = RUNNING | {"topic": ""}
    await command_views.status(chat, ["of the mode"])

    assert chat.shown.lines == ["Consensus 1/2 · codex +1", "  waiting for codex, claude"]


async def test_freeform_without_a_past_is_one_word(chat: Modes) -> None:
    chat.answers["/mode"] = {"mode": "freeform"}

    assert (await chat.do("/status"))[0] == "no mode is running"


async def test_what_waits_says_for_whom_how_long_and_why(chat: Modes) -> None:
    item = {"sender": "human", "agent": "ada", "state": "queued", "at": time.time() - 61, "text": "x " * 50}
    held = item | {"seq": 8, "state": "held", "reason": "paused", "at": time.time() - 1}
    chat.answers["/queue"] = {"items": [item | {"seq": 7}, held]}
    first, second = await chat.do("/queue")

    assert first in (f"#7 human to ada, 1:0{n}: queued: {('x ' * 30)[:59]}…" for n in range(1, 10))
    assert second.partition(": ")[2].startswith("paused; /resume ada: x x")


async def test_where_nothing_waits_it_says_so(chat: Modes) -> None:
    chat.answers["/queue"] = {"items": []}

    assert await chat.do("/queue") == ["no queued messages"]


# --- history, search, show -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "limit", "agent"),
    [
        ("/history", 20, None),
        ("/history 5", 5, None),
        ("/history 0", 1, None),
        ("/history 1000", 1000, None),
        ("/history 5000", 1000, None),
        ("/history codex", 20, "codex"),
        ("/history 3 Codex", 3, "codex"),
        ("/history codex 3", 3, "codex"),
    ],
)
async def test_the_history_is_as_long_as_was_asked_for(
    chat: Modes, line: str, limit: int, agent: str | None
) -> None:
    await chat.do(line)

    assert chat.queries == [{"limit": limit, "agent": agent}]
    assert chat.shown.lines == ["no messages yet"]


async def test_a_vote_is_not_shown_beside_the_words_it_stands_in(chat: Modes) -> None:
    chat.items = [said(1, "VOTE: A"), said(2, "A", type="vote", message="m-1"), said(3)]

    assert words(await chat.do("/history")) == ["1 claude: VOTE: A", "3 claude: hi", "--- 2 messages ---"]
    chat.shown.lines.clear()
    chat.items = [said(4, "VOTE: A", type="vote")]
    assert words(await chat.do("/history")) == ["4 claude: VOTE: A", "--- 1 message ---"]


async def test_a_search_looks_for_the_whole_text(chat: Modes) -> None:
    assert await chat.do("/search two words") == ["no messages match 'two words'"]
    assert chat.queries == [{"q": "two words", "limit": 20}]


async def test_a_message_is_shown_whole_by_its_number(chat: Modes) -> None:
    chat.items = [said(12, "\n".join(map(str, range(100))))]
    shown = await chat.do("/show #12")

    assert chat.queries == [{"after": 11, "before": 13, "limit": 1}]
    assert len(shown) == 100


@pytest.mark.parametrize(
    ("lengths", "shown"),
    [([40, 1, 31, 1], 3), ([40, 1], 1), ([30, 1], 2), ([1, 1], 2)],
)
async def test_alone_the_last_long_message_is_shown_else_the_last(
    chat: Modes, lengths: list[int], shown: int
) -> None:
    chat.items = [said(seq, "\n".join(["x"] * length)) for seq, length in enumerate(lengths, 1)]
    chat.items.append(said(99, "\n" * 50, type="system"))
    lines = await chat.do("/show")

    assert words(lines)[0].startswith(f"{shown} claude: x")


async def test_where_nothing_was_said_nothing_can_be_shown(chat: Modes) -> None:
    with pytest.raises(BadInput, match="no messages yet"):
        await chat.do("/show")


async def test_votes_are_broken_at_the_width_of_the_terminal(chat: Modes) -> None:
    chat.look.columns = lambda: 60
    chat.answers["/mode"] = RUNNING | {"votes": {"claude": {"label": "A", "reason": "good " * 30}}}

    assert max(len(line) for text in await chat.do("/votes") for line in text.split("\n")) <= 60


# --- the whiteboard ------------------------------------------------------------------------------


NOTE = {"id": "n-1", "session": "room", "author": "ada", "kind": "note", "text": "two\nlines"}


async def test_notes_are_one_line_each_and_other_kinds_are_named(chat: Modes) -> None:
    chat.answers["/board?limit=20"] = {"items": [NOTE, NOTE | {"kind": "summary", "text": "t" * 300}]}

    assert await chat.do("/board") == [
        "n-1 room ada: two lines",
        f"n-1 room ada (summary): {'t' * 199}…",
    ]


async def test_one_note_is_shown_whole(chat: Modes) -> None:
    chat.answers["/board/n-1"] = NOTE

    assert await chat.do("/board n-1") == ["n-1 room ada: two", "  lines"]


async def test_a_search_of_the_board_escapes_its_words(chat: Modes) -> None:
    chat.answers["/board/search?q=a%20%26%20b"] = {"items": [{"note": NOTE}]}
    assert await chat.do("/board search a & b") == ["n-1 room ada: two lines"]
    chat.answers["/board/search?q=c"] = {"items": []}

    assert (await chat.do("/board search c"))[1:] == ["no notes match 'c'"]


async def test_the_board_is_written_on_and_summed_up(chat: Modes) -> None:
    chat.answers["/board"] = {"note": NOTE}
    chat.answers["/board/summarise"] = {"by": "claude", "stands_for": [1, 2, 3]}
    await chat.do("/board add  some words ")
    lines = await chat.do("/board summarise claude")

    assert chat.asked == [
        ("POST", "/board", {"text": "some words"}),
        ("POST", "/board/summarise", {"by": "claude"}),
    ]
    assert lines == ["wrote n-1", "claude was asked to sum up 3 notes"]
