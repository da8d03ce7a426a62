"""Read a CLI's state from its screen: composer, dialog and busy indicators."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from csp.protocol.screen_frames import RunView
from csp.terminal.screen import (
    ComposerRules,
    DialogRules,
    Frame,
    Screen,
    ScreenRow,
    ScreenRules,
    Sign,
    SignPlace,
)

ROWS_ABOVE: Final = 12
PARAGRAPHS_ABOVE: Final = 3
#: How many rows and paragraphs above a bare question are shown to a person, because they explain it.
MAX_CONTEXT: Final = 12
CONTEXT_PARAGRAPHS: Final = 2
_FRAME: Final = " │┃╭╮╰╯─━▄▀\xa0"
_WORD: Final = re.compile(r"\w")
_WORDS: Final = re.compile(r"[^\W\d_]+")
_TOKENS: Final = re.compile(r"(?<![\d.,])\d[\d.,]*+k? tokens\b")
# Emulators differ in the zero-width characters that they keep.
_UNSEEN: Final = re.compile(r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]+")
_BORDER: Final = re.compile(r"[\s─━═╌┄╭╮╰╯┌┐└┘]*\Z")
_BROKEN_WORD: Final = re.compile(r"\w-\Z")
_END_OF_QUESTION: Final = re.compile(r"\?(?=\s|\Z)")
#: The kind of a busy indicator that is shown until the CLI is prepared for prompts.
PREPARING: Final = "preparing"
#: The kind of a dialog without choices, in which Enter means yes.
ENTERED: Final = "entered"


class Composer(msgspec.Struct, frozen=True, kw_only=True):
    """The input area; `text` contains neither the prompt symbol nor a placeholder."""

    text: str
    is_empty: bool
    #: The CLI shows a marker instead of a long paste.
    is_pasted: bool = False
    first_row: int = 0
    last_row: int = 0

    def holds(self, text: str) -> bool:
        """Return whether it contains `text`, however it is wrapped."""
        return _UNSEEN.sub("", text) in _UNSEEN.sub("", self.text)


class DialogChoice(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    label: str
    is_selected: bool


class ScreenDialog(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for a key; `subject` is the thing in question, such as a command or a diff."""

    kind: str
    question: str
    subject: str
    choices: tuple[DialogChoice, ...]
    first_row: int = 0
    last_row: int = 0
    #: Whether the number of a choice is its key; otherwise a choice is selected and confirmed with Enter.
    is_numbered: bool = True
    #: The rows above a dialog whose own rows contain only the question; some of them may be unrelated.
    context: str = ""

    @property
    def selected(self) -> int:
        """The number of the choice that Enter would choose; 0 for none."""
        return next((choice.number for choice in self.choices if choice.is_selected), 0)

    def is_same(self, other: "ScreenDialog | None") -> bool:
        """Return whether the other dialog is the same question, regardless of the selected choice."""
        return other is not None and (other.question, other.subject) == (self.question, self.subject)

    def choice_for(self, label: re.Pattern[str] | None) -> int:
        """Return the number of the first choice whose label matches; 0 for none."""
        return next((choice.number for choice in self.choices if label and label.search(choice.label)), 0)


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """A screen that only a person can get past."""

    kind: str
    text: str


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A usage limit; `until_text` is its end in the CLI's words, or empty."""

    text: str
    until_text: str


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a CLI as one screen shows it."""

    composer: Composer | None = None
    dialog: ScreenDialog | None = None
    blocked: Blocked | None = None
    #: The dialog of a screen that only a person can get past: it can be answered, but it is not about a tool.
    blocking: ScreenDialog | None = None
    is_busy: bool = False
    #: The text of rows that show work, letters only: these stay the same while spinners and clocks change.
    work: tuple[str, ...] = ()
    is_starting: bool = False
    #: A busy indicator shows that the CLI is not prepared for prompts yet; it need not move.
    is_preparing: bool = False
    #: The CLI submits the text in its composer by itself, without another Enter.
    is_accepted: bool = False
    limit: Limit | None = None
    #: The visible conversation, without busy indicators except for their token counts.
    said: str = ""


def without_work(reading: Reading, rows: Collection[str]) -> Reading:
    """Return the reading without the busy indicators in these rows."""
    work = tuple(row for row in reading.work if row not in rows)
    return (
        reading if work == reading.work else msgspec.structs.replace(reading, work=work, is_busy=bool(work))
    )


def read_screen(screen: Screen, rules: ScreenRules) -> Reading:
    """Read a screen. The composer is found first: nothing above it is a dialog, whatever an agent writes."""
    composer = find_composer(screen, rules.composer)
    dialog = None if composer else find_dialog(screen, rules.dialog)
    places = _Places(screen, composer, dialog)
    blocked = next(places.rows_with(rules.blocked), None)
    blocking = None
    if blocked and blocked[0].place is SignPlace.DIALOG:
        dialog, blocking = None, dialog
    overlay = next(places.rows_with(rules.overlays), None)
    if overlay and not dialog and not blocked:
        dialog = ScreenDialog(
            kind=overlay[0].kind or "overlay", question=overlay[1].text.strip(_FRAME), subject="", choices=()
        )
    busy = list(places.rows_with(rules.busy))
    work = tuple(" ".join(_WORDS.findall(row.text)) for _, row in busy)
    return Reading(
        composer=composer,
        dialog=dialog,
        blocked=Blocked(kind=blocked[0].kind, text=places.text_around(*blocked)) if blocked else None,
        blocking=blocking,
        is_busy=bool(work),
        work=work,
        is_preparing=any(sign.kind == PREPARING for sign, _ in busy),
        is_starting=any(True for _ in places.rows_with(rules.starting)),
        is_accepted=any(True for _ in places.rows_with(rules.accepted)),
        limit=next(places.limits(rules.limits), None),
        said=places.said(rules),
    )


class _Places:
    """The rows of a screen, grouped by place."""

    def __init__(self, screen: Screen, composer: Composer | None, dialog: ScreenDialog | None) -> None:
        self._rows: dict[SignPlace, Sequence[ScreenRow]] = dict.fromkeys(SignPlace, ())
        if composer:
            self._rows[SignPlace.ABOVE] = screen.rows[: composer.first_row]
            self._rows[SignPlace.BELOW] = screen.rows[composer.last_row + 1 :]
        elif dialog:
            self._rows[SignPlace.DIALOG] = screen.rows[dialog.first_row : dialog.last_row + 1]
        else:
            self._rows[SignPlace.BARE] = screen.rows

    def rows_with(self, signs: Sequence[Sign]) -> Iterator[tuple[Sign, ScreenRow]]:
        """Yield each visible pattern with its row, the lowest row first."""
        for sign in signs:
            rows = [row for row in self._rows[sign.place] if row.text]
            for row in reversed(rows[-ROWS_ABOVE:] if sign.place is SignPlace.ABOVE else rows):
                match = sign.pattern.search(row.text)
                if match and (not sign.is_styled or _is_styled(row, match.start())):
                    yield sign, row
            if sign.place is SignPlace.DIALOG:
                # In a narrow pane, a question is wrapped.
                for paragraph in self._paragraphs(sign.place):
                    if sign.pattern.search(" ".join(row.text.strip(_FRAME) for row in paragraph)):
                        yield sign, paragraph[0]

    def _paragraphs(self, place: SignPlace) -> list[list[ScreenRow]]:
        grouped = groupby(self._rows[place], key=lambda row: bool(row.text.strip(_FRAME)))
        return [list(rows) for is_text, rows in grouped if is_text]

    def limits(self, signs: Sequence[Sign]) -> Iterator[Limit]:
        """Yield the limits in the paragraphs right above the composer, joining the rows of each."""
        for sign in signs:
            for rows in reversed(self._paragraphs(sign.place)[-PARAGRAPHS_ABOVE:]):
                text = " ".join(row.text.strip(_FRAME) for row in rows)
                match = sign.pattern.search(text)
                if match and (not sign.is_styled or _is_styled(rows[0], 0)):
                    yield Limit(text=text, until_text=(match.groupdict().get("until") or "").strip())

    def said(self, rules: ScreenRules) -> str:
        """Return the conversation, with only the token counts of busy indicators, because clocks change."""
        patterns = [sign.pattern for sign in rules.busy] + ([rules.furniture] if rules.furniture else [])
        lines: list[str] = []
        for row in (*self._rows[SignPlace.ABOVE], *self._rows[SignPlace.BARE]):
            is_sign = any(pattern.search(row.text) for pattern in patterns)
            lines += _TOKENS.findall(row.text) if is_sign else [row.text]
        return "\n".join(lines)

    def text_around(self, sign: Sign, row: ScreenRow) -> str:
        """Return the row itself if it is next to a composer, else the whole dialog or screen."""
        is_beside = sign.place in (SignPlace.ABOVE, SignPlace.BELOW)
        lines = (row.text.strip(_FRAME) for row in ((row,) if is_beside else self._rows[sign.place]))
        return "\n".join(line for line in lines if line)


def _is_styled(row: ScreenRow, start: int) -> bool:
    """Return whether the first word from `start` on is coloured or faint, unlike an agent's plain text."""
    word = _WORD.search(row.text, start)
    style = row.style_at(word.start() if word else start)
    return style.fg is not None or style.faint


