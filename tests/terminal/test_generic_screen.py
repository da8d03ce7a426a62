"""Where a prompt stands on the screen of a program that no profile describes."""

import pytest
from msgspec.structs import replace

from csp.terminal.generic_screen import (
    Caret,
    PasteContext,
    PasteLocator,
    PastePlace,
    find_caret,
    is_blank,
    stands_behind,
)
from csp.terminal.screen import Screen
from tests.terminal.drawn import drawn

HEADER, FOOTER = "[from ada #7]", "[end #7]"
PASTED = PasteContext()
LATE = PasteContext(is_late=True)
ENTERED = PasteContext(is_entered=True, is_late=True)
READS_LINES = replace(ENTERED, reads_lines=True)
CLEARING = replace(ENTERED, is_clearing=True)

#: A composer, empty; with the prompt; with a line break behind it; the same screen once it was submitted.
_TOP, _BOTTOM = "╭─────────────────╮\n", "╰─────────────────╯\n"
_OURS = "│ > [from ada #7] │\n│   hi            │\n"
SHAPES = {
    "sign": (
        "hello\n\n> █",
        "hello\n\n> [from ada #7]\n  hi\n  [end #7]█",
        "hello\n\n> [from ada #7]\n  hi\n  [end #7]\n  █",
        "hello\n\n> [from ada #7]\n> hi\n> [end #7]\n\nWorking\n> █",
    ),
    "arrow without an echo": (
        "hello\n\n❯ █",
        "hello\n\n❯ [from ada #7]\n  hi\n  [end #7]█",
        "hello\n\n❯ [from ada #7]\n  hi\n  [end #7]\n  █",
        "hello\n\n❯ █",
    ),
    "dollar": (
        "me@host:~$ █",
        "me@host:~$ [from ada #7] hi [end #7]█",
        "me@host:~$ [from ada #7] hi [end #7]\n█",
        "me@host:~$ [from ada #7] hi [end #7]\nno such command\nme@host:~$ █",
    ),
    "sign without a blank": (
        "ask>█",
        "ask>[from ada #7] hi [end #7]█",
        "ask>[from ada #7] hi [end #7]\n█",
        "ask>[from ada #7] hi [end #7]\nwell\nask>█",
    ),
    "sign before each row": (
        ">>> █",
        ">>> [from ada #7]\n... hi\n... [end #7]█",
        ">>> [from ada #7]\n... hi\n... [end #7]\n... █",
        ">>> [from ada #7]\n... hi\n... [end #7]\nSyntaxError\n>>> █",
    ),
    "box": (
        f"{_TOP}│ > █ask me       │\n{_BOTTOM} ready",
        f"{_TOP}{_OURS}│   [end #7]█     │\n{_BOTTOM} ready",
        f"{_TOP}{_OURS}│   [end #7]      │\n│   █             │\n{_BOTTOM} ready",
        f"> [from ada #7]\n  hi\n  [end #7]\n\n{_TOP}│ > █ask me       │\n{_BOTTOM} busy",
    ),
    "bar": (
        " logo\n\n   ┃\n   ┃  █~Ask anything~\n   ┃\n   ┃  Build\n   ╹▀▀▀▀▀▀▀▀",
        " logo\n\n   ┃\n   ┃  [from ada #7]\n   ┃  hi\n   ┃  [end #7]█\n   ┃\n   ┃  Build\n   ╹▀▀▀▀▀▀▀▀",
        " logo\n\n   ┃\n   ┃  [from ada #7]\n   ┃  hi\n   ┃  [end #7]\n   ┃  █\n   ┃\n   ┃  Build\n   ╹▀▀▀▀",
        " ┃\n ┃  [from ada #7]\n ┃  hi\n ┃  [end #7]\n ┃\n\n ┃\n ┃  █\n ┃\n ┃  Build\n ╹▀▀▀▀▀▀▀▀",
    ),
    "rules": (
        "────────────\n❯█\n────────────\n help",
        "────────────\n❯ [from ada #7]\n  hi\n  [end #7]█\n────────────\n help",
        "────────────\n❯ [from ada #7]\n  hi\n  [end #7]\n  █\n────────────\n help",
        " ❯ [from ada #7]   02:11\n   hi\n   [end #7]\n\n────────────\n❯█\n────────────\n busy",
    ),
    "rules without a sign": (
        "────────────\n█\n────────────",
        "────────────\n[from ada #7] hi [end #7]█\n────────────",
        "────────────\n[from ada #7] hi [end #7]\n█\n────────────",
        "[from ada #7] hi [end #7]\n────────────\n█\n────────────",
    ),
    "at the top": (
        "> █\n────────────\nhistory",
        "> [from ada #7]\n  hi\n  [end #7]█\n────────────\nhistory",
        "> [from ada #7]\n  hi\n  [end #7]\n  █\n────────────\nhistory",
        "> █\n────────────\nhistory\n> [from ada #7]\n  hi\n  [end #7]",
    ),
    "drawn caret": (
        "────────────\n> ^ ^~Type your message~\n────────────\n  ? for shortcuts",
        "────────────\n> [from ada #7]\n  hi\n  [end #7]^ ^\n────────────\n  ? for shortcuts",
        "────────────\n> [from ada #7]\n  hi\n  [end #7]\n  ^ ^\n────────────\n  ? for shortcuts",
        "  > [from ada #7]\n    hi\n    [end #7]\n\n────────────\n> ^ ^~Type your message~\n────────────\n",
    ),
    "marker": (
        "hello\n> █",
        "hello\n> [Pasted text #1 +3 lines]█",
        "hello\n> [Pasted text #1 +3 lines]\n  █",
        "hello\n> [from ada #7]\n  hi\n  [end #7]\n\n> █",
    ),
    "screen cleared by a submission": (
        "hello\n> █",
        "hello\n> [from ada #7]\n  hi\n  [end #7]█",
        "hello\n> [from ada #7]\n  hi\n  [end #7]\n  █",
        "> █",
    ),
}


