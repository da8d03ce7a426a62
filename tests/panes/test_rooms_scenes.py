"""A room belongs to a project: two projects, two tmux servers, and the way back to where one came from."""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csp.room_registry import RunningRoom, running_rooms
from tests.forks import run
from tests.panes.bare import attach
from tests.panes.place import Done, Place
from tests.rooms import ROOT
from tests.sidecar.stage import tui


class Town(Place):
    """One user with several projects, whose rooms keep their history in the user's data folder."""

    @property
    def env(self) -> dict[str, str]:
        return {
            name: value for name, value in super().env.items() if name not in ("CSP_HISTORY_DIR", "CSP_PORT")
        }

    @property
    def data(self) -> Path:
        return self.home / ".local/share/csp/history"

    def project(self, path: str, *, is_git: bool = False) -> Path:
        """Make a directory and go there."""
        self.dir = self.folder / path
        self.dir.mkdir(parents=True)
        if is_git:
            self.git("init", "-q")
            self.git("commit", "-q", "--allow-empty", "-m", "start")
        return self.dir

    def git(self, *words: str) -> None:
        names = ["-c", "user.name=ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", "-C", self.dir, *names, *words], check=True, capture_output=True)

    def at(self, dir: Path, *argv: str) -> Done:
        """Run csp in a directory."""
        self.dir = dir
        return self.csp(*argv)

    def running(self) -> dict[str, RunningRoom]:
        return {room.room: room for room in running_rooms(self.state)}

    def rooms(self) -> dict[str, dict[str, Any]]:
        """Return what `csp rooms` says, by room."""
        return {row["room"]: row for row in self.csp("rooms", "--json").json}

    def journal(self, room: str) -> str:
        return (self.data / room / "journal.jsonl").read_text()

    def command_line(self, *argv: str) -> tuple[list[str], str]:
        """Return the variables and the command by which a tmux window runs csp."""
        variables = [word for item in self.env.items() for word in ("-e", "=".join(item))]
        return variables, shlex.join([*self.command, *argv])


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with Town(tmp_path) as town:
        town.set(CSP_DEMO_SPEED="0")
        yield town


# --- projects ------------------------------------------------------------------------------------


def test_each_project_has_its_own_room_and_no_message_goes_astray(town: Town) -> None:
    shop, barn = town.project("shop", is_git=True), town.project("barn")
    other = town.project("elsewhere/shop")
    third = town.project("third")
    for dir in (shop, barn, other):
        town.dir = dir
        town.up("--demo", "--agents", "ada")
    rooms = town.running()
    (second,) = set(rooms) - {"shop", "barn"}

    assert second.startswith("shop-")
    assert len({room.url for room in rooms.values()}) == 3
    assert {name: room.dir for name, room in rooms.items()} == {"shop": shop, "barn": barn, second: other}
    assert set(town.tmux("list-sessions", "-F", "#{session_name}").split()) == {
        f"csp-{name}" for name in rooms
    }

    town.dir = shop
    town.git("worktree", "add", "-q", "-b", "fix", str(town.folder / "fix"))
    (shop / "src").mkdir()
    for dir, text in ((shop / "src", "from below"), (town.folder / "fix", "from a worktree"), (barn, "hay")):
        assert town.at(dir, "send", "all", text).code == 0
    astray = town.at(third, "send", "all", "astray")
    listed = ", ".join(f"{name} ({rooms[name].dir})" for name in sorted(rooms))

    assert (astray.code, astray.out) == (1, "")
    assert astray.err == (
        f"csp: the room of '{third}' is not running; running elsewhere: {listed}"
        " (open it with: csp up; choose another one with --room NAME)\n"
    )
    assert town.csp("send", "all", "to the barn", "--room", "barn").code == 0
    for verb in (["status"], ["history"], ["stop"], ["agents"], ["export"]):
        assert town.csp(*verb).code == 1, verb
    assert town.csp("down").err == "room third was not running\n"
    said = {
        name: [
            text
            for text in ("from below", "from a worktree", "hay", "to the barn", "astray")
            if text in town.journal(name)
        ]
        for name in rooms
    }
    assert said == {"shop": ["from below", "from a worktree"], "barn": ["hay", "to the barn"], second: []}

    plan = town.at(third, "up", "--demo", "--dry-run", "--json").json
    assert (plan["room"], plan["dir"], plan["history"]) == ("third", str(third), str(town.data / "third"))
    assert town.at(town.folder / "fix", "down").err.startswith("ended tmux session csp-shop, ada, gateway at")
    assert set(town.running()) == {"barn", second}
    # A stopped room stays the one of its directory, for what needs no gateway.
    assert "from a worktree" in town.at(shop / "src", "replay", "--speed", "0").out
    assert town.csp("doctor", "--journal").out.startswith(str(town.data / "shop" / "journal.jsonl"))
    assert town.csp("status").err.startswith(f"csp: the room of '{shop}/src' is not running")
    states = {name: row["state"] for name, row in town.rooms().items()}
    assert states == {"shop": "stopped", "barn": "running", second: "running"}


