"""What the README has to tell."""

import json
import re
from pathlib import Path

import pytest

from csp.protocol.catalogue import COMMANDS
from csp.room.agent_text import Envelope

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def section(title: str) -> str:
    """Return the text of one section."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## )", README, re.DOTALL | re.MULTILINE)
    assert found is not None, f"README.md has no section {title!r}"
    return found[1]


@pytest.mark.parametrize(
    "words",
    [
        '/mode debate "tabs or spaces"',
        "@router collaborate claude codex:",
        "csp mode set debate",
        "curl -X POST localhost:8765/mode",
        "csp stop",
        "`Allstop`",
        "F12",
        "`POST /stop`",
        "/next /skip /pause /resume /extend /votes",
        "What is still in flight is discarded.",
    ],
)
def test_readme_tells_how_to_start_steer_and_stop_a_mode(words: str) -> None:
    assert words in section("Modes")


def test_the_envelope_of_the_readme_is_valid() -> None:
    found = re.search(r"```json\n(\{.*?\})\n```", section("Modes"), re.DOTALL)
    assert found is not None
    envelope = Envelope.parse(found[1])

    assert set(json.loads(found[1])) == {"message", "handoff", "final"}
    assert (envelope.message, envelope.handoff is not None) == ("what all shall read", True)


@pytest.mark.parametrize(
    "words",
    ["200, 1,000,000, 20", "every 25 turns or 250,000 new tokens", "CSP_MAX_TURNS", "CSP_SOFT_TOKENS"],
)
def test_readme_names_every_guard_of_autopilot(words: str) -> None:
    assert words in section("Modes")


def test_readme_lists_every_command_of_the_human_pane() -> None:
    text = section("The human pane") + section("The whiteboard") + section("Builder and reviewer")

    assert [row.name for row in COMMANDS if not re.search(rf"/{row.name}\b", text)] == []