def screen(drawing: str) -> Screen:
    return drawn(drawing, rows=14, is_cursor_visible="█" in drawing)


def landing(shape: str) -> PasteLocator:
    before, pasted, _, _ = SHAPES[shape]
    landed = PasteLocator(HEADER, FOOTER, screen(before))
    assert landed.look(screen(before), PASTED) is PastePlace.EMPTY
    assert landed.look(screen(pasted), PASTED) is PastePlace.HERE
    return landed


@pytest.mark.parametrize("shape", SHAPES)
def test_a_prompt_stands_in_the_composer_until_it_has_left_it(shape: str) -> None:
    _, pasted, _, submitted = SHAPES[shape]
    landed = landing(shape)

    assert landed.look(screen(pasted), ENTERED) is PastePlace.HERE
    assert landed.look(screen(submitted), ENTERED) is PastePlace.EMPTY


@pytest.mark.parametrize("shape", SHAPES)
def test_an_enter_that_only_broke_the_line_has_submitted_nothing(shape: str) -> None:
    _, _, broken, _ = SHAPES[shape]

    assert landing(shape).look(screen(broken), ENTERED) is PastePlace.HERE


@pytest.mark.parametrize("shape", ["sign", "dollar"])
def test_a_program_that_reads_lines_has_taken_one_that_was_ended(shape: str) -> None:
    _, pasted, broken, _ = SHAPES[shape]
    landed = landing(shape)

    assert landed.look(screen(pasted), READS_LINES) is PastePlace.HERE
    assert landed.look(screen(broken), READS_LINES) is PastePlace.EMPTY


PLAIN = "[from ada #7] hi [end #7]"


