"""Turn the records that the CLIs keep of themselves into the items of csp.terminal.reply_tracker."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol

from csp.clis.hook_spool import HookEvent
from csp.terminal.reply_tracker import Item

_UNTIL: Final = re.compile(r"(?:\bresets?(?: at| in)?|\btry again (?:at|in)) ([^.\n]{1,60})", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One whole line of a transcript."""

    path: str
    data: bytes
    #: Whether a subagent wrote it: only what it used matters.
    is_side: bool = False


class Reader(Protocol):
    """Reads what one kind of CLI writes down.

    A batch is consistent: with a hook event come all lines that were written before it, with a line all
    events. What was written before `since` (Unix seconds) is history, and gives no item.
    """

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[Item]:
        """Return the items of a batch, in the order in which they happened."""

    def end(self) -> None:
        """Take it that the turn is over, which the record may never say."""

    def due(self) -> float | None:
        """Return when `read` wants to be called again, even with nothing new."""

    def dump(self) -> bytes:
        """Return all that is known, for a reader that takes over."""

    def load(self, dumped: bytes) -> None:
        """Take over what another reader of this kind has dumped."""


def seconds(timestamp: str) -> float:
    """Return the Unix seconds of an ISO time; 0 where it is none."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def until(text: str) -> str | None:
    """Return when a limit ends, in the words of the CLI."""
    found = _UNTIL.search(text)
    return found[1].strip() if found else None
