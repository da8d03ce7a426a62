"""Foreign text made fit to be shown."""

import time

import pytest

from csp.human.safe_text import (
    MAX_CHARS,
    MAX_LINES,
    clock,
    columns,
    count,
    folded,
    minutes,
    one_line,
    visible,
    wrapped,
)
from csp.human.theme import ASCII, UNICODE, look_for


def test_nothing_in_a_text_can_act() -> None:
    text = "".join(map(chr, [*range(0xA0), 0x200F, 0x2028, 0x202E, 0x2066]))
    shown = visible(text)

    assert [char for char in shown if not char.isprintable()] == ["\t", "\n"]
    assert visible("日本語 ok ½ 👍") == "日本語 ok ½ 👍"


def test_a_short_text_is_shown_whole() -> None:
    text = "\n".join(["line"] * MAX_LINES)

    assert folded(text, "how") == text


def test_of_a_long_text_the_beginning_is_shown() -> None:
    lines = folded("\n".join(map(str, range(100))), "/show 3").split("\n")

    assert (lines[0], lines[-2], lines[-1]) == ("0", "28", "... 71 more lines, /show 3")
    assert len(lines) == MAX_LINES


@pytest.mark.parametrize("text", ["x" * 100_000, "\n".join(["y" * 5000] * 100), "z" * 100_000 + "\n" * 50])
def test_however_long_a_text_is_little_of_it_is_shown(text: str) -> None:
    shown = folded(text, "/show 3")

    assert len(shown) <= 2 * MAX_CHARS + 200
    assert "/show 3" in shown


def test_one_line_is_cut_to_its_size() -> None:
    assert one_line(" a\n\n b\tc ", 5) == "a b c"
    assert one_line("abcdef", 5) == "abcd…"


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert columns([["a", "b"], ["ccc", ""]]) == ["a    b", "ccc"]
    assert columns([]) == []


@pytest.mark.parametrize(
    ("env", "encoding", "is_terminal", "signs", "has_colour"),
    [
        ({"TERM": "xterm"}, "utf-8", True, UNICODE, True),
        ({"TERM": "xterm"}, "UTF8", True, UNICODE, True),
        ({"TERM": "xterm"}, "ascii", True, ASCII, True),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "utf-8", True, UNICODE, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, "utf-8", True, UNICODE, True),
        ({"TERM": "dumb"}, "utf-8", True, UNICODE, False),
        ({}, None, True, ASCII, False),
        ({"TERM": "xterm"}, "utf-8", False, UNICODE, False),
    ],
)
def test_the_look_is_what_the_terminal_can_show(
    env: dict[str, str], encoding: str | None, is_terminal: bool, signs: object, has_colour: bool
) -> None:
    look = look_for(env, encoding, is_terminal=is_terminal)

    assert (look.signs, look.has_colour) == (signs, has_colour)


def test_each_agent_keeps_a_colour_of_its_own() -> None:
    look = look_for({"TERM": "xterm"}, "utf-8", is_terminal=True)
    names = [look.name(agent) for agent in ("claude", "codex", "gemini")]

    assert len({name.split("m")[0] for name in names}) == 3
    assert look.name("claude") == names[0]


def test_a_clock_names_another_day() -> None:
    now = time.time()
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(now - 3 * 86400))

    assert clock(now) == time.strftime("%H:%M", time.localtime(now))
    assert clock(now - 3 * 86400) == day


def test_spans_and_numbers_are_spelt_out() -> None:
    assert [minutes(seconds) for seconds in (-5, 9.9, 60, 754)] == ["0:00", "0:09", "1:00", "12:34"]
    assert [count(1, "line"), count(0, "line"), count(2, "reply", "replies")] == [
        *("1 line", "0 lines", "2 replies")
    ]


def test_lines_are_broken_between_words_and_further_in() -> None:
    text = wrapped("word " * 12 + "\n- item " + "more " * 12, 10, 40)

    assert text.split("\n") == [
        "word word word word word word",
        "  word word word word word word",
        "  - item more more more more more more",
        "    more more more more more more",
    ]
    assert wrapped("word " * 12, 10, 39) == ("word " * 12).strip()
    assert wrapped("a\n\nb", 3, 80) == "a\n  \n  b"


def test_a_fold_begins_where_it_must() -> None:
    assert folded("x" * MAX_CHARS, "how") == "x" * MAX_CHARS
    assert folded("x" * (MAX_CHARS + 2), "how").endswith("\n... 2 more characters, how")
    assert folded("\n".join("123456789"), "how", max_lines=8).split("\n") == [
        *("1", "2", "3", "4", "5", "6", "7", "... 2 more lines, how")
    ]


def test_people_are_bold_and_nothing_is_painted_where_there_is_nothing() -> None:
    look = look_for({"TERM": "xterm"}, "utf-8", is_terminal=True)

    assert look.name("human") == "\x1b[1mhuman\x1b[0m" and look.name("you") == "\x1b[1myou\x1b[0m"
    assert (look.faint("x"), look.alert("x"), look.faint("")) == ("\x1b[2mx\x1b[0m", "\x1b[1;31mx\x1b[0m", "")
    assert look.name("a\x1b").count("\x1b") == 2
