"""The borders of the panes, the mode in the status line, the layout when a window changes its size."""

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import pytest

from csp.panes import pane_borders
from csp.panes.pane_borders import PaneBorders
from csp.terminal.pane_layout import LayoutForm, LayoutName, Size
from tests.panes.bare import SEVEN, attach, build, sizes, windows
from tests.panes.place import Place
from tests.waiting import wait_until

_WAIT_S: Final = 60.0


class Shown(PaneBorders):
    """The borders of a place, as the human pane has them."""

    def __init__(self, place: Place, agent: str = "human") -> None:
        super().__init__({"CSP_PANES": "x", "TMUX_PANE": str(place.pane(agent)["id"])})
        self.place = place

    async def until_state(self, agent: str, word: str) -> None:
        await wait_until(lambda: self.place.pane(agent)["state"] == word, _WAIT_S, f"{agent} {word}")

    async def until_windows(self, *expected: list[str]) -> None:
        await wait_until(lambda: windows(self.place) == [*expected], _WAIT_S, f"{expected}")


Show = Callable[..., Awaitable[Shown]]


@pytest.fixture
async def show(bare: Place) -> AsyncIterator[Show]:
    """Starts the borders of a place; they are closed at the end of the test."""
    started: list[Shown] = []

    async def start(agent: str = "human") -> Shown:
        started.append(Shown(bare, agent))
        await started[-1].start()
        return started[-1]

    yield start
    for one in started:
        await one.close()


@pytest.fixture
async def two(bare: Place, show: Show) -> Shown:
    """The borders of a room with ann and ben."""
    build(bare, "ann", "ben")
    return await show()


def option(place: Place, name: str) -> str:
    return place.tmux("show-options", "-v", "-t", "csp", name).rstrip("\n")


def status(place: Place) -> str:
    """Return what stands in the status line before the user's own."""
    return place.tmux("display-message", "-p", "-t", "csp", "#{T:status-right}").partition(" | ")[0]


# --- states ---------------------------------------------------------------------------------------


async def test_borders_follow_the_states_by_one_client(two: Shown) -> None:
    for agent, state in (("ann", "busy"), ("nobody", "busy"), ("ben", "offline")):
        two.set_state(agent, state)
    await two.until_state("ann", "busy")
    await two.until_state("ben", "offline")
    (client,) = two.place.tmux("list-clients", "-F", "#{client_control_mode} #{client_flags}").splitlines()
    assert client.startswith("1 ") and "ignore-size" in client and "no-output" in client
    two.set_state("ann", "paused")
    await two.until_state("ann", "paused")
    await two.start()
    assert len(two.place.tmux("list-clients").splitlines()) == 1
    await two.close()

    await wait_until(lambda: two.place.tmux("list-clients") == "", _WAIT_S)
    assert two.place.pane("ann")["state"] == "paused"


async def test_a_pane_that_comes_later_gets_its_state(two: Shown) -> None:
    two.set_state("cid", "busy")
    pane = two.place.tmux("split-window", "-d", "-P", "-F", "#{pane_id}", "-t", "csp:0", "cat").strip()
    two.place.tmux("set-option", "-p", "-t", pane, "@csp_agent", "cid")
    two.set_state("cid", "busy")
    await two.until_state("cid", "busy")


async def test_an_agent_in_a_new_window_is_found_without_being_told(two: Shown) -> None:
    two.set_states({"cid": "busy"})
    place = two.place
    place.tmux("new-window", "-d", "-t", "csp:", "cat", ";", "set-option", "-p", "@csp_agent", "x")
    pane = place.tmux("list-panes", "-t", "csp:1", "-F", "#{pane_id}").strip()
    place.tmux("set-option", "-p", "-t", pane, "@csp_agent", "cid")
    place.tmux("new-window", "-d", "-t", "csp:", "cat")

    await two.until_state("cid", "busy")


