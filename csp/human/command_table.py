"""Run the commands of the catalogue in the human pane."""

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from csp.config import nearest
from csp.errors import NotFound, Refused
from csp.human import command_actions, command_views
from csp.human.safe_text import columns
from csp.protocol import catalogue
from csp.protocol.catalogue import ArgumentKind, CommandEntry
from csp.protocol.enums import ControlVerb
from csp.room import human_input
from csp.room.sessions.modes import mode_names

if TYPE_CHECKING:
    from csp.human.chat import Chat


Handler = Callable[["Chat", list[str]], Awaitable[None]]
_AGENTS: Final = (ArgumentKind.AGENT, ArgumentKind.MAYBE_AGENT)


async def show_help(chat: "Chat", words: list[str]) -> None:
    """Show how to speak and every command, or one of them."""
    rows = [find(word.removeprefix("/")) for word in words[:1]]
    for line in [f"{row.form}  {row.help}" for row in rows] or help_lines():
        chat.out.put(line)


async def set_mode(chat: "Chat", wish: human_input.ModeLine) -> None:
    """Begin a mode, if there is one of this name."""
    modes = mode_names()
    if wish.mode not in modes:
        hint = nearest(wish.mode, modes) or f"there are: {', '.join(modes)}"
        raise NotFound(f"unknown mode {wish.mode!r}", hint)
    await command_actions.set_mode(chat, wish)


#: What this pane does for a command; the others press the button that the catalogue names.
_HANDLERS: Final[dict[str, Handler]] = {
    "agents": command_views.agents,
    "status": command_views.status,
    "queue": command_views.queue,
    "history": command_views.history,
    "search": command_views.search,
    "show": command_views.show,
    "fwd": command_actions.forward,
    "needs": command_views.needs,
    "answer": command_actions.answer,
    "allow": command_actions.allow,
    "rules": command_views.rules,
    "unallow": command_actions.unallow,
    "decide": command_actions.decide,
    "continue": command_actions.release,
    "mode": command_views.status,
    "review": command_actions.review,
    "board": command_views.board,
    "next": command_actions.next_turn,
    "end": command_actions.end,
    "stop": command_actions.stop,
    "votes": command_views.votes,
    "restart": command_actions.restart,
    "add": command_actions.add,
    "remove": command_actions.remove,
    "focus": command_actions.focus,
    "zoom": command_actions.zoom,
    "layout": command_actions.lay_out,
    "web": command_actions.web,
    "export": command_actions.export,
    "help": show_help,
    "quit": command_actions.leave,
}
_ALIASES: Final = {"exit": "quit", "forward": "fwd", "who": "agents", "h": "help", "q": "quit"}
#: Commands that answer the newest thing that needs the person.
_KEYS: Final = ("y", "n")
_IN_A_SHELL: Final = re.compile(r"\bcsp ([a-z]+)\b")


def find(name: str) -> CommandEntry:
    """Return the row of a command, or raise with the nearest one."""
    names = [row.name for row in catalogue.COMMANDS]
    wanted = _ALIASES.get(name, name)
    row = next((row for row in catalogue.COMMANDS if row.name == wanted), None)
    if row is None:
        hint = nearest(name, names) or "see /help; a text that begins with a slash has two"
        raise NotFound(f"unknown command '/{name}'", hint.replace("mean '", "mean '/"))
    return row


def as_typed_here(hint: str) -> str:
    """Return a hint with what `csp` does in a shell as this pane does it."""
    names = {row.name for row in catalogue.COMMANDS}
    return _IN_A_SHELL.sub(lambda found: f"/{found[1]}" if found[1] in names else found[0], hint)


async def run(chat: "Chat", command: human_input.CommandLine) -> None:
    """Do what a typed command says."""
    if command.name in _KEYS and not command.rest:
        command = human_input.CommandLine(name="answer", rest=command.name)
    row = find(command.name)
    given = human_input.read_arguments(row, command.rest)
    is_dialog = row.control in (ControlVerb.APPROVE, ControlVerb.DENY)
    if is_dialog and (not given or (given[0].isdigit() and given[0] not in chat.roster.ids)):
        await chat.needs.look()
        given = [chat.needs.only_dialog(), *given]
    words = [
        chat.known(word) if kind in _AGENTS else word for kind, word in zip(row.takes, given, strict=False)
    ]
    if handler := _HANDLERS.get(row.name):
        await handler(chat, words)
    elif row.on_message is not None:
        await command_actions.act_on_message(chat, row.on_message, words)
    elif row.control is not None and (words or row.action is None):
        await command_actions.press(chat, row.control, words)
    elif row.action is not None:
        await command_actions.steer(chat, row.action, words)
    else:
        raise Refused(f"/{row.name} cannot be done in this pane", "see /help")


def help_lines() -> list[str]:
    """Return the help: how to speak, then every command."""
    speech = [
        ["@name text", "speak to one agent or @all; no text: stay with it"],
        ["text", "speak to the participant that the prompt names"],
        ["!name text", "urgent: interrupt the agent if it is busy"],
        ["{name.last}", "inside a text: what an agent said last"],
        ["@router collaborate a b: goal", "have agents work on it together"],
        ["Allstop", "stop what is running, at once (also F12)"],
        ["//text @@text", "send text that starts with / or @"],
    ]
    rows = [[row.form if len(row.form) <= 29 else f"/{row.name} ...", row.help] for row in catalogue.COMMANDS]
    return [
        *columns(speech + rows),
        "Alt-Enter starts a new line, Tab completes, Ctrl-R searches what you typed",
    ]
