"""The panes of a room with nothing but `cat` in them: what tmux does needs no agents and no gateway."""

from collections.abc import Iterator
from typing import Final

import pexpect

from csp.panes.tmux_session import TmuxSession
from csp.terminal.pane_layout import Size
from tests.panes.place import Place

SEVEN: Final = ("a1", "a2", "a3", "a4", "a5", "a6", "a7")


def build(place: Place, *agents: str, cols: int = 200, rows: int = 49) -> TmuxSession:
    """Make the session of a room with a pane for each agent."""
    panes = TmuxSession("default", place.state)
    panes.open(Size(cols=cols, rows=rows), place.dir, place.env)
    for agent in agents:
        panes.place(agent, "agent")
    return panes


def attach(place: Place, session: str = "csp", *, rows: int = 50, cols: int = 200) -> "pexpect.spawn[str]":
    """Look at a session in a terminal of this size, as a person does."""
    client = pexpect.spawn(
        "tmux", ["attach", "-t", session], env=place.env, dimensions=(rows, cols), encoding="utf-8"
    )
    place.wait(lambda: session in place.attached(), "the client")
    return client


def windows(place: Place) -> list[list[str]]:
    """Return who is in which window."""
    panes = place.panes()
    numbers = sorted({pane["window"] for pane in panes})
    return [[pane["agent"] for pane in panes if pane["window"] == number] for number in numbers]


def sizes(place: Place) -> Iterator[tuple[int, int]]:
    """Yield the size of each agent's pane."""
    return ((pane["cols"], pane["rows"]) for pane in place.panes() if pane["agent"] != "human")
