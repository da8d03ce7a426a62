"""What the commands ask of a gateway that has modes."""

from pathlib import Path
from typing import Any

import pytest

from csp.core.typed import Stop, read_line
from csp.errors import Refused
from csp.human import commands
from tests.human.fakes import RUNNING, Modes
from tests.waiting import wait_until


@pytest.fixture
async def chat(tmp_path: Path) -> Modes:
    return Modes(tmp_path)


@pytest.mark.parametrize(
    ("line", "method", "path", "body"),
    [
        (
            '/mode debate "tabs or spaces" --rounds 2 --agents Claude,codex'
            " --first codex --synth claude --ballot",
            "POST",
            "/mode",
            {
                "mode": "debate",
                "topic": "tabs or spaces",
                "rounds": 2,
                "agents": ["claude", "codex"],
                "first": "codex",
                "synth": "claude",
                "ballot": True,
            },
        ),
        ("/mode autopilot go on", "POST", "/mode", {"mode": "autopilot", "topic": "go on"}),
        (
            "@router collaborate claude codex: build it",
            "POST",
            "/mode",
            {"mode": "collaborate", "topic": "build it", "agents": ["claude", "codex"]},
        ),
        ("/end", "POST", "/mode", {"mode": "freeform"}),
        ("/mode freeform", "POST", "/mode", {"mode": "freeform"}),
        (
            "/mode autopilot go --turns 9 --cost 0.5 --respect-final --soft-turns",
            "POST",
            "/mode",
            {
                "mode": "autopilot",
                "topic": "go",
                "limits": {"turns": 9, "cost": 0.5},
                "respect_final": True,
                "soft_turns": True,
            },
        ),
        ("/next", "POST", "/turn/next", {}),
        ("/pause", "POST", "/sessions/s-4/pause", {}),
        ("/extend 3", "POST", "/sessions/s-4/extend", {"rounds": 3}),
        ("/extend", "POST", "/sessions/s-4/extend", {}),
        ("/skip", "POST", "/sessions/s-4/skip", {}),
        ("/skip codex", "POST", "/sessions/s-4/skip", {"agent": "codex"}),
        ("/stop all", "POST", "/stop", {"all": True}),
        ("/approve claude 2", "POST", "/agents/claude/approve", {"choice": 2}),
        ("/deny claude", "POST", "/agents/claude/deny", {}),
        ("/interrupt claude", "POST", "/agents/claude/interrupt", {}),
        ("/restart claude", "POST", "/agents/claude/restart", {}),
        ("/pause claude", "POST", "/agents/claude/pause", {}),
        ("/remove codex", "DELETE", "/agents/codex", None),
    ],
)
async def test_a_command_is_one_request(chat: Modes, line: str, method: str, path: str, body: Any) -> None:
    await chat.do(line)

    assert chat.asked == [(method, path, body)]


async def test_the_status_names_the_turn_and_the_topic(chat: Modes) -> None:
    lines = await chat.do("/status")

    assert lines[:3] == ["Consensus 1/2 · codex +1", "  topic: which name", "  waiting for codex, claude"]
    assert lines[3:] == ["claude  idle  cli", "codex   idle  cli"]


async def test_the_status_says_what_was_used_and_what_it_cost(chat: Modes) -> None:
    row = {
        "agent": "claude",
        "model": "opus\x1b",
        "replies": 2,
        "input": 12000,
        "output": 34,
        "cost_usd": 0.5,
    }
    free = {"agent": "llama", "model": None, "replies": 1, "input": 5, "output": 6, "cost_usd": None}
    items = [row | {"unpriced": 1, "estimated": 0}, free | {"unpriced": 1, "estimated": 1}]
    chat.answers["/usage"] = {"items": items, "prices": "genai-prices 1"}
    lines = await chat.do("/status")

    assert lines[-3:] == [
        "spent by claude with opus␛: 2 replies, 12,000 tokens in, 34 out, "
        "$0.5000 and 1 reply without a known price",
        "spent by llama with a model it does not name: 1 reply, about 5 tokens in, 6 out, "
        "no price is known for it",
        "prices: genai-prices 1",
    ]


async def test_votes_are_shown_with_their_reasons(chat: Modes) -> None:
    assert await chat.do("/votes") == [
        "votes: A (codex) 1; winner: A (codex)",
        "  A by codex: one two",
        "  claude voted A: ␛[1mgood",
    ]


async def test_a_mode_that_ended_says_why(chat: Modes) -> None:
    chat.answers["/mode"] = {"mode": "freeform", "status": "ended", "reason": "cap_reached"}

    assert (await chat.do("/status"))[0] == "Mode: freeform (the last one ended: cap_reached)"


async def test_a_paused_mode_is_resumed(chat: Modes) -> None:
    chat.answers["/mode"] = RUNNING | {"status": "paused"}
    await chat.do("/resume")

    assert chat.asked == [("POST", "/sessions/s-4/resume", {})]


@pytest.mark.parametrize(("line", "status"), [("/pause", "paused"), ("/resume", "running")])
async def test_what_is_so_already_is_said(chat: Modes, line: str, status: str) -> None:
    chat.answers["/mode"] = RUNNING | {"status": status}

    assert await chat.do(line) == [f"consensus is {status} already"]
    assert chat.asked == []


@pytest.mark.parametrize("line", ["/stop", "/end", "/next", "/skip"])
async def test_a_person_reads_what_the_room_says_of_it(chat: Modes, line: str) -> None:
    assert await chat.do(line) == []


@pytest.mark.parametrize("line", ["/pause", "/resume", "/extend", "/skip", "/next", "/end"])
async def test_without_a_mode_nothing_is_asked(chat: Modes, line: str) -> None:
    chat.answers["/mode"] = {"mode": "freeform", "status": "ended", "sessionId": "s-4"}

    with pytest.raises(Refused, match="no mode is running"):
        await chat.do(line)
    assert chat.asked == []


def test_the_word_alone_is_a_stop() -> None:
    assert read_line("AllStop") == Stop()


async def test_every_row_can_be_explained(chat: Modes) -> None:
    for row in commands.ROWS:
        chat.shown.lines.clear()

        assert await chat.do(f"/help {row.name}") == [f"{row.form}  {row.help}"]


async def test_help_fits_80_columns_and_names_every_command(chat: Modes) -> None:
    lines = await chat.do("/help")

    assert [line for line in lines if len(line) > 80] == []
    assert [
        row.name for row in commands.ROWS if not any(line.startswith(f"/{row.name}") for line in lines)
    ] == []


def test_every_command_of_the_design_has_a_row() -> None:
    named = (
        "agents add remove restart mode status next end stop history search queue cancel resend pause resume"
        " share noshare approve deny interrupt continue votes extend skip focus export help quit fwd show"
        " review web board"
    )

    assert set(named.split()) == {row.name for row in commands.ROWS}


async def test_a_fault_in_here_is_one_line_and_the_pane_goes_on(chat: Modes) -> None:
    chat.answers["/mode"] = {"proposals": [1]}
    async with chat:
        chat.enter("/votes")
        chat.enter("/help quit")
        await wait_until(lambda: any(line.startswith("/quit") for line in chat.shown.lines))

    assert any(line.startswith("unexpected error: AttributeError: ") for line in chat.shown.lines)
