"""Keys are counted, what a terminal says by itself is not."""

import pytest

from csp.terminal.gates import DraftTracker


def fed(*chunks: bytes) -> DraftTracker:
    ledger = DraftTracker()
    for now, chunk in enumerate(chunks):
        ledger.feed(chunk, float(now))
    return ledger


@pytest.mark.parametrize(
    ("keys", "typed"),
    [
        (b"hello", 5),
        ("日本".encode(), 2),
        (b"hello\r", 0),
        (b"hello\x7f\x7f", 3),
        (b"h\x08\x08\x08x", 1),
        (b"hello\x03", 0),
        (b"hello\x15", 0),
        (b"hello\x1b", 5),
        (b"hello\x1b\x1b", 0),
        (b"hello\x1b\x1b\x1b", 0),
        (b"a\x1b[D\x1b[3~\x1bOCb", 2),
        (b"\x1b[A", 1),
        (b"a\x1b\rb", 3),
        (b"a\x1b[13;2ub", 3),
        (b"a\x1b[27;2;13~b", 3),
        (b"\x1bP", 0),
        (b"\x1bOB", 1),
        (b"\x10", 1),
        (b"\x12x\r", 0),
        (b"one\x1b[200~two\rthree\x1b[201~", 12),
        (b"\x1b[200~\x1b[201~", 1),
        (b"\x1b[200~cut off", 7),
        (b"\x01\x02x\t\n", 3),
        (b"hello\x1b[13u", 0),
        (b"hello\x1b[99;5u", 0),
        (b"hello\x1b[27;5;99~", 0),
        (b"hello\x1b[127u", 4),
        (b"\x1b[97;2u\x1b[228u", 2),
        (b"\x1b[57441u", 0),
        (b"hi\x1b[97;1:3u", 2),
    ],
)
def test_what_may_stand_in_the_composer(keys: bytes, typed: int) -> None:
    ledger = fed(keys)

    assert ledger.typed == typed
    assert ledger.may_hold_draft is (typed > 0)


@pytest.mark.parametrize(
    "report",
    [
        b"\x1b[?62;c",
        b"\x1b[>41;354;0c",
        b"\x1b[12;40R",
        b"\x1b[0n",
        b"\x1b[8;40;120t",
        b"\x1b[I",
        b"\x1b[O",
        b"\x1b[<35;10;20M\x1b[<35;10;21m",
        b"\x1b[M !!",
        b"\x1b[?2004;1$y",
        b"\x1b[?1u",
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]10;rgb:ffff/ffff/ffff\x07",
        b"\x1bP>|tmux 3.3a\x1b\\",
        b"\x1b[27;1:3u",
    ],
)
def test_reports_of_the_terminal_are_no_keys(report: bytes) -> None:
    ledger = DraftTracker()

    assert not ledger.feed(report, 1.0)
    assert (ledger.last_key, ledger.typed) == (None, 0)


def test_a_report_may_come_in_two_pieces() -> None:
    ledger = DraftTracker()

    assert not ledger.feed(b"\x1b]11;rgb:00", 1.0)
    assert not ledger.feed(b"00/0000/0000\x1b", 2.0)
    assert not ledger.feed(b"\\", 3.0)
    assert ledger.last_key is None


def test_a_key_with_alt_hides_nothing_behind_it() -> None:
    ledger = fed(b"\x1b]", b"hello")

    assert (ledger.typed, ledger.last_key) == (5, 1.0)


def test_an_endless_report_is_taken_for_keys() -> None:
    assert DraftTracker().feed(b"\x1b]11;" + b"x" * 5000, 1.0)


def test_last_key_is_when_a_person_last_pressed_one() -> None:
    ledger = fed(b"a", b"\x1b[A", b"\x1b[I")

    assert ledger.last_key == 1.0


def test_keys_that_stop_an_answer_are_noted() -> None:
    assert fed(b"x", b"\x1b").last_stop == 1.0
    assert fed(b"x", b"y", b"\x03").last_stop == 2.0
    assert fed(b"\x1b[A", b"x").last_stop is None


def test_a_key_that_only_stops_edits_nothing() -> None:
    assert fed(b"\x1b", b"\x03", b"\x1b[99;5u").last_edit is None
    assert fed(b"x", b"\x1b").last_edit == 0.0
    assert fed(b"\x1b", b"\x1b[B").last_edit == 1.0


def test_typing_inserts_no_text_as_a_whole() -> None:
    assert fed(b"x", b"\x7f", b"hello there\r").last_insert is None
    assert fed(b"x", b"\x1b[200~hello\x1b[201~").last_insert == 1.0


def test_an_empty_screen_clears_the_count() -> None:
    ledger = fed(b"hello")
    ledger.clear()

    assert not ledger.may_hold_draft


@pytest.mark.parametrize(
    ("keys", "is_sent"),
    [
        (b"hello\r", True),
        (b"\x1b[200~pasted\x1b[201~\r", True),
        (b"hello\x1b[13u", True),
        (b"more \x1b[200~/not at the start\x1b[201~\r", True),
        (b"\r", False),
        (b"hello", False),
        (b"hello\x03\r", False),
        (b"/clear\r", False),
        (b"!ls\r", False),
        (b"\x1b[200~/clear\x1b[201~\r", False),
        (b"/x\x7f\x7fhello\r", True),
    ],
)
def test_a_turn_is_expected_after_a_draft_was_sent(keys: bytes, is_sent: bool) -> None:
    assert (fed(keys).last_sent is not None) is is_sent