def test_a_named_room_is_opened_in_its_own_directory_from_anywhere(town: Town) -> None:
    shop, third = town.project("shop"), town.project("third")
    town.dir = shop
    town.agents("ann")
    town.up()
    claims = sorted(path.read_text() for path in town.home.glob(".local/share/csp/rooms/*.json"))
    joined = town.at(third, "up", "--detach", "--room", "shop")

    assert joined.code == 0, joined.err
    assert f"csp: room shop is already running in {shop}; joining it\n" in joined.err
    assert (town.online(), list(town.running())) == ({"ann": "idle"}, ["shop"])
    assert town.csp("down", "--room", "shop").code == 0
    assert town.running() == {}
    assert f"csp: room 'shop' belongs to {shop}; opening it there\n" in town.up("--room", "shop").err
    assert (town.room.room, town.room.dir, list(town.online())) == ("shop", shop, ["ann"])
    assert town.tmux("display-message", "-p", "-t", "csp-shop:.1", "#{pane_current_path}").strip() == str(
        shop
    )
    # Who only attaches takes no room away from its project.
    after = sorted(path.read_text() for path in town.home.glob(".local/share/csp/rooms/*.json"))
    assert after == claims
    assert "also running: shop" in town.csp("up", "--detach", "--demo", "--agents", "ada").err
    assert set(town.running()) == {"shop", "third"}


def test_every_room_is_listed_as_it_is(town: Town) -> None:
    assert town.csp("rooms").out == "no rooms yet; open one in your project with: csp up\n"
    shop = town.project("shop")
    old = town.data / "default"
    old.mkdir(parents=True)
    gateway = town.start("gateway", "--port", "0", "--history", str(old.parent), "--room", "default")
    town.wait(lambda: "default" in town.running(), "the gateway")
    assert town.csp("send", "all", "said long ago").code == 0
    (alone,) = town.rooms().values()
    assert (alone["room"], alone["state"], alone["session"]) == ("default", "no panes", None)
    assert alone["url"] == town.running()["default"].url
    gateway.terminate()
    gateway.communicate(timeout=60)
    # An earlier version left no claim.
    for claim in town.home.glob(".local/share/csp/rooms/*.json"):
        claim.unlink()
    (earlier,) = town.rooms().values()
    assert (earlier["state"], earlier["dir"], earlier["history"]) == ("stopped", "", str(old))

    opened = town.up("--demo", "--agents", "ada")
    assert (
        f"csp: an earlier room 'default' is in {old}; continue it with: csp up --room default\n" in opened.err
    )
    # What runs comes first.
    assert list(town.rooms()) == ["shop", "default"]
    row = town.rooms()["shop"]
    assert (row["state"], row["dir"], row["session"]) == ("running", str(shop), "csp-shop")
    assert [agent["id"] for agent in row["agents"]] == ["ada"]
    assert Path(row["socket"]).is_socket() and row["open"] == "csp up --room shop"
    assert "ada " in town.csp("rooms").out
    town.up("--room", "default", "--demo", "--agents", "ada")
    assert {name: row["dir"] for name, row in town.rooms().items()} == dict.fromkeys(
        ("shop", "default"), str(shop)
    )
    assert "said long ago" in town.csp("history", "--room", "default").out
    town.tmux("kill-session", "-t", "csp-shop")
    assert town.rooms()["shop"]["state"] == "no panes"
    again = town.up("--demo", "--agents", "ada")
    assert "csp: the gateway of room shop is up, but its panes are gone; recreating them\n" in again.err
    town.csp("down")
    town.csp("down", "--room", "default")
    assert {name: row["state"] for name, row in town.rooms().items()} == dict.fromkeys(
        ("default", "shop"), "stopped"
    )
    assert town.csp("down", "--purge", "--yes").code == 0
    assert list(town.rooms()) == ["default"]


