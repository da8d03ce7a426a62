"""Commands in an agent's text, told apart from talk about commands.

A command begins a line, in its first column: a space, a bullet, a quote sign or a backtick before it makes it
prose. It counts outside code alone; an unclosed fence runs to the end of the text. A body runs to the next
command or a blank line; a fence that is opened in it belongs to it whole. What was relayed has U+2060 behind
its `@`, so a command that is quoted back is none. Any text can be read, in a time linear in its length;
behind its first `code_lines.MAX_LINES` lines no command begins, but the text of the last one goes on.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from csp.room.agent_text.code_lines import Line, first_lines, read_lines
from csp.room.agent_text.spelling import ADDRESSED, FIXED, PLAIN, Misspelt, misspelt, near_miss

MAX_TASK: Final = 500
MAX_COUNT: Final = 1000
#: In so many lines that might be commands, but are none, is looked for what was meant.
MAX_GUESSES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTo:
    """Speak to one participant, or to all."""

    to: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """Ask for more time."""

    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Pass the turn on with a task."""

    to: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Say that the work is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    label: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeRequest:
    mode: str
    topic: str = ""
    rounds: int | None = None
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowMode:
    """Ask for the mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLog:
    """Ask for the last messages."""

    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noop:
    """Say that there is nothing to say."""


Spoken = SendTo | Working | HandOver | Finish | Vote | ModeRequest | ShowMode | QueryLog | Noop | Misspelt


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentText:
    """The commands of a text in its order; `has_prose` where there is anything besides them."""

    commands: tuple[Spoken, ...]
    has_prose: bool


def parse_commands(text: str) -> tuple[Spoken, ...]:
    """Return the commands of `text`, in its order; never raise."""
    return read_agent_text(text).commands


def read_agent_text(text: str) -> AgentText:
    """Return what `text` commands; never raise."""
    if not _MAYBE.search(text):
        return AgentText(commands=(), has_prose=not (not text or text.isspace()))
    text, rest = first_lines(text)
    lines = read_lines(text)
    heads = _heads(lines)
    commands: list[Spoken] = []
    has_prose, number = bool(rest) and not rest.isspace(), 0
    while number < len(lines):
        head = heads[number]
        if head is None:
            has_prose = has_prose or not lines[number].is_blank
            number += 1
            continue
        end = _end_of_body(lines, heads, number) if head.has_body else number + 1
        if head.read is _read_vote:
            end = _end_of_reason(lines, heads, end)
        body = _body(text, lines, number, head, end)
        if rest and end == len(lines) and head.has_body:
            body = (body + f"\n{rest}".partition("\n\n")[0]).rstrip()
        commands.append(head.read(lines[number].text, body))
        number = end
    return AgentText(commands=tuple(commands), has_prose=has_prose)


# --- heads ---------------------------------------------------------------------------------------

#: Most texts have no line that could begin a command, which is quickly seen.
_MAYBE: Final = re.compile(r"^(?:@[A-Za-z]|WORKING|NOOP|[Vv][Oo][Tt][Ee]:)", re.MULTILINE)
_AT: Final = re.compile(r"@([A-Za-z][A-Za-z-]{0,31})(?:\.([A-Za-z0-9-]{0,40}))?([:,]?)(?:[ \t]+|\Z)")
_WORKING: Final = re.compile(r"WORKING(?:[ \t]+|\Z)")
_NOOP: Final = re.compile(r"NOOP[ \t]*\Z")
_VOTE: Final = re.compile(r"VOTE:[ \t]*\[[ \t]*([A-Za-z]{1,2})[ \t]*\][ \t]*(?:\Z|(?=REASON:))")
_VOTE_LIKE: Final = re.compile(r"VOTE:[ \t]*(?:\[[ \t]*[A-Z]{1,2}[ \t]*\]|[A-Z])[ \t.]*\Z", re.IGNORECASE)
_REASON: Final = re.compile(r"\s*REASON:[ \t]*")
_MODE: Final = re.compile(r"[A-Za-z_-]{1,32}\Z")
_WORDS: Final = re.compile(r'"([^"]*)"|“([^”]*)”|([^\s"“]+)')
_COUNT: Final = re.compile(r"[0-9]{1,4}\Z")


@dataclass(frozen=True, slots=True)
class _Head:
    """The beginning of a command: where its body starts in its line, how it is read with that."""

    at: int
    read: Callable[[str, str], Spoken]
    has_body: bool = True
    is_guess: bool = False


def _heads(lines: tuple[Line, ...]) -> list[_Head | None]:
    found: list[_Head | None] = []
    guesses = 0
    for line in lines:
        # A guess takes its time, and a text full of misses was not meant as commands.
        head = None if line.is_code else _head(line.text, may_guess=guesses < MAX_GUESSES)
        guesses += head.is_guess if head is not None else line.text[:1] == "@"
        found.append(head)
    return found


def _head(text: str, *, may_guess: bool) -> _Head | None:
    match text[:1]:
        case "@":
            return _at_head(text, may_guess=may_guess)
        case "W":
            # It is an English word, too: more than its own line it takes for no note.
            found = _WORKING.match(text)
            return _Head(found.end(), _read_working, has_body=False) if found else None
        case "N":
            return _Head(len(text), _read_noop, has_body=False) if _NOOP.match(text) else None
        case "V" | "v":
            return _vote_head(text, may_guess=may_guess)
        case _:
            return None


def _vote_head(text: str, *, may_guess: bool) -> _Head | None:
    if found := _VOTE.match(text):
        return _Head(found.end(), _read_vote)
    if may_guess and _VOTE_LIKE.match(text):
        return _Head(len(text), _read_votelike, has_body=False, is_guess=True)
    return None


def _at_head(text: str, *, may_guess: bool) -> _Head | None:
    found = _AT.match(text)
    if found is None:
        return None
    word, tail, mark = found.groups()
    name = word if tail is None or word in ADDRESSED else f"{word}.{tail}"
    is_whole = bool(tail) if word in ADDRESSED else name in FIXED or name in PLAIN
    if is_whole and not mark:
        return _Head(found.end(), _READERS[name], has_body=name in _WITH_BODY)
    missed = near_miss(text, word, tail, mark, text[found.end() :]) if may_guess else None
    if missed is None:
        return None
    return _Head(found.end(), lambda line, body: missed, has_body=False, is_guess=True)


# --- bodies --------------------------------------------------------------------------------------


def _end_of_body(lines: tuple[Line, ...], heads: list[_Head | None], number: int) -> int:
    """Return the line after a body; code has blank lines of its own, and no commands."""
    end = number + 1
    while end < len(lines) and heads[end] is None and (lines[end].is_code or not lines[end].is_blank):
        end += 1
    return end


def _end_of_reason(lines: tuple[Line, ...], heads: list[_Head | None], end: int) -> int:
    """Return the line after the reason of a vote, which may stand below a blank line."""
    first = end
    while first < len(lines) and lines[first].is_blank:
        first += 1
    is_reason = first < len(lines) and not lines[first].is_code and _REASON.match(lines[first].text)
    return _end_of_body(lines, heads, first) if is_reason else end


def _body(text: str, lines: tuple[Line, ...], number: int, head: _Head, end: int) -> str:
    line = lines[number]
    start = line.start + head.at
    if not line.text[head.at :].strip() and end > number + 1:
        # One that begins below its command keeps its indentation.
        start = lines[number + 1].start
    return text[start : lines[end - 1].end].rstrip()


# --- one reader each -----------------------------------------------------------------------------


def _read_send(line: str, body: str) -> Spoken:
    to = _addressee(line)
    return SendTo(to=to, text=body) if body else misspelt(line, f"give it a text: @send.{to} text")


def _read_all(line: str, body: str) -> Spoken:
    return SendTo(to="all", text=body) if body else misspelt(line, "give it a text: @all text")


def _read_handoff(line: str, body: str) -> Spoken:
    if not 1 <= len(body) <= MAX_TASK:
        return misspelt(line, f"give it a task of 1 to {MAX_TASK} characters")
    return HandOver(to=_addressee(line), task=body)


def _addressee(line: str) -> str:
    return line.partition(".")[2].split(maxsplit=1)[0].lower()


def _read_working(line: str, body: str) -> Spoken:
    return Working(note=body)


def _read_noop(line: str, body: str) -> Spoken:
    return Noop()


def _read_final(line: str, body: str) -> Spoken:
    return misspelt(line, "put @final on a line of its own") if body else Finish()


def _read_vote(line: str, body: str) -> Spoken:
    label = line.partition("[")[2].partition("]")[0].strip().upper()
    found = _REASON.match(body)
    return Vote(label=label, reason=body[found.end() :] if found else "")


def _read_votelike(line: str, body: str) -> Spoken:
    return misspelt(line, "write it as VOTE: [A]")


def _read_mode_status(line: str, body: str) -> Spoken:
    return misspelt(line, "put @mode.status on a line of its own") if body else ShowMode()


def _read_query(line: str, body: str) -> Spoken:
    if not body:
        return QueryLog()
    count = _count(body)
    return QueryLog(count=count) if count else misspelt(line, f"give a number from 1 to {MAX_COUNT}")


def _read_mode_set(line: str, body: str) -> Spoken:
    hint = 'write it as @mode.set <mode> "topic" [--rounds N] [--agents a,b]'
    words = [found.groups() for found in _WORDS.finditer(body)]
    if not words or not _MODE.match(words[0][2] or ""):
        return misspelt(line, hint)
    topic, rounds = "", None
    agents: tuple[str, ...] = ()
    rest = iter(words[1:])
    for straight, curly, bare in rest:
        if bare is None:
            topic = straight if curly is None else curly
        elif bare == "--rounds" and (count := _count(next(rest, ("", "", ""))[2])):
            rounds = count
        elif bare == "--agents" and (names := next(rest, ("", "", ""))[2]):
            agents = tuple(name.lower() for name in names.split(",") if name)
        else:
            return misspelt(line, hint)
    return ModeRequest(mode=words[0][2].lower(), topic=topic, rounds=rounds, agents=agents)


def _count(word: str | None) -> int | None:
    """Return a number of the permitted size."""
    number = int(word) if word and _COUNT.match(word) else 0
    return number if 1 <= number <= MAX_COUNT else None


_READERS: Final[dict[str, Callable[[str, str], Spoken]]] = {
    "send": _read_send,
    "handoff": _read_handoff,
    "all": _read_all,
    "working": _read_working,
    "final": _read_final,
    "mode.set": _read_mode_set,
    "mode.status": _read_mode_status,
    "query.log": _read_query,
}
_WITH_BODY: Final = frozenset({"send", "handoff", "all", "working"})
