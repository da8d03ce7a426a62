"""The panes in their windows: sizes, attaching, adding, borders."""

import asyncio
import re
import shlex

import pexpect
import pytest

from csp.panes.borders import PaneBorders
from tests.panes.place import Place
from tests.sidecar.stage import tui
from tests.waiting import wait_until

SEVEN = ("a1", "a2", "a3", "a4", "a5", "a6", "a7")


def test_up_attaches_in_a_terminal_and_the_panes_have_its_size(place: Place) -> None:
    place.agents("ann", "ben")
    terminal = place.terminal("up", rows=40, cols=120)
    terminal.expect("ann")
    place.wait(lambda: place.attached() == ["csp"], "attached", 90)
    place.watch()
    human, ann, ben = place.panes()

    assert (human["cols"], human["rows"]) == (120, 8)
    assert ann["cols"] + ben["cols"] + 1 == 120
    assert ann["rows"] == 40 - 1 - 10
    place.wait(lambda: place.online() == {"ann": "idle", "ben": "idle"}, "both idle")
    terminal.close(force=True)


def test_seven_agents_in_80x24_are_in_two_windows(place: Place) -> None:
    place.agents(*SEVEN)
    terminal = place.terminal("up", rows=24, cols=80)
    place.wait(lambda: place.attached() == ["csp"], "attached", 90)
    place.watch()
    panes = place.panes()

    assert [[pane["agent"] for pane in panes if pane["window"] == window] for window in (0, 1)] == [
        ["human", "a1", "a2", "a3", "a4"],
        ["a5", "a6", "a7"],
    ]
    assert all(pane["cols"] >= 39 and pane["rows"] >= 6 for pane in panes)
    assert set(place.online()) == set(SEVEN)
    terminal.close(force=True)


def test_a_resize_keeps_the_human_at_a_fifth(place: Place) -> None:
    place.agents("ann", "ben", "cid")
    terminal = place.terminal("up", rows=50, cols=200)
    place.wait(lambda: place.attached() == ["csp"], "attached", 90)
    place.watch()
    terminal.setwinsize(91, 160)

    place.wait(
        lambda: (pane := place.pane("human"))["cols"] == 160 and pane["rows"] in (17, 18), "a fifth of 90"
    )
    widths = [place.pane(agent)["cols"] for agent in ("ann", "ben", "cid")]
    assert max(widths) - min(widths) <= 2
    terminal.setwinsize(24, 100)
    place.wait(lambda: (pane := place.pane("human"))["cols"] == 100 and pane["rows"] in (8, 9), "eight rows")
    terminal.close(force=True)


def test_up_inside_tmux_switches_the_client(place: Place) -> None:
    place.agents("ann")
    place.tmux("new-session", "-d", "-s", "mine", "-x", "120", "-y", "40", "cat")
    client = pexpect.spawn(
        "tmux", ["attach", "-t", "mine"], env=place.env, dimensions=(40, 120), encoding="utf-8"
    )
    place.wait(lambda: place.tmux("list-clients"), "the client")
    command = shlex.join([*place.command, "up"])
    variables = [word for item in place.env.items() for word in ("-e", "=".join(item))]
    place.tmux("new-window", "-t", "mine:", "-c", str(place.dir), *variables, command)
    place.wait(lambda: place.attached() == ["csp"], "the switch", 60)
    place.watch()

    assert place.pane("human")["cols"] == 120
    place.tmux("switch-client", "-c", client_name(place), "-t", "mine")
    place.wait(lambda: place.attached() == ["mine"], "the way back")
    before = place.panes()
    place.tmux("new-window", "-t", "mine:", "-c", str(place.dir), *variables, command)
    place.wait(lambda: place.attached() == ["csp"], "the switch to a room that is open", 60)
    assert [pane["id"] for pane in place.panes()] == [pane["id"] for pane in before]
    client.close(force=True)


