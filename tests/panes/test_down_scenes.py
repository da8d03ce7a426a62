"""One command ends the room, and nothing else. The tests share a place; each opens the room again."""

import json
import os
import signal
import stat
import sys

import pytest

from tests.panes.place import Place

pytestmark = pytest.mark.xdist_group("down")

#: An agent that ignores every polite signal.
_MULE = """
import signal, time
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
print('> ', end='', flush=True)
time.sleep(999)
"""


def test_down_is_no_error_where_nothing_runs(place: Place) -> None:
    done = place.csp("down")

    assert (done.code, done.err) == (0, "room default was not running\n")
    assert not place.state.exists()


def test_down_leaves_nothing_of_the_room_but_its_history(shared_place: Place) -> None:
    place = shared_place
    place.agents("ann")
    command = json.dumps([sys.executable, "-I", "-c", _MULE])
    with (place.dir / "csp.toml").open("a") as file:
        file.write(f'[[agent]]\nname = "mule"\nprofile = "generic"\ncommand = {command}\n')
    place.tmux("new-session", "-d", "-s", "mine", "cat")
    place.up()
    files = [path for path in place.state.rglob("*") if path.is_file()]
    assert {"default.gateway.log", "default.lineup", "default.up.lock"} <= {path.name for path in files}
    assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    place.csp("send", "ann", "remember me", "--wait", "--timeout", "60")
    # A test that watched nobody would find nobody left.
    assert sum("relay.py" in command for command in place.seen_commands) == 2
    assert sum("gateway" in command for command in place.seen_commands) == 2
    assert any("SIG_IGN" in command for command in place.seen_commands)
    mine = place.tmux("list-panes", "-s", "-t", "mine", "-F", "#{pane_pid}")
    done = place.csp("down")

    assert done.code == 0, done.err
    assert "ended tmux session csp, ann, mule, gateway at" in done.err
    assert [command for command in place.left_over() if command != "cat"] == []
    assert place.tmux("list-sessions", "-F", "#{session_name}") == "mine\n"
    assert place.tmux("list-panes", "-s", "-t", "mine", "-F", "#{pane_pid}") == mine
    assert not place.state.exists()
    assert (place.history / "default" / "journal.jsonl").exists()


def test_down_typed_in_the_room_pane_asks_and_then_ends_all_of_it(place: Place) -> None:
    place.agents("ann")
    place.up()
    place.watch()
    human = str(place.pane("human")["id"])
    for line, shown in (("/down", "Stop the room"), ("n", "not done"), ("/down", "y/N>")):
        place.tmux("send-keys", "-t", human, "-l", line)
        place.tmux("send-keys", "-t", human, "Enter")
        place.wait(lambda: shown in place.screen("human"), shown)  # noqa: B023
    assert place.online() == {"ann": "idle"}
    place.tmux("send-keys", "-t", human, "-l", "y")
    place.tmux("send-keys", "-t", human, "Enter")

    place.wait(lambda: not place.left_over(), "the end of the room")
    assert not place.tmux("list-sessions", check=False)


def test_a_sidecar_in_a_terminal_of_its_own_stays_and_so_does_the_history(shared_place: Place) -> None:
    place = shared_place
    place.agents("ann")
    place.up()
    place.gateway.post("/message", {"to": "ann", "content": "remember me too"})
    place.tmux("new-session", "-d", "-s", "own", "-x", "80", "-y", "24", "cat")
    sidecar = [*place.command, "sidecar", "--name", "guest", "--profile", "generic"]
    variables = [word for item in place.env.items() for word in ("-e", "=".join(item))]
    place.tmux(
        "new-window", "-d", "-t", "own:", "-c", str(place.dir), *variables, "--", *sidecar, "--", "cat"
    )
    place.wait(lambda: "guest" in place.online(), "the guest")
    refused = place.csp("down", "--purge")
    assert refused.code == 2 and "add --yes to proceed" in refused.err
    assert {"ann", "guest"} <= set(place.online())
    done = place.csp("down")
    place.watch()

    assert "csp: guest runs in its own terminal and is not ended" in done.err
    assert (place.state / "default.agents" / "guest" / "run.json").exists()
    assert not (place.state / "default.agents" / "ann").exists()
    assert any("csp-sidecar-guest" in command for command in place.left_over())
    assert "remember me too" in (place.history / "default" / "journal.jsonl").read_text()
    place.tmux("kill-session", "-t", "own")
    place.wait(lambda: not any("csp-sidecar" in command for command in place.left_over()), "its end")


def test_down_after_a_killed_gateway_and_a_killed_tmux_server(shared_place: Place) -> None:
    place = shared_place
    place.agents("ann")
    place.up()
    place.csp("send", "ann", "before the end", "--wait", "--timeout", "60")
    for pid in (place.room.supervisor, place.room.pid):
        os.kill(pid or 0, signal.SIGKILL)
    place.tmux("kill-server")
    done = place.csp("down")

    assert done.code == 0, done.err
    # The chat was a child of the killed server: it ends by itself, with its terminal.
    place.wait(lambda: place.left_over() == [], "the end of every process")
    assert not place.state.exists()
    place.up()
    assert place.online()["ann"] == "idle"
    assert "before the end" in place.csp("history").out
    purged = place.csp("down", "--purge", "--yes", "--json")
    assert purged.json["purged"] is True and purged.json["kept"] == []
    assert list(place.history.iterdir()) == []
    assert not place.state.exists()


def test_uninstall_ends_every_room_and_leaves_the_histories_alone(shared_place: Place) -> None:
    place = shared_place
    place.agents("ann")
    place.up()
    place.csp("send", "ann", "remember me", "--wait", "--timeout", "60")
    done = place.csp("uninstall", "--yes")

    assert done.code == 0, done.err
    assert "ended tmux session csp of room default\n" in done.err
    assert place.left_over() == []
    assert not place.state.exists()
    assert (place.history / "default" / "journal.jsonl").exists()