@pytest.mark.parametrize(
    ("after", "known", "place"),
    [
        (f"old words\n{PLAIN}█", ENTERED, PastePlace.HERE),
        (f"old words\n{PLAIN}\n█", ENTERED, PastePlace.HERE),
        (f"old words\n{PLAIN}\n█", READS_LINES, PastePlace.EMPTY),
        (f"old words\n{PLAIN}\n{PLAIN}\n█", READS_LINES, PastePlace.EMPTY),
        (f"old words\n{PLAIN}\nparse error\n█", ENTERED, PastePlace.GONE),
        ("old words\n█", ENTERED, PastePlace.EMPTY),
    ],
)
def test_a_program_without_any_prompt(after: str, known: PasteContext, place: PastePlace) -> None:
    landed = PasteLocator(HEADER, FOOTER, screen("old words\n█"))
    assert landed.look(screen(f"old words\n{PLAIN}█"), PASTED) is PastePlace.HERE

    assert landed.look(screen(after), known) is place


def test_a_line_that_the_terminal_wraps_is_read_as_one() -> None:
    wrapped = "\n".join(["[from ada #7] " + "x" * 26, "y" * 40, "yyyy [en", "d #7]█"])
    landed = PasteLocator(HEADER, FOOTER, screen("old words\n█"))

    assert landed.look(drawn(f"old words\n{wrapped}"), PASTED) is PastePlace.OTHER
    full = wrapped.replace("yyyy [en", "y" * 36 + " [en")
    assert landed.look(drawn(f"old words\n{full}"), PASTED) is PastePlace.HERE


@pytest.mark.parametrize(
    ("drawing", "place"),
    [
        ("hello\n> [from ada #7]\n  h█", PastePlace.OTHER),
        ("hello\n> my words [from ada #7]\n  hi\n  [end #7]█", PastePlace.OTHER),
        ("hello\n> [from ada #7]\n  hi\n  [end #7][from ada #7]\n  hi\n  [end #7]█", PastePlace.OTHER),
        ("hello\n> hi\n  [end #7]█", PastePlace.HERE),
        ("hello\n> [end #71]█", PastePlace.OTHER),
        ("hello\n> my words [Pasted text #1]█", PastePlace.OTHER),
        ("", PastePlace.UNSEEN),
    ],
)
def test_what_stands_there_before_enter(drawing: str, place: PastePlace) -> None:
    landed = PasteLocator(HEADER, FOOTER, screen("hello\n> █"))

    assert landed.look(screen(drawing), PASTED) is place


def test_whatever_the_paste_has_left_at_the_caret_stands_for_it_in_the_end() -> None:
    landed = PasteLocator(HEADER, FOOTER, screen("hello\n> █"))
    clip = screen("hello\n> <clip 3>█")

    assert landed.look(clip, PASTED) is PastePlace.OTHER
    assert landed.look(clip, replace(LATE, has_typed=True)) is PastePlace.OTHER
    assert landed.look(clip, LATE) is PastePlace.HERE
    assert landed.look(clip, ENTERED) is PastePlace.HERE
    assert landed.look(screen("hello\n> █"), ENTERED) is PastePlace.EMPTY


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("logo\n█", "logo\nDo you trust this? █"),
        ("hello\n> █", "hello\n❯ 1. Yes█"),
        ("logo\n ┃  █", "logo\n sure? █"),
        ("logo", "logo\n> 1. Yes █"),
    ],
)
def test_words_in_another_place_do_not_stand_for_the_prompt(before: str, after: str) -> None:
    assert PasteLocator(HEADER, FOOTER, screen(before)).look(screen(after), LATE) is PastePlace.OTHER


def test_a_bar_holds_whatever_stands_for_the_prompt() -> None:
    landed = PasteLocator(HEADER, FOOTER, screen("logo\n ┃  █"))

    assert landed.look(screen("logo\n ┃  <clip 3>█"), LATE) is PastePlace.HERE


def test_a_program_that_works_without_a_composer_has_the_prompt() -> None:
    landed = landing("sign")

    assert landed.look(screen("> [from ada #7]\n> hi\n> [end #7]\n\nWorking█"), ENTERED) is PastePlace.GONE
    assert landed.look(screen("> [from ada #7]\n> hi\n> [end #7]\n█"), ENTERED) is PastePlace.GONE


