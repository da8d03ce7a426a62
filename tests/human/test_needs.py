"""What needs the person: which answer a key gives, and how the list is drawn."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from csp.errors import BadInput, NotFound
from csp.human import needs
from csp.human.needs import Needs, list_lines, need_lines, row_text
from csp.human.theme import UNICODE, Theme
from csp.protocol.attention import (
    AttentionAnswer,
    AttentionItem,
    AttentionKind,
    AttentionLevel,
    AttentionView,
)
from tests.waiting import wait_until

LOOK = Theme(UNICODE, has_colour=False)
ANSWERS = (
    AttentionAnswer(key="y", label="Approve", line="/approve ada 1"),
    AttentionAnswer(key="n", label="Deny", line="/deny ada 2"),
)


def item(agent: str, since: float, **fields: Any) -> AttentionItem:
    given: dict[str, Any] = {
        "id": f"approval:{agent}",
        "kind": AttentionKind.APPROVAL,
        "title": f"{agent} asks to run a command",
        "detail": "pytest -q",
        "answers": ANSWERS,
    }
    return AttentionItem(agent=agent, since=since, **given | fields)


class Listed:
    """A list whose items a test says, and the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.items: tuple[AttentionItem, ...] = ()
        self.told: list[AttentionItem] = []
        self.asked = 0
        self.needs = Needs(self._ask, self.told.append, lambda: None)
        monkeypatch.setattr(needs, "time", SimpleNamespace(monotonic=lambda: self.now))

    async def _ask(self, method: str, path: str) -> Any:
        self.asked += 1
        return msgspec.to_builtins(AttentionView(items=self.items, seq=1))

    async def show(self, *items: AttentionItem) -> None:
        self.items = items
        await self.needs.look()


@pytest.fixture
async def listed(monkeypatch: pytest.MonkeyPatch) -> Listed:
    return Listed(monkeypatch)


async def test_a_key_answers_the_newest_thing_that_waits(listed: Listed) -> None:
    news = item("cy", 9.0, level=AttentionLevel.INFO)
    await listed.show(item("ada", 1.0), item("bob", 2.0, answers=ANSWERS[1:]), news)
    listed.now += 1

    assert listed.needs.find_answer("n").line == "/deny ada 2"
    with pytest.raises(BadInput, match="'y' is not an answer to: bob asks to run a command"):
        listed.needs.find_answer("y")


async def test_what_has_only_just_come_is_not_answered(listed: Listed) -> None:
    await listed.show(item("ada", 1.0))
    listed.now += needs.TOO_NEW_S - 0.1
    with pytest.raises(BadInput, match="this item has only just appeared: ada asks to run a command"):
        listed.needs.find_answer("y")
    listed.now += 0.2
    assert listed.needs.find_answer("y").line == "/approve ada 1"

    await listed.show(item("ada", 1.0), item("bob", 2.0))
    with pytest.raises(BadInput, match="this item has only just appeared: bob"):
        listed.needs.find_answer("y")


async def test_an_approval_is_told_once_it_says_what_for(listed: Listed) -> None:
    bare = item("ada", 1.0, detail="")
    await listed.show(bare)
    listed.now += needs.UNDRAWN_S - 0.1
    await listed.show(bare)
    assert listed.told == []
    with pytest.raises(BadInput, match="this item has only just appeared"):
        listed.needs.find_answer("y")
    await listed.show(item("ada", 1.0))
    await listed.show(item("ada", 1.0))
    assert [one.detail for one in listed.told] == ["pytest -q"]

    await listed.show(item("bob", 2.0, detail=""), item("cy", 2.0, detail="", kind=AttentionKind.LOGIN))
    assert [one.agent for one in listed.told] == ["ada", "cy"]
    listed.now += needs.UNDRAWN_S
    await listed.show(item("bob", 2.0, detail=""))
    assert [one.agent for one in listed.told] == ["ada", "cy", "bob"]


async def test_an_approval_without_its_command_is_told_after_a_while(
    listed: Listed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "UNDRAWN_S", 0.01)
    listed.items = (item("ada", 1.0, detail=""),)
    fresh = asyncio.ensure_future(listed.needs.keep_fresh())
    listed.needs.wake()
    await wait_until(lambda: listed.asked > 0)
    listed.now += 1

    await wait_until(lambda: [one.agent for one in listed.told] == ["ada"])
    fresh.cancel()


async def test_without_anything_to_answer_a_key_says_so(listed: Listed) -> None:
    with pytest.raises(NotFound, match="nothing needs you"):
        listed.needs.find_answer("y")


async def test_the_only_dialog_is_meant_where_no_agent_is_named(listed: Listed) -> None:
    with pytest.raises(NotFound, match="no dialog is open"):
        listed.needs.only_dialog()
    await listed.show(item("ada", 1.0), item("bob", 2.0, kind=AttentionKind.TIE))
    assert listed.needs.only_dialog() == "ada"
    await listed.show(item("ada", 1.0), item("bob", 2.0))
    with pytest.raises(BadInput, match="several dialogs are open: ada, bob"):
        listed.needs.only_dialog()


def test_the_list_has_the_line_of_each_answer() -> None:
    long = item("ada", 1.0, detail="\n".join(f"row {number}" for number in range(9)))
    lines = "\n".join(list_lines(LOOK, (long,))).split("\n")

    assert lines[0] == "▲ ada asks to run a command"
    assert lines[1] == "  row 0" and lines[6] == "  row 5"
    assert lines[7:] == ["  ... 3 more lines", "    /approve ada 1  Approve", "    /deny ada 2  Deny"]
    assert list_lines(LOOK, ()) == ["nothing needs you"]


def test_the_answers_are_broken_between_words() -> None:
    look = Theme(UNICODE, has_colour=True)
    look.columns = lambda: 40
    rows = need_lines(look, item("ada", 1.0)).split("\n")

    assert [re.sub("\x1b[^m]*m", "", row) for row in rows] == [
        "▲ ada asks to run a command",
        "  pytest -q",
        "  y Approve   n Deny   (/y, /n or",
        "  /answer KEY; Alt-Y, Alt-N)",
    ]


def test_the_row_shows_the_newest_with_its_keys() -> None:
    both = [item("bob", 1.0), item("ada", 2.0, detail="pytest\x1b[2J -q")]
    row = row_text(both, "▲", 80)

    assert "\x1b" not in row
    assert row.startswith("▲ ada: pytest")
    assert row.endswith("  Alt-Y Approve  Alt-N Deny  +1 /needs")
    assert len(row_text([item("ada", 1.0, detail="x" * 500)], "▲", 60)) <= 60
    assert row_text([], "▲", 80) == ""
