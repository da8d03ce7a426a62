import re

import pytest
from msgspec.structs import replace

from csp.terminal.screen import ComposerRules, DialogRules, Frame, ScreenRules, Sign, SignPlace
from csp.terminal.screen_reader import Blocked, Limit, Reading, read_screen, without_work
from tests.terminal.drawn import drawn


def sign(pattern: str, place: SignPlace, kind: str = "", *, is_styled: bool = False) -> Sign:
    return Sign(pattern=re.compile(pattern), place=place, kind=kind, is_styled=is_styled)


BORDERED = ScreenRules(
    composer=ComposerRules(
        frame=Frame.BORDERS,
        top=re.compile(r"^─{10,}$"),
        bottom=re.compile(r"^─{10,}$"),
        sign=re.compile(r"❯(?: |$)"),
        other_sign=re.compile(r"!(?: |$)"),
        is_placeholder_faint=True,
        placeholder_colours=frozenset({"211"}),
        paste_marker=re.compile(r"\[Pasted \d+ lines\]"),
    ),
    dialog=DialogRules(
        choice=re.compile(r"^\s*(?P<mark>❯)?\s*(?P<number>\d+)\. (?P<label>.+)"), top=re.compile(r"^─{10,}$")
    ),
    blocked=(
        sign("trust", SignPlace.DIALOG, "trust"),
        sign("not logged in", SignPlace.BELOW, "login"),
        sign("welcome", SignPlace.BARE, "onboarding"),
    ),
    busy=(sign("esc to interrupt", SignPlace.BELOW), sign(r"^\* Working", SignPlace.ABOVE, is_styled=True)),
    limits=(sign(r"^! limit(?:.* until (?P<until>.+))?", SignPlace.ABOVE, is_styled=True),),
    overlays=(sign("shortcuts:", SignPlace.BELOW), sign("esc to close", SignPlace.BARE)),
)
SIGNED = replace(
    BORDERED,
    composer=ComposerRules(
        frame=Frame.SIGN,
        sign=re.compile(r"› "),
        placeholder=re.compile(r"^Ask anything\s*$"),
        is_placeholder_faint=True,
    ),
)
AT_CURSOR = ScreenRules(
    composer=ComposerRules(frame=Frame.CURSOR, sign=re.compile(r"│? ?> ?"), edge=re.compile(r"\s*│$"))
)
LINE = "─" * 20


def composer_in(
    picture: str, rules: ScreenRules = BORDERED, *, is_seen: bool = True
) -> tuple[str, bool] | None:
    composer = read_screen(drawn(picture, is_cursor_visible=is_seen), rules).composer
    return (composer.text, composer.is_empty) if composer else None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("❯ █", ("", True)),
        ("❯ █^ ^", ("", True)),
        ("❯█", ("", True)),
        ("❯ draft█", ("draft", False)),
        ("❯ █draft", ("draft", False)),
        ("❯ █~a placeholder~", ("", True)),
        ("❯ █^a^~ placeholder~", ("", True)),
        ("❯ █*a placeholder*", ("", True)),
        ("❯ ~a placeholder~█", ("a placeholder", False)),
        ("❯ █~half a placeholder,~ half typed", ("half a placeholder, half typed", False)),
        ("! █", ("", False)),
        ("! ls█", ("ls", False)),
    ],
)
def test_a_composer_between_borders(row: str, expected: tuple[str, bool]) -> None:
    assert composer_in(f"an answer\n{LINE}\n{row}\n{LINE}\nfooter") == expected


def test_a_draft_of_several_rows() -> None:
    picture = f"{LINE}\n❯ one\n  two\n\n  four█\n{LINE}"

    assert composer_in(picture) == ("one\ntwo\n\nfour", False)


def test_a_marker_stands_for_a_long_paste() -> None:
    composer = read_screen(drawn(f"{LINE}\n❯ [Pasted 60 lines]█\n{LINE}"), BORDERED).composer

    assert composer
    assert composer.is_pasted
    assert not composer.is_empty


def test_what_was_typed_is_found_however_it_is_wrapped() -> None:
    composer = read_screen(drawn(f"{LINE}\n❯ [from human\n  #418] hi\u2060█\n{LINE}"), BORDERED).composer

    assert composer
    assert composer.holds("[from human #418]")
    assert composer.holds("hi")
    assert not composer.holds("[from human #419]")


@pytest.mark.parametrize(
    "picture",
    [
        f"❯ echoed\n{LINE}\n❯ \n{LINE}\n█footer",
        f"{LINE}\n❯ █",
        f"❯ █\n{LINE}",
        f"{LINE}\nno sign█\n{LINE}",
        f"{LINE}█\n❯ \n{LINE}",
        "❯ █",
    ],
)
def test_no_composer_without_both_borders_around_the_cursor(picture: str) -> None:
    assert composer_in(picture) is None


