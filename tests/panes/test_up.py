"""One command opens the room."""

import os
import signal
from pathlib import Path

import pytest

from tests.panes.place import Place


def test_up_opens_a_room_with_all_agents_online(place: Place) -> None:
    place.agents("ann", "ben")
    done = place.up()

    assert "room default is up with ann, ben" in done.err
    assert place.online() == {"ann": "idle", "ben": "idle"}
    human, ann, ben = place.panes()
    assert [pane["agent"] for pane in (human, ann, ben)] == ["human", "ann", "ben"]
    assert (human["cols"], human["rows"], human["left"], human["top"]) == (200, 8, 0, 1)
    assert ann["top"] == ben["top"] == 10 and ann["left"] < ben["left"] and ann["cols"] == 100
    assert [pane["state"] for pane in (ann, ben)] == ["idle", "idle"]


def test_a_message_reaches_an_agent_of_up(place: Place) -> None:
    place.agents("ann")
    place.up()
    done = place.csp("send", "ann", "hello there", "--wait", "--timeout", "30")

    assert done.code == 0, done.err
    assert "reply to: " in done.out


def test_a_dry_run_says_what_it_would_do_and_does_nothing(place: Place) -> None:
    place.agents("ann", "ben")
    shown = place.csp("up", "--dry-run")
    data = place.csp("up", "--dry-run", "--json").json

    assert "window 1: human, ann, ben" in shown.out and "nothing was started" in shown.out
    assert data["windows"] == [["human", "ann", "ben"]]
    assert (data["session"], data["room"]) == ("csp", "default")
    assert not place.state.exists() and not place.history.exists()
    assert place.tmux("list-sessions", check=False) == ""


def test_a_second_up_joins_the_room_and_starts_who_has_ended(place: Place) -> None:
    place.agents("ann", "ben")
    place.up()
    before = {pane["agent"]: pane["id"] for pane in place.panes()}
    place.tmux("respawn-pane", "-k", "-t", str(before["ben"]), "--", "sh", "-c", "exit 3")
    place.wait(lambda: place.pane("ben")["dead"], "the end of ben")
    assert "ben ended" in place.screen("ben")
    done = place.up()

    assert "room default is running" in done.err
    assert {pane["agent"]: pane["id"] for pane in place.panes()} == before
    assert place.online() == {"ann": "idle", "ben": "idle"}


def test_a_second_up_keeps_to_the_agents_of_the_first(place: Place) -> None:
    place.agents("ann", "ben")
    place.up("--agents", "ann")
    place.up()
    assert set(place.online()) == {"ann"}
    place.up("--agents", "ben")

    assert set(place.online()) == {"ann", "ben"}


def test_two_ups_at_once_make_one_room(place: Place) -> None:
    place.agents("ann", "ben")
    both = [place.start("up", "--detach"), place.start("up", "--detach")]
    ends = [process.communicate(timeout=120) for process in both]
    place.watch()

    assert [process.returncode for process in both] == [0, 0], ends
    assert [pane["agent"] for pane in place.panes()] == ["human", "ann", "ben"]
    assert place.online() == {"ann": "idle", "ben": "idle"}
    assert sum("joining it" in err for _, err in ends) == 1


def test_up_after_a_killed_tmux_server_builds_the_panes_again(place: Place) -> None:
    place.agents("ann", "ben")
    place.up()
    gateway = place.room.pid
    place.csp("send", "ann", "remember me")
    place.tmux("kill-server")
    place.wait(lambda: not place.online(), "the end of the agents")
    done = place.up()

    assert "has no panes; they are built again" in done.err
    assert place.room.pid == gateway
    assert place.online() == {"ann": "idle", "ben": "idle"}
    assert "remember me" in place.csp("history").out


def test_up_starts_a_gateway_again_that_has_gone(place: Place) -> None:
    place.agents("ann")
    place.up()
    pane = place.pane("ann")["id"]
    for pid in (place.room.supervisor, place.room.pid):
        os.kill(pid or 0, signal.SIGKILL)
    done = place.up()

    assert "is gone; it is started again" in done.err
    assert place.pane("ann")["id"] == pane
    assert place.online() == {"ann": "idle"}


