"""Each gate keeps a message back for its own reason, in order."""

import pytest
from msgspec.structs import replace

from csp.protocol.enums import HeldReason
from csp.terminal.gates import (
    MOST_WAITS,
    MOST_WORK,
    UNASKED_WAITS,
    GateRules,
    PaneFacts,
    closed_gate,
    holds_draft,
    is_waived,
    next_look,
    works_too_long,
)

NOW = 100.0
OPEN = PaneFacts(quiet_since=NOW - 1)
RULES = GateRules()


def test_all_gates_open() -> None:
    assert closed_gate(OPEN, RULES, NOW) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_alive": False}, HeldReason.STARTING),
        ({"is_ready": False}, HeldReason.STARTING),
        ({"is_blocked": True}, HeldReason.STARTING),
        ({"is_stopped": True}, HeldReason.PAUSED),
        ({"has_dialog": True}, HeldReason.DIALOG),
        ({"is_asking": True}, HeldReason.DIALOG),
        ({"is_composer_gone": True}, HeldReason.DIALOG),
        ({"is_composer_gone": True, "is_turn_open": True}, HeldReason.BUSY),
        ({"is_turn_open": True}, HeldReason.BUSY),
        ({"quiet_since": None}, HeldReason.BUSY),
        ({"quiet_since": NOW - 0.29}, HeldReason.BUSY),
        ({"last_key": NOW - 0.49}, HeldReason.TYPING),
        ({"draft": True}, HeldReason.DRAFT),
        ({"is_paused": True}, HeldReason.PAUSED),
        ({"last_key": NOW - 0.5}, None),
        ({"quiet_since": NOW - 0.31}, None),
        ({"quiet_since": NOW, "is_end_known": True}, None),
        ({"quiet_since": None, "is_end_known": True}, HeldReason.BUSY),
    ],
)
def test_one_closed_gate_is_the_reason(change: dict[str, object], reason: HeldReason | None) -> None:
    facts = replace(OPEN, **change)

    assert closed_gate(facts, RULES, NOW) is reason


def test_the_first_closed_gate_is_named() -> None:
    shut = [
        ({"is_paused": True}, HeldReason.PAUSED),
        ({"draft": True}, HeldReason.DRAFT),
        ({"last_key": NOW}, HeldReason.TYPING),
        ({"is_turn_open": True}, HeldReason.BUSY),
        ({"has_dialog": True}, HeldReason.DIALOG),
        ({"is_ready": False}, HeldReason.STARTING),
    ]
    facts = OPEN
    for change, reason in shut:
        facts = replace(facts, **change)  # type: ignore[arg-type]  # as above

        assert closed_gate(facts, RULES, NOW) is reason


def test_urgent_skips_the_busy_gate_alone() -> None:
    busy = replace(OPEN, is_turn_open=True)

    assert closed_gate(busy, RULES, NOW, is_urgent=True) is None
    assert closed_gate(replace(busy, draft=True), RULES, NOW, is_urgent=True) is HeldReason.DRAFT
    assert closed_gate(replace(busy, has_dialog=True), RULES, NOW, is_urgent=True) is HeldReason.DIALOG


def test_only_a_guess_can_be_waived() -> None:
    busy = replace(OPEN, quiet_since=None)

    assert closed_gate(busy, RULES, NOW, is_waived=True) is HeldReason.BUSY
    assert closed_gate(busy, GateRules(guesses_idle=True), NOW, is_waived=True) is None
    assert closed_gate(busy, GateRules(guesses_idle=True), NOW) is HeldReason.BUSY
    gone = replace(busy, is_composer_gone=True)
    assert closed_gate(gone, GateRules(guesses_idle=True), NOW, is_waived=True) is HeldReason.DIALOG


def waived(facts: PaneFacts, waited_s: float) -> bool:
    return is_waived(facts, NOW, waited_s=waited_s, timeout_s=10.0)


