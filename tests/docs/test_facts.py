"""Facts that a page has to state, because people rely on finding them."""

import json
import re

import pytest

from csp.clis.profile import load_profile
from csp.clis.registry import cli_names, find_adapter
from csp.protocol.catalogue import COMMANDS
from csp.room.agent_text import Envelope
from tests.docs.pages import text_of

MODES = ("docs/decide.md", "docs/collaborate.md", "docs/overnight.md")


def text(*pages: str) -> str:
    return "\n".join(text_of(page) for page in pages)


@pytest.mark.parametrize(
    "words",
    [
        '/mode debate "tabs or spaces"',
        "@router collaborate claude codex:",
        "csp mode set debate",
        "curl -s -X POST localhost:8765/mode",
        "csp stop",
        "`Allstop`",
        "F12",
        "`POST /stop`",
        "/next /skip /pause /resume /extend /votes",
        "What is still in flight is discarded.",
    ],
)
def test_the_pages_tell_how_to_start_steer_and_stop_a_mode(words: str) -> None:
    assert words in text(*MODES)


def test_the_documented_envelope_is_valid() -> None:
    found = re.search(r"```json\n(\{.*?\})\n```", text("docs/collaborate.md"), re.DOTALL)
    assert found is not None
    envelope = Envelope.parse(found[1])

    assert set(json.loads(found[1])) == {"message", "handoff", "final"}
    assert (envelope.message, envelope.handoff is not None) == ("text for everyone", True)


@pytest.mark.parametrize(
    "words",
    ["200, 1,000,000, 20", "every 25 turns or 250,000 new tokens", "CSP_MAX_TURNS", "CSP_SOFT_TOKENS"],
)
def test_the_pages_name_every_guard_of_autopilot(words: str) -> None:
    assert words in text("docs/overnight.md")


def test_every_command_of_the_human_pane_is_explained() -> None:
    explained = text("docs/human-pane.md")

    assert [row.name for row in COMMANDS if not re.search(rf"/{row.name}\b", explained)] == []


@pytest.mark.parametrize("name", cli_names())
def test_every_cli_has_a_page_with_its_install_command_and_versions(name: str) -> None:
    page, adapter = text_of(f"docs/agents/{name}.md"), find_adapter(name)
    lowest = re.findall(r"\d+\.\d+", load_profile(name).versions)[0]

    assert adapter.install in page
    assert f"{adapter.label} {lowest}" in page
    (row,) = re.findall(rf"docs/agents/{name}\.md\) \| ([^|]+)\|", text_of("README.md"))
    (tested,) = re.findall(r"^CSP is tested with .+$", page, re.MULTILINE)
    assert re.findall(r"\d+(?:\.\d+)+", row) == re.findall(r"\d+(?:\.\d+)+", tested.removesuffix("."))
