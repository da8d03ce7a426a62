"""The panes of a real room: attaching, adding, removing; what tmux does alone is in test_session."""

import json
import os
import shlex

import pytest

from tests.panes.bare import SEVEN, attach
from tests.panes.place import Place
from tests.sidecar.stage import tui

pytestmark = pytest.mark.xdist_group("panes")


@pytest.fixture(scope="module")
def open_place(shared_place: Place) -> Place:
    shared_place.agents("ann", "ben")
    shared_place.up()
    return shared_place


@pytest.fixture
def room(open_place: Place) -> Place:
    """An open room with ann and ben, and whoever an earlier test has added."""
    if not {"ann", "ben"} <= set(open_place.online()):
        open_place.up()
    return open_place


def test_up_attaches_in_a_terminal_and_follows_its_size(place: Place) -> None:
    place.agents("ann", "ben")
    terminal = place.terminal("up", rows=40, cols=120)
    terminal.expect("ann")
    place.wait(lambda: place.attached() == ["csp"], "attached", 120)
    place.watch()
    human, ann, ben = place.panes()

    assert (human["cols"], human["rows"]) == (120, 14)
    assert ann["cols"] + ben["cols"] + 1 == 120
    assert ann["rows"] == 40 - 1 - 16
    place.wait(lambda: place.online() == {"ann": "idle", "ben": "idle"}, "both idle")
    # The borders of the human pane are there once it shows a state.
    place.wait(lambda: place.pane("ben")["state"] == "idle", "the borders")
    place.tmux("resize-pane", "-t", str(place.pane("ann")["id"]), "-x", "45")
    terminal.setwinsize(91, 160)
    place.wait(
        lambda: (pane := place.pane("human"))["cols"] == 160 and pane["rows"] in (35, 36), "its share of 90"
    )
    place.wait(lambda: {place.pane(agent)["cols"] for agent in ("ann", "ben")} <= {79, 80}, "equal widths")
    terminal.close(force=True)


def test_up_inside_tmux_switches_the_client_and_down_brings_it_back(place: Place) -> None:
    place.agents("ann")
    place.tmux("new-session", "-d", "-s", "mine", "-x", "120", "-y", "40", "cat")
    client = attach(place, "mine", rows=40, cols=120)
    place.accept()
    command = shlex.join([*place.command, "up"])
    variables = [word for item in place.env.items() for word in ("-e", "=".join(item))]
    place.tmux("new-window", "-t", "mine:", "-c", str(place.dir), *variables, command)
    place.wait(lambda: place.attached() == ["csp"], "the switch", 120)
    place.watch()

    assert place.pane("human")["cols"] == 120
    name = place.tmux("list-clients", "-F", "#{?client_control_mode,,#{client_name}}").split()[0]
    place.tmux("switch-client", "-c", name, "-t", "mine")
    place.wait(lambda: place.attached() == ["mine"], "the way back")
    before = place.panes()
    place.tmux("new-window", "-t", "mine:", "-c", str(place.dir), *variables, command)
    place.wait(lambda: place.attached() == ["csp"], "the switch to a room that is open", 120)
    assert [pane["id"] for pane in place.panes()] == [pane["id"] for pane in before]
    place.csp("down")
    assert place.attached() == ["mine"]
    client.close(force=True)


def test_up_in_a_session_that_nobody_sees_says_how_to_open_the_room(place: Place) -> None:
    place.agents("ann")
    place.accept()
    variables = [word for item in place.env.items() for word in ("-e", "=".join(item))]
    command = f"{shlex.join([*place.command, 'up'])}; echo ended with $?; cat"
    size = ("-x", "120", "-y", "40")
    place.tmux("new-session", "-d", "-s", "mine", *size, "-c", str(place.dir), *variables, command)

    def shown() -> str:
        return place.tmux("capture-pane", "-p", "-t", "mine:")

    place.wait(lambda: "ended with" in shown(), "the end of csp up", 120)
    assert "open it with: tmux attach -t csp\nended with 0\n" in shown()
    assert set(place.online()) == {"ann"}


def test_off_a_terminal_up_says_how_to_attach(room: Place) -> None:
    done = room.csp("up")

    assert done.code == 0
    assert "open it with: tmux attach -t csp" in done.err


def test_the_human_pane_keeps_the_borders_true_and_up_leaves_them_to_it(room: Place) -> None:
    room.wait(lambda: room.border("ann") == "ann [idle]", "the border of one that rests")
    room.csp("pause", "ann")
    room.wait(lambda: room.pane("ann")["state"] == "paused", "the pause")
    # By then the human pane has shown all that it knows.
    pane = str(room.pane("ann")["id"])
    room.tmux("set-option", "-p", "-t", pane, "@csp_state", "newer")
    room.up()
    assert room.pane("ann")["state"] == "newer"
    room.csp("resume", "ann")

    room.wait(lambda: room.pane("ann")["state"] == "idle", "the end of the pause")


