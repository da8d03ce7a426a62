"""Write to the user's terminal without letting an agent's text drive it.

Results go to stdout, messages to stderr.
What goes to a terminal has its control characters made visible; what goes
into a pipe or a file is left as it is.
"""

import json
import sys
from collections.abc import Iterable
from typing import Final, Self, TextIO

from csp.errors import BadInput
from csp.human.safe_text import visible

_ERASE_LINE: Final = "\r\x1b[K"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether this stream is a terminal; a closed one is None."""
    return stream is not None and stream.isatty()


def put(text: str) -> None:
    """Write one piece of data to stdout."""
    print(visible(text) if is_terminal(sys.stdout) else text)


def put_lines(lines: Iterable[str]) -> None:
    """Write pieces of data to stdout, a line each."""
    for line in lines:
        put(line)


def put_json(value: object) -> None:
    """Write one line of JSON to stdout."""
    print(json.dumps(value, ensure_ascii=True))


def talk(text: str) -> None:
    """Write one line to stderr."""
    print(visible(text) if is_terminal(sys.stderr) else text, file=sys.stderr)


class Progress:
    """One progress line on stderr; clear it before anything else is written, and in the end by `with`."""

    def __init__(self) -> None:
        self._line = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.clear()

    def show(self, line: str) -> None:
        """Replace the line, if stderr is a terminal."""
        if is_terminal(sys.stderr) and line != self._line:
            # Noted first: a Ctrl-C that comes while the line is written must find it to be cleared.
            self._line = line
            print(f"{_ERASE_LINE}{visible(line)}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._line:
            print(_ERASE_LINE, end="", file=sys.stderr, flush=True)
            self._line = ""


def confirm(question: str) -> bool:
    """Ask a person; off a terminal nobody could answer, so raise BadInput."""
    if not is_terminal(sys.stdin) or not is_terminal(sys.stderr):
        raise BadInput("this cannot be undone, and there is no terminal to ask on", "add --yes to do it")
    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def duration(seconds: float) -> str:
    """Return a span of time in its largest unit."""
    whole = int(seconds)
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {name}"
    return f"{whole} s"
