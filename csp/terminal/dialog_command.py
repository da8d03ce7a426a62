"""Check whether a dialog on the screen concerns a command and shows all of it."""

from itertools import accumulate
from typing import Final

_PROMPT: Final = "$ "


def shows_command(subject: str, command: str) -> bool:
    """Return whether a paragraph of a dialog's subject begins with the whole command.

    The command may be wrapped, and a note may follow on later rows. A command that follows other words or is
    cut off does not count, because nobody has approved it in that form.
    """
    wanted = _squeezed(command)
    for paragraph in subject.split("\n\n"):
        rows = paragraph.strip().removeprefix(_PROMPT).splitlines()
        if wanted and wanted in accumulate(map(_squeezed, rows)):
            return True
    return False


def _squeezed(text: str) -> str:
    return "".join(text.split())
