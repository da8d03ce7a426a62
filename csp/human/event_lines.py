"""Format the room's events as lines for a person."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from csp.human.message_text import body_rows, cells, fold, wrap
from csp.human.safe_text import clock, count, folded, one_line, visible
from csp.human.theme import Theme
from csp.protocol import catalogue, events
from csp.protocol.enums import ALL, HUMAN, SYSTEM, AgentState, Ending
from csp.protocol.notices import HEADINGS, NoticeCode
from csp.protocol.session_parts import EndReason, TurnState

#: The fixed rows at the bottom of the screen: the input line and the state of the room.
_FIXED_ROWS: Final = 2
_MAX_BODY: Final = 10
#: The part of a folded text that is laid out; a whole megabyte would block the keyboard for a second.
_LAID_OUT: Final = 20_000
END_WORDS: Final = {entry.id: entry.text for entry in catalogue.END_REASONS}
_SUBJECT: Final = 200
_ENDINGS: Final = {
    Ending.INTERRUPTED: "(interrupted)",
    Ending.FAILED: "(failed)",
    Ending.LIMITED: "(reached a usage limit)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenLine:
    """A message or notice, live or from the history."""

    seq: int
    ts: float
    sender: str
    target: str
    text: str
    ending: str = ""
    #: A remark about the text, such as that nobody else can read it yet or that it had no effect.
    mark: str = ""
    is_notice: bool = False
    #: The code and the parameters of a notice.
    code: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_of_turns(self) -> bool:
        """Whether it only repeats the turn and round in the status line."""
        return self.code in (NoticeCode.YOUR_TURN, NoticeCode.ROUND)


def spoken_of(event: events.AnyEvent) -> SpokenLine | None:
    """Return the line for an event that is a message or notice, else None."""
    if isinstance(event, events.Unknown) or events.type_of(event) not in events.HISTORY_TYPES:
        return None
    spoken = spoken_in(msgspec.to_builtins(event))
    if not isinstance(event, events.MessageEvent):
        return spoken
    mark = _mark(sealed=event.sealed, late=event.late, stray=event.out_of_turn)
    return replace(spoken, ending=_ENDINGS.get(event.ending, ""), mark=mark)


def _mark(*, sealed: object, late: object, stray: object) -> str:
    words = {"sealed": sealed, "late": late, "out of turn": stray}
    return ", ".join(word for word, is_so in words.items() if is_so)


def spoken_in(item: Mapping[str, Any]) -> SpokenLine:
    """Return the line for a history item."""
    ending = item.get("ending")
    return SpokenLine(
        seq=int(item.get("seq") or 0),
        ts=float(item.get("ts") or 0.0),
        sender=str(item.get("sender") or ""),
        target=str(item.get("target") or ""),
        text=str(item.get("text") or ""),
        ending=f"({ending})" if ending else "",
        # The seal may be broken by now.
        mark=_mark(sealed=False, late=item.get("late"), stray=item.get("out_of_turn")),
        is_notice=item.get("type") == "system",
        code=str(item.get("code") or ""),
        params=params if isinstance(params := item.get("params"), dict) else {},
    )


def is_part_of_message(item: Mapping[str, Any]) -> bool:
    """Return whether a history item is a vote that its voter's message contains."""
    return item.get("type") == "vote" and bool(item.get("message"))


def said_line(look: Theme, spoken: SpokenLine, *, is_whole: bool = False, mode: str = "") -> str:
    """Return a message as lines with sender, recipients and text; fold a long one to its first rows.

    `mode` is the running mode, which a notice about its end does not name.
    """
    head = f"{clock(spoken.ts)} {look.faint(f'#{spoken.seq}')}"
    if spoken.is_notice:
        return _notice_line(look, spoken, head, is_whole=is_whole, mode=mode)
    way = _way(look, spoken.sender, spoken.target) + (look.faint(f" ({spoken.mark})") if spoken.mark else "")
    text = f"{spoken.ending} {spoken.text}".strip()
    if not look.columns():
        text = text if is_whole else folded(text, f"/show {spoken.seq}")
        return f"{head} {way}: {indented(text)}"
    return "\n".join(
        _message_rows(
            look,
            f"{head} {way}",
            text,
            "you" if spoken.sender == HUMAN else spoken.sender,
            how_to_see="" if is_whole else f"/show {spoken.seq}",
            is_speech=spoken.sender != HUMAN,
        )
    )


