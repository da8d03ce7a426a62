"""Run the catalogue's commands in the human pane."""

import textwrap
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from csp.config import nearest
from csp.errors import NotFound, Refused
from csp.human import command_actions, command_views
from csp.human.safe_text import columns
from csp.protocol import catalogue
from csp.protocol.catalogue import ArgumentKind, CommandEntry, CommandGroup
from csp.room import human_input
from csp.room.sessions.modes import mode_names

if TYPE_CHECKING:
    from csp.human.chat import Chat


Handler = Callable[["Chat", list[str]], Awaitable[None]]
_AGENTS: Final = (ArgumentKind.AGENT, ArgumentKind.MAYBE_AGENT)


async def show_help(chat: "Chat", words: list[str]) -> None:
    """Show how to address agents, and all commands or one of them."""
    if words and words[0] != "all":
        row = find(words[0].removeprefix("/"))
        lines = [f"{row.form}  {row.help}"]
        if row.name == "mode":
            texts = {str(mode): text for mode, text in catalogue.MODE_TEXTS.items()}
            lines += columns([[mode, texts[mode].about] for mode in mode_names() if mode in texts])
        await chat.out.page(f"/help {row.name}", lines)
        return
    lines = whole_help() if words else help_lines(chat.look.columns() or 80)
    await chat.out.page("/help", lines)


async def set_mode(chat: "Chat", wish: human_input.ModeLine) -> None:
    """Start the named mode; first ask for a missing topic and before replacing another mode."""
    modes = mode_names()
    if wish.mode not in modes:
        hint = nearest(wish.mode, modes) or f"there are: {', '.join(modes)}"
        raise NotFound(f"unknown mode {wish.mode!r}", hint)
    if not await command_actions.has_questions(chat, wish):
        await command_actions.set_mode(chat, wish)


#: The actions of commands in this pane; all others press the button that the catalogue defines.
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
    "report": command_actions.report,
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
    "rooms": command_actions.rooms,
    "down": command_actions.down,
    "export": command_actions.export,
    "help": show_help,
    "quit": command_actions.leave,
}
_ALIASES: Final = {"exit": "quit", "forward": "fwd", "who": "agents", "h": "help", "q": "quit"}
#: Commands that answer the newest item that needs the user.
_ANSWERS: Final = ("y", "n")


def find(name: str) -> CommandEntry:
    """Return a command's row, or raise with the closest match."""
    names = [row.name for row in catalogue.COMMANDS]
    wanted = _ALIASES.get(name, name)
    row = next((row for row in catalogue.COMMANDS if row.name == wanted), None)
    if row is None:
        hint = nearest(wanted, names).replace("'", "") or "see: /help"
        raise NotFound(f"unknown command /{name}", hint.replace("mean ", "mean /"))
    return row


async def run(chat: "Chat", command: human_input.CommandLine) -> None:
    """Execute a typed command."""
    if command.name in _ANSWERS and not command.rest:
        command = human_input.CommandLine(name="answer", rest=command.name)
    row = find(command.name)
    given = human_input.read_arguments(row, command.rest)
    # An agent that was removed may still have a pane.
    is_gone = row.name == "remove" and given[1:] == [command_actions.END]
    words = [
        chat.known(word) if kind in _AGENTS and word and not is_gone else word
        for kind, word in zip(row.takes, given, strict=False)
    ]
    if row.takes == human_input.ASKED_AGENT and not (words and words[0]):
        await chat.needs.look()
        words = [chat.needs.only_dialog(), *words[1:]]
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


_SPEECH: Final = (
    ("@name text", "to one agent, @all to all; no text: stay with it"),
    ("@ada @bob text", "to several, or to a group of csp.toml"),
    ("!name text", "urgent: interrupt the agent if it is busy"),
    ("{name.last}", "inside a text: what an agent said last"),
    ("@router collaborate a b: goal", "have agents work on it together"),
    ("Allstop", "stop everything at once (also F12)"),
    ("//text @@text", "send text that starts with / or @"),
)
_KEYS: Final = "Alt-Enter starts a new line, Tab completes, Ctrl-R searches what you typed"
_MORE: Final = "/help COMMAND explains one, /help all lists them with what they do"


def help_lines(width: int) -> list[str]:
    """Return the help on one screen: how to address agents, then the commands by subject."""
    lines = columns([list(row) for row in _SPEECH])
    for group in CommandGroup:
        names = [f"/{row.name}" for row in catalogue.COMMANDS if row.group is group]
        lead = f"{group.capitalize()}:".ljust(10)
        lines += textwrap.wrap(" ".join(names), width - 1, initial_indent=lead, subsequent_indent=" " * 10)
    return [*lines, _KEYS, _MORE]


def whole_help() -> list[str]:
    """Return all commands with descriptions, grouped by subject."""
    lines = columns([list(row) for row in _SPEECH])
    for group in CommandGroup:
        rows = [row for row in catalogue.COMMANDS if row.group is group]
        forms = [[row.form if len(row.form) <= 29 else f"/{row.name} ...", row.help] for row in rows]
        lines += ["", group.capitalize(), *columns(forms)]
    return [*lines, "", _KEYS]
