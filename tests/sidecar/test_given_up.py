"""A turn that is over before its prompt was sent is taken out of the composer."""

import json

import pytest

from csp.events import TurnSignal
from tests.sidecar.stage import Stage, tui
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(120)


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
