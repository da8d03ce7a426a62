import pytest

from csp.protocol.screen_frames import PLAIN, RunView, StyleView
from csp.terminal.screen import BLANK, FRAME_S, MAX_FRAME_BYTES, Frames, Screen, ScreenRow

BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"


def test_a_row_has_the_text_of_its_runs_without_blanks_at_the_end() -> None:
    assert ScreenRow((RunView("❯ "), RunView("draft", StyleView(bold=True)), RunView("  "))).text == "❯ draft"
    assert BLANK.text == ""


def test_a_space_that_does_not_break_is_no_blank() -> None:
    assert ScreenRow((RunView("❯\xa0"),)).text == "❯\xa0"


def test_rows_are_equal_by_what_they_show() -> None:
    assert ScreenRow((RunView("a"),)) == ScreenRow((RunView("a"),))
    assert ScreenRow((RunView("a"),)) != ScreenRow((RunView("a", StyleView(faint=True)),))


def test_a_screen_has_its_rows_as_lines() -> None:
    screen = Screen(rows=(ScreenRow((RunView("a"),)), BLANK, ScreenRow((RunView("b"),)), BLANK), cols=10)

    assert screen.text == "a\n\nb"


def test_the_style_of_a_character() -> None:
    row = ScreenRow((RunView("ab", StyleView(bold=True)), RunView("c", StyleView(faint=True))))

    assert [row.style_at(place) for place in range(4)] == [
        StyleView(bold=True),
        StyleView(bold=True),
        StyleView(faint=True),
        PLAIN,
    ]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (b"plain", b"plain"),
        (BEGIN + b"whole" + END, BEGIN + b"whole" + END),
        (b"before" + BEGIN + b"half", b"before"),
        (BEGIN + b"one" + END + b"x" + BEGIN + b"two", BEGIN + b"one" + END + b"x"),
        (BEGIN + b"one" + BEGIN + b"again" + END, BEGIN + b"one" + BEGIN + b"again" + END),
        (b"before" + BEGIN[:5], b"before"),
        (b"\x1b[?25h", b"\x1b[?25h"),
    ],
)
def test_half_a_frame_is_held_back(output: bytes, shown: bytes) -> None:
    frames = Frames()

    assert frames.feed(output, 1.0) == shown
    assert frames.release() == output[len(shown) :]


def test_a_frame_is_the_same_in_any_pieces() -> None:
    output = b"a" + BEGIN + b"bc" + END + b"d" + BEGIN + END + b"\x1b[?25l" + BEGIN + b"e"
    for size in range(1, len(output)):
        frames = Frames()
        pieces = [frames.feed(output[at : at + size], 1.0) for at in range(0, len(output), size)]

        assert b"".join(pieces) == output[: -len(BEGIN + b"e")]
        assert not any(piece.count(BEGIN) > piece.count(END) for piece in pieces)


def test_a_frame_without_an_end_is_due_after_a_while() -> None:
    frames = Frames()
    assert frames.due is None
    frames.feed(BEGIN + b"a", 1.0)
    frames.feed(b"b", 1.1)
    assert frames.due == 1.0 + FRAME_S
    assert frames.release() == BEGIN + b"ab"
    assert frames.due is None

    assert frames.feed(b"c", 2.0) == b"c"


def test_the_next_frame_has_a_time_of_its_own() -> None:
    frames = Frames()
    frames.feed(BEGIN + b"a", 1.0)
    frames.feed(END + BEGIN + b"b", 1.1)

    assert frames.due == 1.1 + FRAME_S


def test_a_frame_that_is_too_long_is_shown() -> None:
    frames = Frames()
    output = BEGIN + b"x" * MAX_FRAME_BYTES

    assert frames.feed(output, 1.0) == output
    assert frames.due is None
