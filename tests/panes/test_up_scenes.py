"""One command opens the room, joins it, mends it."""

import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

import pexpect
import pytest

from csp.panes.processes import family
from csp.room_registry import running_rooms
from tests.panes.place import Done, Place

pytestmark = pytest.mark.xdist_group("up")

ODD = 'a "b" $HOME\n#{pane_id} ~ ünï \\ ;'


class Opened(NamedTuple):
    """A room after its first `csp up`."""

    place: Place
    done: Done
    dir: Path


@pytest.fixture(scope="module")
def opened(shared_place: Place) -> Opened:
    """A room on an older server, in another directory, with one agent that ends at once."""
    place = shared_place
    place.tmux("new-session", "-d", "-s", "mine", "cat")
    place.set(CSP_TEST_ODD=ODD, CSP_AUTH_TOKEN="secret-of-the-room")
    place.agents("ann", "ben")
    script = f"env -0 > {place.folder}/env; echo no key here; exit 3"
    with (place.dir / "csp.toml").open("a") as file:
        file.write(f'[[agent]]\nname = "bad"\nprofile = "generic"\ncommand = ["sh", "-c", "{script}"]\n')
    # In a repository, a directory of its own belongs to the same room.
    subprocess.run(["git", "init", "-q", place.dir], check=True)
    other = place.dir / "o#{pane_id} dir"
    other.mkdir()
    done = place.up("--dir", str(other))
    place.unset("CSP_AUTH_TOKEN")
    return Opened(place, done, other)


@pytest.fixture
def room(opened: Opened) -> Place:
    """The open room with ann and ben in it, whatever an earlier test has done to it."""
    place = opened.place
    is_there = running_rooms(place.state) and {"ann", "ben"} <= set(place.online())
    if not is_there:
        place.up()
    return place


def test_up_opens_a_room_with_all_agents_online(opened: Opened) -> None:
    place = opened.place
    assert "room default is up with ann, ben" in opened.done.err
    assert {agent: place.online().get(agent) for agent in ("ann", "ben")} == {"ann": "idle", "ben": "idle"}
    assert [pane["agent"] for pane in place.panes()] == ["human", "ann", "ben", "bad"]
    place.wait(
        lambda: [place.pane(agent)["state"] for agent in ("ann", "ben")] == ["idle", "idle"], "borders"
    )
    assert set(place.tmux("list-sessions", "-F", "#{session_name}").split()) >= {"csp", "mine"}


def test_an_agent_that_does_not_come_up_is_named_and_the_others_go_on(opened: Opened) -> None:
    assert "bad has ended: no key here" in opened.done.err
    assert opened.place.pane("bad")["dead"]

    def has_last_words() -> bool:
        # On a busy machine tmux 3.3a may leave a dead pane's process unreaped, and its words unsaid, until
        # another child of its own ends.
        opened.place.tmux("run-shell", "true")
        return "bad ended (3); start it: csp up" in opened.place.screen("bad")

    opened.place.wait(has_last_words, "its last words")


def test_the_callers_environment_reaches_the_agents(opened: Opened) -> None:
    text = (opened.place.folder / "env").read_text()
    found = dict(item.split("=", 1) for item in text.split("\0") if "=" in item)

    assert found["CSP_TEST_ODD"] == ODD
    assert found["CSP_AUTH_TOKEN"] != "secret-of-the-room"
    assert found["CSP_AGENT"] == "bad"
    assert Path(found["PWD"]) == opened.dir


def test_agents_work_in_the_directory_that_was_asked_for(opened: Opened) -> None:
    place = opened.place
    pane = str(place.pane("ann")["id"])

    assert place.tmux("display-message", "-p", "-t", pane, "#{pane_current_path}") == f"{opened.dir}\n"
    assert place.room.dir == opened.dir


def test_a_message_reaches_an_agent_of_up(room: Place) -> None:
    done = room.csp("send", "ann", "hello there", "--wait", "--timeout", "60")

    assert done.code == 0, done.err
    assert "reply to: " in done.out


def test_a_second_up_joins_the_room_and_starts_who_has_ended(room: Place) -> None:
    before = {pane["agent"]: pane["id"] for pane in room.panes()}
    gateway = room.room
    room.tmux("respawn-pane", "-k", "-t", str(before["ben"]), "--", "sh", "-c", "exit 3")
    room.wait(lambda: room.pane("ben")["dead"], "the end of ben")
    # A terminal that could not show the room can still open it.
    room.set(TERM="dumb")
    terminal = room.terminal("up", "--detach", "--agents", "ben")
    terminal.expect("room default is already running in .*; joining it")
    terminal.expect("room default is up with ben")
    terminal.expect(pexpect.EOF)
    terminal.close()
    room.set(TERM="xterm-256color")

    assert {pane["agent"]: pane["id"] for pane in room.panes()} == before
    assert {"ann", "ben"} <= set(room.online())
    assert room.room == gateway