def test_words_that_a_person_has_added_to_the_prompt_are_somebody_elses() -> None:
    added = screen("hello\n\n> [from ada #7]\n  hi\n  [end #7] and more█")

    assert landing("sign").look(added, replace(ENTERED, has_typed=True)) is PastePlace.OTHER
    assert landing("sign").look(screen("> mine█"), replace(ENTERED, has_typed=True)) is PastePlace.GONE


STARTED = screen("welcome\n> █")


@pytest.mark.parametrize(
    "started",
    [replace(STARTED, alternate=True), replace(STARTED, bracketed_paste=True)],
    ids=["screen", "paste"],
)
def test_a_program_that_comes_up_after_the_paste_has_submitted_nothing(started: Screen) -> None:
    assert landing("sign").look(started, ENTERED) is PastePlace.UNSEEN


def begun(text: str) -> Screen:
    return replace(screen(text), bracketed_paste=True)


def test_a_program_that_comes_up_with_the_prompt_behind_its_sign_has_it() -> None:
    """GitHub Copilot CLI reads what was typed while it started as one line."""
    landed = PasteLocator(HEADER, FOOTER, screen("█"))
    standing = begun("welcome\n────────────\n❯ [from ada #7] hi [end #7]█\n────────────\n help")
    empty = begun("welcome\n\n❯ [from ada #7] hi [end #7]\n────────────\n❯ █\n────────────\n help")

    assert landed.look(standing, LATE) is PastePlace.HERE
    assert landed.look(standing, ENTERED) is PastePlace.HERE
    assert landed.look(empty, ENTERED) is PastePlace.EMPTY


@pytest.mark.parametrize(
    "shown",
    [
        "[from ada #7] hi [end #7]█",
        "welcome [from ada #7] hi [end #7]█",
        "❯ [from ada #7] hi█",
        "❯ [end #7]█",
        "❯ [from ada #7] hi [end #7]",
    ],
    ids=["echoed", "in a text", "half", "end", "without a caret"],
)
def test_what_a_program_that_came_up_shows_otherwise_is_not_in_its_composer(shown: str) -> None:
    started = begun(shown)
    started = started if "█" in shown else replace(started, cursor_visible=False)

    assert PasteLocator(HEADER, FOOTER, screen("█")).look(started, LATE) is PastePlace.UNSEEN


def test_half_a_prompt_still_stands_there_while_it_is_cleared() -> None:
    half = screen("hello\n\n> [from ada #7]\n  hi\n  █")

    assert landing("sign").look(half, CLEARING) is PastePlace.HERE
    assert landing("sign").look(half, ENTERED) is PastePlace.GONE


def test_a_brain_that_came_later_knows_a_prompt_by_its_last_line() -> None:
    landed = PasteLocator(HEADER, FOOTER, None)
    standing = screen("hello\n\n> [from ada #7]\n  hi\n  [end #7]█")

    assert landed.look(screen("hello\n> [end #7]\n> █"), LATE) is PastePlace.OTHER
    assert landed.look(standing, PASTED) is PastePlace.HERE
    assert landed.look(standing, ENTERED) is PastePlace.HERE
    assert landed.look(screen("hello\n> █"), ENTERED) is PastePlace.GONE


# --- no caret ------------------------------------------------------------------------------------

NO_CARET = ("logo\n─────\n> ask me\n─────\n help", "logo\n─────\n> [from ada #7] [end #7]\n─────\n help")


def astray(drawing: str = NO_CARET[1]) -> PasteLocator:
    """Return a prompt in a program that shows no caret at all."""
    landed = PasteLocator(HEADER, FOOTER, screen(NO_CARET[0]))
    assert landed.look(screen(NO_CARET[0]), PASTED) is PastePlace.EMPTY
    assert landed.look(screen(drawing), PASTED) is PastePlace.UNSEEN
    assert landed.look(screen(drawing), LATE) is PastePlace.HERE
    return landed