async def test_a_state_is_written_once(two: Shown) -> None:
    two.set_state("ann", "busy")
    await two.until_state("ann", "busy")
    two.place.tmux("set-option", "-p", "-t", str(two.place.pane("ann")["id"]), "@csp_state", "newer")
    two.set_state("ann", "busy")
    two.set_state("ben", "busy")
    await two.until_state("ben", "busy")

    assert two.place.pane("ann")["state"] == "newer"


async def test_who_is_no_longer_in_the_room_was_removed(two: Shown) -> None:
    two.set_states({"ann": "idle", "ben": "busy"})
    await two.until_state("ben", "busy")
    two.set_states({"ben": "busy"})
    await two.until_state("ann", "removed")

    assert two.place.pane("ben")["state"] == "busy"


async def test_a_word_cannot_command_tmux(two: Shown) -> None:
    two.set_state("ann", "b'usy#(touch x)\n;$")
    await two.until_state("ann", "busytouch x")


async def test_borders_are_silent_outside_of_our_panes(bare: Place) -> None:
    build(bare, "ann")
    for env in ({}, {"TMUX_PANE": str(bare.pane("human")["id"])}):
        shown = PaneBorders(env)
        await shown.start()
        shown.set_state("ann", "busy")
        await shown.close()

    assert bare.pane("ann")["state"] == "-"


async def test_the_borders_come_back_after_everybody_was_detached(
    two: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_borders, "_AGAIN_S", 0.01)
    two.set_mode("Debate 1/2", None)
    two.set_state("ann", "busy")
    await two.until_state("ann", "busy")
    two.place.tmux("detach-client", "-s", "csp")
    two.place.tmux("set-option", "-t", "csp", "@csp_mode", "old")
    two.set_state("ann", "paused")

    await two.until_state("ann", "paused")
    await wait_until(lambda: option(two.place, "@csp_mode") == "Debate 1/2", _WAIT_S)


# --- how a border looks ---------------------------------------------------------------------------


def test_the_border_names_the_agent_with_its_role_and_its_state(bare: Place) -> None:
    panes = build(bare, "ann")
    panes.place("orchestrator", "orchestrator")
    panes.place("boss", "orchestrator")
    before = [bare.border(agent) for agent in ("ann", "orchestrator", "boss", "human")]
    assert before == ["ann", "orchestrator", "boss (orchestrator)", "human"]
    pane = str(bare.pane("ann")["id"])
    styles = {
        "idle": "[idle]",
        "needs approval": "#[fg=red bold][needs approval]#[default]",
        "needs human": "#[fg=red bold][needs human]#[default]",
        "busy": "#[fg=yellow bold][busy]#[default]",
        "YOUR TURN": "#[fg=yellow bold][YOUR TURN]#[default]",
        "WAITING": "[WAITING]",
        **{
            word: f"#[dim][{word}]#[default]"
            for word in ("offline", "removed", "paused", "limited", "benched")
        },
    }
    for word, shown in styles.items():
        bare.tmux("set-option", "-p", "-t", pane, "@csp_state", word)

        assert bare.border("ann") == f"ann {shown}"
    assert bare.tmux("show-options", "-wv", "-t", "csp:0", "pane-border-status") == "top\n"
    assert bare.tmux("show-options", "-gwv", "pane-border-status") == "off\n"


# --- the mode -------------------------------------------------------------------------------------


async def test_the_mode_stands_in_the_status_line_with_its_clock(two: Shown) -> None:
    place = two.place
    assert status(place).count("Debate") == 0
    two.set_mode("Debate 1/2 · ann", time.time() + 125)
    await wait_until(lambda: option(place, "status-interval") == "1", _WAIT_S)
    assert re.fullmatch(r"Debate 1/2 · ann (2:0[0-5]|1:5\d)", status(place))
    two.set_mode("Debate 1/2 · ann", time.time() - 5)
    await wait_until(lambda: status(place) == "Debate 1/2 · ann 0:00", _WAIT_S)
    two.set_mode("Debate '#(x) 2/2", None)
    await wait_until(lambda: status(place) == "Debate (x) 2/2", _WAIT_S)
    assert option(place, "status-interval") == ""
    two.set_mode("", time.time() + 60)

    await wait_until(lambda: option(place, "@csp_mode") == "", _WAIT_S)
    assert option(place, "@csp_until") == ""
    assert place.tmux("show-options", "-gv", "status-right").count("@csp_mode") == 0


