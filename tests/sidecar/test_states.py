"""What the room shows of an agent, by what its pane shows."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.sidecar import arrows
from tests.sidecar.stage import Stage
from tests.sidecar.virtual import desk, on_virtual_time, until
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(180)

MENU = b"menu\r\n\x1b[?25lOverwrite the file?\r\n> Yes\r\n  No\r\n"


@on_virtual_time
async def test_a_menu_without_numbers_needs_a_person_whichever_brain_looks(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.echo = lambda keys: keys.replace(b"\r", b"\r\nfine\r\n> ")
        scene.write(b"> ")
        await scene.reply_to(scene.send("first"))
        scene.write(MENU)
        message = scene.send("second")
        await scene.wait_held(message, "dialog")
        _, detail, _, _ = await scene.wait_state("needs_human")

        assert detail == "I can't find its input box"

        await asyncio.sleep(1)
        await scene.replace_brain()
        told = len(scene.room.states)
        await until(lambda: [state[0] for state in scene.room.states[told:]][-1:] == ["needs_human"])
        await asyncio.sleep(15)
        assert len(scene.typed) == 2

        scene.write(b"\x1b[?25h> ")
        await scene.reply_to(message)


@pytest.mark.full
def test_a_menu_without_numbers_needs_a_person(stage: Stage) -> None:
    log = stage.folder / "arrows.log"
    seat = stage.seat("menu", [sys.executable, "-I", arrows.__file__, str(log)])
    wait_until_sync(lambda: ">" in seat.screen(), 60, what="the place to type in")
    stage.reply_to(stage.send("menu", "first"), "menu")
    seat.type("menu")
    seat.keys("Enter")
    wait_until_sync(lambda: "> Yes" in seat.screen(), 60, what="the menu")
    message = stage.send("menu", "second")
    seat.wait_ready("needs_human")

    assert "can't find its input box" in stage.agent("menu")["detail"]
    assert stage.wait_for(message, "menu", "held") == "dialog"

    seat.keys("Down")
    wait_until_sync(lambda: "> No" in seat.screen(), 60, what="the other choice")
    seat.keys("Enter")
    stage.reply_to(message, "menu")

    lines = log.read_text().splitlines()
    assert [line.split("[")[0] for line in lines] == ["line ", "line menu", "chose No", "line "]