# --- the composer --------------------------------------------------------------------------------


def find_composer(screen: Screen, rules: ComposerRules) -> Composer | None:
    """Find the composer that contains the cursor."""
    if not 0 <= screen.cursor_row < len(screen.rows) or rules.frame is Frame.NONE:
        return None
    area = _AREAS[rules.frame](screen, rules)
    if area is None:
        return None
    first, last = area
    rows = screen.rows[first : last + 1]
    sign = _sign_in(rows[0], rules)
    width = sign.end() if sign else 0
    # In an empty composer the cursor is right after the symbol. A draft can look the same, but is drawn
    # differently.
    is_at_start = screen.cursor_row == first and screen.cursor_col <= width + 1
    lines: list[str] = []
    if not (is_at_start and _is_placeholder(rows, width, rules)):
        inner = [rules.edge.sub("", row.text) if rules.edge else row.text for row in rows]
        lines = [line[width:].rstrip().replace("\xa0", " ") for line in inner]
    text = "\n".join(lines).strip()
    return Composer(
        text=text,
        is_empty=not text and sign is not None and sign.re is rules.sign,
        is_pasted=bool(rules.paste_marker and rules.paste_marker.search(text)),
        first_row=first,
        last_row=last,
    )


def _bordered(screen: Screen, rules: ComposerRules) -> tuple[int, int] | None:
    """Find the rows between a border above the cursor and one below it."""
    first = last = screen.cursor_row
    rows = screen.rows
    if not rules.top or not rules.bottom or _is_border(rows[first], rules):
        return None
    while first > 0 and not _is_border(rows[first - 1], rules):
        first -= 1
    while last + 1 < len(rows) and not _is_border(rows[last + 1], rules):
        last += 1
    is_scrolled = first > 0 and rules.scrolled and rules.scrolled.search(rows[first - 1].text)
    has_top = is_scrolled or (first > 0 and rules.top.search(rows[first - 1].text))
    has_bottom = last + 1 < len(rows) and rules.bottom.search(rows[last + 1].text)
    if not (has_top and has_bottom and (is_scrolled or _sign_in(rows[first], rules))):
        return None
    return first, last


