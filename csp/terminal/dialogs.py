"""Find dialogs with choices on a screen."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from csp.terminal.screen import Screen
from csp.terminal.screen_rules import DialogRules

_BORDER: Final = re.compile(r"[\s─━═╌┄╭╮╰╯┌┐└┘]*\Z")
_BROKEN_WORD: Final = re.compile(r"\w-\Z")
_END_OF_QUESTION: Final = re.compile(r"\?(?=\s|\Z)")


#: The kind of a dialog without choices, in which Enter means yes.
ENTERED: Final = "entered"


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogChoice:
    number: int
    label: str
    is_selected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenDialog:
    """A question that waits for a key. `subject` is what it is about, as shown: a command, a diff."""

    kind: str
    question: str
    subject: str
    choices: tuple[DialogChoice, ...]
    first_row: int = 0
    last_row: int = 0
    is_numbered: bool = True
    """Whether the number of a choice is its key; else it is selected, then entered."""

    @property
    def selected(self) -> int:
        """The number of the choice that Enter would take; 0 for none."""
        return next((choice.number for choice in self.choices if choice.is_selected), 0)

    def is_same(self, other: "ScreenDialog | None") -> bool:
        """Tell whether another look shows the same question, whichever choice is selected in it."""
        return other is not None and (other.question, other.subject) == (self.question, self.subject)

    def choice_for(self, label: re.Pattern[str] | None) -> int:
        """Return the number of the first choice with such a label; 0 for none."""
        return next((choice.number for choice in self.choices if label and label.search(choice.label)), 0)


def find_dialog(screen: Screen, rules: DialogRules) -> ScreenDialog | None:
    """Find the choices at the end of the screen, of which one is marked."""
    lines = [_unframed(row.text, rules) for row in screen.rows]
    numbered = _choices(lines, rules)
    found = numbered or _listed(screen, lines, rules)
    if found is None:
        return None
    rows, choices = found
    last = max(y for y, line in enumerate(lines) if line.strip())
    first = _first_row([row.text for row in screen.rows], rows[0], rules)
    question, subject = _parts(lines[first : rows[0]], rules)
    shown = "\n".join((question, subject, *(choice.label for choice in choices)))
    kind = next((sign.kind for sign in rules.kinds if sign.pattern.search(shown)), "menu")
    return ScreenDialog(
        kind=kind,
        question=question,
        subject=subject,
        choices=choices,
        first_row=first,
        last_row=last,
        is_numbered=numbered is not None,
    )


def _unframed(text: str, rules: DialogRules) -> str:
    """Cut off the sides of boxes, one inside another; a row that is all border becomes a blank one."""
    while rules.side and (inner := rules.side.sub("", text)) != text:
        text = inner
    return "" if _BORDER.match(text) else text


def _choices(lines: list[str], rules: DialogRules) -> tuple[list[int], tuple[DialogChoice, ...]] | None:
    """Read the last list that counts from 1; an agent may show another one further up."""
    if rules.choice is None:
        return None
    numbered = [(y, match) for y, line in enumerate(lines) if (match := rules.choice.match(line))]
    starts = [index for index, (_, match) in enumerate(numbered) if match["number"] == "1"]
    if not starts:
        return None
    block = numbered[starts[-1] :]
    counts = [int(match["number"]) for _, match in block]
    is_marked = sum(bool(match["mark"]) for _, match in block) == 1
    rows_after = sum(bool(line.strip()) for line in lines[block[-1][0] + 1 :])
    is_list = counts == list(range(1, len(counts) + 1)) and len(counts) > 1
    if not (is_list and is_marked and rows_after <= rules.max_rows_after):
        return None
    return [y for y, _ in block], tuple(
        DialogChoice(
            number=int(match["number"]), label=_label(lines, y, end, match), is_selected=bool(match["mark"])
        )
        for (y, match), end in zip(block, [y for y, _ in block[1:]] + [len(lines)], strict=True)
    )


def _listed(
    screen: Screen, lines: list[str], rules: DialogRules
) -> tuple[list[int], tuple[DialogChoice, ...]] | None:
    """Read a list without numbers: the rows around the cursor whose text begins in the same column."""
    at = screen.cursor_row
    marked = rules.listed.match(lines[at]) if rules.listed and 0 <= at < len(lines) else None
    # An agent may draw such a list too, but the cursor is not in it.
    if marked is None or screen.cursor_col != marked.start("mark"):
        return None
    first = last = at
    while first > 0 and _indent(lines[first - 1]) == marked.start("label"):
        first -= 1
    while last + 1 < len(lines) and _indent(lines[last + 1]) == marked.start("label"):
        last += 1
    rows = list(range(first, last + 1))
    rows_after = sum(bool(line.strip()) for line in lines[last + 1 :])
    if len(rows) < 2 or rows_after > rules.max_rows_after:
        return None
    return rows, tuple(
        DialogChoice(
            number=number,
            label=(marked["label"] if y == at else lines[y]).strip(),
            is_selected=y == at,
        )
        for number, y in enumerate(rows, 1)
    )


def _indent(line: str) -> int:
    """Return where the text of a row begins; -1 for a blank one."""
    return len(line) - len(line.lstrip()) if line.strip() else -1


def _label(lines: list[str], y: int, end: int, match: re.Match[str]) -> str:
    """Give the label with the rows it goes on in: those that begin below its own text."""
    parts = [match["label"].strip()]
    indent = match.start("label")
    for line in lines[y + 1 : end]:
        text = line.strip()
        if not text or line.find(text) != indent:
            break
        parts.append(text if _BROKEN_WORD.search(parts[-1]) else f" {text}")
    return "".join(parts)


def _first_row(texts: list[str], choices: int, rules: DialogRules) -> int:
    """Go up from the choices to the row below the dialog's top."""
    if rules.top is None:
        return _paragraph(texts, choices)
    for y in range(choices - 1, -1, -1):
        if rules.top.search(texts[y]):
            return y + 1
    return 0


def _paragraph(texts: list[str], choices: int) -> int:
    y = choices
    while y > 0 and not texts[y - 1].strip():
        y -= 1
    while y > 0 and texts[y - 1].strip():
        y -= 1
    return y


def _parts(lines: list[str], rules: DialogRules) -> tuple[str, str]:
    """Tell the question from its subject; an agent's words in the subject do not become the question."""
    paragraphs = _paragraphs(lines)
    if not paragraphs:
        return "", ""
    matching = [
        index for index, text in enumerate(paragraphs) if rules.question and rules.question.search(text)
    ]
    at = matching[0 if rules.is_question_first else -1] if matching else len(paragraphs) - 1
    rest = paragraphs[at + 1 :] if rules.is_question_first else paragraphs[:at]
    question, note = _cut(" ".join(paragraphs[at].split()))
    return question, "\n\n".join([*rest, note] if note else rest)


def _cut(text: str) -> tuple[str, str]:
    """Cut behind the question mark."""
    end = _END_OF_QUESTION.search(text)
    return (text, "") if end is None else (text[: end.end()], text[end.end() :].strip())


def _paragraphs(lines: list[str]) -> list[str]:
    """Group the rows between blank ones, without the indent that all of a group have."""
    blank = [-1, *(y for y, line in enumerate(lines) if not line.strip()), len(lines)]
    groups = [lines[start + 1 : end] for start, end in pairwise(blank) if end > start + 1]
    return ["\n".join(_dedented(group)) for group in groups]


def _dedented(lines: list[str]) -> list[str]:
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[indent:].rstrip() for line in lines]
