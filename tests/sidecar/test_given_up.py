"""A turn that is over before its prompt was sent is taken out of the composer."""

import json
from pathlib import Path

import pytest

from csp.protocol.enums import ControlVerb
from csp.protocol.events import TurnSignal
from tests.sidecar.stage import Stage, tui
from tests.sidecar.virtual import desk, on_virtual_time, until
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(120)


@on_virtual_time
async def test_a_prompt_that_stands_in_the_composer_is_taken_out_when_its_turn_is_over(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, "--swallow-ms", "-1") as scene:
        await scene.wait_state("idle")
        ask = scene.ask("crocuses", "t-1")
        await until(lambda: scene.events("swallowed"))
        stop = scene.control(ControlVerb.INTERRUPT, turn="t-1")

        assert await scene.wait_for(ask, "failed") == "its turn is over"
        assert await scene.wait_control(stop) == ("confirmed", "")
        scene.press(b"mine\r")
        assert await scene.wait_prompts(1) == ["mine"]


@on_virtual_time
async def test_a_turn_that_still_waits_is_given_up_without_a_key(tmp_path: Path) -> None:
    async with desk(tmp_path, "--draft", "mine") as scene:
        ask = scene.ask("crocuses", "t-1")
        await scene.wait_held(ask, "draft")
        stop = scene.control(ControlVerb.INTERRUPT, turn="t-1")

        assert await scene.wait_for(ask, "failed") == "its turn is over"
        assert await scene.wait_control(stop) == ("confirmed", "")
        assert scene.typed == []


@on_virtual_time
async def test_another_turn_is_not_given_up(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "3") as scene:
        ask = scene.ask("crocuses", "t-1")
        await scene.wait_for(ask, "submitted")
        stop = scene.control(ControlVerb.INTERRUPT, turn="t-2")

        assert await scene.wait_control(stop) == ("failed", "it is not working on t-2")
        reply = await scene.reply_to(ask)
        assert (reply["turn"], reply["ending"]) == ("t-1", "done")
        assert scene.events("interrupted") == []


@pytest.mark.full
def test_prompt_that_cannot_be_sent_yet_is_not_sent_after_a_stop(stage: Stage) -> None:
    log = stage.folder / "log"
    seat = stage.seat("tui", tui(log, "--swallow-ms", "-1"))
    stage.room.gateway.post("/mode", {"mode": "single", "topic": "crocuses"})
    wait_until_sync(lambda: "crocuses" in seat.screen(), 30, "the prompt in the composer")
    (ask,) = [event for event in stage.room.journal() if isinstance(event, TurnSignal)]
    stage.wait_for(ask.id, "tui", "typed")
    stage.send("all", "Allstop")

    assert stage.wait_for(ask.id, "tui", "failed") == "its turn is over"
    wait_until_sync(lambda: "crocuses" not in seat.screen(), 10, "an empty composer")
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert "submitted" not in events
