"""Approval rules: decide whether a rule covers a command, so that the room approves it itself.

A rule is the first words of a command line; `only` before them makes them the whole command. It never covers
a command with shell syntax, because the words after the ones that a person has allowed could run anything.
"""

import re
from typing import Final

#: Operators, substitutions and escapes.
_SHELL_SYNTAX: Final = re.compile(r"[;&|<>`$()\\{}!]")
MAX_COMMAND: Final = 2000
#: Maximum length of a rule.
MAX_PATTERN: Final = 500
#: The first word of a rule that covers one command, and not the ones that begin with it.
ONLY: Final = "only"


def is_plain_command(command: str) -> bool:
    """Return whether a command consists only of words, without syntax that makes a shell run more."""
    # Line breaks, spaces that a shell does not split at, and invisible characters are not printable.
    is_line = command.isprintable() and bool(command.strip()) and len(command) <= MAX_COMMAND
    return is_line and not _SHELL_SYNTAX.search(command)


def exact_rule(command: str) -> str:
    """Return the rule that covers a command and no other; an empty string if there is none."""
    pattern = f"{ONLY} {command}"
    return pattern if len(pattern) <= MAX_PATTERN and covers(pattern, command) else ""


def covers(pattern: str, command: str) -> bool:
    """Return whether a rule covers a command, which must begin with the words of the rule."""
    if not is_plain_command(command):
        return False
    wanted, given = pattern.split(), command.split()
    if wanted[:1] == [ONLY]:
        # Blanks count: a name in quotes may have several.
        return " ".join(wanted[1:]) == command
    return bool(wanted) and given[: len(wanted)] == wanted
