"""The walk of a new user who has Claude Code, Codex and Gemini CLI: up, talk, debate, detach, down."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clis.bringup import CLIS, bring_up
from tests.clis.install import node_path
from tests.clis.loopback import Loopback
from tests.models.rules import Rule, Text
from tests.models.server import ModelServer
from tests.panes.place import Place

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

#: What runs in the user's own tmux session.
MINE: Final = "sleep 1234"
_OWN: Final = ("HOME", "PATH", "TERM")
_ANSWER_S: Final = 180.0


@pytest.fixture
def user(place: Place, tmp_path: Path) -> Iterator[Place]:
    """A user with the three CLIs on the PATH, each logged in, and a tmux session of their own."""
    rules = [
        Rule(match="YOUR TURN", reply=[Text(text="Tabs, for everybody chooses the width.")]),
        Rule(match="hello", reply=[Text(text="Hello, human.")]),
    ]
    with Loopback() as loopback, ModelServer(rules, listener=loopback.listener) as server:
        clis = [bring_up(name, server, loopback, tmp_path / "clis", cwd=place.dir) for name in CLIS]
        for cli in clis:
            place.set(**{name: value for name, value in cli.env.items() if name not in _OWN})
        folders = [str(cli.home / "bin") for cli in clis]
        (tmp_path / "tmp").mkdir()
        place.set(
            PATH=os.pathsep.join([*folders, node_path()]),
            TMPDIR=str(tmp_path / "tmp"),
        )
        place.tmux("new-session", "-d", "-s", "mine", MINE)
        yield place


def answers(place: Place) -> set[str]:
    items: list[dict[str, Any]] = place.gateway.get("/history", types="agent_response", limit=100)["items"]
    return {item["sender"] for item in items if item["text"] == "Hello, human."}


def has_ended(place: Place) -> bool:
    return bool(place.gateway.get("/mode").get("status") == "ended")


def test_the_walk_with_the_real_clis(user: Place, tmp_path: Path) -> None:
    terminal = user.terminal("up", rows=50, cols=200)
    user.wait(lambda: user.attached() == ["csp"], "attached", 120)
    user.watch()
    # The room is shown while its agents start.
    user.wait(lambda: set(user.online()) == set(CLIS), "all are there", _ANSWER_S)
    terminal.send("@all hello\r")
    user.wait(lambda: answers(user) == set(CLIS), "an answer of each", _ANSWER_S)
    terminal.send('/mode debate "tabs or spaces" --rounds 2\r')
    user.wait(lambda: has_ended(user), "the end of the debate", _ANSWER_S)
    view = user.gateway.get("/mode")
    assert (view["reason"], set(view["roundOutputs"])) == ("done", set(CLIS))
    user.wait(lambda: "DEBATE complete." in user.screen("human"), "the notice of it")
    terminal.send("\x02d")
    user.wait(lambda: user.attached() == [], "detached")
    terminal.close(force=True)
    assert all(name in user.csp("status").out for name in CLIS)
    done = user.csp("down")

    assert done.code == 0, done.err
    assert user.left_over() == [MINE]
    assert not user.state.exists()
    assert [path.name for path in (tmp_path / "tmp").rglob("*csp*")] == []
    assert user.tmux("list-sessions", "-F", "#{session_name}") == "mine\n"