def history_lines(look: Theme, items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines for history items, oldest first."""
    lines, mode = [], ""
    for spoken in map(spoken_in, items):
        mode = str(spoken.params.get("mode", "")) if spoken.code == NoticeCode.MODE else mode
        lines.append(said_line(look, spoken, mode=mode))
    return lines


def own_line(look: Theme, to: str, text: str, *, urgent: bool = False) -> str:
    """Return the line for the user's own new message; its delivery is shown later."""
    way = _way(look, "you", to, always=True) + (" (urgent)" if urgent else "")
    head, how_to_see = f"{clock(time.time())} {way}", "sent whole"
    if not look.columns():
        return f"{head}: {indented(folded(text, how_to_see, max_lines=8))}"
    return "\n".join(_message_rows(look, head, text, "you", how_to_see=how_to_see, is_speech=False))


def _way(look: Theme, sender: str, target: str, *, always: bool = False) -> str:
    """Return the sender, and the recipients unless it is for everybody, in the sender's colour."""
    is_plain = target in ("", ALL, SYSTEM) or (target == HUMAN and sender != HUMAN)
    if is_plain and not always and sender != HUMAN:
        return look.name(sender)
    if sender == HUMAN and look.columns():
        sender = "you"  # a script reads the names of the room
    return look.of(sender, f"{sender} {look.signs.arrow} {target.replace(',', ', ')}")


def _message_rows(
    look: Theme, head: str, text: str, sender: str, *, how_to_see: str, is_speech: bool
) -> list[str]:
    """Return a message in one row, or its head with the text below; `how_to_see` folds it.

    A message may be cut off at the top of the screen. Its last row repeats the sender, so that no text on
    the screen is without one.
    """
    width = look.columns()
    laid_out = text[:_LAID_OUT] if how_to_see else text
    left_out = text.count("\n", len(laid_out))
    rows = body_rows(look, laid_out, width, is_speech=is_speech)
    if len(rows) == 1 and cells(head) + cells(rows[0]) < width:
        return [f"{head}: {rows[0].strip()}"]
    if not rows:
        return [head]

    def mark(left: int) -> str:
        lines = count(left + left_out, "more line") if left + left_out else "more"
        return look.faint(f"{look.signs.waits} {lines} from {visible(sender)}, {how_to_see}")

    shown = fold(rows, _body_rows_that_fit(look), width, mark) if how_to_see else rows
    if how_to_see and shown[-1] == rows[-1]:
        name = look.faint(f"{look.signs.dash} {sender}")
        has_space = cells(rows[-1]) % width + 2 + cells(name) <= width
        signed = [f"{rows[-1]}  {name}"] if has_space else [rows[-1], f"  {name}"]
        shown = [*shown[:-1], *signed]
    return [head, *shown]


def _body_rows_that_fit(look: Theme) -> int:
    """Return the maximum rows of a text below its head, so that three messages fit on the screen."""
    rows = look.rows() or 24
    return max(1, min(_MAX_BODY, (rows - _FIXED_ROWS) // 3 - 1))


# --- notices -------------------------------------------------------------------------------------


def _notice_line(look: Theme, spoken: SpokenLine, head: str, *, is_whole: bool, mode: str) -> str:
    first = f"{head} {look.signs.dot} "
    if not look.columns():
        # A script gets the room's exact text.
        shown = visible(spoken.text if is_whole else folded(spoken.text, f"/show {spoken.seq}"))
        return first + (look.strong(shown) if spoken.code in HEADINGS else shown.replace("\n", "\n  "))
    title, *more = visible(spoken.text if is_whole else drawn_notice(spoken, mode)).split("\n")
    taken = cells(first)
    rows = [row[taken:] for row in wrap(look, title, look.columns(), first=" " * taken, further=" " * taken)]
    rows = [first + row if not number else " " * taken + row for number, row in enumerate(rows)]
    if spoken.code in HEADINGS:
        rows = [look.strong(row) for row in rows]
    below = body_rows(look, "\n".join(more), look.columns(), is_speech=False) if more else []
    if not is_whole:
        below = fold(
            below,
            max(_body_rows_that_fit(look), 1),
            look.columns(),
            lambda left: look.faint(f"{look.signs.waits} {count(left, 'more line')}, /show {spoken.seq}"),
        )
    return "\n".join([*rows, *below])


_IN_A_SHELL: Final = re.compile(r"\bcsp ([a-z]+)\b")
_VOTE_OF: Final = re.compile(r"\n- \S+ voted .*")
_OF_A_MESSAGE: Final = re.compile(r"\bm-(\d+)\b")


def as_typed_here(hint: str) -> str:
    """Return a hint with shell commands replaced by those of this pane."""
    names = {row.name for row in catalogue.COMMANDS}
    return _IN_A_SHELL.sub(lambda found: f"/{found[1]}" if found[1] in names else found[0], hint)


def drawn_notice(spoken: SpokenLine, mode: str = "") -> str:
    """Return a notice's text for the pane; `/show` prints the room's own text.

    The end of a session does not repeat earlier text or counts. A message is named by its number, and
    commands are those of the pane.
    """
    params = spoken.params
    match spoken.code:
        case NoticeCode.VOTES_COUNTED:
            # Each vote was shown as its voter's message.
            return _VOTE_OF.sub("", spoken.text)
        case NoticeCode.APPROVED_BY_RULE if "remedy" in params:
            kept, remedy = spoken.text.removesuffix(str(params["remedy"])), str(params["remedy"])
            return kept + as_typed_here(remedy)
        case NoticeCode.LOOP_HELD | NoticeCode.NOT_SENT_AGAIN:
            return as_typed_here(_OF_A_MESSAGE.sub(r"#\1", spoken.text))
        case NoticeCode.RUN_NEEDS_PERSON | NoticeCode.RUN_WAITS_FOR_PERSON | NoticeCode.RUN_WAITS_FOR_FILE:
            return as_typed_here(spoken.text)
        case NoticeCode.SUGGESTS_FINISH if "agent" in params:
            return f"{params['agent']} suggests finishing; Allstop ends the session."
        case NoticeCode.YOUR_TURN if "agent" in params:
            return f"{params['agent']}'s turn"
        case NoticeCode.ENDED_STOPPED_BY_USER:
            return f"{mode_name(mode) or 'Session'} stopped (Allstop)."
        case NoticeCode.ENDED_CANCELED:
            return f"{mode_name(mode) or 'Session'} canceled."
        case NoticeCode.SESSION_SUMMARY if {"mode", "reason", "replies", "tokens"} <= params.keys():
            reason = END_WORDS.get(str(params["reason"]), str(params["reason"]))
            reason = "finished" if params["reason"] == EndReason.DONE else reason
            after = count(int(params["replies"]), "reply", "replies")
            used = f"{params.get('about', '')}{int(params['tokens']):,} new tokens"
            name, seconds = mode_name(str(params["mode"])), float(params.get("seconds", 0))
            title = f"{name} summary ({reason} after {after}): {used}, {seconds:.0f} s."
            cost = [one for one in str(params.get("details", "")).split("\n") if one.startswith("Cost: ")]
            return "\n".join([title, *cost])
        case _:
            return spoken.text


def mode_name(mode: str) -> str:
    """Return a mode as a title: `Round robin`."""
    return mode.replace("_", " ").capitalize()


def indented(text: str) -> str:
    """Return external text that is safe to print, with all lines but the first indented."""
    return visible(text).replace("\n", "\n  ")


# --- other events --------------------------------------------------------------------------------


def news_line(look: Theme, event: events.AnyEvent) -> str:
    """Return the line for an event that is not a message, or an empty string for most of them."""
    match event:
        case events.Joined():
            return f"{clock(event.ts)} {look.signs.dot} {look.name(event.sender)} joined"
        case events.Left():
            verb = "was removed" if event.removed else "left"
            is_news = event.reason and event.reason not in verb
            why = f" ({visible(one_line(event.reason, _SUBJECT))})" if is_news else ""
            return f"{clock(event.ts)} {look.signs.dot} {look.name(event.sender)} {verb}{why}"
        case events.Redacted():
            return f"{clock(event.ts)} {look.signs.dot} the text of {visible(event.message)} was redacted"
        case events.TurnSignal(is_repair=True):
            what = "is asked once more: the form of its answer was wrong"
            return f"{clock(event.ts)} {look.signs.dot} {look.name(event.target)} {what}"
        case events.TurnMoved(state=TurnState.WORKING) if event.reason:
            note = visible(one_line(event.reason, _SUBJECT))
            return f"{clock(event.ts)} {look.signs.dot} {look.name(event.agent)} is working: {note}"
        case events.StateChanged(state=AgentState.LIMITED):
            until = f" until {clock(event.until)}" if event.until else ""
            return (
                f"{clock(event.ts)} {look.signs.dot} {look.name(event.sender)} reached a usage limit{until}"
            )
        case _:
            return ""
