"""The emulator in pure Python, sequence by sequence; where both emulators agree, both are asked."""

from typing import Final

import pytest

from csp.protocol.screen_frames import RunView, StyleView
from csp.sidecar.emulator import HISTORY_LINES, KINDS, Emulator, make_emulator
from csp.sidecar.emulator.pyte_emulator import MAX_ESCAPE, PyteEmulator

LINES: Final = "\r\n".join(f"line {number}" for number in range(4))
SCROLLED: Final = ["line 1", "line 2", "line 3"]
WIDE: Final = 40


def fed(data: str, kind: str = "pyte", rows: int = 10, cols: int = WIDE) -> Emulator:
    emulator = make_emulator(rows, cols, prefer=kind)
    emulator.feed(data.encode())
    return emulator


def shown(emulator: Emulator) -> list[str]:
    rows = [row.text for row in emulator.screen().rows]
    while rows and not rows[-1]:
        rows.pop()
    return rows


#: What is written; what stands there then; where the cursor is.
SAME: Final = {
    "cursor down by e": ("a\x1b[2eb", ["a", "", " b"], (2, 2)),
    "lines down and up": ("\x1b[2;3H\x1b[2Ex\x1b[Fy", ["", "", "y", "x"], (2, 1)),
    "a column by its other sign": ("abc\x1b[2`X", ["aXc"], (0, 2)),
    "columns on": ("a\x1b[2ab", ["a  b"], (0, 4)),
    "a line": ("\x1b[3dx", ["", "", "x"], (2, 1)),
    "a place": ("\x1b[2;4fx", ["", "   x"], (1, 4)),
    "the first column": ("abc\x1b[GX", ["Xbc"], (0, 1)),
    "a full reset": ("a\x1b(0q\x1bcq", ["q"], (0, 1)),
    "the cursor kept by a mode": ("\x1b[3;3H\x1b[?1048h\x1b[H\x1b[?1048lx", ["", "", "  x"], (2, 3)),
    "the second set of signs": ("\x1b)0q\x0eq\x0fq", ["q─q"], (0, 3)),
    "vertical tab, form feed": ("a\x0bb\x0cc", ["a", " b", "  c"], (2, 3)),
    "back by one": ("ab\x08X", ["aX"], (0, 2)),
    "back by tabs": ("\x1b[1;20Hx\x1b[2Zy", ["        y          x"], (0, 9)),
    "on by tabs": ("\x1b[2Ix", ["                x"], (0, 17)),
    "repeated once": ("a\x1b[0bc", ["aac"], (0, 3)),
    "margins upside down": (f"{LINES}\x1b[5;2r\x1b[10;1H\nx", [*SCROLLED, *[""] * 6, "x"], (9, 1)),
    "a control within a sequence": ("a\x1b[2\r;3Hx", ["a", "  x"], (1, 3)),
    "a sequence without end": (f"a\x1b[{'1' * 300}mb", ["ab"], (0, 2)),
    "a sequence that is cancelled": ("a\x1b[3\x18b", ["ab"], (0, 2)),
    "erased, but for what is protected": (f"{LINES}\x1b[2;2H\x1b[?J", ["line 0", "l"], (1, 1)),
    "the other screen of old": ("ab\x1b[?1047h\x1b[3;3Hx\x1b[?1047ly", ["ab", "", "   y"], (2, 4)),
    "the other screen twice": ("ab\x1b[?1049h\x1b[?1049hx\x1b[?1049l\x1b[?1049ly", ["aby"], (0, 3)),
    "down to a last row with text in it": ("\x1b[10;1Hbottom\x1b[9;1H\nx", [*[""] * 9, "xottom"], (9, 1)),
    "a full row": ("a" * 40, ["a" * 40], (0, 39)),
    "no wrap on the other screen": (f"\x1b[?7l\x1b[?1049h{'a' * 42}", ["a" * 40], (0, 39)),
    "the cursor kept, the other screen of old": ("\x1b7\x1b[3;3H\x1b[?1047h\x1b[?1047l\x1b8x", ["x"], (0, 1)),
    "the left half of a wide character gone": ("日本z\x1b[1;2Hx", [" x本z"], (0, 2)),
    "the right half of a wide character gone": ("日本z\x1b[1;3Hx", ["日x z"], (0, 3)),
    "a string that is cancelled": ("a\x1bPx\x1ab", ["ab"], (0, 2)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SAME)
def test_each_sequence_does_what_it_should(kind: str, name: str) -> None:
    data, rows, cursor = SAME[name]
    emulator = fed(data, kind)
    screen = emulator.screen()

    assert shown(emulator) == rows
    assert (screen.cursor_row, screen.cursor_col) == cursor


def test_neither_132_columns_nor_reversed_colours_change_anything() -> None:
    assert fed("ab\x1b[?3hc\x1b[?5hd").screen().rows[0].runs == (RunView("abcd"),)


def test_a_test_pattern_fills_the_screen() -> None:
    assert shown(fed("ab\x1b#8")) == ["E" * WIDE] * 10


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (f"\x1b[?7l\x1b[!p{'a' * 41}", ["a" * 40, "a"]),
        ("abc\x1b[4h\x1b[!p\x1b[HX", ["Xbc"]),
        ("\x1b[3;5r\x1b[?6h\x1b[!p\x1b[Hx", ["x"]),
        ("\x1b[?6h\x1b[!p\x1b[3;5r\x1b[Hx", ["x"]),
        ("\x1b(0\x1b[!pq", ["q"]),
        ("\x1b)0\x0e\x1b[!pq", ["q"]),
        (f"{LINES}\x1b[1;2r\x1b[!p\x1b[10;1H\nx", [*SCROLLED, *[""] * 6, "x"]),
    ],
)
def test_a_soft_reset_leaves_the_text_and_undoes_modes(data: str, rows: list[str]) -> None:
    assert shown(fed(data)) == rows