def test_no_composer_where_the_cursor_is_off_the_screen() -> None:
    screen = drawn(f"{LINE}\n❯ █\n{LINE}")

    assert read_screen(replace(screen, cursor_row=40), BORDERED).composer is None


def test_no_composer_without_rules_for_one() -> None:
    reading = read_screen(drawn(f"{LINE}\n❯ █\n{LINE}"), ScreenRules())
    assert reading == Reading(said=reading.said)
    without_borders = ScreenRules(composer=replace(BORDERED.composer, top=None))
    assert composer_in(f"{LINE}\n❯ █\n{LINE}", without_borders) is None


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        ("› old prompt\n\n• answer\n\n› █~Ask anything~\n\n  model · folder", ("", True)),
        ("› █Ask anything\n\n  model", ("", True)),
        ("› Ask anything█\n\n  model", ("Ask anything", False)),
        ("› █\n\n  model\n  ? for shortcuts", ("", True)),
        ("› one\n  two█\n\n  model", ("one\ntwo", False)),
        ("› one\n\n  three█\n\n  model", ("one\n\nthree", False)),
        ("› one█\n\n  three\n\n  model", ("one\n\nthree", False)),
        ("› no footer█", ("no footer", False)),
        ("› no footer\n  here█", ("no footer\nhere", False)),
        ("• answer\n  › 1. not at the margin\n\n› █\n\n  model", ("", True)),
    ],
)
def test_a_composer_behind_a_sign(picture: str, expected: tuple[str, bool]) -> None:
    assert composer_in(picture, SIGNED) == expected


@pytest.mark.parametrize(
    "picture",
    [
        "› old prompt\n\n• answer█",
        "  nothing here█",
        "› prompt█\n• answer\n\n  model",
    ],
)
def test_no_composer_where_the_cursor_is_in_an_answer(picture: str) -> None:
    assert composer_in(picture, SIGNED) is None


def test_no_composer_behind_a_sign_while_the_cursor_is_hidden() -> None:
    assert composer_in("› █\n\n  model", SIGNED, is_seen=False) is None


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        ("> hello█", ("hello", False)),
        (">█", ("", True)),
        ("│ > hello█    │", ("hello", False)),
        ("│ > █         │", ("", True)),
        ("output█", None),
    ],
)
def test_a_composer_in_the_row_of_the_cursor(picture: str, expected: tuple[str, bool] | None) -> None:
    assert composer_in(picture, AT_CURSOR) == expected


def test_a_blank_row_has_no_sign() -> None:
    assert composer_in("text\n█", replace(AT_CURSOR, composer=ComposerRules(frame=Frame.CURSOR))) is None


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (f"{LINE}\n❯ in borders█\n{LINE}", ("in borders", False)),
        ("answer\n%❯ %█\nfooter", ("", True)),
        ("%❯ old %\n\n%❯ one %\n%  two█%\n%  three %\n\nfooter", ("one\ntwo\nthree", False)),
        ("%❯ one %\n%   %\n%  three█ %", ("one\n\nthree", False)),
        ("%  no sign█%", None),
        ("text\n%  no sign█%", None),
        ("❯ no shade█", None),
        ("❯ old\n█", None),
    ],
)
def test_a_composer_with_a_background(picture: str, expected: tuple[str, bool] | None) -> None:
    rules = replace(BORDERED, composer=replace(BORDERED.composer, frame=Frame.SHADED))

    assert composer_in(picture, rules) == expected


def test_disregarded_rows_show_no_work() -> None:
    reading = Reading(composer=None, dialog=None, is_busy=True, work=("esc to cancel", "Thinking"))
    partly = without_work(reading, ("esc to cancel",))
    idle = without_work(reading, ("Thinking", "esc to cancel"))

    assert without_work(reading, ()) is reading
    assert (partly.is_busy, partly.work) == (True, ("Thinking",))
    assert (idle.is_busy, idle.work) == (False, ())


def read(picture: str) -> Reading:
    return read_screen(drawn(picture), BORDERED)


ASKED = f"{LINE}\n run rm -rf\n\n Do you want to?\n ❯█1. Yes\n   2. No"


def test_a_dialog_stands_where_no_composer_is() -> None:
    dialog = read(ASKED).dialog

    assert dialog
    assert (dialog.question, dialog.subject) == ("Do you want to?", "run rm -rf")


def test_what_an_agent_writes_above_the_composer_is_no_dialog() -> None:
    reading = read(f"{ASKED.replace('█', ' ')}\n trust\n welcome\n esc to close\n{LINE}\n❯ █\n{LINE}\n")

    assert reading == Reading(composer=reading.composer, said=reading.said)
    assert reading.composer


def test_a_dialog_that_only_a_person_can_answer() -> None:
    reading = read(f"{LINE}\n Do you trust this?\n ❯█1. Yes\n   2. No")

    assert reading.dialog is None
    assert reading.blocked == Blocked(kind="trust", text="Do you trust this?\n❯1. Yes\n2. No")


