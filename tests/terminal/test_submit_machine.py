"""A message is typed, checked, submitted, proven; or it is said why not."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from csp.protocol.enums import DeliveryState, HeldReason
from csp.terminal.submit_machine import (
    CLEAR_S,
    ENTER_S,
    GONE_S,
    LATE_S,
    LEFT_S,
    MAX_CLEARS,
    MAX_LOST,
    MAYBE,
    SHOW_S,
    SLOW,
    SLOWER,
    STANDS_S,
    UNREAD_S,
    UNSURE,
    WRITE_S,
    KeyAction,
    PasteObservation,
    ReportState,
    Step,
    SubmitMachine,
    SubmitPhase,
    SubmitRules,
)

RULES = SubmitRules(gap_s=0.1, enter_again_s=(0.5, 1.0, 2.0), proof_s=5.0)
BLIND = SubmitRules(gap_s=0.1, enter_again_s=(0.5,), proof_s=0.0, reads_composer=False)

IDLE = PasteObservation(is_composer_empty=True)
SHOWN = PasteObservation(is_announced=True, written_at=1.0, is_in_composer=True, gate=HeldReason.DRAFT)
EMPTY = PasteObservation(is_announced=True, written_at=1.0, is_composer_empty=True)
UNREADABLE = PasteObservation(is_announced=True, written_at=1.0)
DIALOG = PasteObservation(is_announced=True, written_at=1.0, has_dialog=True, gate=HeldReason.DIALOG)

TYPED = ReportState(state=DeliveryState.TYPED)
CONFIRMED = ReportState(state=DeliveryState.CONFIRMED)
SUBMITTED = ReportState(state=DeliveryState.SUBMITTED)


def held(reason: HeldReason) -> ReportState:
    return ReportState(state=DeliveryState.HELD, reason=reason)


def failed(reason: str) -> ReportState:
    return ReportState(state=DeliveryState.FAILED, reason=reason)


def pasted(rules: SubmitRules = RULES) -> SubmitMachine:
    """Return a message that has just been pasted, at 1.0."""
    typing = SubmitMachine(rules=rules)
    assert typing.step(IDLE, 0.9) == [TYPED]
    assert typing.step(replace(IDLE, is_announced=True), 1.0) == [KeyAction.PASTE]
    return typing


def entered(rules: SubmitRules = RULES) -> SubmitMachine:
    """Return a message for which Enter was just pressed, at 1.1."""
    typing = pasted(rules)
    assert typing.step(SHOWN, 1.0) == []
    assert typing.step(SHOWN, 1.1) == [KeyAction.ENTER]
    return typing


def test_the_good_case() -> None:
    typing = entered()

    assert typing.step(SHOWN, 1.2) == []
    assert typing.step(EMPTY, 1.3) == [KeyAction.RELEASE]
    assert typing.step(replace(EMPTY, is_proven=True), 1.4) == [CONFIRMED, KeyAction.RELEASE]
    assert typing.is_done and typing.step(EMPTY, 9.0) == []


def test_a_closed_gate_holds_and_is_told_once() -> None:
    typing = SubmitMachine(rules=RULES)
    busy = PasteObservation(gate=HeldReason.BUSY)

    assert typing.step(busy, 0.0) == [held(HeldReason.BUSY)]
    assert typing.step(busy, 1.0) == []
    assert typing.step(PasteObservation(gate=HeldReason.DRAFT), 2.0) == [held(HeldReason.DRAFT)]
    assert not typing.has_touched
    assert typing.step(IDLE, 3.0) == [TYPED]


def test_nothing_is_pasted_before_the_room_has_written_it_down() -> None:
    typing = SubmitMachine(rules=RULES)
    typing.step(IDLE, 0.0)

    assert typing.step(IDLE, 99.0) == []
    assert typing.step(replace(IDLE, is_announced=True), 99.0) == [KeyAction.PASTE]
    assert typing.has_touched


def test_a_gate_that_closes_meanwhile_takes_it_back() -> None:
    typing = SubmitMachine(rules=RULES)
    typing.step(IDLE, 0.0)

    assert typing.step(PasteObservation(gate=HeldReason.TYPING, is_announced=True), 0.1) == [
        held(HeldReason.TYPING)
    ]
    assert typing.step(IDLE, 0.2) == [TYPED]


def test_a_key_of_the_person_goes_first() -> None:
    typing = pasted()

    assert typing.step(PasteObservation(is_announced=True, is_refused=True), 1.1) == [
        held(HeldReason.TYPING),
        KeyAction.RELEASE,
    ]
    assert typing.phase is SubmitPhase.WAITING


def test_enter_waits_for_the_gap_after_the_text_was_shown() -> None:
    typing = pasted()

    assert typing.step(replace(SHOWN, written_at=None), 1.3) == []
    assert typing.step(replace(SHOWN, written_at=1.3), 1.5) == []
    assert typing.wake_at == pytest.approx(1.6)
    assert typing.step(replace(SHOWN, written_at=1.3), 1.61) == [KeyAction.ENTER]


def test_the_gap_begins_again_when_the_text_was_out_of_sight() -> None:
    typing = pasted()

    assert typing.step(SHOWN, 1.1) == []
    assert typing.step(UNREADABLE, 1.15) == []
    assert typing.step(SHOWN, 1.3) == []
    assert typing.step(SHOWN, 1.41) == [KeyAction.ENTER]


def test_enter_is_pressed_only_when_the_composer_shows_the_message() -> None:
    typing = pasted()

    assert typing.step(UNREADABLE, 2.0) == []
    assert typing.step(SHOWN, 2.1) == []
    assert typing.step(SHOWN, 2.21) == [KeyAction.ENTER]


def overdue() -> SubmitMachine:
    """Return a message whose first paste was not shown in time, so that it is about to be pasted again."""
    typing = pasted()
    assert typing.step(EMPTY, 1.0 + RULES.gap_s + LATE_S) == [KeyAction.RELEASE, TYPED]
    return typing


def test_a_paste_that_was_lost_is_typed_again() -> None:
    typing = pasted()
    over = 1.0 + RULES.gap_s + LATE_S

    assert typing.step(EMPTY, over - 0.01) == []
    assert typing.wake_at == pytest.approx(over)
    assert typing.step(EMPTY, over) == [KeyAction.RELEASE, TYPED]
    assert typing.step(EMPTY, over) == [KeyAction.PASTE]


@pytest.mark.parametrize("gates", [[], [HeldReason.BUSY]], ids=["announced", "waiting"])
def test_a_paste_that_is_shown_after_all_is_not_typed_again(gates: list[HeldReason]) -> None:
    typing = overdue()
    assert [typing.step(replace(EMPTY, gate=gate), 47.0) for gate in gates] == [[held(one)] for one in gates]

    assert typing.step(SHOWN, 48.0) == []
    assert typing.step(SHOWN, 48.0 + RULES.gap_s) == [KeyAction.ENTER]


@pytest.mark.parametrize("gates", [[], [HeldReason.BUSY]], ids=["announced", "waiting"])
def test_a_paste_that_a_person_sent_before_it_was_seen_is_not_typed_again(gates: list[HeldReason]) -> None:
    typing = overdue()
    for gate in gates:
        typing.step(replace(EMPTY, gate=gate), 47.0)

    assert typing.step(replace(EMPTY, is_proven=True), 48.0) == [CONFIRMED, KeyAction.RELEASE]


def test_what_is_given_up_and_shown_after_all_is_taken_out_again() -> None:
    typing = overdue()
    typing.give_up("its turn is over")

    assert typing.step(SHOWN, 48.0) == []
    assert typing.step(SHOWN, 48.0 + RULES.gap_s) == [KeyAction.CLEAR]


def test_a_paste_after_which_nothing_was_drawn_is_not_typed_again_soon() -> None:
    typing = pasted()
    undrawn = replace(EMPTY, has_reacted=False)
    over = 1.0 + RULES.gap_s + LATE_S

    assert typing.step(undrawn, over - 0.01) == []
    assert typing.wake_at == pytest.approx(over)
    assert typing.step(SHOWN, over) == []
    assert typing.step(SHOWN, over + RULES.gap_s) == [KeyAction.ENTER]


def test_a_stuck_paste_after_which_nothing_was_drawn_is_not_typed_again_soon() -> None:
    typing = pasted()
    assert typing.step(replace(EMPTY, written_at=None), 1.0 + WRITE_S) == [
        held(HeldReason.STUCK),
        KeyAction.RELEASE,
    ]
    undrawn = replace(EMPTY, written_at=12.0, has_reacted=False)

    assert typing.step(undrawn, 12.0 + RULES.gap_s + LATE_S - 0.01) == []
    assert typing.step(undrawn, 12.0 + RULES.gap_s + LATE_S) == [TYPED]


@pytest.mark.parametrize(("has_reacted", "wait_s"), [(True, SLOW * 3.0), (False, SLOWER * 3.0)])
def test_a_cli_that_was_slow_to_show_the_text_has_longer_for_its_enter(
    has_reacted: bool, wait_s: float
) -> None:
    typing = pasted()
    assert typing.step(SHOWN, 4.0) == []
    assert typing.step(SHOWN, 4.1) == [KeyAction.ENTER]
    stands = replace(SHOWN, written_at=4.1, has_reacted=has_reacted)

    assert typing.step(stands, 4.1 + wait_s - 0.01) == []
    assert typing.wake_at == pytest.approx(4.1 + wait_s)
    assert typing.step(stands, 4.1 + wait_s) == [KeyAction.ENTER]


def test_enter_is_given_up_later_where_the_text_was_shown_late() -> None:
    typing = pasted()
    typing.step(SHOWN, 4.0)
    found = [typing.step(SHOWN, at) for at in (4.1, 10.2, 16.3, 22.4)]

    assert found[2:] == [[KeyAction.ENTER], [KeyAction.CLEAR]]


def test_a_composer_that_never_shows_it_fails_it() -> None:
    typing, now = pasted(), 1.0
    for _ in range(MAX_LOST - 1):
        now += 2 * LATE_S
        assert typing.step(EMPTY, now) == [KeyAction.RELEASE, TYPED]
        assert typing.step(EMPTY, now) == [KeyAction.PASTE]

    assert typing.step(EMPTY, now + 2 * LATE_S) == [
        failed("the composer did not show the message"),
        KeyAction.RELEASE,
    ]


def test_something_else_in_the_composer_is_not_touched() -> None:
    typing = pasted()

    assert typing.step(UNREADABLE, 9.0) == [held(HeldReason.STUCK), KeyAction.RELEASE]
    assert typing.step(UNREADABLE, 10.0) == []
    over = 1.0 + RULES.gap_s + LATE_S
    assert typing.step(EMPTY, over - 0.01) == []
    assert typing.step(EMPTY, over) == [TYPED]


def test_what_a_dialog_has_received_is_typed_again_soon() -> None:
    typing = pasted()

    assert typing.step(DIALOG, 1.2) == [held(HeldReason.COVERED), KeyAction.RELEASE]
    over = 1.0 + RULES.gap_s + SHOW_S
    assert typing.step(EMPTY, over - 0.01) == []
    assert typing.step(EMPTY, over) == [TYPED]


def test_a_cli_that_reads_nothing_is_stuck() -> None:
    typing = pasted()
    unread = PasteObservation(is_announced=True)

    assert typing.step(unread, 1.0 + WRITE_S - 0.1) == []
    assert typing.step(unread, 1.0 + WRITE_S) == [held(HeldReason.STUCK), KeyAction.RELEASE]


def test_a_paste_that_is_read_late_is_not_typed_again() -> None:
    typing = pasted()

    assert typing.step(replace(EMPTY, written_at=None), 1.0 + RULES.gap_s + SHOW_S) == []
    over = 6.0 + RULES.gap_s + LATE_S
    assert typing.step(replace(EMPTY, written_at=6.0), over - 0.01) == []
    assert typing.wake_at == pytest.approx(over)
    assert typing.step(replace(EMPTY, written_at=6.0), over) == [KeyAction.RELEASE, TYPED]


def test_a_stuck_paste_is_not_typed_again_before_it_was_read_and_could_show() -> None:
    typing = pasted()
    unread = replace(EMPTY, written_at=None)
    assert typing.step(unread, 1.0 + WRITE_S) == [held(HeldReason.STUCK), KeyAction.RELEASE]

    assert typing.step(unread, 40.0) == []
    over = 50.0 + RULES.gap_s + LATE_S
    assert typing.step(replace(EMPTY, written_at=50.0), over - 0.01) == []
    assert typing.wake_at == pytest.approx(over)
    assert typing.step(replace(EMPTY, written_at=50.0), over) == [TYPED]


def test_enter_is_pressed_again_only_after_the_first_was_read() -> None:
    typing = entered()

    assert typing.step(replace(SHOWN, written_at=None), 8.0) == []
    assert typing.step(replace(SHOWN, written_at=8.0), 8.49) == []
    assert typing.wake_at == pytest.approx(8.5)
    assert typing.step(replace(SHOWN, written_at=8.0), 8.5) == [KeyAction.ENTER]


def test_a_stuck_enter_is_pressed_again_only_after_it_was_read() -> None:
    typing = entered()
    unread = replace(SHOWN, written_at=None)
    assert typing.step(unread, 1.1 + WRITE_S) == [held(HeldReason.STUCK), KeyAction.RELEASE]

    assert typing.step(unread, 40.0) == []
    assert typing.step(replace(SHOWN, written_at=50.0), 50.49) == []
    assert typing.wake_at == pytest.approx(50.5)
    assert typing.step(replace(SHOWN, written_at=50.0), 50.5) == [KeyAction.ENTER]


def test_a_cli_that_does_not_even_read_enter_is_stuck() -> None:
    typing = entered()
    unread = replace(SHOWN, written_at=None)

    assert typing.step(unread, 2.0) == []
    assert typing.step(unread, 1.1 + WRITE_S) == [held(HeldReason.STUCK), KeyAction.RELEASE]


def test_enter_is_pressed_again_while_the_message_stands_there() -> None:
    typing = entered()

    assert typing.step(SHOWN, 1.5) == []
    assert typing.step(SHOWN, 1.6) == [KeyAction.ENTER]
    assert typing.step(SHOWN, 2.5) == []
    assert typing.step(SHOWN, 2.6) == [KeyAction.ENTER]
    assert typing.step(replace(EMPTY, is_proven=True), 2.7) == [CONFIRMED, KeyAction.RELEASE]


ACCEPTED = replace(SHOWN, is_accepted=True)


def test_enter_is_not_pressed_again_while_the_cli_submits_the_message_later() -> None:
    typing = entered()

    assert [typing.step(ACCEPTED, at) for at in (1.2, 5.0, 20.0)] == [[], [], []]
    assert typing.step(EMPTY, 20.1) == [KeyAction.RELEASE]
    # The composer is drawn once more before the message is submitted.
    assert [typing.step(ACCEPTED, at) for at in (20.2, 22.0 + LATE_S)] == [[], []]
    assert typing.step(EMPTY, 23.0 + LATE_S) == []
    assert typing.step(replace(EMPTY, is_proven=True), 23.1 + LATE_S) == [CONFIRMED, KeyAction.RELEASE]


def test_enter_is_pressed_again_some_time_after_the_cli_has_taken_it_back() -> None:
    typing = entered()

    assert typing.step(ACCEPTED, 30.0) == []
    assert typing.step(SHOWN, 30.0 + 0.49) == []
    assert typing.step(SHOWN, 30.0 + 0.5) == [KeyAction.ENTER]


def test_a_message_that_is_never_submitted_later_is_stuck_but_not_touched() -> None:
    typing = entered()

    assert typing.step(ACCEPTED, 1.2) == []
    assert typing.wake_at == pytest.approx(1.2 + LATE_S)
    assert typing.step(ACCEPTED, 1.2 + LATE_S) == [held(HeldReason.STUCK), KeyAction.RELEASE]
    assert typing.step(ACCEPTED, 99.0) == []
    assert typing.step(EMPTY, 100.0) == [KeyAction.RELEASE]


def test_enter_is_not_pressed_again_into_a_cli_that_has_drawn_nothing() -> None:
    typing = entered()
    frozen = replace(SHOWN, has_reacted=False)

    assert typing.step(frozen, 1.7) == []
    assert typing.wake_at == pytest.approx(1.1 + UNREAD_S)
    assert typing.step(frozen, 1.1 + UNREAD_S) == [KeyAction.ENTER]


def test_enter_is_given_up_after_a_while() -> None:
    typing = entered(replace(RULES, enter_again_s=(0.5,) * 50))

    assert typing.step(SHOWN, 1.1 + ENTER_S) == [KeyAction.CLEAR]


def test_a_clear_key_is_not_pressed_into_something_else() -> None:
    typing = swallowed()

    assert typing.step(UNREADABLE, 4.6 + CLEAR_S) == [held(HeldReason.STUCK), KeyAction.RELEASE]


def swallowed() -> SubmitMachine:
    """Return a message whose every Enter did nothing, so that it is being cleared, at 4.6."""
    typing = entered()
    for now in (1.6, 2.6):
        assert typing.step(SHOWN, now) == [KeyAction.ENTER]
    assert typing.step(SHOWN, 4.6) == [KeyAction.CLEAR]
    return typing


def test_a_swallowed_enter_clears_the_composer_and_fails() -> None:
    typing = swallowed()

    assert typing.step(SHOWN, 4.7) == []
    assert typing.step(EMPTY, 4.8) == [failed("Enter was swallowed 3 times"), KeyAction.RELEASE]


def test_a_composer_that_cannot_be_cleared_is_stuck() -> None:
    typing = swallowed()
    now = 4.6
    for _ in range(MAX_CLEARS - 1):
        now += CLEAR_S
        assert typing.step(SHOWN, now) == [KeyAction.CLEAR]
    now += CLEAR_S

    assert typing.step(SHOWN, now) == [held(HeldReason.STUCK), KeyAction.RELEASE]
    assert typing.step(SHOWN, now + 1) == []
    assert typing.has_touched


def test_a_stuck_message_that_a_person_submits_is_confirmed() -> None:
    typing = swallowed()
    typing.step(DIALOG, 6.2)

    assert typing.phase is SubmitPhase.STUCK
    assert typing.step(replace(EMPTY, is_proven=True), 7.0) == [CONFIRMED, KeyAction.RELEASE]


def test_a_stuck_message_that_a_person_clears_has_failed() -> None:
    typing = swallowed()
    typing.step(DIALOG, 6.2)

    assert typing.step(EMPTY, 7.0) == [KeyAction.RELEASE]
    assert typing.step(EMPTY, 7.0 + RULES.proof_s) == [
        failed("Enter was swallowed 3 times"),
        KeyAction.RELEASE,
    ]


def test_no_enter_while_a_dialog_is_open() -> None:
    typing = pasted()

    assert typing.step(DIALOG, 1.2) == [held(HeldReason.COVERED), KeyAction.RELEASE]
    assert typing.step(DIALOG, 60.0) == []
    assert typing.step(replace(SHOWN, gate=HeldReason.BUSY), 61.0) == []
    assert typing.step(SHOWN, 62.0) == [KeyAction.ENTER]


def test_a_dialog_before_enter_leaves_an_empty_composer_to_type_into() -> None:
    typing = pasted()
    typing.step(DIALOG, 1.2)

    assert typing.step(EMPTY, 2.0) == []
    assert typing.step(EMPTY, 1.0 + RULES.gap_s + SHOW_S) == [TYPED]


def test_a_dialog_after_enter_never_has_the_message_typed_twice() -> None:
    typing = entered()

    assert typing.step(DIALOG, 1.5) == []
    assert typing.step(DIALOG, 1.6) == [held(HeldReason.COVERED), KeyAction.RELEASE]
    assert typing.step(EMPTY, 3.0) == [KeyAction.RELEASE]
    assert typing.step(EMPTY, 3.0 + LATE_S) == [SUBMITTED, KeyAction.RELEASE]


def test_a_stuck_text_says_whether_a_dialog_is_in_the_way() -> None:
    typing = pasted()
    typing.step(DIALOG, 1.2)

    assert typing.step(UNREADABLE, 2.0) == [held(HeldReason.STUCK)]
    assert typing.step(UNREADABLE, 3.0) == []
    assert typing.step(DIALOG, 4.0) == [held(HeldReason.COVERED)]


def test_words_of_another_in_the_composer_after_enter_are_left_alone() -> None:
    typing = entered()

    assert typing.step(UNREADABLE, 1.6) == [held(HeldReason.STUCK), KeyAction.RELEASE]


def test_a_composer_seen_empty_by_mistake_is_entered_again() -> None:
    typing = entered()
    typing.step(EMPTY, 1.2)

    assert typing.step(SHOWN, 1.3) == []
    assert typing.wake_at == pytest.approx(1.3 + STANDS_S)
    assert typing.step(SHOWN, 1.3 + STANDS_S) == [KeyAction.ENTER]
    typing.step(EMPTY, 2.0)
    assert [typing.step(SHOWN, at) for at in (2.1, 2.1 + STANDS_S)] == [[], [KeyAction.ENTER]]
    typing.step(EMPTY, 3.0)
    assert [typing.step(SHOWN, at) for at in (3.1, 3.1 + STANDS_S)] == [[], [KeyAction.CLEAR]]


def test_enter_is_not_pressed_into_a_screen_that_is_being_drawn() -> None:
    typing = entered()
    typing.step(EMPTY, 1.2)

    for at in (1.3, 1.6, 1.9):
        assert typing.step(SHOWN, at) == []
        assert typing.step(EMPTY, at + STANDS_S - 0.01) == []


def test_a_message_that_seems_to_stand_when_enter_is_due_must_stand_for_a_while() -> None:
    typing = entered()
    typing.step(UNSEEN, 1.2)

    assert typing.step(SHOWN, 1.6) == []
    assert typing.wake_at == pytest.approx(1.6 + STANDS_S)
    assert typing.step(EMPTY, 1.7) == [KeyAction.RELEASE]


@pytest.mark.parametrize("gate", [HeldReason.TYPING, HeldReason.BUSY])
def test_enter_is_not_pressed_again_after_a_submission_while_a_person_types_or_a_turn_runs(
    gate: HeldReason,
) -> None:
    typing = entered()
    typing.step(EMPTY, 1.2)

    assert [typing.step(replace(SHOWN, gate=gate), at) for at in (1.3, 9.0)] == [[], []]


def test_without_a_proof_in_time_no_more_is_said_than_is_known() -> None:
    typing = entered()
    typing.step(EMPTY, 1.2)

    assert typing.step(EMPTY, 1.2 + LATE_S - 0.1) == []
    assert typing.step(EMPTY, 1.2 + LATE_S) == [SUBMITTED, KeyAction.RELEASE]


def test_a_dialog_before_the_proof_leaves_it_open_whether_it_was_submitted() -> None:
    typing = entered()
    asking = replace(EMPTY, has_dialog=True)
    typing.step(EMPTY, 1.2)

    assert typing.step(asking, 1.3 + LATE_S) == []
    assert typing.step(EMPTY, 1.2 + 2 * LATE_S) == []
    assert typing.step(replace(EMPTY, is_proven=True), 2 * LATE_S) == [CONFIRMED, KeyAction.RELEASE]


def test_nothing_else_is_typed_while_a_proof_may_still_come() -> None:
    typing = entered()
    typing.step(EMPTY, 1.2)

    assert typing.step(EMPTY, 1.2 + 4 * RULES.proof_s) == []
    assert typing.step(replace(EMPTY, is_proven=True), 40.0) == [CONFIRMED, KeyAction.RELEASE]


def test_a_cli_that_cannot_be_read_gets_one_enter() -> None:
    typing = pasted(BLIND)

    assert typing.step(UNREADABLE, 1.05) == []
    assert typing.step(UNREADABLE, 1.2) == [KeyAction.ENTER]
    assert typing.step(UNREADABLE, 1.3) == [SUBMITTED, KeyAction.RELEASE]


# --- only the screen ----------------------------------------------------------------------------

UNPROVEN = replace(RULES, proof_s=0.0)
GONE = replace(UNREADABLE, has_left=True)
UNSEEN = replace(UNREADABLE, is_unseen=True)


def test_a_message_may_be_taken_from_enter_on_until_it_is_seen_to_stand_there_still() -> None:
    typing = pasted(UNPROVEN)
    before = typing.may_be_taken
    typing = entered(UNPROVEN)
    at_once = typing.may_be_taken
    typing.step(replace(SHOWN, has_reacted=False), 1.2)
    as_drawn_before = typing.may_be_taken
    typing.step(replace(SHOWN, has_reacted=True), 1.3)

    assert (before, at_once, as_drawn_before, typing.may_be_taken) == (False, True, True, False)


def test_without_any_proof_an_empty_composer_counts_once_it_has_stood() -> None:
    typing = entered(UNPROVEN)

    assert typing.has_entered
    assert typing.step(EMPTY, 1.2) == [KeyAction.RELEASE]
    assert typing.step(EMPTY, 1.2 + LEFT_S - 0.01) == []
    assert typing.wake_at == pytest.approx(1.2 + LEFT_S)
    assert typing.step(EMPTY, 1.2 + LEFT_S) == [SUBMITTED, KeyAction.RELEASE]


def test_a_message_that_merely_does_not_show_must_not_show_for_longer() -> None:
    typing = entered(UNPROVEN)

    assert typing.step(GONE, 1.2) == [KeyAction.RELEASE]
    assert typing.step(GONE, 1.2 + GONE_S - 0.01) == []
    assert typing.step(GONE, 1.2 + GONE_S) == [SUBMITTED, KeyAction.RELEASE]


@pytest.mark.parametrize("seen", [EMPTY, GONE])
def test_a_composer_that_was_only_drawn_anew_is_entered_again(seen: PasteObservation) -> None:
    typing = entered(UNPROVEN)
    typing.step(seen, 1.2)

    assert [typing.step(SHOWN, at) for at in (1.3, 1.3 + STANDS_S)] == [[], [KeyAction.ENTER]]


def test_the_wait_begins_again_when_the_screen_says_nothing() -> None:
    typing = entered(UNPROVEN)
    typing.step(EMPTY, 1.2)

    assert typing.step(UNSEEN, 1.3) == []
    assert typing.step(UNSEEN, 9.0) == []
    assert typing.step(EMPTY, 9.0 + LEFT_S - 0.01) == []
    assert typing.step(EMPTY, 9.0 + LEFT_S) == [SUBMITTED, KeyAction.RELEASE]


def test_a_screen_that_never_says_it_again_leaves_the_message_failed() -> None:
    typing = entered(UNPROVEN)
    typing.step(EMPTY, 1.2)

    assert typing.step(UNSEEN, 1.1 + LATE_S - 0.01) == []
    assert typing.step(UNSEEN, 1.1 + LATE_S) == [failed(UNSURE), KeyAction.RELEASE]


def test_a_blank_screen_after_enter_is_waited_for_before_it_is_stuck() -> None:
    typing = entered(UNPROVEN)

    assert typing.step(UNSEEN, 5.0) == []
    assert typing.step(UNSEEN, 1.1 + LATE_S) == [held(HeldReason.STUCK), KeyAction.RELEASE]


def test_an_enter_swallowed_for_ever_is_never_submitted_by_the_screen() -> None:
    typing = entered(UNPROVEN)
    for now in (1.6, 2.6):
        assert typing.step(SHOWN, now) == [KeyAction.ENTER]

    assert typing.step(SHOWN, 4.6) == [KeyAction.CLEAR]
    assert typing.step(EMPTY, 4.8) == [failed("Enter was swallowed 3 times"), KeyAction.RELEASE]


def test_what_is_gone_after_it_was_cleared_has_failed() -> None:
    typing = swallowed()

    assert typing.step(GONE, 4.8) == [failed("Enter was swallowed 3 times"), KeyAction.RELEASE]


@pytest.mark.parametrize("seen", [EMPTY, UNSEEN], ids=["empty", "not drawn yet"])
def test_without_proof_a_paste_that_does_not_show_is_never_typed_again(seen: PasteObservation) -> None:
    typing = pasted(UNPROVEN)
    over = 1.0 + UNPROVEN.gap_s + SHOW_S

    assert typing.step(seen, over) == [held(HeldReason.STUCK), KeyAction.RELEASE]
    assert typing.step(EMPTY, over + LATE_S - 0.01) == []
    assert typing.wake_at == pytest.approx(over + LATE_S)
    assert typing.step(EMPTY, over + LATE_S) == [failed(MAYBE), KeyAction.RELEASE]


def test_without_proof_a_paste_that_shows_late_is_entered() -> None:
    typing = pasted(UNPROVEN)
    typing.step(EMPTY, 1.0 + UNPROVEN.gap_s + SHOW_S)

    assert typing.step(SHOWN, 20.0) == [KeyAction.ENTER]


def test_nobody_knows_what_a_person_did_with_a_message_that_stood_there() -> None:
    typing = entered(UNPROVEN)
    typing.step(DIALOG, 1.6)

    assert typing.phase is SubmitPhase.STUCK
    assert typing.step(EMPTY, 7.0) == [failed(UNSURE), KeyAction.RELEASE]


def test_a_restarted_brain_goes_on_where_the_message_stands() -> None:
    typing = SubmitMachine.resumed(RULES, 1.0)

    assert typing.step(SHOWN, 1.0) == []
    assert typing.step(SHOWN, 1.1) == [KeyAction.ENTER]


@pytest.mark.parametrize("seen", [EMPTY, UNREADABLE, replace(EMPTY, has_reacted=False)])
def test_a_restarted_brain_that_finds_nothing_says_unknown(seen: PasteObservation) -> None:
    typing = SubmitMachine.resumed(RULES, 1.0)

    assert typing.step(seen, 1.0 + RULES.gap_s + SHOW_S) == [failed("unknown"), KeyAction.RELEASE]


@pytest.mark.parametrize("phase", [SubmitPhase.WAITING, SubmitPhase.ANNOUNCED])
def test_a_proof_for_what_was_not_typed_means_nothing(phase: SubmitPhase) -> None:
    typing = SubmitMachine(rules=RULES, phase=phase)

    assert CONFIRMED not in typing.step(PasteObservation(is_proven=True, gate=HeldReason.BUSY), 0.0)


sights = st.builds(
    PasteObservation,
    gate=st.sampled_from([None, None, HeldReason.DRAFT, HeldReason.BUSY, HeldReason.DIALOG]),
    is_announced=st.booleans(),
    written_at=st.sampled_from([None, 0.0]),
    is_in_composer=st.booleans(),
    is_composer_empty=st.booleans(),
    has_left=st.booleans(),
    is_unseen=st.booleans(),
    has_dialog=st.booleans(),
    is_proven=st.integers(0, 20).map(lambda n: n == 0),
    is_refused=st.integers(0, 20).map(lambda n: n == 0),
    has_reacted=st.booleans(),
    is_accepted=st.booleans(),
)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(sights, st.sampled_from([0.0, 0.1, 0.5, 2.0, 6.0])), max_size=60),
    st.sampled_from([RULES, UNPROVEN]),
)
def test_laws_of_typing(history: list[tuple[PasteObservation, float]], rules: SubmitRules) -> None:
    typing, now = SubmitMachine(rules=rules), 0.0
    steps: list[tuple[Step, PasteObservation]] = []
    for seen, passed in history:
        now += passed
        steps += [(step, seen) for step in typing.step(seen, now)]

    ends = [
        step
        for step, _ in steps
        if isinstance(step, ReportState) and step.state not in (DeliveryState.HELD, DeliveryState.TYPED)
    ]
    assert len(ends) == typing.is_done
    if ends and ends[0].state is DeliveryState.SUBMITTED:
        assert any(step is KeyAction.ENTER for step, _ in steps)
        last = next(seen for step, seen in steps if step is ends[0])
        assert rules.proof_s or last.is_composer_empty or last.has_left
    enters_since_paste = 0
    for step, seen in steps:
        if step is KeyAction.PASTE:
            assert seen.gate is None and seen.is_announced
            assert not enters_since_paste, "typed again although it may have been submitted"
        if step is KeyAction.ENTER:
            enters_since_paste += 1
            assert seen.is_in_composer and not seen.has_dialog
            assert enters_since_paste == 1 or not seen.is_accepted
        if step is KeyAction.CLEAR:
            assert seen.is_in_composer and not seen.has_dialog


# --- given up ------------------------------------------------------------------------------------

OVER = failed("its turn is over")


def test_what_is_given_up_before_the_paste_is_not_pasted() -> None:
    waiting, announced = SubmitMachine(rules=RULES), SubmitMachine(rules=RULES)
    announced.step(IDLE, 0.9)
    for typing in (waiting, announced):
        typing.give_up("its turn is over")

        assert typing.step(replace(IDLE, is_announced=True), 1.0) == [OVER, KeyAction.RELEASE]


def test_what_is_given_up_after_the_paste_is_taken_out_again() -> None:
    typing = pasted()
    typing.give_up("its turn is over")
    typing.step(SHOWN, 1.0)

    assert typing.step(SHOWN, 1.1) == [KeyAction.CLEAR]
    assert typing.step(EMPTY, 1.2) == [OVER, KeyAction.RELEASE]


def test_what_is_given_up_after_its_enter_may_have_been_sent() -> None:
    typing = entered()
    typing.give_up("its turn is over")

    assert typing.step(EMPTY, 1.2) == [KeyAction.RELEASE]
    assert typing.step(replace(EMPTY, is_proven=True), 1.3) == [CONFIRMED, KeyAction.RELEASE]


def test_enter_is_not_pressed_again_for_what_is_given_up() -> None:
    typing = entered()
    typing.give_up("its turn is over")

    assert typing.step(SHOWN, 1.7) == [KeyAction.CLEAR]
    assert typing.step(EMPTY, 1.8) == [OVER, KeyAction.RELEASE]
