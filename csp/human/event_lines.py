"""Turn what happens in the room into lines for a person."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from csp.human.safe_text import clock, folded, one_line, visible, wrapped
from csp.human.theme import Theme
from csp.protocol import events
from csp.protocol.enums import ALL, HUMAN, SYSTEM, AgentState, Ending
from csp.protocol.notices import HEADINGS, NoticeCode
from csp.protocol.session_parts import TurnState

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
    #: What a person should know about the words: that nobody else can read them yet, that they moved nothing.
    mark: str = ""
    is_notice: bool = False
    #: Of a notice: its code, and the agent that it is about if there is one.
    code: str = ""
    agent: str = ""


def spoken_of(event: events.AnyEvent) -> SpokenLine | None:
    """Return what an event says to the people of the room, if it does."""
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
    """Return what an item of the history says."""
    ending = item.get("ending")
    return SpokenLine(
        seq=int(item.get("seq") or 0),
        ts=float(item.get("ts") or 0.0),
        sender=str(item.get("sender") or ""),
        target=str(item.get("target") or ""),
        text=str(item.get("text") or ""),
        ending=f"({ending})" if ending else "",
        # By now a seal may be broken.
        mark=_mark(sealed=False, late=item.get("late"), stray=item.get("out_of_turn")),
        is_notice=item.get("type") == "system",
        code=str(item.get("code") or ""),
        agent=str(params.get("agent", "")) if isinstance(params := item.get("params"), dict) else "",
    )


def said_line(look: Theme, spoken: SpokenLine, *, is_whole: bool = False) -> str:
    """Return a message as lines of text: who, to whom, what."""
    text = spoken.text if is_whole else folded(spoken.text, f"/show {spoken.seq}")
    head = f"{clock(spoken.ts)} {look.faint(f'#{spoken.seq}')}"
    if spoken.is_notice:
        taken = len(f"{clock(spoken.ts)} #{spoken.seq} {look.signs.dot} ")
        if spoken.code == NoticeCode.YOUR_TURN and spoken.agent:
            shown = NoticeCode.YOUR_TURN(agent=look.name(spoken.agent)).text
        else:
            shown = wrapped(visible(text), taken, look.columns())
        return f"{head} {look.signs.dot} {look.strong(shown) if spoken.code in HEADINGS else shown}"
    way = _way(look, spoken.sender, spoken.target) + (look.faint(f" ({spoken.mark})") if spoken.mark else "")
    return f"{head} {way}: {indented(f'{spoken.ending} {text}'.strip())}"


def own_line(look: Theme, to: str, text: str, *, urgent: bool = False) -> str:
    """Return what the person has just said, on its way."""
    way = _way(look, "you", to, always=True) + (" (urgent)" if urgent else "")
    shown = indented(folded(text, "it goes out whole", max_lines=8))
    return f"{clock(time.time())} {way}: {shown} {look.signs.waits}"


def _way(look: Theme, sender: str, target: str, *, always: bool = False) -> str:
    is_plain = target in ("", ALL, SYSTEM) or (target == HUMAN and sender != HUMAN)
    if is_plain and not always and sender != HUMAN:
        return look.name(sender)
    return f"{look.name(sender)} {look.signs.arrow} {visible(target) if target == ALL else look.name(target)}"


def indented(text: str) -> str:
    """Return foreign text that can be printed: nothing in it acts, its further lines stand further in."""
    return visible(text).replace("\n", "\n  ")


# --- who comes, who goes, who asks ---------------------------------------------------------------


def news_line(look: Theme, event: events.AnyEvent) -> str:
    """Return the line for an event that is no speech; nothing for most of them."""
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