def test_a_soft_reset_undoes_colours() -> None:
    assert fed("\x1b[1;31m\x1b[!px").screen().rows[0].runs == (RunView("x"),)


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_screen_begins_with_the_colours_and_place_of_the_first(kind: str) -> None:
    screen = fed("\x1b[2;3H\x1b[1m\x1b[?1047hx", kind).screen()

    assert screen.alternate
    assert screen.rows[1].runs[-1] == RunView("x", StyleView(bold=True))
    assert (screen.cursor_row, screen.cursor_col) == (1, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_modes_outlive_the_other_screen(kind: str) -> None:
    inside = fed("\x1b[?2004h\x1b[?25l\x1b[?1049h", kind).screen()
    within = fed("\x1b[?1049h\x1b[?2004h\x1b[?25l", kind).screen()
    after = fed("\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[?1049l", kind).screen()

    for screen in (inside, within, after):
        assert (screen.bracketed_paste, screen.cursor_visible) == (True, False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_reset_forgets_the_history_and_the_other_screen(kind: str) -> None:
    emulator = fed("\r\n" * 30 + "old\x1b[?1049h\x1bcnew", kind)

    assert not emulator.screen().alternate
    assert emulator.history() == ["new"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_other_screen_keeps_no_history(kind: str) -> None:
    emulator = fed("first\x1b[?1049h" + "line\r\n" * 30, kind)

    assert len(emulator.history()) <= 10


def test_an_escape_that_does_not_end_is_not_kept_for_ever() -> None:
    emulator = fed(f"a\x1b[{'1' * (MAX_ESCAPE - 2)}")
    assert isinstance(emulator, PyteEmulator)
    assert (MAX_ESCAPE, len(emulator._rest)) == (256, 256)
    emulator.feed(b"1")

    assert emulator._rest == ""


def test_two_thousand_lines_are_kept() -> None:
    emulator = fed("x\r\n" * 2100, rows=5)

    assert HISTORY_LINES == 2000
    assert len(emulator.history()) == 2000 + 4


def test_a_margin_breaks_a_line_only_where_it_is_full() -> None:
    almost = "c" * (WIDE - 1)
    emulator = fed(f"{'a' * WIDE}b\r\n{almost}\r\nd")

    assert emulator.history() == ["a" * WIDE, "b", almost, "d"]
    assert emulator.history(unwrap=True) == ["a" * WIDE + "b", almost, "d"]


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_leaves_the_screen_at_its_top_is_history(kind: str) -> None:
    emulator = fed(f"{LINES}\x1b[2;4r\x1b[4;1H\n\n\x1b[2S\x1b[r", kind)

    assert emulator.history() == ["line 0"]


@pytest.mark.parametrize(("rows", "cols", "size"), [(0, 0, (1, 2)), (2000, 3000, (1000, 1000))])
def test_a_size_is_brought_within_bounds(rows: int, cols: int, size: tuple[int, int]) -> None:
    for emulator in (PyteEmulator(rows, cols, 10), PyteEmulator(24, 80, 10)):
        emulator.resize(rows, cols)

        assert (emulator._grid.lines, emulator._grid.columns) == size
        assert emulator.screen().cols == cols


def test_a_resize_reaches_both_screens() -> None:
    emulator = fed("first\x1b[?1049hother")
    emulator.resize(6, 30)
    assert len(emulator.screen().rows) == 6
    emulator.feed(b"\x1b[?1049l")

    assert len(emulator.screen().rows) == 6
    assert shown(emulator) == ["first"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_erased_keeps_the_colour_behind_it(kind: str) -> None:
    runs = fed("abc\x1b[44m\x1b[1;2H\x1b[X\x1b[m", kind).screen().rows[0].runs

    assert runs == (RunView("a"), RunView(" ", StyleView(bg="4")), RunView("c"))


def test_after_a_resize_the_cursor_is_on_the_screen_and_all_of_it_scrolls() -> None:
    emulator = fed(f"{LINES}\x1b[2;4r\x1b[1;31H")
    emulator.resize(8, 20)
    screen = emulator.screen()
    emulator.feed(b"x\x1b[8;1H\n")

    assert (screen.cursor_row, screen.cursor_col) == (0, 19)
    assert shown(emulator) == SCROLLED
    assert emulator.history()[0] == f"{'line 0':19}x"
