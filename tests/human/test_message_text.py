"""Texts laid out for a terminal: wrapping, markdown, tables, commands of agents, folding."""

import pytest

from csp.human.message_text import (
    body_rows,
    broken_at_words,
    cells,
    cut,
    fold,
    hanging,
    height,
    in_words,
    wrap,
)
from csp.human.theme import UNICODE, Theme

PLAIN = Theme(UNICODE, has_colour=False)
COLOUR = Theme(UNICODE, has_colour=True)
URL = "https://example.com/" + "a" * 60


def test_words_are_wrapped_with_a_hanging_indent() -> None:
    rows = body_rows(PLAIN, "the quick brown fox jumps over the lazy dog", 24)

    assert rows == ["  the quick brown fox", "  jumps over the lazy", "  dog"]


def test_an_item_of_a_list_hangs_behind_its_mark() -> None:
    rows = body_rows(PLAIN, "- one two three four five six\n10. seven eight nine ten eleven", 24)

    assert rows == [
        "  - one two three four",
        "    five six",
        "  10. seven eight nine",
        "      ten eleven",
    ]


def test_an_answer_that_is_too_wide_is_broken_between_words() -> None:
    row = "shop  running  /home/ann/projects/shop  ada idle, bob busy"
    assert hanging(row, 40) == "shop  running  /home/ann/projects/shop\n  ada idle, bob busy"
    assert hanging(row, 80) == row
    assert hanging(f"    {row}", 44).split("\n")[1] == "      ada idle, bob busy"
    assert hanging("日本語 " * 10, 40).split("\n")[0] == "日本語 " * 4 + "日本語"
    assert hanging(f"\x1b[1m{row}", 40) == f"\x1b[1m{row}"


def test_a_quotation_keeps_its_mark_on_each_row() -> None:
    assert body_rows(PLAIN, "> one two three four five six", 22) == ["  > one two three four", "  > five six"]


@pytest.mark.parametrize("word", [URL, "src/" + "x" * 70])
def test_a_long_word_is_not_broken(word: str) -> None:
    assert body_rows(PLAIN, f"see {word} there", 40) == ["  see", f"  {word}", "  there"]


def test_code_is_neither_wrapped_nor_read() -> None:
    line = "if a and b:  # " + "long " * 20
    rows = body_rows(PLAIN, f"look:\n```python\n{line.rstrip()}\n  - **x**\n```\ndone", 30)

    assert rows == ["  look:", f"    {line.rstrip()}", "      - **x**", "  done"]


def test_a_script_without_spaces_is_broken_between_its_letters() -> None:
    rows = body_rows(PLAIN, "日本語のテキスト" * 5, 30)

    assert (
        all(cells(row) <= 30 for row in rows)
        and "".join(row.strip() for row in rows) == "日本語のテキスト" * 5
    )


def test_light_markdown_is_drawn_where_there_are_colours() -> None:
    text = "# Title\nsome **bold words** and `code here`."

    assert body_rows(COLOUR, text, 60) == [
        "\x1b[1m  Title\x1b[0m",
        "  some \x1b[1mbold\x1b[0m \x1b[1mwords\x1b[0m and \x1b[36mcode here\x1b[0m.",
    ]
    assert body_rows(PLAIN, text, 60) == ["  # Title", "  some **bold words** and `code here`."]


def test_styles_take_no_columns() -> None:
    assert [cells(row) for row in body_rows(COLOUR, "**one** two", 40)] == [9]


def test_a_table_keeps_its_rows() -> None:
    rows = body_rows(PLAIN, "| a | long |\n|---|:-:|\n| wide | b |", 60)

    assert rows == ["  | a    | long |", "  | ---- | ---- |", "  | wide | b    |"]
    assert body_rows(PLAIN, f"| a | {'b' * 80} |\n|---|---|", 40) == [f"  | a | {'b' * 80} |", "  |---|---|"]


def test_blank_lines_are_one_and_none_at_the_ends() -> None:
    assert body_rows(PLAIN, "\n\na\n\n\n\nb\n\n", 40) == ["  a", "", "  b"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("@handoff.bob look at it", "→ hands over to bob: look at it"),
        ("@send.bob hello", "→ to bob: hello"),
        ("@all hello", "→ to all: hello"),
        ("@working the tests", "· still working: the tests"),
        ("@final", "✓ suggests finishing"),
        ("VOTE: [A]", "✓ votes A"),
        ("vote: b REASON: it is short", "✓ votes B: it is short"),
        ("REASON: it is short", "reason: it is short"),
        ("@final words", None),
        ("@bob hello", None),
        ("a VOTE: [A]", None),
    ],
)
def test_commands_of_agents_are_said_in_words(line: str, words: str | None) -> None:
    assert in_words(PLAIN, line) == words


def test_commands_are_text_in_code_and_in_the_words_of_people() -> None:
    assert body_rows(PLAIN, "```\n@final\n```", 40) == ["    @final"]
    assert body_rows(PLAIN, "@final", 40, is_speech=False) == ["  @final"]


def test_what_could_drive_the_terminal_is_shown() -> None:
    assert body_rows(PLAIN, "a\x1b[2Jb\r", 40) == ["  a␛[2Jb␍"]


def test_a_long_text_is_folded_to_its_head() -> None:
    rows = [f"  {number}" for number in range(30)]

    def mark(left: int) -> str:
        return f"{left} more"

    assert fold(rows, 4, 80, mark) == ["  0", "  1", "  2", "  27 more"]
    assert fold(rows, 1, 80, mark) == ["  0 29 more"]
    assert fold(rows[:5], 4, 80, mark) == rows[:5]
    assert fold(["  word " * 40, "  b", "  c"], 2, 20, mark)[-1] == "  2 more"


def test_few_rows_are_not_spent_on_blank_ones() -> None:
    rows = ["  0", "", "  1", "", "  2", "  3"]

    def mark(left: int) -> str:
        return f"{left} more"

    assert fold(rows, 3, 80, mark) == ["  0", "  1", "  2", "  3"]
    assert fold(rows, 2, 80, mark) == ["  0", "  3 more"]
    assert fold([*rows, *rows], 6, 80, mark) == [*rows[:5], "  7 more"]


def test_styled_words_are_broken_between_words() -> None:
    line = "  \x1b[2m#7\x1b[0m one two three four"

    assert broken_at_words(line, 20, further=4) == "  \x1b[2m#7\x1b[0m one two three\n    four"
    assert broken_at_words(line, 80) == line


def test_a_row_that_the_terminal_breaks_takes_several() -> None:
    assert [height("x" * length, 10) for length in (0, 1, 10, 11, 31)] == [1, 1, 1, 2, 4]


def test_a_row_is_cut_at_a_space() -> None:
    assert cut("one two three", 9) == "one two"
    assert cut("one two", 9) == "one two"


def test_a_narrow_screen_is_left_to_the_terminal() -> None:
    assert wrap(PLAIN, "one two three four five six", 10) == ["one two three four five six"]
