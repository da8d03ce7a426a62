"""What the readers of transcripts share: they turn lines and hook events into items of the reply tracker."""

import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from csp.clis.hook_spool import HookEvent
from csp.protocol.enums import Ending
from csp.terminal.reply_tracker import Ended, Item

_UNTIL: Final = re.compile(r"(?:\bresets?(?: at| in)?|\btry again (?:at|in)) ([^.\n]{1,60})", re.IGNORECASE)
_T = TypeVar("_T")


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One whole line of a transcript."""

    path: str
    data: bytes
    #: Whether a subagent wrote it: only what it used matters.
    is_side: bool = False


class FoundTranscripts(msgspec.Struct, frozen=True, kw_only=True):
    """The transcripts of a run, those of its subagents, and folders where another one may appear."""

    main: list[Path] = []
    subagents: list[Path] = []
    folders: list[Path] = []


class TranscriptReader:
    """Reads what one kind of CLI writes down.

    A batch is consistent: with a hook event come all lines that were written before it, with a line all
    events. What was written before `since` (Unix seconds) is history, and gives no item.
    """

    #: All that a reader remembers from one batch to the next.
    _state: msgspec.Struct

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[Item]:
        """Return the items of a batch, in the order in which they happened."""
        raise NotImplementedError

    def end(self) -> None:
        """Regard the turn as over, which the record of some CLIs never says."""

    def due(self) -> float | None:
        """Return when `read` wants to be called again, even with nothing new."""
        return None

    def dump(self) -> bytes:
        """Return the state, for a reader that continues."""
        return msgspec.json.encode(self._state)

    def load(self, dumped: bytes) -> None:
        """Continue with what another reader of this kind has dumped."""
        self._state = msgspec.json.decode(dumped, type=type(self._state))


def seconds(timestamp: str) -> float:
    """Return the Unix seconds of an ISO time; 0 for any other text."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def decoded(data: bytes | msgspec.Raw, kind: type[_T]) -> _T | None:
    """Return what stands in a piece of JSON; None where it has another shape."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class _ShellInput(msgspec.Struct):
    command: str | list[str] = ""
    cmd: str | list[str] = ""


def command_in(data: bytes | msgspec.Raw) -> str:
    """Return the command line in the input of a tool that runs one; empty where it cannot be read."""
    found = decoded(data, _ShellInput)
    command = (found.command or found.cmd) if found else ""
    if isinstance(command, str):
        return command
    # What a shell is called for is what a person sees and allows.
    is_shell = len(command) == 3 and command[1] in ("-c", "-lc")
    return command[2] if is_shell else shlex.join(command)


def failed(text: str, *, is_limit: bool) -> Ended:
    """Return the end of a turn that failed, or that ran into a limit of the account."""
    return Ended(how=Ending.LIMITED if is_limit else Ending.FAILED, text=text, until=until(text))


def until(text: str) -> str | None:
    """Return when a limit ends, in the words of the CLI."""
    found = _UNTIL.search(text)
    return found[1].strip() if found else None