def _shaded(screen: Screen, rules: ComposerRules) -> tuple[int, int] | None:
    """Find the rows between borders, or else the rows around the cursor with the same background."""
    if area := _bordered(screen, rules):
        return area
    rows, first = screen.rows, screen.cursor_row
    shade = _background(rows[first])
    while shade and first > 0 and not _sign_in(rows[first], rules) and _background(rows[first - 1]) == shade:
        first -= 1
    if not shade or not _sign_in(rows[first], rules):
        return None
    last = screen.cursor_row
    while last + 1 < len(rows) and _background(rows[last + 1]) == shade:
        last += 1
    return first, last


def _background(row: ScreenRow) -> str | None:
    return row.runs[0].style.bg if row.runs else None


def _is_border(row: ScreenRow, rules: ComposerRules) -> bool:
    return any(pattern and pattern.search(row.text) for pattern in (rules.top, rules.bottom, rules.scrolled))


def _signed(screen: Screen, rules: ComposerRules) -> tuple[int, int] | None:
    """Find the rows from the last prompt symbol to the footer; the cursor must be visible."""
    rows, first = screen.rows, screen.cursor_row
    while first >= 0 and not _sign_in(rows[first], rules):
        if rows[first].text[:1].strip():
            return None
        first -= 1
    if first < 0 or not screen.cursor_visible:
        return None
    end = max((y for y in range(first, len(rows)) if rows[y].text), default=first)
    foot = end
    while foot > max(first, screen.cursor_row) and rows[foot].text:
        foot -= 1
    last = foot if foot > screen.cursor_row else max(end, screen.cursor_row)
    if any(rows[y].text[:1].strip() for y in range(first + 1, last + 1)):
        return None
    while last > max(first, screen.cursor_row) and not rows[last].text:
        last -= 1
    return first, last


