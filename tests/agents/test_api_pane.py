"""What the pane of a model shows and remembers, without a model."""

from typing import Any

import pytest

from csp.agents.api.model_pane import KEPT_ROWS, ROWS, ModelPane
from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver


@pytest.fixture
def shown() -> list[str]:
    return []


@pytest.fixture
def pane(shown: list[str]) -> ModelPane:
    return ModelPane(shown.append)


def delivery(kind: DeliverKind, text: str) -> Deliver:
    fields: dict[str, Any] = {"id": "m-1", "seq": 1, "kind": kind, "sender": "human", "urgent": False}
    return Deliver(**fields, text=text, turn="t-9" if kind is DeliverKind.TURN else None)


def rows(pane: ModelPane) -> list[str]:
    return [row[0].text if row else "" for row in pane.screen().rows]


def test_the_screen_has_the_newest_rows_and_what_is_being_said(pane: ModelPane) -> None:
    for number in range(KEPT_ROWS + 100):
        pane.line(f"row {number}")
    pane.say("half a")

    assert rows(pane) == [*(f"row {number}" for number in range(251, 300)), "half a"]
    assert (len(rows(pane)), len(pane._rows)) == (ROWS, KEPT_ROWS)


def test_half_an_escape_sequence_is_held_back_but_not_for_ever(pane: ModelPane, shown: list[str]) -> None:
    pane.say("a\x1b[3")
    assert shown == ["a"]
    pane.say("1mb")
    assert "".join(shown) == "ab"
    pane.say("\x1b]0;" + "x" * 300)

    assert pane._held == ""


def test_what_was_held_back_goes_with_its_answer(pane: ModelPane, shown: list[str]) -> None:
    pane.say("a\x1b[3")
    pane.finish()
    pane.say("1mb")

    assert "".join(shown) == "a\n1mb"


def test_a_question_is_one_line_of_a_turn_or_a_whole_message(pane: ModelPane, shown: list[str]) -> None:
    pane.ask(delivery(DeliverKind.TURN, "Round 1 of 2\nand what to do"))
    pane.ask(delivery(DeliverKind.MESSAGE, "one\n two"))
    pane.ask(delivery(DeliverKind.MESSAGE, "x" * 161))

    assert [line for line in rows(pane) if line] == [
        "> turn t-9: Round 1 of 2",
        "> human: one two",
        f"> human: {'x' * 159}…",
    ]
