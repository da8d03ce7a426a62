"""What can be read in the human pane while three agents give long answers, on screens of three sizes."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from tests.panes.place import Place

pytestmark = pytest.mark.xdist_group("readable panes")

NAMES = ("ada", "bob", "cy")
_LINES = 30
_OF_AN_ANSWER = re.compile(r"^ +(?:\* )?answer \d+ of (?P<name>\w+)\b")
_HEAD = re.compile(r"^\d\d:\d\d #\d+ (?P<name>\w+)(?: \(sealed\))?$")


def write_project(place: Place) -> None:
    """Have three agents that answer everything with thirty lines."""
    place.agents(*NAMES)
    config = place.dir / "csp.toml"
    rows = config.read_text()
    for name in NAMES:
        lines = [f"answer {number} of {name} with a few words more" for number in range(1, _LINES + 1)]
        answer = place.folder / f"{name}.txt"
        answer.write_text("\n".join(lines))
        rows = rows.replace(f"{name}.log", f"{name}.log --reply-file {answer}")
    config.write_text(rows)


class Watched:
    """The human pane while agents talk: each screen that is captured is checked."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.seq = max([int(item["seq"]) for item in self._items()], default=0)

    def _items(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.place.gateway.get("/history", limit=200)["items"]
        return found

    def type(self, line: str) -> None:
        pane = str(self.place.pane("human")["id"])
        self.place.tmux("send-keys", "-t", pane, "-l", line)
        self.place.tmux("send-keys", "-t", pane, "Enter")

    def rows(self) -> list[str]:
        pane = str(self.place.pane("human")["id"])
        rows = self.place.tmux("capture-pane", "-p", "-t", pane).splitlines()
        assert list(nameless(rows)) == [], "\n".join(rows)
        return rows

    def answers(self) -> list[dict[str, Any]]:
        """Return the answers of the agents since the watch began."""
        items = self._items()
        return [item for item in items if int(item["seq"]) > self.seq and item["sender"] in NAMES]

    def wait_for_answers(self, what: str) -> None:
        """Wait until each agent has answered and the head of the last answer is on the screen."""

        def is_readable() -> bool:
            rows, answers = self.rows(), self.answers()
            last = answers[-1]["sender"] if answers else ""
            return {item["sender"] for item in answers} == set(NAMES) and newest_head(rows) == last

        self.place.wait(is_readable, what, 120)
        assert all(str(item["text"]).count("answer ") == _LINES for item in self.answers())


def nameless(rows: list[str]) -> Iterator[str]:
    """Yield each row of an answer that has neither its head above it nor its sender named below it."""
    owner = ""
    for number, row in enumerate(rows):
        if head := _HEAD.match(row):
            owner = head["name"]
        elif found := _OF_AN_ANSWER.match(row):
            below = next((text for text in rows[number:] if not _OF_AN_ANSWER.match(text)), "")
            if found["name"] != owner and f"more lines from {found['name']}, /show " not in below:
                yield row
        else:
            owner = ""


def newest_head(rows: list[str]) -> str:
    """Return the sender of the last head with the first line of its answer below it."""
    heads = [
        head["name"]
        for row, below in pairwise(rows)
        if (head := _HEAD.match(row)) and re.match(rf"^ +(?:\* )?answer 1 of {head['name']}\b", below)
    ]
    return heads[-1] if heads else ""


@pytest.mark.parametrize(
    ("cols", "rows", "layout"),
    [(200, 50, "left"), (120, 40, "top"), (80, 24, "windows")],
)
def test_who_says_what_is_on_every_screen_and_the_last_answer_begins_on_it(
    place: Place, cols: int, rows: int, layout: str
) -> None:
    write_project(place)
    terminal = place.terminal("up", rows=rows, cols=cols)
    place.wait(lambda: place.attached() == ["csp"], "attached", 120)
    place.watch()
    place.wait(lambda: place.online() == dict.fromkeys(NAMES, "idle"), "agents at rest", 120)
    human = place.pane("human")
    assert (human["cols"] < cols, human["rows"] < rows // 2) == (layout == "left", layout == "top")
    watched = Watched(place)
    watched.type("@all what do you think?")
    watched.wait_for_answers("an answer of each")
    place.wait(lambda: place.online() == dict.fromkeys(NAMES, "idle"), "agents at rest")

    debated = Watched(place)
    debated.type('/mode debate "tabs or spaces" --rounds 1')
    debated.wait_for_answers("a position of each")
    place.wait(lambda: any("DEBATE complete" in row for row in debated.rows()), "the end of the debate")
    assert newest_head(debated.rows()) == debated.answers()[-1]["sender"]
    terminal.close(force=True)