def test_add_splits_where_there_is_room_and_refuses_a_taken_name(room: Place) -> None:
    done = room.csp("add", "bob", "--profile", "generic", "--json", "--", *tui(room.folder / "bob.log"))
    assert done.code == 0, done.err
    assert done.json == {"agent": "bob", "state": "idle", "problem": ""}
    ann, bob = room.pane("ann"), room.pane("bob")
    assert (ann["window"], ann["left"], ann["cols"]) == (bob["window"], bob["left"], bob["cols"])
    assert abs(ann["rows"] - bob["rows"]) <= 1
    room.wait(lambda: room.pane("bob")["state"] == "idle", "its border")
    done = room.csp("add", "bob", "--profile", "generic", "--", *tui(room.folder / "two.log"))
    assert done.code == 1
    assert done.err == "csp: bob is already in the room (choose another name, such as bob-2)\n"
    assert "bob-2" not in room.online()
    done = room.csp("add", "bob", "--number", "--profile", "generic", "--", *tui(room.folder / "two.log"))

    assert done.code == 0, done.err
    assert done.err == "bob-2 is here (idle); the name 'bob' was taken\n"
    assert {"bob", "bob-2"} <= set(room.online())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("bob",), "csp: agent 'bob' has no command (give it one: csp add bob -- COMMAND)"),
        (
            ("bob", "--", "no-such-cli"),
            "csp: the command 'no-such-cli' of agent 'bob' was not found (check its spelling",
        ),
        (("all", "--", "cat"), "csp: name 'all' is reserved (reserved are:"),
    ],
)
def test_add_says_what_is_wrong(room: Place, words: tuple[str, ...], problem: str) -> None:
    done = room.csp("add", *words)

    assert done.code in (1, 2)
    assert done.err.startswith(problem) and len(done.err.splitlines()) == 1


def test_add_needs_a_room_with_panes(place: Place) -> None:
    done = place.csp("add", "bob", "--", "cat")

    assert done.code == 1
    assert done.err.startswith("csp: no room is running")


def test_an_agent_that_was_removed_is_called_so_and_started_again_where_it_is_named(room: Place) -> None:
    room.csp("remove", "ann")
    room.wait(lambda: room.pane("ann")["state"] == "removed", "the word in the border")
    assert not room.pane("ann")["dead"]
    room.up()
    assert "ann" not in room.online()
    room.up("--agents", "ann,ben")

    assert {"ann", "ben"} <= set(room.online())


def test_an_agent_that_has_ended_is_removed_with_its_pane_for_good(room: Place) -> None:
    before = [pane["agent"] for pane in room.panes()]
    done = room.csp("add", "slip", "--", "sh", "-c", "echo no such thing; exit 3")
    assert done.code == 1, done.err
    room.tmux("send-keys", "-t", str(room.pane("human")["id"]), "/remove slip", "Enter")
    room.wait(lambda: [pane["agent"] for pane in room.panes()] == before, "the end of the pane")
    done = room.up()

    assert "slip" not in room.online()
    assert "slip" not in done.err


def windows(place: Place) -> list[list[str]]:
    """Return the names of the panes in each window."""
    panes = place.panes()
    numbers = sorted({pane["window"] for pane in panes})
    return [[pane["agent"] for pane in panes if pane["window"] == number] for number in numbers]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_program_of_a_removed_agent_ends_only_where_a_person_says_so(room: Place) -> None:
    before = [pane["agent"] for pane in room.panes()]
    log = room.folder / "stay.log"
    assert room.csp("add", "stay", "--profile", "generic", "--", *tui(log)).code == 0
    (program,) = [json.loads(line)["pid"] for line in log.read_text().splitlines() if '"started"' in line]
    done = room.csp("remove", "stay")

    assert done.err == (
        "removed stay; its program still runs in its pane; end it with: csp remove stay --end\n"
    )
    assert "stay" not in room.online()
    assert not room.pane("stay")["dead"]
    assert is_running(program)
    room.up()
    assert "stay" not in room.online()

    assert room.csp("remove", "stay", "--end").err == "removed stay\n"
    assert [pane["agent"] for pane in room.panes()] == before
    room.wait(lambda: not is_running(program), "the end of the program")
    room.up()
    assert "stay" not in room.online()


@pytest.mark.full
def test_seven_real_agents_find_their_places_in_any_size(place: Place) -> None:
    place.agents(*SEVEN)
    terminal = place.terminal("up", rows=24, cols=80)
    place.wait(lambda: place.attached() == ["csp"], "attached", 120)
    place.watch()
    place.wait(lambda: windows(place) == [["human"], *([name] for name in SEVEN)], "a window for each", 120)
    assert all(pane["cols"] == 80 and pane["rows"] >= 20 for pane in place.panes())
    terminal.setwinsize(50, 200)
    place.wait(lambda: {pane["window"] for pane in place.panes()} == {0}, "everybody in one window")
    terminal.setwinsize(24, 80)
    place.wait(
        lambda: all(pane["cols"] >= 39 and pane["rows"] >= 5 for pane in place.panes()), "places to type in"
    )
    place.wait(lambda: set(place.online()) == set(SEVEN), "all are there")
    terminal.close(force=True)
