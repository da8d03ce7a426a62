"""Parse a line that a person typed in the human pane.

A line is a message, a command or Allstop. The parser is independent of the participants and the available
commands: the same line always has the same meaning.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final

from csp.errors import BadInput, NotFound, TooLarge
from csp.protocol.catalogue import ArgumentKind, CommandEntry
from csp.protocol.enums import ALL, MAX_TEXT_BYTES
from csp.protocol.session_parts import OnHardLimit, OnLimit

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
    """Send `text`; `to` is empty for the last recipient, or contains several names separated by commas."""

    text: str
    to: str = ""
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTarget:
    """Address `to`, which may contain several names, from now on."""

    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopLine:
    """Stop everything at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A slash command; `rest` is the text after its name."""

    name: str
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeLine:
    """Start a mode; None or an empty value leaves the choice to the room."""

    mode: str
    topic: str = ""
    agents: tuple[str, ...] | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @property
    def needs_topic(self) -> bool:
        """Whether the person must be asked for a topic."""
        return self.mode != FREEFORM and not self.topic

    @property
    def replaces(self) -> bool:
        """Whether the person has agreed to end the running session."""
        return _REPLACE in self.flags


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidLine:
    """An invalid line, with a hint about what to type instead."""

    problem: str
    hint: str


TypedLine = EmptyLine | MessageLine | SetTarget | StopLine | CommandLine | ModeLine | InvalidLine

_SIGNS: Final = ("/", "@", "!")
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9-]{0,31}"
#: One or several names: `@ada @bob text`, `@ada,bob text`. After a comma and a space, a name needs its `@`.
_ADDRESS: Final = re.compile(
    rf"[@!](?P<to>{_NAME}(?:(?:,[@!]?|,?\s+[@!]){_NAME}(?![\w.@/-]))*)[:,]?(?:\s+(?P<text>.*))?\Z", re.DOTALL
)
_EACH_NAME: Final = re.compile(_NAME)
_COMMAND: Final = re.compile(r"/(?P<name>[A-Za-z]+)(?:\s+(?P<rest>.*))?\Z", re.DOTALL)


_NOT_A_LETTER: Final = re.compile("[^a-z]+")
#: A longer text is never an Allstop.
_MAX_ALLSTOP: Final = 100


def is_allstop(text: str) -> bool:
    """Return whether a text consists of only the word Allstop, in any spelling.

    This is the only rule: the room uses it for every message, and the pane and the page for every line.
    """
    return len(text) <= _MAX_ALLSTOP and _NOT_A_LETTER.sub("", text.lower()) == "allstop"


def read_line(line: str) -> TypedLine:
    """Parse a typed line; a doubled `/`, `@` or `!` starts a text with that character."""
    text = line.strip()
    if not text:
        return EmptyLine()
    if text[:1] in _SIGNS and text[1:2] == text[:1]:
        return MessageLine(text=text[1:])
    if text.startswith("/"):
        command = _COMMAND.match(text)
        if command is None:
            word = text.split(None, 1)[0][:40]
            problem = f"{word!r} is not a command"
            return InvalidLine(problem=problem, hint=f"to send it as a text, type /{word}")
        name, rest = command["name"].lower(), (command["rest"] or "").strip()
        if is_allstop(name):
            return StopLine()
        return read_mode(rest) if name == MODE and rest else CommandLine(name=name, rest=rest)
    if text in ("@", "!"):
        return InvalidLine(problem=f"name missing after {text}", hint=f"for example: {text}claude text")
    if text[:1] in ("@", "!") and (match := _ADDRESS.match(text)):
        names = dict.fromkeys(_EACH_NAME.findall(match["to"].lower()))
        to = ALL if ALL in names else ",".join(names)
        return _read_address(to, (match["text"] or "").strip(), urgent=text[0] == "!")
    return StopLine() if is_allstop(text) else MessageLine(text=text)


def _read_address(to: str, text: str, *, urgent: bool) -> TypedLine:
    if is_allstop(text) or (not text and is_allstop(to)):
        return StopLine()
    if to == ROUTER:
        match = _ROUTED.match(text)
        if match is None:
            return InvalidLine(problem="expected a mode, agents, a colon and a goal", hint=ROUTER_USAGE)
        agents = _ids(match["agents"]) or None
        return ModeLine(mode=match["mode"].lower(), topic=match["goal"].strip(), agents=agents)
    if text:
        return MessageLine(text=text, to=to, urgent=urgent)
    return (
        InvalidLine(problem="nothing to send", hint=f"for example: !{to} stop")
        if urgent
        else SetTarget(to=to)
    )


#: Words that people type to leave or to get help, which agents would answer.
_FOR_THE_PANE: Final = ("quit", "exit", "help", "?")


def doubt_about(line: MessageLine) -> str:
    """Return the likely command for a text that was hardly intended for agents; "" for any other text."""
    text = line.text.strip()
    if line.to:
        return ""
    if text.lower() in _FOR_THE_PANE:
        return "/quit" if text.lower() in _FOR_THE_PANE[:2] else "/help"
    words = text.split()
    is_command = "\n" not in text and words[0] == "csp" and len(words) > 1
    return f"/{words[1]}, or in a shell: {text}" if is_command else ""


def question_before_sending(line: MessageLine, to: str) -> str:
    """Return the question to ask before such a text is sent."""
    text = line.text if len(line.text) <= 40 else f"{line.text[:39]}…"
    return f"Send {text!r} to {to.replace(',', ', ')}? (type {doubt_about(line)})"


def mode_words(mode: str) -> str:
    """Return a mode as words within a sentence: `round robin`."""
    return mode.replace("_", " ")


#: The question for a mode that was given no topic.
TOPIC_QUESTION: Final = "What is the topic?"


def replace_question(running: str) -> str:
    """Return what to ask where a mode would end another one."""
    return f"{mode_words(running).capitalize()} mode is running. Stop it and start the new one?"


# --- modes ---------------------------------------------------------------------------------------

_NUMBERS: Final = ("rounds", "steps")
_LIMITS: Final = ("turns", "tokens", "minutes", "cost")
_NAMES: Final = ("first", "synth")
#: The options with a choice of words.
_CHOICES: Final = {
    "on-limit": tuple(map(str, OnLimit)),
    "on-hard-limit": tuple(map(str, OnHardLimit)),
}
_REPLACE: Final = "replace"
_FLAGS: Final = ("ballot", "respect-final", "soft-turns", _REPLACE)
_VALUED: Final = (*_NUMBERS, *_LIMITS, *_NAMES, *_CHOICES, "agents")
_OPTIONS: Final = (*_NUMBERS, "agents", *_NAMES, *_FLAGS, *_LIMITS, *_CHOICES)
#: The options of /mode, for completion.
MODE_OPTIONS: Final = tuple(f"--{name}" for name in _OPTIONS)
#: The options of /mode that take a number.
MODE_NUMBERS: Final = tuple(f"--{name}" for name in (*_NUMBERS, *_LIMITS))
# A quote ends before the next one begins, so that many unclosed quotes are parsed only once.
_QUOTED: Final = r'"[^"]*"|“[^“”]*”'
_PIECE: Final = re.compile(
    rf"(?P<quoted>{_QUOTED})|(?<!\S)--(?P<flag>{'|'.join(_FLAGS)})(?!\S)\s*"
    rf"|(?<!\S)--(?P<name>[A-Za-z][\w-]*)(?:(?:\s*=\s*|\s+)(?P<value>{_QUOTED}|(?!--)\S+))?\s*",
)
_COUNT: Final = re.compile(r"[0-9]{1,6}")
_AMOUNT: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
# The first parts do not backtrack, so that a long line without a colon is parsed only once.
_ROUTED: Final = re.compile(r"(?P<mode>[A-Za-z_]++)\s*+(?P<agents>[^:]*+):\s*(?P<goal>.+)\Z", re.DOTALL)
_BETWEEN: Final = re.compile(r"[\s,]+")


def read_mode(rest: str) -> TypedLine:
    """Parse the arguments of /mode; the topic may be quoted."""
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
        choices={name: values[name].lower() for name in _CHOICES if name in values},
        flags=tuple(flags),
    )


def _wrong_in(given: Mapping[str, str | None]) -> InvalidLine | None:
    for name, value in given.items():
        if name not in _VALUED:
            close = get_close_matches(name, [option[2:] for option in MODE_OPTIONS], n=1)
            hint = f"did you mean '--{close[0]}'?" if close else f"there are: {', '.join(MODE_OPTIONS)}"
            return InvalidLine(problem=f"unknown option --{name}", hint=hint)
        if value is None:
            return InvalidLine(problem=f"expected a value after --{name}", hint=MODE_USAGE)
        if name in _NUMBERS and not _COUNT.fullmatch(value):
            problem = f"--{name}: expected a whole number, got {value!r}"
            return InvalidLine(problem=problem, hint=MODE_USAGE)
        if name in _LIMITS and not _AMOUNT.fullmatch(value):
            return InvalidLine(problem=f"--{name}: expected a number, got {value!r}", hint=MODE_USAGE)
        if name in _CHOICES and value.lower() not in _CHOICES[name]:
            expected = f"expected one of: {', '.join(_CHOICES[name])}"
            return InvalidLine(problem=f"--{name}: unknown value {value!r}", hint=expected)
    return None


def _ids(text: str) -> tuple[str, ...]:
    return tuple(_unsigned(word) for word in _BETWEEN.split(text) if word)


def _unsigned(word: str) -> str:
    return word.removeprefix("@").lower()


def _unquoted(text: str) -> str:
    is_whole = re.fullmatch(_QUOTED, text)
    return text[1:-1].strip() if is_whole else text


def mode_fields(wish: ModeLine) -> dict[str, object]:
    """Return the body of the `POST /mode` request that starts the mode."""
    fields: dict[str, object] = {"mode": wish.mode, **wish.numbers, **wish.names}
    fields |= {name.replace("-", "_"): choice for name, choice in wish.choices.items()}
    fields |= {flag.replace("-", "_"): True for flag in wish.flags if flag != _REPLACE}
    if wish.topic:
        fields["topic"] = wish.topic
    if wish.agents is not None:
        fields["agents"] = list(wish.agents)
    if wish.limits:
        # Turns and tokens are counted in whole numbers.
        limits = {name: int(most) if most == int(most) else most for name, most in wish.limits.items()}
        fields["limits"] = limits
    return fields


# --- commands ------------------------------------------------------------------------------------

#: The arguments of commands whose agent may be omitted if only one is possible.
ASKED_AGENT: Final = (ArgumentKind.MAYBE_AGENT, ArgumentKind.MAYBE_NUMBER)
_TEXTS: Final = (ArgumentKind.TEXT, ArgumentKind.MAYBE_TEXT, ArgumentKind.MAYBE_MODE)


def read_arguments(row: CommandEntry, rest: str) -> list[str]:
    """Return a command's arguments; raise BadInput if one is missing, invalid or unexpected."""
    takes_text = bool(row.takes) and row.takes[-1] in _TEXTS
    words = rest.split(None, len(row.takes) - 1) if takes_text else rest.split()
    if len(words) > len(row.takes):
        raise BadInput(f"unexpected argument {words[len(row.takes)]!r}", f"usage: {row.form}")
    if row.takes == ASKED_AGENT and len(words) == 1 and _COUNT.fullmatch(words[0]):
        # A single number is the choice: the agent is the only one that asks.
        words = ["", *words]
    for kind in row.takes[len(words) :]:
        if kind in (ArgumentKind.AGENT, ArgumentKind.TEXT):
            problem = "which agent?" if kind is ArgumentKind.AGENT else "missing argument"
            raise BadInput(problem, f"usage: {row.form}")
    for kind, word in zip(row.takes, words, strict=False):
        if kind is ArgumentKind.MAYBE_NUMBER and not _COUNT.fullmatch(word):
            raise BadInput(f"expected a number, got {word!r}", f"usage: {row.form}")
    return words