@pytest.mark.parametrize("facts", [OPEN, replace(OPEN, quiet_since=None)], ids=["no sign", "a sign"])
def test_the_wait_for_rest_is_waived_when_the_screen_has_stood_still_for_all_of_it(facts: PaneFacts) -> None:
    assert waived(facts, 10.0) and not waived(facts, 9.9)
    assert waived(replace(facts, moved_at=NOW - 10.0), 10.0)
    assert not waived(replace(facts, moved_at=NOW - 9.9), 30.0)


def test_only_a_sign_of_work_keeps_a_screen_that_never_rests_busy() -> None:
    moving = replace(OPEN, moved_at=NOW - 0.1)

    assert waived(moving, 10.0 * MOST_WAITS) and not waived(moving, 10.0 * MOST_WAITS - 0.1)
    assert not waived(replace(moving, quiet_since=None), 100.0 * MOST_WAITS)


def test_a_sign_of_work_in_a_program_that_was_asked_nothing_is_waived() -> None:
    long_s = 10.0 * UNASKED_WAITS
    shown = replace(OPEN, quiet_since=None, moved_at=NOW, worked_since=NOW - long_s, is_unasked=True)

    assert waived(shown, 10.0) and not waived(shown, 9.9)
    assert not waived(replace(shown, is_unasked=False), long_s)
    assert not waived(replace(shown, worked_since=NOW - long_s + 0.1), long_s)
    assert not waived(replace(shown, said_at=NOW - long_s + 0.1), long_s)


def test_a_sign_of_work_may_show_for_a_long_time_but_not_for_ever() -> None:
    works = replace(OPEN, quiet_since=None, worked_since=NOW - 10.0 * MOST_WORK)

    assert works_too_long(works, NOW, timeout_s=10.0)
    assert not works_too_long(works, NOW - 0.1, timeout_s=10.0)
    assert not works_too_long(OPEN, NOW, timeout_s=0.0)


def test_the_ledger_counts_until_the_screen_has_had_time_to_show_the_keys() -> None:
    typed = replace(OPEN, may_hold_draft=True, last_key=NOW - 0.6)

    assert holds_draft(typed, NOW)
    assert not holds_draft(typed, NOW + 0.2)


def test_the_ledger_alone_counts_where_no_composer_can_be_read() -> None:
    assert holds_draft(replace(OPEN, draft=None, may_hold_draft=True, last_key=0.0), NOW)
    assert not holds_draft(replace(OPEN, draft=None), NOW)


def test_a_draft_without_a_key_is_a_draft() -> None:
    assert holds_draft(replace(OPEN, draft=True), NOW)
    assert not holds_draft(replace(OPEN, may_hold_draft=True), NOW)


def test_next_look_is_when_time_alone_may_open_a_gate() -> None:
    assert next_look(replace(OPEN, quiet_since=NOW - 0.1), RULES, NOW) == pytest.approx(NOW + 0.2)
    assert next_look(replace(OPEN, last_key=NOW - 0.1), RULES, NOW) == pytest.approx(NOW + 0.4)
    assert next_look(replace(OPEN, last_key=NOW - 0.6), RULES, NOW) == pytest.approx(NOW + 0.1)
    assert next_look(OPEN, RULES, NOW) is None
    assert next_look(replace(OPEN, quiet_since=None), RULES, NOW) is None


def test_a_composer_that_the_last_key_emptied_holds_no_draft() -> None:
    """As after Ctrl-W, which takes away nobody knows how many characters."""
    facts = replace(OPEN, last_key=NOW - 0.5, may_hold_draft=True)

    assert holds_draft(facts, NOW)
    assert not holds_draft(replace(facts, emptied_at=NOW - 0.4), NOW)
    assert holds_draft(replace(facts, emptied_at=NOW - 0.6), NOW)
    assert holds_draft(replace(facts, emptied_at=NOW - 0.4, draft=True), NOW)
    assert holds_draft(replace(facts, emptied_at=NOW - 0.4, draft=None), NOW)