def test_off_a_terminal_up_says_how_to_attach(place: Place) -> None:
    place.agents("ann")
    done = place.csp("up")

    assert done.code == 0
    assert "open it with: tmux attach -t csp" in done.err


def test_the_orchestrator_is_first_of_the_bottom_row(place: Place) -> None:
    place.agents("ann", "ben")
    place.set(CSP_ORCH_CMD=shlex.join(tui(place.folder / "orch.log")), CSP_ORCHESTRATOR="1")
    place.up()
    views = {item["id"]: item["role"] for item in place.gateway.get("/agents")}

    assert [pane["agent"] for pane in place.panes()] == ["human", "orchestrator", "ann", "ben"]
    assert views == {"orchestrator": "orchestrator", "ann": "agent", "ben": "agent"}


def test_add_splits_where_there_is_room(place: Place) -> None:
    place.agents("ann")
    place.up()
    done = place.csp("add", "bob", "--profile", "generic", "--json", "--", *tui(place.folder / "bob.log"))

    assert done.code == 0, done.err
    assert done.json == {"agent": "bob", "state": "idle", "problem": ""}
    ann, bob = place.pane("ann"), place.pane("bob")
    assert (ann["window"], ann["top"]) == (bob["window"], bob["top"])
    assert abs(ann["cols"] - bob["cols"]) <= 1


def test_an_agent_with_a_name_that_is_taken_gets_the_next(place: Place) -> None:
    place.agents("ann")
    place.up()
    done = place.csp("add", "ann", "--profile", "generic", "--", *tui(place.folder / "two.log"))

    assert done.code == 0, done.err
    assert done.err == "ann-2 is here (idle); the name 'ann' was taken\n"
    assert set(place.online()) == {"ann", "ann-2"}


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
def test_add_says_what_is_wrong(place: Place, words: tuple[str, ...], problem: str) -> None:
    place.agents("ann")
    place.up()
    done = place.csp("add", *words)

    assert done.code in (1, 2)
    assert done.err.startswith(problem) and len(done.err.splitlines()) == 1


def test_add_needs_a_room_with_panes(place: Place) -> None:
    done = place.csp("add", "bob", "--", "cat")

    assert done.code == 1
    assert done.err.startswith("csp: no room is running")


# --- borders --------------------------------------------------------------------------------------


