"""Gemini joins what is entered while its MCP servers start; a message of ours is answered all the same."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import RealCli
from tests.sidecar.newest import PATIENCE_S, Scene, scene
from tests.sidecar.stage import Seat

pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("newest clis")]

PROFILE: Final = Path(__file__).parents[2] / "csp" / "clis" / "gemini" / "profile.toml"
OWN: Final = "my own question"
HELLO: Final = "hello there"


def add_late_server(cli: RealCli, may_start: Path) -> None:
    """Give Gemini a server of its user's that does not answer before a file is there."""
    script = f"while [ ! -e {may_start} ]; do sleep 0.2; done"
    path = cli.home / "gemini" / ".gemini" / "settings.json"
    settings = json.loads(path.read_text("utf-8"))
    settings["mcpServers"] = {"late": {"command": "sh", "args": ["-c", script], "timeout": 600_000}}
    path.write_text(json.dumps(settings), "utf-8")


@contextmanager
def starting(tmp_path: Path, *options: str) -> Iterator[tuple[Scene, Seat, Path]]:
    """A Gemini whose servers start; a person has entered something meanwhile."""
    with scene(tmp_path) as play:
        cli, may_start = play.cli("gemini"), tmp_path / "may-start"
        add_late_server(cli, may_start)
        seat = play.stage.seat("gemini", cli.argv, *options, env=cli.env, cwd=cli.cwd)
        play.wait(lambda: "Type your message" in seat.screen(), "the composer")
        seat.type(OWN)
        play.wait(lambda: OWN in seat.screen(), "the person's words")
        play.enter(seat, lambda: "Type your message" in seat.screen())
        yield play, seat, may_start


def prompts(play: Scene) -> list[str]:
    return [prompt for prompt in play.server.prompts("gemini") if OWN in prompt or HELLO in prompt]


@pytest.mark.full
def test_a_message_waits_until_geminis_servers_run(tmp_path: Path) -> None:
    with starting(tmp_path) as (play, _, may_start):
        message = play.stage.send("gemini", HELLO)
        play.stage.wait_for(message, "gemini", "held", timeout_s=PATIENCE_S)
        may_start.touch()

        assert play.answer(message, "gemini") == "ok"
        assert [(OWN in prompt, HELLO in prompt) for prompt in prompts(play)] == [
            (True, False),
            (False, True),
        ]


@pytest.mark.full
def test_a_message_that_gemini_joins_with_a_persons_prompt_is_answered(tmp_path: Path) -> None:
    """The profile without its sign is a version of Gemini that does not say that it starts."""
    profile = tmp_path / "gemini.toml"
    signs = r"connecting to mcp servers|waiting for mcp servers[^']*"
    text, changes = re.subn(signs, "no such words", PROFILE.read_text("utf-8"))
    assert changes == 2
    profile.write_text(text, "utf-8")
    with starting(tmp_path, "--profile-file", str(profile)) as (play, seat, may_start):
        message = play.stage.send("gemini", HELLO)
        play.wait(lambda: HELLO in seat.screen(), "the message in Gemini")
        play.wait(lambda: "Type your message" in seat.screen(), "the message in its queue")
        may_start.touch()

        assert play.answer(message, "gemini") == "ok"
        (joined,) = prompts(play)
        assert joined.index(OWN) < joined.index(HELLO)