# --- an agent's last message ---------------------------------------------------------------------

_LAST: Final = re.compile(r"(?<!\{)\{(?P<agent>[A-Za-z0-9][A-Za-z0-9-]{0,31})\.last\}")
#: Escaped braces, which are plain text.
_TEXT_OF_LAST: Final = re.compile(r"\{(\{[A-Za-z0-9-]{1,32}\.last\})\}")


def quoted_agents(text: str) -> tuple[str, ...]:
    """Return the agents whose last messages a text quotes with `{name.last}`, without duplicates."""
    return tuple(dict.fromkeys(match["agent"].lower() for match in _LAST.finditer(text)))


def insert_last_messages(text: str, said: Mapping[str, str]) -> str:
    """Replace `{agent.last}` with the last message of each agent in `said`; doubled braces become single.

    The result is very long if a message is quoted many times, so its length is checked first.
    """
    size = sum(len(said.get(match["agent"].lower(), "")) for match in _LAST.finditer(text))
    if size > MAX_TEXT_BYTES:
        problem = f"the text with what {', '.join(said)} said is over {MAX_TEXT_BYTES} bytes"
        raise TooLarge(problem, "quote each message once, or a part of it")
    parts = _TEXT_OF_LAST.split(text)
    shown = [_LAST.sub(lambda match: said.get(match["agent"].lower(), match[0]), part) for part in parts[::2]]
    return "".join(part for pair in zip(shown, [*parts[1::2], ""], strict=True) for part in pair)


def unknown_quote(agent: str, hint: str) -> NotFound:
    """Return the error for quoting somebody who is not in the room."""
    as_text = f"to send the braces as text, double them: {{{{{agent}.last}}}}"
    return NotFound(f"unknown agent in '{{{agent}.last}}'", "; ".join(filter(None, (hint, as_text))))


def only_asker(asking: Sequence[str]) -> str:
    """Return the only agent with an open dialog; raise if there are none or several."""
    if len(asking) == 1:
        return asking[0]
    if asking:
        raise BadInput(f"several dialogs are open: {', '.join(asking)}", f"name one: /approve {asking[0]}")
    raise NotFound("no dialog is open", "see: /needs")


def forwarded(agent: str, said: str, note: str = "") -> str:
    """Return the text that forwards an agent's message, marked as a quotation."""
    quoted = "\n".join(f"> {line}".rstrip() for line in said.split("\n"))
    return f"{note}\n\n{agent} said:\n{quoted}".lstrip("\n")
