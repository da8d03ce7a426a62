"""Commands that are only shown run nothing: in a prompt file, in quotes, in what a CLI draws again.

test_real_scenes has a shorter version of this for every day.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Rule, Text
from tests.models.server import ModelServer
from tests.sidecar.stage import Stage
from tests.sidecar.texts import LISTED, QUOTED

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.xdist_group("four agents")]

AGENTS: Final = ("claude", "codex", "gemini")
REDRAWS: Final = 50


def test_nothing_is_run_that_is_only_shown(tmp_path: Path) -> None:
    loopback = Loopback()
    prompt_file = tmp_path / "commands.md"
    prompt_file.write_text(LISTED)
    rules = [
        Rule(match="for later", reply=[Text(text="Understood, later.")]),
        Rule(match="quote them", reply=[Text(text=QUOTED)]),
    ]
    with (
        loopback,
        ModelServer(rules, listener=loopback.listener) as server,
        Stage(tmp_path / "stage") as stage,
    ):
        clis = {name: bring_up(name, server, loopback, tmp_path) for name in AGENTS}
        option = ("--initial-prompt-file", str(prompt_file))
        seats = {
            name: stage.seat(name, cli.argv, *option, env=cli.env, cwd=cli.cwd) for name, cli in clis.items()
        }
        asked = {name: stage.send(name, "quote them") for name in AGENTS}
        replies = {name: stage.reply_to(asked[name], name, 180.0)["text"] for name in AGENTS}
        for number in range(REDRAWS):
            for seat in seats.values():
                seat.resize(40 - number % 3, 120 - number % 5)
        last = {name: stage.send(name, "quote them again") for name in AGENTS}
        for name in AGENTS:
            stage.reply_to(last[name], name, 180.0)

        assert replies == dict.fromkeys(AGENTS, QUOTED)
        for name in AGENTS:
            assert sum("run none of them now" in prompt for prompt in server.prompts(name)) == 1
        history = stage.room.gateway.get("/history", types="agent_call,query,answer,system,vote", limit=200)
        ran = [item for item in history["items"] if item["type"] != "system" or "not run" in item["text"]]
        assert ran == []