def test_the_callers_environment_reaches_panes_of_an_older_server(place: Place) -> None:
    odd = 'a "b" $HOME\n#{pane_id} ~ ünï \\ ;'
    place.tmux("new-session", "-d", "-s", "mine", "cat")
    script = 'env -0 > "$0"; exec cat'
    place.set(CSP_TEST_ODD=odd, CSP_AUTH_TOKEN="secret-of-the-room")
    out = place.folder / "env"
    (place.dir / "csp.toml").write_text(
        f'[[agent]]\nname = "ann"\nprofile = "generic"\ncommand = ["sh", "-c", {script!r}, "{out}"]\n'
    )
    place.up()
    found = dict(item.split("=", 1) for item in out.read_text().split("\0") if "=" in item)

    assert found["CSP_TEST_ODD"] == odd
    assert found["CSP_AUTH_TOKEN"] != "secret-of-the-room"
    assert found["CSP_AGENT"] == "ann"
    assert Path(found["PWD"]) == place.dir


def test_an_agent_that_does_not_come_up_is_named_and_the_others_go_on(place: Place) -> None:
    place.agents("ann")
    with (place.dir / "csp.toml").open("a") as file:
        file.write(
            '[[agent]]\nname = "bad"\nprofile = "generic"\n'
            'command = ["sh", "-c", "echo no key here; exit 3"]\n'
        )
    done = place.up()

    assert "bad has ended: no key here" in done.err
    assert place.online()["ann"] == "idle"


def test_agents_work_in_the_directory_that_was_asked_for(place: Place) -> None:
    other = place.folder / "o#{pane_id} dir"
    other.mkdir()
    place.agents("ann")
    place.up("--dir", str(other))

    assert place.tmux(
        "display-message", "-p", "-t", str(place.pane("ann")["id"]), "#{pane_current_path}"
    ) == (f"{other}\n")
    assert place.room.dir == other


def test_a_foreign_session_of_our_name_is_left_alone(place: Place) -> None:
    place.tmux("new-session", "-d", "-s", "csp", "cat")
    place.agents("ann")
    done = place.csp("up", "--detach")

    assert done.code == 1
    assert done.err.startswith("csp: there is a tmux session 'csp' that is not the room's (rename it")
    assert place.tmux("list-panes", "-s", "-t", "csp", "-F", "#{pane_current_command}") == "cat\n"


def test_two_rooms_have_a_session_each(place: Place) -> None:
    place.agents("ann")
    place.up()
    place.set(CSP_PORT="0")
    place.up("--room", "other")

    assert set(place.tmux("list-sessions", "-F", "#{session_name}").split()) == {"csp", "csp-other"}


def test_nothing_of_the_users_server_is_changed(place: Place) -> None:
    place.tmux("new-session", "-d", "-s", "mine", "cat")
    asks = (
        ("show-options", "-s"),
        ("show-options", "-g"),
        ("show-options", "-gw"),
        ("show-hooks", "-g"),
        ("show-environment", "-g"),
        ("list-keys",),
        ("show-options", "-t", "mine"),
    )
    before = [place.tmux(*ask) for ask in asks]
    place.agents("ann")
    place.up()

    assert [place.tmux(*ask) for ask in asks] == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--agents", "anne"), "csp: --agents: unknown agent 'anne' (did you mean 'ann'?)"),
        (("--agents", ","), "csp: --agents: expected names with commas between, got nothing"),
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


def test_a_port_that_is_taken_is_one_clear_line(place: Place) -> None:
    place.agents("ann")
    place.up()
    place.set(CSP_PORT=place.room.url.rpartition(":")[2])
    done = place.csp("up", "--detach", "--room", "other")

    assert done.code == 1
    assert "the gateway did not start: cannot listen on" in done.err
    assert len(done.err.splitlines()) == 1


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
