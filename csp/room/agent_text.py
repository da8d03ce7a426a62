"""Parse the commands in an agent's text without mistaking text about commands for commands.

A command starts in the first column of a line: a space, bullet, quote marker or backtick before it makes
it prose. It counts only outside code; an unclosed fence runs to the end of the text. A body runs to the next
command or a blank line; a fence that opens in a body belongs to it completely. Relayed text has U+2060 after
its `@`, so a command that is quoted back does not count. Any text can be parsed, in linear time. No command
starts after the first `chat_markdown.MAX_LINES` lines, but the body of the last one may continue.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from csp.protocol.requests import Handoff
from csp.room.chat_markdown import Line, fenced_objects, first_lines, read_lines

#: Commands that have an agent's name after the dot.
ADDRESSED: Final = ("send", "handoff")
FIXED: Final = ("mode.set", "mode.status", "query.log")
PLAIN: Final = ("all", "working", "final")
_ID: Final = re.compile(r"[A-Za-z0-9-]{1,32}")
_SHOWN: Final = 60
_CUTOFF: Final = 0.85
MAX_TASK: Final = 500
MAX_COUNT: Final = 1000
#: Corrections are suggested only for this many lines that look like commands but are not.
MAX_GUESSES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTo:
    """Send a message to one participant, or to all."""

    to: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Working:
    """Ask for more time."""

    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """Hand the turn over with a task."""

    to: str
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Declare the work done."""


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
    """Declare that there is nothing to report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misspelt:
    """A line that was probably intended as a command; if `to` is set, only if `to` is a participant."""

    line: str
    hint: str
    to: str = ""


Spoken = SendTo | Working | HandOver | Finish | Vote | ModeRequest | ShowMode | QueryLog | Noop | Misspelt


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentText:
    """The commands of a text, in order; `has_prose` is set if the text contains anything else."""

    commands: tuple[Spoken, ...]
    has_prose: bool


def parse_commands(text: str) -> tuple[Spoken, ...]:
    """Return the commands in `text`, in order; never raise."""
    return read_agent_text(text).commands


def read_agent_text(text: str) -> AgentText:
    """Return the commands in `text` and whether it contains other text; never raise."""
    if not _MAYBE.search(text):
        return AgentText(commands=(), has_prose=not (not text or text.isspace()))
    text, rest = first_lines(text)
    lines = read_lines(text)
    heads = _heads(lines)
    commands: list[Spoken] = []
    has_prose, number = bool(rest) and not rest.isspace(), 0
    while number < len(lines):
        head, line = heads[number], lines[number]
        if head is None:
            has_prose = has_prose or not line.is_blank
            number += 1
            continue
        end = _end_of_body(lines, heads, number) if head.name in _WITH_BODY else number + 1
        if head.name == "VOTE":
            # The reason may follow blank lines.
            first = next((at for at in range(end, len(lines)) if not lines[at].is_blank), None)
            if first is not None and not lines[first].is_code and _REASON.match(lines[first].text):
                end = _end_of_body(lines, heads, first)
        start = line.start + head.at
        if end > number + 1 and not line.text[head.at :].strip():
            # A body that starts on the line below its command keeps its indentation.
            start = lines[number + 1].start
        body = text[start : lines[end - 1].end].rstrip()
        if rest and end == len(lines) and head.name in _WITH_BODY:
            body = (body + f"\n{rest}".partition("\n\n")[0]).rstrip()
        commands.append(head.missed or _read(head.name, line.text, body))
        number = end
    return AgentText(commands=tuple(commands), has_prose=has_prose)


# --- heads ---------------------------------------------------------------------------------------

#: A quick check: most texts have no line that could start a command.
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
#: Commands whose text may continue on the lines below them.
_WITH_BODY: Final = frozenset({"send", "handoff", "all", "working", "VOTE"})


class _Head(NamedTuple):
    """The start of a command: where its body starts in the line, or the correction to suggest as `missed`."""

    at: int
    name: str
    missed: Misspelt | None = None


def _heads(lines: tuple[Line, ...]) -> list[_Head | None]:
    found: list[_Head | None] = []
    guesses = 0
    for line in lines:
        # Guessing is slow, and a text with many near misses was not intended as commands.
        head = None if line.is_code else _head(line.text, may_guess=guesses < MAX_GUESSES)
        guesses += line.text[:1] == "@" if head is None else head.missed is not None
        found.append(head)
    return found


def _head(text: str, *, may_guess: bool) -> _Head | None:
    match text[:1]:
        case "@":
            return _at_head(text, may_guess=may_guess)
        case "W":
            # WORKING is also an English word, so its note is only the rest of the same line.
            found = _WORKING.match(text)
            return _Head(found.end(), "WORKING") if found else None
        case "N":
            return _Head(len(text), "NOOP") if _NOOP.match(text) else None
        case "V" | "v":
            if found := _VOTE.match(text):
                return _Head(found.end(), "VOTE")
            is_like = may_guess and _VOTE_LIKE.match(text)
            return _Head(len(text), "", misspelt(text, "write it as VOTE: [A]")) if is_like else None
        case _:
            return None


def _at_head(text: str, *, may_guess: bool) -> _Head | None:
    found = _AT.match(text)
    if found is None:
        return None
    word, tail, mark = found.groups()
    name = word if tail is None or word in ADDRESSED else f"{word}.{tail}"
    is_whole = bool(tail) if word in ADDRESSED else name in FIXED or name in PLAIN
    if is_whole and not mark:
        return _Head(found.end(), name)
    missed = near_miss(text, word, tail, mark, text[found.end() :]) if may_guess else None
    return _Head(found.end(), "", missed) if missed else None


# --- bodies --------------------------------------------------------------------------------------


def _end_of_body(lines: tuple[Line, ...], heads: list[_Head | None], number: int) -> int:
    """Return the line after a body; code may contain blank lines, but no commands."""
    end = number + 1
    while end < len(lines) and heads[end] is None and (lines[end].is_code or not lines[end].is_blank):
        end += 1
    return end


def _read(name: str, line: str, body: str) -> Spoken:
    """Return the command that starts in `line`, with its body."""
    match name:
        case "all":
            return SendTo(to="all", text=body) if body else misspelt(line, "add a text: @all text")
        case "send":
            to = _addressee(line)
            return SendTo(to=to, text=body) if body else misspelt(line, f"add a text: @send.{to} text")
        case "handoff":
            hint = f"add a task of 1 to {MAX_TASK} characters"
            is_task = 1 <= len(body) <= MAX_TASK
            return HandOver(to=_addressee(line), task=body) if is_task else misspelt(line, hint)
        case "final" | "mode.status":
            bare = Finish() if name == "final" else ShowMode()
            return misspelt(line, f"put @{name} on its own line") if body else bare
        case "working" | "WORKING":
            return Working(note=body)
        case "NOOP":
            return Noop()
        case "VOTE":
            label = line.partition("[")[2].partition("]")[0].strip().upper()
            found = _REASON.match(body)
            return Vote(label=label, reason=body[found.end() :] if found else "")
        case "query.log":
            count = _count(body)
            hint = f"give a number from 1 to {MAX_COUNT}"
            return misspelt(line, hint) if body and not count else QueryLog(count=count)
        case _:
            return _read_mode_set(line, body)


def _addressee(line: str) -> str:
    return line.partition(".")[2].split(maxsplit=1)[0].lower()


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
    """Return the number if it is within the allowed range."""
    number = int(word) if word and _COUNT.match(word) else 0
    return number if 1 <= number <= MAX_COUNT else None


# --- near misses ---------------------------------------------------------------------------------
#
# Only text in the form of a command is considered: `@claude said`, `@all-hands` and `@sendgrid` are prose.


def misspelt(line: str, hint: str, to: str = "") -> Misspelt:
    """Return a `Misspelt` with the start of `line`, which a notice shows."""
    shown = line.rstrip()
    return Misspelt(line=shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…", hint=hint, to=to)


def near_miss(line: str, word: str, tail: str | None, mark: str, rest: str) -> Misspelt | None:
    """Return the likely meaning of `@word.tail`; `mark` is a colon or comma after it, `rest` what follows."""
    lower, hint = word.lower(), ""
    without = f" without the {mark!r}" if mark else ""
    if tail is not None:
        meant = next((name for name in ADDRESSED if _is_near(lower, name)), "")
        if meant:
            hint = (
                f"write it as @{meant}.{tail.lower()}{without}"
                if tail
                else f"name an agent: @{meant}.<id> text"
            )
        elif close := get_close_matches(f"{lower}.{tail.lower()}", FIXED, n=1, cutoff=_CUTOFF):
            hint = f"write it as @{close[0]}"
        return misspelt(line, hint) if hint else None
    first, _, more = rest.partition(" ")
    fixed = f"{lower}.{first.strip().lower()}"
    if lower in ADDRESSED and not mark and more.strip() and _ID.fullmatch(first):
        return misspelt(line, f"write it as @{lower}.{first.lower()} text", first.lower())
    if fixed in FIXED:
        hint = f"write it as @{fixed}"
    elif lower in PLAIN:
        hint = f"write it as @{lower}{without or ' in lower case'}"
    elif not (rest or mark):
        # A single word on its own line is hardly prose.
        hint = next((f"write it as @{name}" for name in ("working", "final") if _is_near(lower, name)), "")
    return misspelt(line, hint) if hint else None


def _is_near(word: str, name: str) -> bool:
    """Return whether the words differ by one extra, missing or wrong letter, or by two swapped letters."""
    at = next(
        (i for i, (a, b) in enumerate(zip(word, name, strict=False)) if a != b), min(len(word), len(name))
    )
    left, right = word[at:], name[at:]
    return (
        left[1:] == right[1:]
        or left[1:] == right
        or left == right[1:]
        or (left[:2] == right[1::-1] and left[2:] == right[2:])
    )


# --- envelopes -----------------------------------------------------------------------------------
#
# The format of a reply in a turn: the message, an optional handoff, and whether the work is done.
# An API agent replies in JSON. A CLI agent may do so too, or write command lines. Parsing never raises.


class _Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    message: Annotated[str, Meta(min_length=1)]
    handoff: "_Handoff | None" = None
    final: bool = False


class _Handoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    to: Annotated[str, Meta(min_length=1)]
    task: Annotated[str, Meta(min_length=1, max_length=500)]


_decoder: Final = msgspec.json.Decoder(_Shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A parsed reply; `malformed` if it should be an envelope but is not a valid one."""

    message: str
    handoff: Handoff | None = None
    final: bool = False
    malformed: bool = False

    @classmethod
    def parse(cls, text: str, commands: tuple[Spoken, ...] = (), *, is_required: bool = False) -> "Envelope":
        """Parse a reply, given the `commands` found in it; never raise."""
        whole = text.strip()
        fenced = fenced_objects(text)
        is_meant = whole.startswith("{") and whole.endswith("}")
        is_fence = len(fenced) == 1 and whole.startswith("```") and whole.endswith("```")
        try:
            shape = _decoder.decode(whole if is_meant else fenced[0] if len(fenced) == 1 else "")
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            is_malformed = is_required or is_meant or is_fence
            # The command lines of a CLI agent; an agent that is done does not hand over.
            is_final = any(isinstance(spoken, Finish) for spoken in commands)
            named = [spoken for spoken in commands if isinstance(spoken, HandOver)]
            to = Handoff(to=named[-1].to, task=named[-1].task) if named and not is_final else None
            return cls(message=text, handoff=to, final=is_final, malformed=is_malformed)
        handoff = None if shape.final else shape.handoff
        return cls(
            message=shape.message,
            handoff=Handoff(to=handoff.to.lower(), task=handoff.task) if handoff else None,
            final=shape.final,
        )
