"""The commands of the human pane, one row each.

A row says what a command takes, what it does, which function does it; /help, completion and the checks of
what was typed all read this table.
"""

import re
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from csp.config import nearest
from csp.errors import BadInput, NotFound
from csp.human import command_actions, command_views
from csp.human.safe_text import columns
from csp.protocol.enums import Mode
from csp.room import human_input

if TYPE_CHECKING:
    from csp.human.chat import Chat


class ArgumentKind(StrEnum):
    """What an argument is; the value is how the usage shows it."""

    AGENT = "AGENT"
    MAYBE_AGENT = "[AGENT]"
    MAYBE_ID = "[ID]"
    MAYBE_NUMBER = "[N]"
    MAYBE_WORD = "[WORD]"
    TEXT = "TEXT"
    MAYBE_TEXT = "[TEXT]"
    MAYBE_COMMAND = "[COMMAND]"
    MAYBE_MODE = "[MODE]"


_USE: Final = (
    *(Mode.DEBATE, Mode.CONSENSUS, Mode.COLLABORATE, Mode.AUTOPILOT, Mode.ROUND_ROBIN),
    *(Mode.ORCHESTRATOR, Mode.SINGLE, Mode.FREEFORM),
)
_AGENTS: Final = (ArgumentKind.AGENT, ArgumentKind.MAYBE_AGENT)
_TEXTS: Final = (ArgumentKind.TEXT, ArgumentKind.MAYBE_TEXT, ArgumentKind.MAYBE_MODE)
_REQUIRED: Final = (ArgumentKind.AGENT, ArgumentKind.TEXT)
#: The modes, those that are used most first.
MODES: Final = tuple(str(mode) for mode in dict.fromkeys((*_USE, *Mode)))
Do = Callable[["Chat", list[str]], Awaitable[None]]


class CommandRow(NamedTuple):
    """One command; `takes` are its arguments, `usage` shows them where their names do not say enough."""

    name: str
    help: str
    do: Do
    takes: tuple[ArgumentKind, ...] = ()
    usage: str = ""

    @property
    def form(self) -> str:
        """How it is typed."""
        return f"/{self.name} {self.usage or ' '.join(self.takes)}".rstrip()


def _button(name: str) -> Do:
    async def press(chat: "Chat", words: list[str]) -> None:
        await command_actions.press(chat, name, words)

    return press


def _step(name: str) -> Do:
    async def steer(chat: "Chat", words: list[str]) -> None:
        await command_actions.steer(chat, name, words)

    return steer


def _on_message(name: str) -> Do:
    async def act(chat: "Chat", words: list[str]) -> None:
        await command_actions.act_on_message(chat, name, words)

    return act


async def _help(chat: "Chat", words: list[str]) -> None:
    if words:
        row = find(words[0].removeprefix("/"))
        chat.out.put(f"{row.form}  {row.help}")
        return
    for line in help_lines():
        chat.out.put(line)


async def _mode(chat: "Chat", words: list[str]) -> None:
    await command_views.status(chat, words)


async def _quit(chat: "Chat", words: list[str]) -> None:
    await command_actions.leave(chat)


stop = command_actions.stop


async def set_mode(chat: "Chat", wish: human_input.ModeLine) -> None:
    """Begin a mode, if there is one of this name."""
    if wish.mode not in MODES:
        hint = nearest(wish.mode, list(MODES)) or f"there are: {', '.join(MODES)}"
        raise NotFound(f"unknown mode {wish.mode!r}", hint)
    await command_actions.set_mode(chat, wish)