@pytest.mark.parametrize(
    ("drawing", "place"),
    [
        (NO_CARET[1], PastePlace.HERE),
        ("one more line\n" + NO_CARET[1], PastePlace.HERE),
        (NO_CARET[1] + "\n press Enter again", PastePlace.HERE),
        ("> [from ada #7] [end #7]\n\nbusy\n─────\n> \n─────\n help", PastePlace.GONE),
        ("logo\n─────\n> \n─────\n help", PastePlace.GONE),
        # A copy between the same lines, in another place.
        ("> [from ada #7] [end #7]\n─────\nbusy\n─────\n> \n─────\n help", PastePlace.GONE),
        (NO_CARET[0], PastePlace.EMPTY),
    ],
)
def test_without_a_caret_the_place_of_the_last_line_decides(drawing: str, place: PastePlace) -> None:
    assert astray().look(screen(drawing), ENTERED) is place


def test_without_a_caret_a_marker_stands_for_the_prompt() -> None:
    marked = "logo\n─────\n> [Pasted 3 lines]\n─────\n help"

    assert astray(marked).look(screen(marked), ENTERED) is PastePlace.HERE
    assert astray(marked).look(screen(NO_CARET[0]), ENTERED) is PastePlace.EMPTY


def test_a_prompt_that_vanishes_before_enter_is_looked_for_again() -> None:
    landed = astray()

    assert landed.look(screen("something else"), LATE) is PastePlace.UNSEEN
    assert landed.look(screen(NO_CARET[1]), LATE) is PastePlace.HERE


def test_a_prompt_at_the_last_row_has_nothing_below_it() -> None:
    landed = PasteLocator(HEADER, FOOTER, drawn("a\nb", is_cursor_visible=False))
    last = drawn("a\n[end #7]", is_cursor_visible=False)

    assert landed.look(last, LATE) is PastePlace.HERE
    assert landed.look(last, ENTERED) is PastePlace.HERE


def test_a_cursor_that_is_not_where_one_types_is_not_believed() -> None:
    landed = PasteLocator(HEADER, FOOTER, screen("ask: me\n\nstatus █"))
    shown = screen("ask: [from ada #7] [end #7]\n\nstatus █")

    assert landed.look(shown, PASTED) is PastePlace.EMPTY
    assert landed.look(shown, LATE) is PastePlace.HERE
    assert landed.look(shown, ENTERED) is PastePlace.HERE
    assert landed.look(screen("ask:\n\nstatus █"), ENTERED) is PastePlace.GONE


def test_a_caret_that_is_hidden_after_enter_leaves_the_place_to_go_by() -> None:
    _, pasted, _, submitted = SHAPES["sign"]

    assert landing("sign").look(screen(pasted.replace("█", "")), ENTERED) is PastePlace.HERE
    assert landing("sign").look(screen(submitted.replace("█", "")), ENTERED) is PastePlace.GONE


# --- the parts -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drawing", "caret"),
    [
        ("a\nbc█d", Caret(1, 2)),
        ("a^ ^b\nc^ ^\n", Caret(1, 1)),
        ("^two^", None),
        ("none", None),
    ],
)
def test_the_caret_is_the_cursor_or_the_lowest_cell_in_reverse(drawing: str, caret: Caret | None) -> None:
    assert find_caret(drawn(drawing, is_cursor_visible="█" in drawing)) == caret


def test_a_cursor_below_the_screen_is_no_caret() -> None:
    assert find_caret(replace(drawn("a█"), cursor_row=7)) is None


def test_a_screen_without_a_word_is_blank() -> None:
    assert is_blank(drawn("\n\n", rows=5))
    assert not is_blank(drawn("\n.\n"))


@pytest.mark.parametrize(
    ("drawing", "is_behind"),
    [("│ > █Type here │", True), ("│ > Type█ here │", False), ("│ > Type here█ │", False)],
)
def test_a_placeholder_stands_behind_the_caret(drawing: str, is_behind: bool) -> None:
    shown = drawn(drawing)
    caret = find_caret(shown)

    assert caret is not None and stands_behind(shown, caret, "Type here") is is_behind
