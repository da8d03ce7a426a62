"""Rules by which the room approves commands itself: which command a rule covers.

A rule is the first words of a command line. It never covers a command with shell syntax, because the words
after the ones that a person has allowed could run anything.
"""

import re
from typing import Final

#: Operators, substitutions and escapes.
_SHELL_SYNTAX: Final = re.compile(r"[;&|<>`$()\\{}!]")
MAX_COMMAND: Final = 2000
#: How long the words of a rule may be.
MAX_PATTERN: Final = 500


def is_plain_command(command: str) -> bool:
    """Tell whether a command is words alone, without anything by which a shell would run something else."""
    # Line breaks and spaces that a shell does not split at are not printable, nor is what hides on a screen.
    is_line = command.isprintable() and bool(command.strip()) and len(command) <= MAX_COMMAND
    return is_line and not _SHELL_SYNTAX.search(command)


def covers(pattern: str, command: str) -> bool:
    """Tell whether a rule covers a command: the same words, or the same words and more."""
    if not is_plain_command(command):
        return False
    wanted, given = pattern.split(), command.split()
    return bool(wanted) and given[: len(wanted)] == wanted
