"""What the room shows of an agent, by what its pane shows."""

import os
import signal
import sys

import pytest

from tests.sidecar import arrows
from tests.sidecar.stage import Stage
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(120)


def test_a_menu_without_numbers_needs_a_person(stage: Stage) -> None:
    log = stage.folder / "arrows.log"
    seat = stage.seat("menu", [sys.executable, "-I", arrows.__file__, str(log)])
    wait_until_sync(lambda: ">" in seat.screen(), what="the place to type in")
    stage.reply_to(stage.send("menu", "first"), "menu")
    seat.type("menu")
    seat.keys("Enter")
    wait_until_sync(lambda: "> Yes" in seat.screen(), what="the menu")
    message = stage.send("menu", "second")
    seat.wait_ready("needs_human")

    assert "no place to type" in stage.agent("menu")["detail"]
    assert stage.wait_for(message, "menu", "held") == "dialog"

    told = len(seat.log())
    os.kill(seat.brain, signal.SIGKILL)
    wait_until_sync(lambda: "'dialog'" in seat.log()[told:], what="the word of another brain")
    seat.keys("Down")
    wait_until_sync(lambda: "> No" in seat.screen(), what="the other choice")
    seat.keys("Enter")
    stage.reply_to(message, "menu")

    lines = log.read_text().splitlines()
    assert [line.split("[")[0] for line in lines] == ["line ", "line menu", "chose No", "line "]