def _at_cursor(screen: Screen, rules: ComposerRules) -> tuple[int, int] | None:
    row = screen.cursor_row
    return (row, row) if _sign_in(screen.rows[row], rules) else None


_AREAS: Final = {
    Frame.BORDERS: _bordered,
    Frame.SHADED: _shaded,
    Frame.SIGN: _signed,
    Frame.CURSOR: _at_cursor,
}


def _sign_in(row: ScreenRow, rules: ComposerRules) -> re.Match[str] | None:
    text = "".join(run.text for run in row.runs)
    for pattern in (rules.sign, rules.other_sign):
        if pattern and (match := pattern.match(text)):
            return match
    return None


def _is_placeholder(rows: Sequence[ScreenRow], width: int, rules: ComposerRules) -> bool:
    """Return whether all text after a symbol of that width is drawn as a placeholder."""
    runs = []
    for row in rows:
        left = width
        for run in row.runs:
            if len(run.text) > left:
                runs.append(RunView(run.text[left:], run.style))
            left = max(0, left - len(run.text))
    shown = [run for run in runs if run.text.strip() and not run.style.reverse]
    if not shown:
        return False
    if rules.placeholder and rules.placeholder.search("".join(run.text for run in runs)):
        return True
    return all(
        (rules.is_placeholder_faint and run.style.faint) or run.style.fg in rules.placeholder_colours
        for run in shown
    )


# --- dialogs -------------------------------------------------------------------------------------


def find_dialog(screen: Screen, rules: DialogRules) -> ScreenDialog | None:
    """Find the choices at the end of the screen, one of which is marked as selected."""
    lines = [_unframed(row.text, rules) for row in screen.rows]
    numbered = _numbered(lines, rules)
    found = numbered or _listed(screen, lines, rules)
    if found is None:
        return None
    rows, choices = found
    first = _first_row([row.text for row in screen.rows], rows[0], rules)
    question, subject = _parts(lines[first : rows[0]], rules)
    context = ""
    if not subject and not rules.top:
        # If it does not show where it begins, use the last paragraphs above it.
        grouped = groupby(lines[:first][-MAX_CONTEXT:], key=lambda line: bool(line.strip()))
        paragraphs = ["\n".join(line.strip() for line in rows) for is_text, rows in grouped if is_text]
        context = "\n\n".join(paragraphs[-CONTEXT_PARAGRAPHS:])
    shown = "\n".join((question, subject, *(choice.label for choice in choices)))
    return ScreenDialog(
        kind=next((sign.kind for sign in rules.kinds if sign.pattern.search(shown)), "menu"),
        question=question,
        subject=subject,
        choices=choices,
        first_row=first,
        last_row=max(y for y, line in enumerate(lines) if line.strip()),
        is_numbered=numbered is not None,
        context=context,
    )


