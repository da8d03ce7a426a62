"""What a person is told about the own messages, and when."""

import pytest

from csp.human.delivery_ticks import GATHER_S, STANDS_S, DeliveryTicks
from csp.human.theme import ASCII, UNICODE, Theme
from csp.protocol.catalogue import HELD_REASONS
from csp.protocol.enums import DeliveryState as S
from csp.protocol.enums import HeldReason

AGENTS = ("ada", "bob")


def sent(*agents: str, label: str = "") -> DeliveryTicks:
    ticks = DeliveryTicks(Theme(UNICODE, has_colour=False))
    ticks.expect("m", 0.0, label=label)
    ticks.accept("m", 7, agents, 0.0)
    return ticks


def test_all_recipients_are_told_in_one_line_as_soon_as_the_last_has_ended() -> None:
    ticks = sent(*AGENTS)
    ticks.move("m", "ada", S.CONFIRMED, "", 0.01)
    assert ticks.due(0.02) == []
    ticks.move("m", "bob", S.CONFIRMED, "", 0.03)

    assert ticks.due(0.03) == ["  #7 ✓ ada, bob"]
    assert ticks.waiting == 0
    assert ticks.due(9.0) == []


def test_one_who_is_late_does_not_hold_up_the_news_of_the_others() -> None:
    ticks = sent(*AGENTS)
    ticks.move("m", "ada", S.CONFIRMED, "", 0.0)

    assert ticks.due(GATHER_S) == ["  #7 ✓ ada"]
    ticks.move("m", "bob", S.FAILED, "it has ended", 1.0)
    assert ticks.due(2.0) == ["  #7 ✗ bob: it has ended"]


def test_what_holds_a_message_for_an_instant_is_not_told() -> None:
    ticks = sent("ada")
    ticks.move("m", "ada", S.HELD, "busy", 0.0)
    assert ticks.due(STANDS_S - 0.01) == []
    ticks.move("m", "ada", S.TYPED, "", STANDS_S - 0.01)
    ticks.move("m", "ada", S.CONFIRMED, "", STANDS_S)

    assert ticks.due(STANDS_S) == ["  #7 ✓ ada"]


def test_a_reason_that_stands_is_told_once() -> None:
    ticks = sent(*AGENTS)
    for agent in AGENTS:
        ticks.move("m", agent, S.HELD, "busy", 0.0)

    assert ticks.due(STANDS_S) == ["  #7 held for ada, bob: busy; queued until this turn ends"]
    ticks.move("m", "ada", S.QUEUED, "", 2.0)
    ticks.move("m", "ada", S.HELD, "busy", 2.1)
    assert ticks.due(9.0) == []
    ticks.move("m", "ada", S.HELD, "paused", 9.0)
    assert ticks.due(10.0) == ["  #7 held for ada: paused; /resume ada"]


def test_what_gives_no_proof_says_so_unless_a_proof_comes() -> None:
    ticks = sent(*AGENTS)
    ticks.move("m", "ada", S.SUBMITTED, "", 0.0)
    ticks.move("m", "bob", S.SUBMITTED, "", 0.0)
    ticks.move("m", "bob", S.CONFIRMED, "", 0.1)

    assert ticks.due(STANDS_S) == ["  #7 ✓ bob · ~ ada (unconfirmed)"]
    assert ticks.waiting == 0


@pytest.mark.parametrize(
    ("state", "reason", "line"),
    [
        (S.FAILED, "", "  #7 ✗ ada: no reason was given"),
        (S.FAILED, "two\nlines \x1b[1m", "  #7 ✗ ada: two lines ␛[1m"),
        (S.WITHDRAWN, "", "  #7 cancelled"),
        (S.EXPIRED, "it was away", "  #7 ✗ ada: expired: it was away"),
    ],
)
def test_an_end_is_told_with_its_reason(state: S, reason: str, line: str) -> None:
    ticks = sent("ada")
    ticks.move("m", "ada", state, reason, 0.0)

    assert ticks.due(0.0) == [line]


def test_a_button_is_told_by_its_name() -> None:
    ticks = sent("ada", label="approve")
    ticks.move("m", "ada", S.CONFIRMED, "", 0.0)

    assert ticks.due(0.0) == ["  approve ✓ ada"]


def test_ascii_says_it_in_words() -> None:
    ticks = DeliveryTicks(Theme(ASCII, has_colour=False))
    ticks.expect("m", 0.0)
    ticks.accept("m", 7, AGENTS, 0.0)
    ticks.move("m", "ada", S.CONFIRMED, "", 0.0)
    ticks.move("m", "bob", S.FAILED, "gone", 0.0)

    assert ticks.due(0.0) == ["  #7 ok ada | FAILED bob: gone"]


def test_news_that_comes_before_the_answer_waits_for_it() -> None:
    ticks = DeliveryTicks(Theme(UNICODE, has_colour=False))
    ticks.expect("m", 0.0)
    ticks.move("m", "ada", S.CONFIRMED, "", 0.0)
    assert ticks.due(5.0) == []
    ticks.accept("m", 7, ("ada",), 5.0)

    assert ticks.due(5.0) == ["  #7 ✓ ada"]


def test_a_message_nobody_speaks_of_is_asked_about_once() -> None:
    ticks = sent(*AGENTS)
    ticks.move("m", "ada", S.CONFIRMED, "", 0.0)

    assert ticks.silent(STANDS_S - 0.01) == []
    assert ticks.silent(STANDS_S) == ["m"]
    assert ticks.silent(9.0) == []


def test_messages_of_others_are_not_told() -> None:
    ticks = DeliveryTicks(Theme(UNICODE, has_colour=False))
    ticks.accept("other", 8, ("ada",), 0.0)
    ticks.move("other", "ada", S.CONFIRMED, "", 0.0)

    assert ticks.due(9.0) == []


def test_a_message_to_nobody_is_over_at_once() -> None:
    ticks = sent()

    assert ticks.due(0.0) == []
    assert ticks.waiting == 0


def test_every_reason_has_words() -> None:
    assert {entry.id for entry in HELD_REASONS} == set(HeldReason)


def test_a_line_is_broken_between_words() -> None:
    look = Theme(UNICODE, has_colour=False)
    look.columns = lambda: 40
    ticks = DeliveryTicks(look)
    ticks.expect("m", 0.0)
    ticks.accept("m", 7, ("ada",), 0.0)
    ticks.move("m", "ada", S.HELD, HeldReason.DIALOG, 0.0)

    (line,) = ticks.due(STANDS_S)
    rows = line.split("\n")
    assert rows[0] == "  #7 held for ada: a dialog is open;"
    assert all(row.startswith("    ") and len(row) <= 40 for row in rows[1:])