async def test_borders_follow_the_states_by_one_client(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.agents("ann", "ben")
    await asyncio.to_thread(place.up)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    human = str(place.pane("human")["id"])
    # The room's own human pane has then shown what it knows, so it writes no more.
    await wait_until(lambda: [place.pane(name)["state"] for name in ("ann", "ben")] == ["idle", "idle"])
    await wait_until(lambda: {"ann idle", "ben idle"} <= set(re.findall(r"\w+ idle", place.screen("human"))))
    borders = PaneBorders({"CSP_PANES": "x", "TMUX_PANE": human})
    await borders.start()
    for agent, state in (("ann", "busy"), ("nobody", "busy"), ("ben", "offline")):
        borders.set_state(agent, state)
    await wait_until(lambda: place.pane("ben")["state"] == "offline" and place.pane("ann")["state"] == "busy")
    clients = place.tmux("list-clients", "-F", "#{client_control_mode} #{client_flags}").splitlines()
    assert len(clients) == 2
    assert all(one.startswith("1 ") and "ignore-size" in one and "no-output" in one for one in clients)
    borders.set_state("ann", "paused")
    await wait_until(lambda: place.pane("ann")["state"] == "paused")
    await borders.close()

    await wait_until(lambda: len(place.tmux("list-clients").splitlines()) == 1)


def test_the_human_pane_keeps_the_borders_true(place: Place) -> None:
    place.agents("ann")
    place.up()
    place.csp("pause", "ann")
    place.wait(lambda: place.pane("ann")["state"] == "paused", "the pause")
    place.csp("resume", "ann")

    place.wait(lambda: place.pane("ann")["state"] == "idle", "the end of the pause")


def test_up_leaves_a_border_to_the_human_pane(place: Place) -> None:
    place.agents("ann")
    place.up()
    place.csp("pause", "ann")
    # By then the human pane has shown all that it knows.
    place.wait(lambda: place.pane("ann")["state"] == "paused", "the pause")
    place.tmux("set-option", "-p", "-t", str(place.pane("ann")["id"]), "@csp_state", "newer")
    place.up()

    assert place.pane("ann")["state"] == "newer"


async def test_borders_are_silent_outside_of_our_panes() -> None:
    borders = PaneBorders({})
    await borders.start()
    borders.set_state("ann", "busy")

    await borders.close()


def test_the_border_names_the_agent_and_its_state(place: Place) -> None:
    place.agents("ann")
    place.up()

    assert place.border("ann") == "ann [idle]"
    assert place.tmux("show-options", "-wv", "-t", "csp:0", "pane-border-status") == "top\n"
    assert place.tmux("show-options", "-gwv", "pane-border-status") == "off\n"


@pytest.mark.parametrize(
    ("word", "style"),
    [
        ("needs_approval", "fg=red bold"),
        ("busy", "fg=yellow bold"),
        ("YOUR TURN", "fg=yellow bold"),
        ("offline", "dim"),
    ],
)
def test_a_state_that_matters_stands_out(place: Place, word: str, style: str) -> None:
    place.agents("ann")
    place.up()
    place.csp("pause", "ann")
    # By then the human pane has shown all that it knows.
    place.wait(lambda: place.pane("ann")["state"] == "paused", "the pause")
    place.tmux("set-option", "-p", "-t", str(place.pane("ann")["id"]), "@csp_state", word)

    assert place.border("ann") == f"ann #[{style}][{word}]#[default]"


def test_a_window_that_shrinks_gives_agents_windows_of_their_own(place: Place) -> None:
    place.agents(*SEVEN)
    terminal = place.terminal("up", rows=50, cols=200)
    place.wait(lambda: place.attached() == ["csp"], "attached", 90)
    place.watch()
    place.wait(lambda: place.pane("human")["cols"] == 200, "the first layout")
    terminal.setwinsize(24, 80)

    def is_usable() -> bool:
        panes = [place.pane(agent) for agent in SEVEN]
        return all(pane["cols"] >= 39 and pane["rows"] >= 5 for pane in panes)

    place.wait(is_usable, "places to type in", 20)
    assert (
        place.tmux("show-options", "-wv", "-t", str(place.pane(SEVEN[-1])["id"]), "remain-on-exit") == "on\n"
    )
    place.wait(lambda: len({pane["window"] for pane in place.panes()}) > 1, "more windows")
    terminal.setwinsize(50, 200)

    def is_as_before() -> bool:
        panes = place.panes()
        return [pane["agent"] for pane in panes if pane["window"] == 0] == ["human", *SEVEN]

    place.wait(is_as_before, "everybody in one window again", 20)
    place.wait(lambda: is_usable() and place.pane("human")["rows"] in (8, 9), "the layout of the beginning")
    terminal.close(force=True)


def test_tmux_survives_that_a_window_of_several_agents_is_emptied(place: Place) -> None:
    place.agents(*SEVEN)
    terminal = place.terminal("up", rows=24, cols=80)
    place.wait(lambda: place.attached() == ["csp"], "attached", 90)
    place.watch()
    place.wait(lambda: len({pane["window"] for pane in place.panes()}) == 2, "two windows")
    terminal.setwinsize(50, 200)

    place.wait(lambda: {pane["window"] for pane in place.panes()} == {0}, "everybody in one window", 20)
    place.wait(lambda: set(place.online()) == set(SEVEN), "all are there")
    terminal.close(force=True)


def test_in_80x10_the_human_pane_has_the_first_window_until_there_is_room(place: Place) -> None:
    place.agents("ann", "ben", "cid")
    terminal = place.terminal("up", rows=10, cols=80)
    place.wait(lambda: place.attached() == ["csp"], "attached", 90)
    place.watch()

    def windows() -> list[list[str]]:
        panes = place.panes()
        numbers = sorted({pane["window"] for pane in panes})
        return [[pane["agent"] for pane in panes if pane["window"] == number] for number in numbers]

    assert windows() == [["human"], ["ann", "ben"], ["cid"]]
    assert place.pane("human")["rows"] >= 8
    terminal.setwinsize(24, 80)
    place.wait(lambda: windows() == [["human", "ann", "ben", "cid"]], "everybody in one window", 20)
    terminal.setwinsize(10, 80)
    place.wait(lambda: windows()[0] == ["human"], "the human pane alone again", 20)
    assert set(place.online()) == {"ann", "ben", "cid"}
    terminal.close(force=True)


def test_a_pane_that_somebody_has_moved_stays_there(place: Place) -> None:
    place.agents("ann", "ben")
    terminal = place.terminal("up", rows=30, cols=100)
    place.wait(lambda: place.attached() == ["csp"], "attached", 90)
    place.watch()
    place.tmux("break-pane", "-d", "-n", "mine", "-s", str(place.pane("ben")["id"]))
    terminal.setwinsize(50, 200)
    place.wait(lambda: place.pane("ann")["cols"] == 200, "the new size")

    assert place.pane("ben")["window"] == 1
    terminal.close(force=True)


async def test_the_borders_come_back_after_everybody_was_detached(place: Place) -> None:
    place.agents("ann")
    await asyncio.to_thread(place.up)
    place.tmux("detach-client", "-s", "csp")
    await asyncio.to_thread(place.csp, "pause", "ann")

    await wait_until(lambda: place.pane("ann")["state"] == "paused", 15.0)


def test_down_brings_people_back_to_the_session_they_came_from(place: Place) -> None:
    place.agents("ann")
    place.tmux("new-session", "-d", "-s", "mine", "-x", "120", "-y", "40", "cat")
    place.up()
    client = pexpect.spawn(
        "tmux", ["attach", "-t", "mine"], env=place.env, dimensions=(40, 120), encoding="utf-8"
    )
    place.wait(lambda: place.attached() == ["mine"], "the client")
    place.tmux("switch-client", "-c", client_name(place), "-t", "csp")
    place.csp("down")

    assert place.attached() == ["mine"]
    client.close(force=True)


def client_name(place: Place) -> str:
    return place.tmux("list-clients", "-F", "#{?client_control_mode,,#{client_name}}").split()[0]


def test_an_agent_that_was_removed_is_started_again_by_up(place: Place) -> None:
    place.agents("ann", "ben")
    place.up()
    place.wait(lambda: "ann" in place.online(), "ann")
    place.csp("remove", "ann")
    place.up()

    assert {"ann", "ben"} <= set(place.online())


def test_the_border_of_an_agent_that_was_removed_says_so(place: Place) -> None:
    place.agents("ann", "ben")
    place.up()
    place.wait(lambda: place.pane("ann")["state"] == "idle", "ann")
    place.csp("remove", "ann")

    place.wait(lambda: place.pane("ann")["state"] == "removed", "the word in the border")
    assert not place.pane("ann")["dead"]


def test_an_agent_that_has_ended_is_removed_with_its_pane_for_good(place: Place) -> None:
    place.agents("ann")
    place.up()
    done = place.csp("add", "slip", "--", "sh", "-c", "echo no such thing; exit 3")
    assert done.code == 1, done.err
    place.tmux("send-keys", "-t", str(place.pane("human")["id"]), "/remove slip", "Enter")
    place.wait(lambda: [pane["agent"] for pane in place.panes()] == ["human", "ann"], "the end of the pane")
    assert place.pane("ann")["cols"] == place.pane("human")["cols"]
    done = place.up()

    assert set(place.online()) == {"ann"}
    assert "slip" not in done.err