async def test_a_mode_goes_with_the_human_pane_and_with_no_other(two: Shown, show: Show) -> None:
    place = two.place
    other = await show("ann")
    for shown, word in ((two, "busy"), (other, "idle")):
        shown.set_state("ann", word)
        await shown.until_state("ann", word)
        shown.set_mode("Debate 1/2", None)
    await wait_until(lambda: option(place, "@csp_mode") == "Debate 1/2", _WAIT_S)
    await other.close()
    assert option(place, "@csp_mode") == "Debate 1/2"
    await two.close()

    await wait_until(lambda: option(place, "@csp_mode") == "", _WAIT_S)


# --- windows that change their size ---------------------------------------------------------------


async def test_a_window_that_shrinks_gives_agents_windows_of_their_own(bare: Place, show: Show) -> None:
    build(bare, *SEVEN)
    terminal = attach(bare)
    shown = await show()
    shown.set_states(dict.fromkeys(SEVEN, "idle"))
    await shown.until_state(SEVEN[-1], "idle")
    assert windows(bare) == [["human", *SEVEN]]
    terminal.setwinsize(24, 100)
    # The old sizes are large enough, too, so the windows are what is waited for first.
    await wait_until(lambda: windows(bare)[0] == ["human", *SEVEN[:3]], _WAIT_S, "windows")
    await wait_until(lambda: all(cols >= 39 and rows >= 5 for cols, rows in sizes(bare)), _WAIT_S, "places")
    last = str(bare.pane(SEVEN[-1])["id"])
    assert bare.tmux("show-options", "-wv", "-t", last, "remain-on-exit") == "on\n"
    assert bare.tmux("display-message", "-p", "-t", last, "#{window_name}") == f"{SEVEN[-1]}\n"
    terminal.setwinsize(50, 200)
    await shown.until_windows(["human", *SEVEN])
    await wait_until(
        lambda: bare.pane("human")["cols"] == 90 and len({cols for cols, _ in sizes(bare)}) <= 2,
        _WAIT_S,
        "the layout of the beginning",
    )
    shown.set_state(SEVEN[-1], "busy")
    await shown.until_state(SEVEN[-1], "busy")
    terminal.close(force=True)


async def test_tmux_survives_that_a_window_of_several_agents_is_emptied(bare: Place, show: Show) -> None:
    build(bare, *SEVEN, cols=100, rows=23)
    terminal = attach(bare, rows=24, cols=100)
    assert windows(bare) == [["human", *SEVEN[:4]], [*SEVEN[4:]]]
    assert all(cols >= 39 and rows >= 6 for cols, rows in sizes(bare))
    shown = await show()
    shown.set_state(SEVEN[-1], "idle")
    await shown.until_state(SEVEN[-1], "idle")
    terminal.setwinsize(50, 200)

    await shown.until_windows(["human", *SEVEN])
    terminal.close(force=True)


async def test_in_100x10_the_human_pane_has_the_first_window_until_there_is_room(
    bare: Place, show: Show
) -> None:
    build(bare, "ann", "ben", "cid", cols=100, rows=9)
    terminal = attach(bare, rows=10, cols=100)
    assert windows(bare) == [["human"], ["ann", "ben"], ["cid"]]
    assert bare.pane("human")["rows"] >= 8
    shown = await show()
    shown.set_state("cid", "idle")
    await shown.until_state("cid", "idle")
    terminal.setwinsize(24, 100)
    await shown.until_windows(["human", "ann", "ben", "cid"])
    terminal.setwinsize(10, 100)
    await wait_until(lambda: windows(bare)[0] == ["human"], _WAIT_S, "the human pane alone again")
    terminal.close(force=True)


