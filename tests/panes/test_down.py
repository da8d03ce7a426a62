"""One command ends the room, and nothing else."""

import json
import os
import signal
import stat
import sys
from pathlib import Path

from tests.panes.place import Place


def test_down_leaves_nothing_of_the_room_but_its_history(place: Place) -> None:
    place.agents("ann", "ben")
    place.tmux("new-session", "-d", "-s", "mine", "cat")
    place.up()
    place.csp("send", "ann", "hello", "--wait", "--timeout", "30")
    # A test that watched nobody would find nobody left.
    assert sum("relay.py" in command for command in place.seen_commands) == 2
    assert sum("gateway" in command for command in place.seen_commands) == 2
    mine = place.tmux("list-panes", "-s", "-t", "mine", "-F", "#{pane_pid}")
    done = place.csp("down")

    assert done.code == 0, done.err
    assert "ended tmux session csp, ann, ben, gateway at" in done.err
    assert [command for command in place.left_over() if command != "cat"] == []
    assert place.tmux("list-sessions", "-F", "#{session_name}") == "mine\n"
    assert place.tmux("list-panes", "-s", "-t", "mine", "-F", "#{pane_pid}") == mine
    assert not place.state.exists()
    assert (place.history / "default" / "journal.jsonl").exists()


def test_down_is_no_error_where_nothing_runs(place: Place) -> None:
    done = place.csp("down")

    assert (done.code, done.err) == (0, "nothing of room default was running\n")
    assert not place.state.exists()


def test_the_tmux_server_ends_by_itself_without_another_session(place: Place) -> None:
    place.agents("ann")
    place.up()
    socket = Path(place.tmux("display-message", "-p", "#{socket_path}").strip())
    assert socket.is_socket()
    place.csp("down")

    assert not socket.exists()
    assert place.tmux("list-sessions", check=False) == ""


def test_down_ends_an_agent_that_ignores_every_polite_signal(place: Place) -> None:
    code = "import signal, time\nfor n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n"
    code += "print('> ', end='', flush=True)\ntime.sleep(999)"
    command = json.dumps([sys.executable, "-I", "-c", code])
    (place.dir / "csp.toml").write_text(
        f'[[agent]]\nname = "mule"\nprofile = "generic"\ncommand = {command}\n'
    )
    place.up()
    assert any("SIG_IGN" in command for command in place.seen_commands)
    done = place.csp("down")

    assert done.code == 0, done.err
    assert place.left_over() == []


def test_a_sidecar_in_a_terminal_of_its_own_stays(place: Place) -> None:
    place.agents("ann")
    place.up()
    place.tmux("new-session", "-d", "-s", "mine", "-x", "80", "-y", "24", "cat")
    sidecar = [sys.executable, "-P", "-m", "csp.cli", "sidecar", "--name", "guest", "--profile", "generic"]
    variables = [word for item in place.env.items() for word in ("-e", "=".join(item))]
    place.tmux("new-window", "-d", "-t", "mine:", *variables, "--", *sidecar, "--", "cat")
    place.wait(lambda: "guest" in place.online(), "the guest")
    done = place.csp("down")
    place.watch()

    assert "csp: guest runs in a terminal of its own and stays" in done.err
    assert (place.state / "default.agents" / "guest" / "run.json").exists()
    assert not (place.state / "default.agents" / "ann").exists()
    assert any("csp-sidecar-guest" in command for command in place.left_over())


def test_down_after_a_killed_gateway_and_a_killed_tmux_server(place: Place) -> None:
    place.agents("ann")
    place.up()
    for pid in (place.room.supervisor, place.room.pid):
        os.kill(pid or 0, signal.SIGKILL)
    place.tmux("kill-server")
    done = place.csp("down")

    assert done.code == 0, done.err
    assert place.left_over() == []
    assert not place.state.exists()
    place.up()
    assert place.online() == {"ann": "idle"}


def test_purge_asks_and_removes_the_history(place: Place) -> None:
    place.agents("ann")
    place.up()
    refused = place.csp("down", "--purge")
    assert refused.code == 2 and "add --yes to do it" in refused.err
    assert set(place.online()) == {"ann"}
    done = place.csp("down", "--purge", "--yes", "--json")

    assert done.json["purged"] is True and done.json["kept"] == []
    assert list(place.history.iterdir()) == []


def test_the_room_is_the_same_after_down_and_up(place: Place) -> None:
    place.agents("ann")
    place.up()
    place.csp("send", "ann", "remember me", "--wait", "--timeout", "30")
    place.csp("down")
    place.up()

    assert "remember me" in place.csp("history").out
    assert place.online() == {"ann": "idle"}


def test_state_files_are_for_their_user_alone(place: Place) -> None:
    place.agents("ann")
    place.up()
    files = [path for path in place.state.rglob("*") if path.is_file()]

    assert {"default.gateway.log", "default.lineup", "default.up.lock"} <= {path.name for path in files}
    assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077] == []
