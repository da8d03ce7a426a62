"""Interpret an agent's dialog: find its subject, and recognise two reports of the same dialog."""

import re
from typing import Final

import msgspec

from csp.protocol.requests import Dialog

#: The tool arguments that identify the subject, the most specific first.
_COMMANDS: Final = ("command", "cmd")
#: A command line as a screen shows it.
_PROMPT: Final = re.compile(r"^\$ (?=\S)", re.MULTILINE)
_SUBJECTS: Final = (*_COMMANDS, "script", "file_path", "filePath", "path", "url", "query", "pattern")


def subject_of(dialog: Dialog) -> str:
    """Return the subject of a dialog: the command, file or address in the arguments, else all arguments."""
    if dialog.runs:
        return dialog.runs
    try:
        arguments = msgspec.json.decode(dialog.arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return dialog.arguments
    if not isinstance(arguments, dict):
        return dialog.arguments
    for name in _SUBJECTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            return " ".join(value)
    return dialog.arguments if arguments else ""


def asks_command(dialog: Dialog) -> bool:
    """Return whether a dialog asks about a command line, judging by its arguments."""
    is_named = any(f'"{name}"' in dialog.arguments for name in _COMMANDS)
    return bool(dialog.runs) or is_named or _PROMPT.search(dialog.arguments) is not None


def command_first(subject: str) -> str:
    """Return a subject that was read from a screen with its command line, after a `$`, before the rest."""
    found = _PROMPT.search(subject)
    return f"{subject[found.start() :]}\n{subject[: found.start()]}".strip() if found else subject


def is_same_dialog(old: Dialog | None, new: Dialog | None) -> bool:
    """Return whether two consecutive reports show the same dialog.

    A CLI reports its question in parts, in any order: the arguments by a hook, the choices on its screen.
    """
    if old is None or new is None:
        return True
    before, after = _squeezed(subject_of(old)), _squeezed(subject_of(new))
    if before and after:
        return before in after or after in before
    before, after = _squeezed(old.question), _squeezed(new.question)
    return before == after if before and after else True


def _squeezed(text: str) -> str:
    return "".join(text.split())