def test_a_question_that_only_a_person_can_answer_may_be_wrapped() -> None:
    rules = replace(BORDERED, blocked=(sign("you trust this", SignPlace.DIALOG, "trust"),))
    asked = f"{LINE}\n Do you\n trust this?\n\n ❯█1. Yes\n   2. No"

    reading = read_screen(drawn(asked), rules)
    assert reading.dialog is None
    assert reading.blocked is not None and reading.blocked.kind == "trust"
    # Words of different paragraphs are no question.
    assert read_screen(drawn(asked.replace("you\n", "you\n\n")), rules).blocked is None


def test_a_start_screen_without_choices() -> None:
    reading = read("welcome\n\npress enter█")

    assert reading.blocked == Blocked(kind="onboarding", text="welcome\npress enter")


def test_a_warning_below_the_composer() -> None:
    reading = read(f"{LINE}\n❯ █\n{LINE}\n hints\n not logged in\n more")

    assert reading.blocked == Blocked(kind="login", text="not logged in")
    assert reading.composer


def test_an_overlay_over_a_composer() -> None:
    reading = read(f"{LINE}\n❯ █\n{LINE}\n shortcuts: ! @ /")

    assert reading.composer
    assert reading.dialog
    assert (reading.dialog.kind, reading.dialog.question) == ("overlay", "shortcuts: ! @ /")


def test_an_overlay_instead_of_a_composer() -> None:
    reading = read("Settings\n\n esc to close█")

    assert reading.dialog
    assert reading.dialog.kind == "overlay"


def test_a_start_screen_is_not_an_overlay_too() -> None:
    assert read("welcome\n esc to close█").dialog is None


@pytest.mark.parametrize(
    ("above", "below", "is_busy"),
    [
        ("answer", "esc to interrupt", True),
        ("* *Working*", "", True),
        ("answer\n\n* ~Working~ (3s)", "", True),
        ("* Working", "", False),
        ("esc to interrupt", "", False),
        ("* ~Working~\n" + "answer\n" * 20, "", False),
        ("", "", False),
    ],
)
def test_busy(above: str, below: str, is_busy: bool) -> None:
    # The first star of the drawing would be a style, so the sign has one of its own.
    rules = replace(BORDERED, busy=(BORDERED.busy[0], sign(r"^\+ Working", SignPlace.ABOVE, is_styled=True)))
    picture = f"{above.replace('* ', '+ ')}\n{LINE}\n❯ █\n{LINE}\n{below}"

    assert read_screen(drawn(picture), rules).is_busy is is_busy


@pytest.mark.parametrize(
    ("above", "limit"),
    [
        ("*! limit hit*", Limit(text="! limit hit", until_text="")),
        ("*! limit hit, wait until*\n*3 pm*", Limit(text="! limit hit, wait until 3 pm", until_text="3 pm")),
        ("! limit hit", None),
        ("+ answer\n*! limit hit*", None),
        ("*! limit hit*\n\nanswer\n\nanswer\n\nanswer", None),
        ("*! *", None),
    ],
)
def test_limits_are_read_from_whole_paragraphs(above: str, limit: Limit | None) -> None:
    assert read(f"{above}\n\n{LINE}\n❯ █\n{LINE}").limit == limit


def said(above: str) -> str:
    rules = replace(BORDERED, furniture=re.compile("^Tip: "))
    return read_screen(drawn(f"{above}\n{LINE}\n❯ █\n{LINE}\nesc to interrupt"), rules).said


def test_what_is_said_has_neither_clocks_nor_tips() -> None:
    rules = replace(BORDERED, busy=(sign(r"^\+ Working", SignPlace.ABOVE, is_styled=True),))
    shown = [
        read_screen(drawn(f"answer\n+ Working ({seconds}s)\n{LINE}\n❯ █\n{LINE}"), rules).said
        for seconds in (3, 4)
    ]

    assert shown[0] == shown[1]
    assert said("answer") == said("answer\nTip: use it")
    assert said("answer") != said("answer\nmore")


def test_tokens_that_a_sign_of_work_counts_are_said() -> None:
    rules = replace(BORDERED, busy=(sign(r"^\+ Working", SignPlace.ABOVE),))
    shown = [
        read_screen(drawn(f"+ Working (3s, {count} tokens)\n{LINE}\n❯ █\n{LINE}"), rules).said
        for count in ("12", "1.2k")
    ]

    assert shown == [f"12 tokens\n{LINE}", f"1.2k tokens\n{LINE}"]


def test_a_composer_whose_first_rows_are_hidden_holds_a_draft() -> None:
    picture = f"said before\n─── ↑ 4 more ─────\n  the rest\n  [end #7]█\n{LINE}"
    scrolled = replace(BORDERED.composer, scrolled=re.compile(r"^─+ ↑ \d+ more ─"))

    assert composer_in(picture, replace(BORDERED, composer=scrolled)) == ("the rest\n  [end #7]", False)
    assert composer_in(picture) is None
