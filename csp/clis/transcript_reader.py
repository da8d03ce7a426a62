"""The base of transcript readers, which turn lines and hook events into items of the reply tracker."""

import re
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
    """One complete line of a transcript."""

    path: str
    data: bytes
    #: Whether a subagent wrote it; then only its usage matters.
    is_side: bool = False


class FoundTranscripts(msgspec.Struct, frozen=True, kw_only=True):
    """The transcripts of a run and of its subagents, and the folders in which another one may appear."""

    main: list[Path] = []
    subagents: list[Path] = []
    folders: list[Path] = []


class TranscriptReader:
    """A reader of the transcripts of one kind of CLI.

    A batch is consistent: if it contains a hook event, it contains all lines written before that event, and
    vice versa. Everything written before `since` (Unix seconds) is history and yields no item.
    """

    #: Everything that a reader remembers between batches.
    _state: msgspec.Struct

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[Item]:
        """Return the items of a batch in the order in which they occurred."""
        raise NotImplementedError

    def end(self) -> None:
        """Treat the turn as over, because some CLIs never record its end."""

    @property
    def lacks_ends(self) -> bool:
        """Return whether nothing but the screen shows that a turn is over, because the CLI runs no hooks."""
        return False

    def due(self) -> float | None:
        """Return the time at which `read` must be called again even if there is nothing new."""
        return None

    def dump(self) -> bytes:
        """Return the state for a reader that continues from here."""
        return msgspec.json.encode(self._state)

    def load(self, dumped: bytes) -> None:
        """Continue with the dumped state of another reader of this kind."""
        self._state = msgspec.json.decode(dumped, type=type(self._state))


def seconds(timestamp: str) -> float:
    """Convert an ISO time to Unix seconds; 0 for any other text."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def decoded(data: bytes | msgspec.Raw, kind: type[_T]) -> _T | None:
    """Return the decoded JSON, or None if it does not have the expected type."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def failed(text: str, *, is_limit: bool) -> Ended:
    """Return the end of a turn that failed or that reached an account limit."""
    return Ended(how=Ending.LIMITED if is_limit else Ending.FAILED, text=text, until=until(text))


def until(text: str) -> str | None:
    """Return the end of a limit, in the CLI's own words."""
    found = _UNTIL.search(text)
    return found[1].strip() if found else None