def _unframed(text: str, rules: DialogRules) -> str:
    """Cut off the sides of nested boxes; a row that consists of borders becomes a blank one."""
    while rules.side and (inner := rules.side.sub("", text)) != text:
        text = inner
    return "" if _BORDER.match(text) else text


def _numbered(lines: list[str], rules: DialogRules) -> tuple[list[int], tuple[DialogChoice, ...]] | None:
    """Read the last list that counts from 1; an agent may show another one further up."""
    found = [
        (y, match) for y, line in enumerate(lines) if rules.choice and (match := rules.choice.match(line))
    ]
    starts = [index for index, (_, match) in enumerate(found) if match["number"] == "1"]
    block = found[starts[-1] :] if starts else []
    rows = [y for y, _ in block]
    is_list = [int(match["number"]) for _, match in block] == list(range(1, len(block) + 1))
    is_marked = sum(bool(match["mark"]) for _, match in block) == 1
    if len(block) < 2 or not (is_list and is_marked and _is_at_end(lines, rows[-1], rules)):
        return None
    choices = []
    for number, ((y, match), end) in enumerate(zip(block, [*rows[1:], len(lines)], strict=True), 1):
        label = match["label"].strip()
        for line in lines[y + 1 : end]:
            text = line.strip()
            # A label continues on rows that are aligned with its own text.
            if not text or line.find(text) != match.start("label"):
                break
            label += text if _BROKEN_WORD.search(label) else f" {text}"
        choices.append(DialogChoice(number=number, label=label, is_selected=bool(match["mark"])))
    return rows, tuple(choices)


def _listed(
    screen: Screen, lines: list[str], rules: DialogRules
) -> tuple[list[int], tuple[DialogChoice, ...]] | None:
    """Read a list without numbers: the rows around the cursor whose text starts in the same column."""
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
    if first == last or not _is_at_end(lines, last, rules):
        return None
    rows = list(range(first, last + 1))
    labels = [(marked["label"] if y == at else lines[y]).strip() for y in rows]
    return rows, tuple(
        DialogChoice(number=number, label=label, is_selected=y == at)
        for number, (y, label) in enumerate(zip(rows, labels, strict=True), 1)
    )


def _is_at_end(lines: list[str], last: int, rules: DialogRules) -> bool:
    """Return whether there is hardly any text below the last choice."""
    return sum(bool(line.strip()) for line in lines[last + 1 :]) <= rules.max_rows_after


def _indent(line: str) -> int:
    """Return the indentation of a row; -1 for a blank one."""
    return len(line) - len(line.lstrip()) if line.strip() else -1


def _first_row(texts: list[str], choices: int, rules: DialogRules) -> int:
    """Return the first row of a dialog: the one below its top, else the paragraph above the choices."""
    if rules.top:
        return next((y + 1 for y in range(choices - 1, -1, -1) if rules.top.search(texts[y])), 0)
    y = choices
    while y > 0 and not texts[y - 1].strip():
        y -= 1
    while y > 0 and texts[y - 1].strip():
        y -= 1
    return y


def _parts(lines: list[str], rules: DialogRules) -> tuple[str, str]:
    """Separate the question from its subject; an agent's text in the subject must not become the question."""
    paragraphs = []
    for is_text, group in groupby(lines, key=lambda line: bool(line.strip())):
        if is_text:
            rows = list(group)
            indent = min(map(_indent, rows))
            paragraphs.append("\n".join(row[indent:].rstrip() for row in rows))
    if not paragraphs:
        return "", ""
    matching = [
        index for index, text in enumerate(paragraphs) if rules.question and rules.question.search(text)
    ]
    at = matching[0 if rules.is_question_first else -1] if matching else len(paragraphs) - 1
    rest = paragraphs[at + 1 :] if rules.is_question_first else paragraphs[:at]
    question = " ".join(paragraphs[at].split())
    end = _END_OF_QUESTION.search(question)
    note = question[end.end() :].strip() if end else ""
    return question[: end.end() if end else None], "\n\n".join([*rest, note] if note else rest)