def test_two_ups_at_once_put_a_killed_tmux_server_back_once(room: Place) -> None:
    gateway = room.room.pid
    room.csp("send", "ann", "remember me")
    room.tmux("kill-server")
    room.wait(lambda: not room.online(), "the end of the agents")
    both = [room.start("up", "--detach"), room.start("up", "--detach")]
    ends = [process.communicate(timeout=180) for process in both]
    room.watch()

    assert [process.returncode for process in both] == [0, 0], ends
    assert sum("its panes are gone; recreating them" in err for _, err in ends) == 1
    assert sum("joining it" in err for _, err in ends) == 1
    assert [pane["agent"] for pane in room.panes()] == ["human", "ann", "ben", "bad"]
    assert room.room.pid == gateway
    assert {"ann", "ben"} <= set(room.online())
    assert "remember me" in room.csp("history").out


def test_up_starts_a_gateway_again_that_has_gone(room: Place) -> None:
    pane = room.pane("ann")["id"]
    for pid in (room.room.supervisor, room.room.pid):
        os.kill(pid or 0, signal.SIGKILL)
    done = room.up("--agents", "ann,ben")

    assert "is gone; starting it again" in done.err
    assert room.pane("ann")["id"] == pane
    assert {"ann", "ben"} <= set(room.online())


def test_up_puts_a_killed_supervisor_back(room: Place) -> None:
    before = room.room
    pane = room.pane("ann")["id"]
    os.kill(before.supervisor or 0, signal.SIGKILL)
    room.wait(lambda: not family([before.supervisor or 0]), "the end of the supervisor")
    assert room.room.pid == before.pid
    assert "FAIL  room default: its supervisor is gone" in room.csp("doctor").out
    done = room.up("--agents", "ann,ben")

    assert "the supervisor of room default is gone; its gateway is started again with one" in done.err
    after = room.room
    assert (after.url, after.history, after.dir) == (before.url, before.history, before.dir)
    assert after.supervisor not in (None, before.supervisor)
    assert room.pane("ann")["id"] == pane
    assert {"ann", "ben"} <= set(room.online())
    os.kill(after.pid, signal.SIGKILL)
    room.wait(lambda: {found.pid for found in running_rooms(room.state)} - {after.pid}, "the next one")
    room.wait(lambda: set(room.online()) >= {"ann", "ben"}, "the agents at the next one")


def test_another_room_has_a_session_of_its_own_and_keeps_to_its_agents(room: Place) -> None:
    room.set(CSP_PORT="0")
    room.up("--room", "other", "--agents", "ann")
    room.up("--room", "other")
    sessions = room.tmux("list-sessions", "-F", "#{session_name}").split()
    lined_up = [pane["agent"] for pane in room.panes("csp-other")]
    done = room.csp("down", "--room", "other")

    assert {"csp", "csp-other"} <= set(sessions)
    assert lined_up == ["human", "ann"]
    assert done.code == 0, done.err
    assert {"ann", "ben"} <= set(room.online())


# --- without a room -------------------------------------------------------------------------------


def test_a_dry_run_says_what_it_would_do_and_does_nothing(place: Place) -> None:
    place.agents("ann", "ben")
    shown = place.csp("up", "--dry-run")
    data = place.csp("up", "--dry-run", "--json").json

    assert "window 1: human, ann, ben" in shown.out and "nothing was started" in shown.out
    assert data["windows"] == [["human", "ann", "ben"]]
    assert (data["session"], data["room"]) == ("csp", "default")
    assert not place.state.exists() and not place.history.exists()
    assert place.tmux("list-sessions", check=False) == ""


def test_a_foreign_session_of_our_name_is_left_alone(place: Place) -> None:
    place.tmux("new-session", "-d", "-s", "csp", "cat")
    place.agents("ann")
    done = place.csp("up", "--detach")

    assert done.code == 1
    assert done.err.startswith("csp: there is a tmux session 'csp' that is not the room's (rename it")
    assert place.tmux("list-panes", "-s", "-t", "csp", "-F", "#{pane_current_command}") == "cat\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--agents", "anne"), "csp: --agents: unknown agent 'anne' (did you mean 'ann'?)"),
        (("--agents", ","), "csp: --agents: expected names separated by commas, got nothing"),
        (("--dir", "nowhere"), "csp: --dir: expected a directory, got 'nowhere'"),
    ],
)
def test_misuse_is_one_clear_line(place: Place, words: tuple[str, ...], problem: str) -> None:
    place.agents("ann")
    done = place.csp("up", "--detach", *words)

    assert (done.code, done.err) == (2, f"{problem}\n")


def test_a_history_that_cannot_be_written_is_one_clear_line(place: Place) -> None:
    place.agents("ann")
    place.history.write_text("")
    done = place.csp("up", "--detach")

    assert done.code == 1
    assert done.err == (
        f"csp: history folder '{place.history}' cannot be written (choose another one with --history)\n"
    )
    assert place.left_over() == []


def test_an_old_tmux_is_refused(place: Place) -> None:
    place.program("tmux", "#!/bin/sh\necho tmux 2.9a\n")
    place.agents("ann")
    done = place.csp("up", "--detach")

    assert (done.code, done.err) == (
        1,
        "csp: tmux 2.9a is too old, expected tmux 3.2 or newer (install a newer tmux)\n",
    )


def test_an_agent_cannot_open_a_room(place: Place) -> None:
    place.set(CSP_AGENT="ann")
    done = place.csp("up", "--detach")

    assert (done.code, done.err) == (1, "csp: this pane is agent 'ann' (use another terminal for this)\n")
