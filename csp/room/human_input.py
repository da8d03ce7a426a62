"""Read a line that a person typed in the human pane.

A line is a message, a command or the word that stops everything. Who is in the room, or which commands
there are, is not asked here: the same line always means the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from csp.errors import BadInput
from csp.protocol.catalogue import ArgumentKind, CommandEntry

ROUTER: Final = "router"
FREEFORM: Final = "freeform"
MODE: Final = "mode"
MODE_USAGE: Final = '/mode debate "topic" --rounds 2 --agents a,b --first a --synth b'
ROUTER_USAGE: Final = "@router collaborate claude codex: the goal"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyLine:
    """An empty line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageLine:
    """Say `text`; `to` is empty for the last addressee."""

    text: str
    to: str = ""
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTarget:
    """Speak to `to` from now on."""

    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLine:
    """Stop what is running, at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A slash with a word; `rest` is what stands behind it."""

    name: str
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeLine:
    """Begin a mode; None or nothing leaves a choice to the room."""

    mode: str
    topic: str = ""
    agents: tuple[str, ...] | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidLine:
    """A line nobody can act on, and what to type instead."""

    problem: str
    hint: str


TypedLine = EmptyLine | MessageLine | SetTarget | StopLine | CommandLine | ModeLine | InvalidLine

_SIGNS: Final = ("/", "@", "!")
_ADDRESS: Final = re.compile(
    r"[@!](?P<to>[A-Za-z0-9][A-Za-z0-9-]{0,31})[:,]?(?:\s+(?P<text>.*))?\Z", re.DOTALL
)
_COMMAND: Final = re.compile(r"/(?P<name>[A-Za-z]+)(?:\s+(?P<rest>.*))?\Z", re.DOTALL)


_NOT_A_LETTER: Final = re.compile("[^a-z]+")
#: A longer text is never an Allstop.
_MAX_ALLSTOP: Final = 100


def is_allstop(text: str) -> bool:
    """Return whether a text is the word Allstop alone, in any spelling.

    This is the only rule: the room uses it for every message, the pane and the page for every line.
    """
    return len(text) <= _MAX_ALLSTOP and _NOT_A_LETTER.sub("", text.lower()) == "allstop"


def read_line(line: str) -> TypedLine:
    """Return what a typed line means; a doubled `/`, `@` or `!` begins a text with that sign."""
    text = line.strip()
    if not text:
        return EmptyLine()
    if text[:1] in _SIGNS and text[1:2] == text[:1]:
        return MessageLine(text=text[1:])
    if text.startswith("/"):
        return _read_command(text)
    if text in ("@", "!"):
        return InvalidLine(problem="name missing after the sign", hint=f"{text}claude text; {text}all text")
    if text[:1] in ("@", "!") and (match := _ADDRESS.match(text)):
        return _read_address(match["to"].lower(), (match["text"] or "").strip(), urgent=text[0] == "!")
    return StopLine() if is_allstop(text) else MessageLine(text=text)


def _read_address(to: str, text: str, *, urgent: bool) -> TypedLine:
    if is_allstop(text) or (not text and is_allstop(to)):
        return StopLine()
    if to == ROUTER:
        return _read_router(text)
    if text:
        return MessageLine(text=text, to=to, urgent=urgent)
    return InvalidLine(problem="nothing to send", hint=f"!{to} text") if urgent else SetTarget(to=to)


def _read_command(text: str) -> TypedLine:
    match = _COMMAND.match(text)
    if match is None:
        return InvalidLine(
            problem=f"{_first_word(text)!r} is not a command",
            hint=f"to send it as a text, type /{_first_word(text)}",
        )
    name, rest = match["name"].lower(), (match["rest"] or "").strip()
    if is_allstop(name):
        return StopLine()
    return read_mode(rest) if name == MODE and rest else CommandLine(name=name, rest=rest)


def _first_word(text: str) -> str:
    return text.split(None, 1)[0][:40]


# --- modes ---------------------------------------------------------------------------------------

_NUMBERS: Final = ("rounds", "steps")
_LIMITS: Final = ("turns", "tokens", "minutes", "cost")
_NAMES: Final = ("first", "synth")
_FLAGS: Final = ("ballot", "respect-final", "soft-turns")
_VALUED: Final = (*_NUMBERS, *_LIMITS, *_NAMES, "agents")
#: What may stand behind /mode, for completion.
MODE_OPTIONS: Final = tuple(f"--{name}" for name in (*_NUMBERS, "agents", *_NAMES, *_FLAGS, *_LIMITS))
_QUOTED: Final = r'"[^"]*"|“[^”]*”'
_PIECE: Final = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?<!\S)--(?P<flag>{'|'.join(_FLAGS)})(?!\S)\s*"
    rf"|(?<!\S)--(?P<name>[A-Za-z][\w-]*)(?:(?:\s*=\s*|\s+)(?P<value>{_QUOTED}|(?!--)\S+))?\s*",
)
_COUNT: Final = re.compile(r"[0-9]{1,6}")
_AMOUNT: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_ROUTED: Final = re.compile(r"(?P<mode>[A-Za-z_]+)\s*(?P<agents>[^:]*):\s*(?P<goal>.+)\Z", re.DOTALL)
_BETWEEN: Final = re.compile(r"[\s,]+")


