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


class Take(StrEnum):
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
_AGENTS: Final = (Take.AGENT, Take.MAYBE_AGENT)
_TEXTS: Final = (Take.TEXT, Take.MAYBE_TEXT, Take.MAYBE_MODE)
_REQUIRED: Final = (Take.AGENT, Take.TEXT)
#: The modes, those that are used most first.
MODES: Final = tuple(str(mode) for mode in dict.fromkeys((*_USE, *Mode)))
Do = Callable[["Chat", list[str]], Awaitable[None]]


class Row(NamedTuple):
    """One command; `takes` are its arguments, `usage` shows them where their names do not say enough."""

    name: str
    help: str
    do: Do
    takes: tuple[Take, ...] = ()
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


async def set_mode(chat: "Chat", wish: human_input.SetMode) -> None:
    """Begin a mode, if there is one of this name."""
    if wish.mode not in MODES:
        hint = nearest(wish.mode, list(MODES)) or f"there are: {', '.join(MODES)}"
        raise NotFound(f"unknown mode {wish.mode!r}", hint)
    await command_actions.set_mode(chat, wish)


_A, _MA = Take.AGENT, Take.MAYBE_AGENT
# fmt: off
ROWS: Final = (
    Row("agents", "list the agents with what each does", command_views.agents),
    Row("status", "show the mode, whose turn it is, the agents", command_views.status),
    Row("queue", "list the messages that wait, with the reason", command_views.queue),
    Row("history", "show the newest messages, of an agent if named", command_views.history,
        (Take.MAYBE_WORD, Take.MAYBE_WORD), "[N] [AGENT]"),
    Row("search", "find messages with a text", command_views.search, (Take.TEXT,)),
    Row("show", "show a message whole; alone: the last long one", command_views.show, (Take.MAYBE_ID,)),
    Row("fwd", "pass on what an agent said last to another", command_actions.forward,
        (_A, _A, Take.MAYBE_TEXT), "FROM TO [NOTE]"),
    Row("cancel", "withdraw a message that has not arrived", _on_message("cancel"), (Take.MAYBE_ID,)),
    Row("resend", "send a message again, as a new one", _on_message("resend"), (Take.MAYBE_ID,)),
    Row("continue", "let through what the loop guard holds", command_actions.release, (Take.MAYBE_ID,)),
    Row("mode", "begin a mode; alone: show it", _mode, (Take.MAYBE_MODE,),
        '[MODE "TOPIC" --rounds N --agents a,b --first a --synth b]'),
    Row("review", "begin or see a run of builder with reviewer", command_actions.review, (Take.MAYBE_TEXT,),
        "[FORM ...]"),
    Row("board", "show the whiteboard, write on it, search it", command_views.board, (Take.MAYBE_TEXT,),
        "[add TEXT | search WORDS | summarise AGENT | NOTE]"),
    Row("next", "pass the turn on", command_actions.next_turn),
    Row("end", "end the running mode in order", command_actions.end),
    Row("stop", "stop what is running at once", command_actions.stop,
        (Take.MAYBE_WORD,), "[all]"),
    Row("votes", "show proposals with their votes", command_views.votes),
    Row("extend", "give the running mode more rounds", _step("extend"), (Take.MAYBE_NUMBER,)),
    Row("skip", "go past the one whose turn it is", _step("skip"), (_MA,)),
    Row("pause", "hold messages back from an agent; alone: the mode", command_actions.pause, (_MA,)),
    Row("resume", "undo /pause", command_actions.resume, (_MA,)),
    Row("approve", "say yes to an agent's dialog, or answer N", _button("approve"),
        (_A, Take.MAYBE_NUMBER)),
    Row("deny", "say no to an agent's dialog", _button("deny"), (_A, Take.MAYBE_NUMBER)),
    Row("interrupt", "stop what an agent is doing", _button("interrupt"), (_A,)),
    Row("share", "post what an agent answers in its own pane", _button("share"), (_A,)),
    Row("noshare", "keep what an agent answers there in its pane", _button("noshare"), (_A,)),
    Row("restart", "start an agent again, also one that has ended", command_actions.restart, (_A,)),
    Row("add", "start one more agent in the room", command_actions.add, (Take.TEXT,), "NAME -- COMMAND"),
    Row("remove", "remove an agent from the room", command_actions.remove, (_A,)),
    Row("focus", "go to the pane of an agent", command_actions.focus, (_A,)),
    Row("web", "print a link that opens the room in a browser", command_actions.web),
    Row("export", "write the history to a new file, .md or .json", command_actions.export, (Take.MAYBE_WORD,),
        "[FILE]"),
    Row("help", "list the commands, or explain one", _help, (Take.MAYBE_COMMAND,)),
    Row("quit", "leave; agents go on (Ctrl-D does the same)", _quit),
)
# fmt: on
_ALIASES: Final = {"exit": "quit", "forward": "fwd", "who": "agents", "h": "help", "q": "quit"}
_BY_NAME: Final = {row.name: row for row in ROWS}
_IN_A_SHELL: Final = re.compile(r"\bcsp ([a-z]+)\b")


def find(name: str) -> Row:
    """Return the row of a command, or raise with the nearest one."""
    row = _BY_NAME.get(_ALIASES.get(name, name))
    if row is None:
        hint = nearest(name, list(_BY_NAME)) or "see /help; a text that begins with a slash has two"
        raise NotFound(f"unknown command '/{name}'", hint.replace("mean '", "mean '/"))
    return row


def as_typed_here(hint: str) -> str:
    """Return a hint with what `csp` does in a shell as this pane does it."""
    return _IN_A_SHELL.sub(lambda found: f"/{found[1]}" if found[1] in _BY_NAME else found[0], hint)


async def run(chat: "Chat", command: human_input.Command) -> None:
    """Do what a typed command says."""
    row = find(command.name)
    await row.do(chat, _arguments(chat, row, command.rest))


def _arguments(chat: "Chat", row: Row, rest: str) -> list[str]:
    """Return the arguments of a command, or raise saying what is missing, wrong or too much."""
    takes_text = bool(row.takes) and row.takes[-1] in _TEXTS
    words = rest.split(None, len(row.takes) - 1) if takes_text else rest.split()
    if len(words) > len(row.takes):
        raise BadInput(f"{words[len(row.takes)]!r} is too much", row.form)
    missing = next((take for take in row.takes[len(words) :] if take in _REQUIRED), None)
    if missing:
        what = "an agent" if missing is Take.AGENT else "more"
        raise BadInput(f"expected {what}", row.form)
    return [_argument(chat, row, take, word) for take, word in zip(row.takes, words, strict=False)]


def _argument(chat: "Chat", row: Row, take: Take, word: str) -> str:
    if take in _AGENTS:
        return chat.known(word)
    if take is Take.MAYBE_NUMBER and not (word.isascii() and word.isdigit() and 0 < len(word) <= 6):
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
