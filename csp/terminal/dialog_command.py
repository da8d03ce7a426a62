"""Tell whether a dialog on the screen is about a command, and shows all of it."""

from typing import Final

_PROMPT: Final = "$ "


def shows_command(subject: str, command: str) -> bool:
    """Tell whether a paragraph of a dialog's subject begins with the whole command.

    The command may be wrapped, and a note may follow it in other rows. One that comes after other words or is
    cut, does not count: nobody has allowed what those words make of it.
    """
    wanted = _squeezed(command)
    return bool(wanted) and any(_begins_with(paragraph, wanted) for paragraph in subject.split("\n\n"))


def _begins_with(paragraph: str, wanted: str) -> bool:
    seen = ""
    for line in paragraph.strip().removeprefix(_PROMPT).splitlines():
        seen += _squeezed(line)
        if seen == wanted:
            return True
    return False


def _squeezed(text: str) -> str:
    return "".join(text.split())
