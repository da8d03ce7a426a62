import re

import pytest
from msgspec.structs import replace

from csp.terminal.screen import DialogKind, DialogRules
from csp.terminal.screen_reader import DialogChoice, ScreenDialog, find_dialog
from tests.terminal.drawn import drawn

CHOICE = re.compile(r"^\s*(?P<mark>❯)?\s*(?P<number>\d{1,2})\.\s+(?P<label>.+)")
RULES = DialogRules(
    choice=CHOICE,
    top=re.compile(r"^─{10,}"),
    side=re.compile(r"^\s*│|│\s*$"),
    question=re.compile(r"\?"),
    kinds=(DialogKind(pattern=re.compile("proceed|Allow"), kind="permission"),),
    max_rows_after=2,
)
LINE = "─" * 20


def found(picture: str, rules: DialogRules = RULES) -> ScreenDialog:
    dialog = find_dialog(drawn(picture), rules)
    assert dialog
    return dialog


def test_question_subject_choices() -> None:
    dialog = found(
        f"❯ prompt\n{LINE}\n Bash\n\n   rm -rf x\n     y\n\n Want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc"
    )

    assert dialog == ScreenDialog(
        kind="permission",
        question="Want to proceed?",
        subject="Bash\n\nrm -rf x\n  y",
        choices=(
            DialogChoice(number=1, label="Yes", is_selected=True),
            DialogChoice(number=2, label="No", is_selected=False),
        ),
        first_row=2,
        last_row=11,
    )


def test_a_dialog_of_no_known_kind_is_a_menu() -> None:
    assert found(f"{LINE}\n Which?\n ❯ 1. A\n   2. B").kind == "menu"


def test_a_dialog_in_boxes() -> None:
    dialog = found(
        "╭────────╮\n│ ╭────╮ │\n│ │ ls │ │\n│ ╰────╯ │\n│ Allow? Yes or no. │\n"
        "│ ❯ 1. Yes │\n│   2. No │\n╰────────╯"
    )

    assert (dialog.question, dialog.subject) == ("Allow?", "ls\n\nYes or no.")
    assert [choice.label for choice in dialog.choices] == ["Yes", "No"]


def test_the_question_comes_first_where_the_rules_say_so() -> None:
    rules = replace(RULES, top=re.compile(r"^\S"), is_question_first=True, question=re.compile("Would"))
    picture = "• Running\n\n  Would you?\n\n  Reason: Would you?\n\n  $ ls\n\n❯ 1. Yes\n  2. No"

    dialog = found(picture, rules)

    assert (dialog.question, dialog.subject) == ("Would you?", "Reason: Would you?\n\n$ ls")


def test_an_agents_list_above_the_choices_is_part_of_the_subject() -> None:
    dialog = found(f"{LINE}\n echo\n ❯ 1. Yes\n   2. No\n really?\n\n Go?\n   1. Yes\n ❯ 2. No")

    assert [choice.is_selected for choice in dialog.choices] == [False, True]
    assert dialog.question == "Go?"
    assert dialog.subject == "echo\n❯ 1. Yes\n  2. No\nreally?"


def test_a_label_goes_on_below_its_own_text() -> None:
    dialog = found(
        f"{LINE}\n Go?\n ❯ 1. Yes, and\n      always\n   2. Only `a-\n      b`\n   3. No\n other\n\n"
    )

    assert [choice.label for choice in dialog.choices] == ["Yes, and always", "Only `a-b`", "No"]


def test_without_a_top_the_paragraph_above_belongs_to_it() -> None:
    rules = replace(RULES, top=None)

    assert found("answer\n\nGo on?\n\n❯ 1. Yes\n  2. No", rules).question == "Go on?"
    assert found("❯ 1. Yes\n  2. No", rules).question == ""


def test_where_no_row_is_the_top_all_of_the_screen_belongs_to_it() -> None:
    assert found("Go on?\n❯ 1. Yes\n  2. No").first_row == 0


def test_without_a_question_the_last_paragraph_is_taken() -> None:
    dialog = found(f"{LINE}\n Settings\n\n Select a model\n ❯ 1. A\n   2. B")

    assert (dialog.question, dialog.subject) == ("Select a model", "Settings")


@pytest.mark.parametrize(
    "picture",
    [
        "an answer",
        "❯ 1. Only one",
        "  1. Yes\n  2. No",
        "❯ 1. Yes\n❯ 2. No",
        "❯ 1. Yes\n  3. No",
        "❯ 2. Yes\n  3. No",
        "❯ 1. Yes\n  2. No\nmuch\nmore\ntext",
    ],
)
def test_what_is_no_dialog(picture: str) -> None:
    assert find_dialog(drawn(picture), RULES) is None


def test_without_rules_there_is_no_dialog() -> None:
    assert find_dialog(drawn("❯ 1. Yes\n  2. No"), DialogRules()) is None


LISTED = replace(RULES, choice=None, listed=re.compile(r"^\s*(?P<mark>❯)\s(?P<label>\S.*)"))
FOLDER = "Do you trust it?\n\n ❯ No, exit\n   Yes, I do\n\n Enter to confirm"


def test_a_list_without_numbers_is_read_where_the_cursor_is() -> None:
    dialog = find_dialog(replace(drawn(FOLDER), cursor_row=2, cursor_col=1), LISTED)

    assert dialog is not None
    assert dialog.question == "Do you trust it?"
    assert dialog.choices == (
        DialogChoice(number=1, label="No, exit", is_selected=True),
        DialogChoice(number=2, label="Yes, I do", is_selected=False),
    )
    assert not dialog.is_numbered


def test_the_mark_of_a_list_may_stand_at_its_end() -> None:
    text = "Well?\n\n   No\n ❯ Yes"
    dialog = find_dialog(replace(drawn(text), cursor_row=3, cursor_col=1), LISTED)

    assert dialog is not None and dialog.selected == 2


@pytest.mark.parametrize(
    ("text", "row", "column"),
    [
        (FOLDER, 3, 1),
        (FOLDER, 2, 2),
        (FOLDER, 99, 1),
        (" ❯ alone", 0, 1),
        (" ❯ one\n   two\n\na\nb\nc", 0, 1),
        (" ❯ one\n  two", 0, 1),
        ("two\n ❯ one", 1, 1),
    ],
)
def test_what_only_looks_like_a_list_is_none(text: str, row: int, column: int) -> None:
    assert find_dialog(replace(drawn(text), cursor_row=row, cursor_col=column), LISTED) is None


def test_a_choice_is_found_by_its_label() -> None:
    dialog = find_dialog(replace(drawn(FOLDER), cursor_row=2, cursor_col=1), LISTED)

    assert dialog is not None
    assert dialog.choice_for(re.compile("^Yes")) == 2
    assert dialog.choice_for(re.compile("^Maybe")) == dialog.choice_for(None) == 0


def test_a_dialog_is_the_same_whatever_is_selected_in_it() -> None:
    dialog = ScreenDialog(kind="menu", question="Well?", subject="", choices=())

    assert dialog.selected == 0
    assert dialog.is_same(replace(dialog, choices=(DialogChoice(number=1, label="x", is_selected=True),)))
    assert not dialog.is_same(replace(dialog, question="Really?"))
    assert not dialog.is_same(replace(dialog, subject="x"))
    assert not dialog.is_same(None)
