"""The journal of a gateway in a cluster: a copy of the log of its room, byte for byte.

Beside it, a file notes a place in the log from which the next start reads on. The place is some time back,
so that a start also reads the headers of the latest batches; what it has already is compared.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from csp.errors import Broken
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.journal import JsonlJournal, Place
from csp.journal.rewrite import REDACTED

log = logging.getLogger(__name__)

PLACE_NAME: Final = "place.json"
#: Calls are repeated for a few seconds at most, so older headers are not needed.
BACK_S: Final = 30.0
_EVERY_S: Final = 1.0
_REDACTED: Final = REDACTED.encode()


class PlaceFile:
    """The place from which the next start reads on."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PLACE_NAME
        self._recent: deque[tuple[float, Place]] = deque()
        self._saved = Place(0)

    def read(self, last_seq: int) -> Place:
        """Return the place; the start of the log if none fits a journal that ends at `last_seq`."""
        try:
            place = msgspec.json.decode(read_plain(self._path), type=Place)
        except FileNotFoundError:
            return Place(0)
        except (OSError, ValueError, RecursionError) as exc:
            log.warning("place in the log unreadable", extra={"path": str(self._path), "problem": str(exc)})
            return Place(0)
        # The journal may be shorter after a power cut, or another one.
        return place if 0 < place.seq <= last_seq else Place(0)

    def note(self, place: Place) -> bool:
        """Remember a place; return whether there is a newer one to save."""
        now = time.monotonic()
        if not self._recent or now - self._recent[-1][0] > _EVERY_S:
            self._recent.append((now, place))
        while len(self._recent) > 1 and now - self._recent[1][0] > BACK_S:
            self._recent.popleft()
        at, first = self._recent[0]
        return now - at > BACK_S and first.seq > self._saved.seq

    def save(self) -> None:
        """Write the newest place that is old enough; a failure is only logged."""
        self._saved = self._recent[0][1]
        try:
            replace_file(self._path, msgspec.json.encode(self._saved))
        except OSError as exc:
            log.warning("place in the log not saved", extra={"path": str(self._path), "problem": str(exc)})


class Overlap:
    """Compares the beginning of what is read from the log with what the journal has already."""

    def __init__(self, journal: JsonlJournal, after: int) -> None:
        self._lines: Iterator[bytes] = iter(journal.view.lines_after(after))
        self._path = journal.path

    def check(self, lines: Sequence[bytes], first_seq: int) -> None:
        """Raise Broken unless the journal has these lines next; redacted ones may differ."""
        for seq, line in enumerate(lines, first_seq):
            own = next(self._lines, b"")
            if own != line and _REDACTED not in own and _REDACTED not in line:
                raise Broken(
                    f"the journal {str(self._path)!r} differs from the room's log at seq {seq}",
                    "move its folder away, and the gateway makes a copy of the log",
                )