async def test_what_had_become_too_full_before_anybody_looked_is_relieved(bare: Place, show: Show) -> None:
    build(bare, *SEVEN)
    bare.tmux("resize-window", "-t", "csp", "-x", "100", "-y", "23")
    await show()

    await wait_until(lambda: windows(bare)[0] == ["human", *SEVEN[:3]], _WAIT_S, "fewer agents")


async def test_a_pane_that_somebody_has_moved_stays_there(bare: Place, show: Show) -> None:
    build(bare, "ann", "ben", cols=100, rows=29)
    terminal = attach(bare, rows=30, cols=100)
    shown = await show()
    bare.tmux("break-pane", "-d", "-n", "mine", "-s", str(bare.pane("ben")["id"]))
    terminal.setwinsize(50, 200)
    await wait_until(lambda: bare.pane("ann")["cols"] == 200, _WAIT_S, "the new size")
    shown.set_state("ben", "idle")
    await shown.until_state("ben", "idle")

    assert windows(bare) == [["human", "ann"], ["ben"]]
    terminal.close(force=True)


async def test_what_a_person_has_dragged_stays_until_the_window_changes(bare: Place, show: Show) -> None:
    build(bare, "ann", "ben")
    terminal = attach(bare)
    shown = await show()
    shown.set_state("ben", "idle")
    await shown.until_state("ben", "idle")
    bare.tmux("resize-pane", "-t", str(bare.pane("ann")["id"]), "-x", "60")
    # By the second answer of tmux, whatever its first news would have caused has been done.
    for word in ("busy", "paused", "busy"):
        shown.set_state("ben", word)
        await shown.until_state("ben", word)
    assert bare.pane("ann")["cols"] == 60
    bare.tmux("resize-pane", "-Z", "-t", str(bare.pane("ann")["id"]))
    shown.set_state("ben", "idle")
    await shown.until_state("ben", "idle")
    assert bare.tmux("display-message", "-p", "-t", "csp:0", "#{window_zoomed_flag}") == "1\n"
    bare.tmux("resize-pane", "-Z", "-t", str(bare.pane("ann")["id"]))
    terminal.setwinsize(60, 180)

    await wait_until(lambda: {cols for cols, _ in sizes(bare)} == {54}, _WAIT_S, "the share that was dragged")
    terminal.close(force=True)


async def test_the_layout_that_a_person_has_chosen_outlives_twenty_resizes(bare: Place, show: Show) -> None:
    build(bare, "ann", "ben", "cid")
    terminal = attach(bare)
    shown = await show()
    shown.set_state("cid", "idle")
    await shown.until_state("cid", "idle")
    bare.tmux("resize-pane", "-t", str(bare.pane("human")["id"]), "-x", "120")
    form = LayoutForm(LayoutName.LEFT, 600)
    share = ("show-options", "-v", "-t", "csp", "@csp_share")
    await wait_until(lambda: bare.tmux(*share) == f"{form.share}\n", _WAIT_S, "the share is kept")
    for number in range(20):
        rows, cols = 24 + number * 7 % 26, 80 + number * 37 % 121
        terminal.setwinsize(rows, cols)
        alone = cols < 100
        wide = cols if alone else form.human(Size(cols=cols, rows=rows - 1)).cols
        await wait_until(
            lambda: bare.pane("human")["cols"] == wide and (windows(bare)[0] == ["human"]) == alone,  # noqa: B023
            _WAIT_S,
            f"{wide} of {cols}x{rows}",
        )
    terminal.setwinsize(50, 200)

    await shown.until_windows(["human", "ann", "ben", "cid"])
    await wait_until(lambda: bare.pane("human")["cols"] == 120, _WAIT_S, "the chosen width")
    assert len({cols for cols, _ in sizes(bare)}) <= 2
    terminal.close(force=True)
