"""A mode and a command that are added to their tables are there in every interface."""

from typing import cast

import pytest
from playwright.async_api import Page, expect

from csp.cli import completion as shell
from csp.human import command_table
from csp.human.completion import completions
from csp.protocol import catalogue
from csp.protocol.catalogue import ArgumentKind, CommandEntry
from csp.protocol.enums import ControlVerb
from csp.protocol.session_parts import PhaseKind
from csp.room.sessions.modes import MODES, ModeRow, NextSpeaker, PhaseRow
from tests.mcp.doors import Door
from tests.mcp.test_mcp_server import context, room_of
from tests.rooms import LiveRoom
from tests.web.modules import Parts

FISH_BOWL = ModeRow(
    phases=(PhaseRow(kind=PhaseKind.RELAY, name="turns", prompt="x", speaker=NextSpeaker.NEXT),),
    rounds=7,
    unit="steps",
    fewest=3,
)
NUDGE = CommandEntry(
    "nudge", "wake an agent up", (ArgumentKind.AGENT,), control=ControlVerb.INTERRUPT, is_on_page=True
)


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mode and a command that no interface has heard of."""
    monkeypatch.setitem(cast("dict[str, ModeRow]", MODES), "fish_bowl", FISH_BOWL)
    monkeypatch.setattr(catalogue, "COMMANDS", (*catalogue.COMMANDS, NUDGE))


def test_the_pane_completes_and_explains_them() -> None:
    assert ("/nudge", "wake an agent up") in completions("/nu", [])
    assert [word for word, _ in completions("/nudge c", ["claude"])] == ["claude"]
    assert [word for word, _ in completions("/mode fi", [])] == ["fish_bowl"]
    assert any("/nudge AGENT" in line for line in command_table.whole_help())


def test_the_shell_completes_the_mode() -> None:
    assert all("fish_bowl" in script() for script in (shell.bash, shell.zsh, shell.fish))


async def test_mcp_offers_the_mode_as_a_prompt_and_the_command_in_the_catalogue(gateway: LiveRoom) -> None:
    prompts = (await room_of(Door()).list_prompts(context(), None)).prompts
    served = gateway.gateway.get("/catalogue")

    assert "fish_bowl" in [prompt.name for prompt in prompts]
    assert {"name": "nudge", "form": "/nudge AGENT", "help": "wake an agent up"} in served["commands"]
    assert [mode["rounds"] for mode in served["modes"] if mode["id"] == "fish_bowl"] == [7]


async def test_the_page_offers_both(page: Page) -> None:
    await page.evaluate("() => { document.querySelector('#mode-part').open = true }")
    await page.check("#mode-toggle input[value=fish_bowl]", force=True)
    await expect(page.locator("#rounds-label")).to_have_text("Steps")
    await expect(page.locator("#mode-rounds")).to_have_value("7")
    await page.fill("#composer-text", "")
    await page.type("#composer-text", "/nu")

    await expect(page.locator("#completion")).to_contain_text("wake an agent up")


async def test_the_chip_names_the_mode(parts: Parts) -> None:
    shown = {
        "session": {"mode": "fish_bowl", "status": "running", "round": 0, "maxRounds": 7, "turns": 0},
        "orchestration": {"waitingFor": []},
    }

    said = await parts.run("return (await load('modes')).chipText(given, 0)", shown)

    assert said == "Fish bowl: step 1/7"