_A, _MA = ArgumentKind.AGENT, ArgumentKind.MAYBE_AGENT
ROWS: Final = (
    CommandRow("agents", "list the agents with what each does", command_views.agents),
    CommandRow("status", "show the mode, whose turn it is, the agents", command_views.status),
    CommandRow("queue", "list the messages that wait, with the reason", command_views.queue),
    CommandRow(
        "history",
        "show the newest messages, of an agent if named",
        command_views.history,
        (ArgumentKind.MAYBE_WORD, ArgumentKind.MAYBE_WORD),
        "[N] [AGENT]",
    ),
    CommandRow("search", "find messages with a text", command_views.search, (ArgumentKind.TEXT,)),
    CommandRow(
        "show", "show a message whole; alone: the last long one", command_views.show, (ArgumentKind.MAYBE_ID,)
    ),
    CommandRow(
        "fwd",
        "pass on what an agent said last to another",
        command_actions.forward,
        (_A, _A, ArgumentKind.MAYBE_TEXT),
        "FROM TO [NOTE]",
    ),
    CommandRow(
        "cancel", "withdraw a message that has not arrived", _on_message("cancel"), (ArgumentKind.MAYBE_ID,)
    ),
    CommandRow(
        "resend", "send a message again, as a new one", _on_message("resend"), (ArgumentKind.MAYBE_ID,)
    ),
    CommandRow(
        "continue", "let through what the loop guard holds", command_actions.release, (ArgumentKind.MAYBE_ID,)
    ),
    CommandRow(
        "mode",
        "begin a mode; alone: show it",
        _mode,
        (ArgumentKind.MAYBE_MODE,),
        '[MODE "TOPIC" --rounds N --agents a,b --first a --synth b]',
    ),
    CommandRow(
        "review",
        "begin or see a run of builder with reviewer",
        command_actions.review,
        (ArgumentKind.MAYBE_TEXT,),
        "[FORM ...]",
    ),
    CommandRow(
        "board",
        "show the whiteboard, write on it, search it",
        command_views.board,
        (ArgumentKind.MAYBE_TEXT,),
        "[add TEXT | search WORDS | summarise AGENT | NOTE]",
    ),
    CommandRow("next", "pass the turn on", command_actions.next_turn),
    CommandRow("end", "end the running mode in order", command_actions.end),
    CommandRow(
        "stop", "stop what is running at once", command_actions.stop, (ArgumentKind.MAYBE_WORD,), "[all]"
    ),
    CommandRow("votes", "show proposals with their votes", command_views.votes),
    CommandRow("extend", "give the running mode more rounds", _step("extend"), (ArgumentKind.MAYBE_NUMBER,)),
    CommandRow("skip", "go past the one whose turn it is", _step("skip"), (_MA,)),
    CommandRow("pause", "hold messages back from an agent; alone: the mode", command_actions.pause, (_MA,)),
    CommandRow("resume", "undo /pause", command_actions.resume, (_MA,)),
    CommandRow(
        "approve",
        "say yes to an agent's dialog, or answer N",
        _button("approve"),
        (_A, ArgumentKind.MAYBE_NUMBER),
    ),
    CommandRow("deny", "say no to an agent's dialog", _button("deny"), (_A, ArgumentKind.MAYBE_NUMBER)),
    CommandRow("interrupt", "stop what an agent is doing", _button("interrupt"), (_A,)),
    CommandRow("share", "post what an agent answers in its own pane", _button("share"), (_A,)),
    CommandRow("noshare", "keep what an agent answers there in its pane", _button("noshare"), (_A,)),
    CommandRow("restart", "start an agent again, also one that has ended", command_actions.restart, (_A,)),
    CommandRow(
        "add",
        "start one more agent in the room",
        command_actions.add,
        (ArgumentKind.TEXT,),
        "NAME -- COMMAND",
    ),
    CommandRow("remove", "remove an agent from the room", command_actions.remove, (_A,)),
    CommandRow("focus", "go to the pane of an agent", command_actions.focus, (_A,)),
    CommandRow("web", "print a link that opens the room in a browser", command_actions.web),
    CommandRow(
        "export",
        "write the history to a new file, .md or .json",
        command_actions.export,
        (ArgumentKind.MAYBE_WORD,),
        "[FILE]",
    ),
    CommandRow("help", "list the commands, or explain one", _help, (ArgumentKind.MAYBE_COMMAND,)),
    CommandRow("quit", "leave; agents go on (Ctrl-D does the same)", _quit),
)
_ALIASES: Final = {"exit": "quit", "forward": "fwd", "who": "agents", "h": "help", "q": "quit"}
_BY_NAME: Final = {row.name: row for row in ROWS}
_IN_A_SHELL: Final = re.compile(r"\bcsp ([a-z]+)\b")


def find(name: str) -> CommandRow:
    """Return the row of a command, or raise with the nearest one."""
    row = _BY_NAME.get(_ALIASES.get(name, name))
    if row is None:
        hint = nearest(name, list(_BY_NAME)) or "see /help; a text that begins with a slash has two"
        raise NotFound(f"unknown command '/{name}'", hint.replace("mean '", "mean '/"))
    return row


def as_typed_here(hint: str) -> str:
    """Return a hint with what `csp` does in a shell as this pane does it."""
    return _IN_A_SHELL.sub(lambda found: f"/{found[1]}" if found[1] in _BY_NAME else found[0], hint)


async def run(chat: "Chat", command: human_input.CommandLine) -> None:
    """Do what a typed command says."""
    row = find(command.name)
    await row.do(chat, _arguments(chat, row, command.rest))


def _arguments(chat: "Chat", row: CommandRow, rest: str) -> list[str]:
    """Return the arguments of a command, or raise saying what is missing, wrong or too much."""
    takes_text = bool(row.takes) and row.takes[-1] in _TEXTS
    words = rest.split(None, len(row.takes) - 1) if takes_text else rest.split()
    if len(words) > len(row.takes):
        raise BadInput(f"{words[len(row.takes)]!r} is too much", row.form)
    missing = next((take for take in row.takes[len(words) :] if take in _REQUIRED), None)
    if missing:
        what = "an agent" if missing is ArgumentKind.AGENT else "more"
        raise BadInput(f"expected {what}", row.form)
    return [_argument(chat, row, take, word) for take, word in zip(row.takes, words, strict=False)]


def _argument(chat: "Chat", row: CommandRow, take: ArgumentKind, word: str) -> str:
    if take in _AGENTS:
        return chat.known(word)
    if take is ArgumentKind.MAYBE_NUMBER and not (word.isascii() and word.isdigit() and 0 < len(word) <= 6):
        raise BadInput(f"expected a number, got {word!r}", row.form)
    return word


def help_lines() -> list[str]:
    """Return the help: how to speak, then every command."""
    speech = [
        ["@name text", "speak to one agent or @all; alone: from now on"],
        ["text", "speak to whoever the prompt names"],
        ["!name text", "urgent: interrupt the agent if it is at work"],
        ["{name.last}", "inside a text: what an agent said last"],
        ["@router collaborate a b: goal", "have agents work on it together"],
        ["Allstop", "stop what is running, at once (also F12)"],
        ["//text @@text", "a text that begins with such a sign"],
    ]
    rows = [[row.form if len(row.form) <= 29 else f"/{row.name} ...", row.help] for row in ROWS]
    return [
        *columns(speech + rows),
        "Alt-Enter begins a new line, Tab completes, Ctrl-R searches what you typed",
    ]