def _read_router(text: str) -> TypedLine:
    match = _ROUTED.match(text)
    if match is None:
        return InvalidLine(problem="expected a mode, agents, a colon, a goal", hint=ROUTER_USAGE)
    return ModeLine(
        mode=match["mode"].lower(), topic=match["goal"].strip(), agents=_ids(match["agents"]) or None
    )


def read_mode(rest: str) -> TypedLine:
    """Return the mode that stands behind /mode; a topic needs no quotes, but may have them."""
    mode, tail = (*rest.split(None, 1), "")[:2]
    given: dict[str, str | None] = {}
    flags: list[str] = []

    def take(match: re.Match[str]) -> str:
        if match["quoted"] is not None:
            return match[0]
        if match["flag"] is not None:
            flags.append(match["flag"])
        else:
            given[match["name"].lower()] = match["value"]
        return ""

    topic = _unquoted(_PIECE.sub(take, tail).strip())
    wrong = _wrong_in(given)
    if wrong:
        return wrong
    values = {name: _unquoted(value or "") for name, value in given.items()}
    return ModeLine(
        mode=mode.lower(),
        topic=topic,
        agents=_ids(values["agents"]) if "agents" in values else None,
        numbers={name: int(values[name]) for name in _NUMBERS if name in values},
        limits={name: float(values[name]) for name in _LIMITS if name in values},
        names={name: _unsigned(values[name]) for name in _NAMES if name in values},
        flags=tuple(flags),
    )


def _wrong_in(given: Mapping[str, str | None]) -> InvalidLine | None:
    for name, value in given.items():
        if name not in _VALUED:
            close = get_close_matches(name, [option[2:] for option in MODE_OPTIONS], n=1)
            hint = f"did you mean '--{close[0]}'?" if close else f"there are: {', '.join(MODE_OPTIONS)}"
            return InvalidLine(problem=f"unknown option --{name}", hint=hint)
        problem = _problem_of(name, value)
        if problem:
            return InvalidLine(problem=problem, hint=MODE_USAGE)
    return None


def _problem_of(name: str, value: str | None) -> str:
    if value is None:
        return f"expected a value after --{name}"
    if name in _NUMBERS and not _COUNT.fullmatch(value):
        return f"--{name}: expected a whole number, got {value!r}"
    if name in _LIMITS and not _AMOUNT.fullmatch(value):
        return f"--{name}: expected a number, got {value!r}"
    return ""


def _ids(text: str) -> tuple[str, ...]:
    return tuple(_unsigned(word) for word in _BETWEEN.split(text) if word)


def _unsigned(word: str) -> str:
    return word.removeprefix("@").lower()


def _unquoted(text: str) -> str:
    is_whole = re.fullmatch(_QUOTED, text)
    return text[1:-1].strip() if is_whole else text


def mode_fields(wish: ModeLine) -> dict[str, object]:
    """Return the body of `POST /mode` that begins a mode."""
    fields: dict[str, object] = {"mode": wish.mode, **wish.numbers, **wish.names}
    fields |= {flag.replace("-", "_"): True for flag in wish.flags}
    if wish.topic:
        fields["topic"] = wish.topic
    if wish.agents is not None:
        fields["agents"] = list(wish.agents)
    if wish.limits:
        # Turns and tokens are counted, so they are whole.
        limits = {name: int(most) if most == int(most) else most for name, most in wish.limits.items()}
        fields["limits"] = limits
    return fields


# --- commands ------------------------------------------------------------------------------------

_TEXTS: Final = (ArgumentKind.TEXT, ArgumentKind.MAYBE_TEXT, ArgumentKind.MAYBE_MODE)


def read_arguments(row: CommandEntry, rest: str) -> list[str]:
    """Return the arguments of a command; raise BadInput if one is missing, wrong or too many."""
    takes_text = bool(row.takes) and row.takes[-1] in _TEXTS
    words = rest.split(None, len(row.takes) - 1) if takes_text else rest.split()
    if len(words) > len(row.takes):
        raise BadInput(f"unexpected argument {words[len(row.takes)]!r}", row.form)
    for kind in row.takes[len(words) :]:
        if kind in (ArgumentKind.AGENT, ArgumentKind.TEXT):
            raise BadInput("expected an agent" if kind is ArgumentKind.AGENT else "expected more", row.form)
    for kind, word in zip(row.takes, words, strict=False):
        if kind is ArgumentKind.MAYBE_NUMBER and not _COUNT.fullmatch(word):
            raise BadInput(f"expected a number, got {word!r}", row.form)
    return words


# --- what an agent said last ---------------------------------------------------------------------

_LAST: Final = re.compile(r"\{(?P<agent>[A-Za-z0-9][A-Za-z0-9-]{0,31})\.last\}")


def quoted_agents(text: str) -> tuple[str, ...]:
    """Return whose last words a text asks for by `{name.last}`, each once."""
    return tuple(dict.fromkeys(match["agent"].lower() for match in _LAST.finditer(text)))


def insert_last_messages(text: str, said: Mapping[str, str]) -> str:
    """Return the text with the last words of those who are in `said` put in."""
    return _LAST.sub(lambda match: said.get(match["agent"].lower(), match[0]), text)


def forwarded(agent: str, said: str, note: str = "") -> str:
    """Return the text that passes on what an agent said, marked as a quotation."""
    quoted = "\n".join(f"> {line}".rstrip() for line in said.split("\n"))
    return f"{note}\n\n{agent} said:\n{quoted}".lstrip("\n")
