"""Approval rules: decide whether a rule covers a command, so that the room approves it itself.

A rule consists of the first words of a command line. It never covers shell syntax, because the words
after those that a person has allowed could run anything.
"""

import re
from typing import Final

#: Operators, substitutions and escapes.
_SHELL_SYNTAX: Final = re.compile(r"[;&|<>`$()\\{}!]")
MAX_COMMAND: Final = 2000
#: Maximum length of a rule.
MAX_PATTERN: Final = 500


def is_plain_command(command: str) -> bool:
    """Return whether a command consists only of words, without syntax that makes a shell run more."""
    # Line breaks, spaces that a shell does not split at, and invisible characters are not printable.
    is_line = command.isprintable() and bool(command.strip()) and len(command) <= MAX_COMMAND
    return is_line and not _SHELL_SYNTAX.search(command)


def covers(pattern: str, command: str) -> bool:
    """Return whether a rule covers a command, which must begin with the words of the rule."""
    if not is_plain_command(command):
        return False
    wanted, given = pattern.split(), command.split()
    return bool(wanted) and given[: len(wanted)] == wanted
