"""The real CLIs go on with their own conversations when the room is opened again."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clis.bringup import RealCli, bring_up
from tests.clis.loopback import Loopback
from tests.models.rules import Rule, Text
from tests.models.server import ModelServer
from tests.panes.place import Place

pytestmark = pytest.mark.timeout(600)

_PLACES: Final = ("XDG_RUNTIME_DIR", "TMUX_TMPDIR", "TERM")


class Scene:
    """One real CLI as the only agent of a room."""

    def __init__(self, place: Place, cli: RealCli, server: ModelServer) -> None:
        self.place, self.cli, self.server = place, cli, server
        place.set(**{name: value for name, value in cli.env.items() if name not in _PLACES})
        (place.dir / "csp.toml").write_text(
            f'[[agent]]\nname = "{cli.name}"\ncommand = """{shlex.join(cli.argv)}"""\n'
        )

    def ask(self, text: str) -> str:
        """Send a message, wait for its answer; return all that the CLI knew with it.

        That is what the model was sent, and what the pane shows: Codex sends only what is new.
        """
        done = self.place.csp("send", self.cli.name, text, "--wait", "--timeout", "180")
        assert done.code == 0, f"{done.err}\n{self.place.shown()}"
        asked = [found for found in self.server.exchanges() if text in found.ask.governing]
        return "\n".join((*asked[-1].ask.conversation, self.place.screen(self.cli.name)))


@pytest.fixture
def scene(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[Scene]:
    rules = [
        Rule(match="kumquat", reply=[Text(text="I will.")]),
        Rule(match="which", reply=[Text(text="That.")]),
    ]
    with Loopback() as loopback, ModelServer(rules, listener=loopback.listener) as server:
        cli = bring_up(request.param, server, loopback, tmp_path / "clis", cwd=place.dir)
        yield Scene(place, cli, server)


@pytest.mark.parametrize(
    "scene",
    ["claude", "codex", "gemini"],
    indirect=True,
)
@pytest.mark.full
def test_down_then_up_goes_on_with_the_conversation(scene: Scene) -> None:
    scene.place.up()
    scene.ask("remember the word kumquat")
    done = scene.place.csp("down")
    assert done.code == 0, done.err
    assert scene.place.left_over() == []
    assert not scene.place.state.exists()
    scene.place.up()
    shown = scene.ask("which word was it?")

    assert "kumquat" in shown


@pytest.mark.full
@pytest.mark.parametrize("scene", ["claude"], indirect=True)
def test_a_killed_tmux_server_costs_no_conversation(scene: Scene) -> None:
    scene.place.up()
    scene.ask("remember the word kumquat")
    scene.place.tmux("kill-server")
    scene.place.wait(lambda: not scene.place.online(), "the end of the agent")
    scene.place.up()
    shown = scene.ask("which word was it?")

    assert "kumquat" in shown


@pytest.mark.full
@pytest.mark.parametrize("scene", ["claude"], indirect=True)
def test_a_cli_that_was_never_spoken_to_starts_anew(scene: Scene) -> None:
    scene.place.up()
    scene.place.csp("down")
    scene.place.up()

    assert scene.place.online() == {"claude": "idle"}


@pytest.mark.full
@pytest.mark.parametrize("scene", ["claude"], indirect=True)
def test_a_conversation_that_cannot_be_gone_on_with_gives_way_to_a_new_one(scene: Scene) -> None:
    scene.place.up()
    scene.ask("remember the word kumquat")
    scene.place.csp("down")
    (path,) = scene.place.history.glob("*/agents.json")
    known = json.loads(path.read_text())
    known["claude"]["session"] = "99999999-9999-4999-8999-999999999999"
    path.write_text(json.dumps(known))
    done = scene.place.up()

    assert "claude could not continue its conversation; it starts a new one" in done.err
    assert scene.place.online() == {"claude": "idle"}