# --- tmux servers --------------------------------------------------------------------------------


def test_a_room_on_another_tmux_server_is_found_and_ended_there(place: Place) -> None:
    place.agents("ann", "ben")
    place.up()
    place.tmux("-L", "work", "new-session", "-d", "-s", "mine", "-x", "120", "-y", "40", "cat")
    home, work = (
        place.tmux(*words, "display-message", "-p", "#{socket_path}").strip()
        for words in ((), ("-L", "work"))
    )
    place.set(TMUX=f"{work},1,0")
    again = place.up()

    assert f"open it with: tmux -S {home} attach -t csp" in again.err
    assert sorted(place.online()) == ["ann", "ben"]
    assert len(place.gateway.get("/agents")) == 2
    assert place.tmux("-L", "work", "list-sessions", "-F", "#{session_name}") == "mine\n"
    (row,) = place.csp("rooms", "--json").json
    assert (row["state"], row["session"], row["socket"]) == ("running", "csp", home)
    assert place.csp("add", "cid", "--profile", "generic", "--", *tui(place.folder / "cid.log")).code == 0
    place.unset("TMUX")

    # In a terminal of the other server the room is shown within the pane.
    variables = [word for item in place.env.items() for word in ("-e", "=".join(item))]
    command = shlex.join([*place.command, "up"])
    place.accept()
    place.tmux("-L", "work", "new-window", "-t", "mine:", "-c", str(place.dir), *variables, command)
    place.wait(lambda: place.attached() == ["csp"], "the client in the pane", 120)
    place.watch()
    place.set(TMUX=f"{work},1,0")
    done = place.csp("down")

    assert done.code == 0, done.err
    assert "ended tmux session csp, ann, ben, cid, gateway at" in done.err
    place.wait(lambda: place.tmux("-S", home, "list-sessions", check=False) == "", "the end of the session")
    assert place.tmux("-L", "work", "list-sessions", "-F", "#{session_name}") == "mine\n"
    assert [command for command in place.left_over() if command != "cat" and "tmux" not in command] == []
    assert not place.state.exists()
    place.up()
    assert "csp" in place.tmux("-L", "work", "list-sessions", "-F", "#{session_name}").split()
    assert sorted(place.online()) == ["ann", "ben"]
    place.csp("down")
    place.tmux("-L", "work", "kill-server")


@pytest.mark.parametrize("keys", [["/quit", "Enter"], ["C-d"]], ids=["quit", "ctrl-d"])
def test_leaving_brings_a_person_back_to_the_session_they_came_from(place: Place, keys: list[str]) -> None:
    place.up("--demo", "--agents", "ada")
    place.tmux("new-session", "-d", "-s", "mine", "-x", "120", "-y", "40", "cat")
    client = attach(place, "mine", rows=40, cols=120)
    variables = [word for item in place.env.items() for word in ("-e", "=".join(item))]
    command = shlex.join([*place.command, "up"])
    place.tmux("new-window", "-t", "mine:", "-c", str(place.dir), *variables, command)
    place.wait(lambda: place.attached() == ["csp"], "the switch", 120)
    human = str(place.pane("human")["id"])
    place.wait(lambda: "→all>" in place.screen("human"), "the prompt")
    place.tmux("send-keys", "-t", human, *keys)
    place.wait(lambda: place.attached() == ["mine"], "the way back")
    client.close(force=True)

    # Who came from outside is outside again.
    place.wait(lambda: place.attached() == [], "the end of the client")
    direct = attach(place)
    place.tmux("send-keys", "-t", human, *keys)
    place.wait(lambda: place.attached() == [], "the end of the client")
    direct.close(force=True)
    assert not place.pane("human")["dead"]


# --- the one command -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_clone", [False, True])
def test_the_one_command_opens_the_room_of_the_callers_directory(tmp_path: Path, is_clone: bool) -> None:
    (project := tmp_path / "shop").mkdir()
    env = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    # What the script runs at its end; where it runs it is another test's.
    done = run(
        ["up", "--demo", "--dry-run", "--json"],
        ROOT if is_clone else project,
        Place(tmp_path / "p").env | env | {"CSP_HISTORY_DIR": ""},
    )
    plan = json.loads(done.stdout)

    home = ROOT if is_clone else tmp_path / ".local/share/csp"
    assert plan["history"] == str(home / "history" / plan["room"])
    assert plan["room"] == ("shop" if not is_clone else plan["room"])
