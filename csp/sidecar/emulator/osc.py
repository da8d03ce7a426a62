"""Operating system commands picked out of a terminal's output."""

import re
from typing import Final

MAX_BYTES: Final = 4096
MAX_WAITING: Final = 1000

_START: Final = b"\x1b]"
# Any escape ends a command, so the one of ESC \ does, and what follows it is not waited for.
_END: Final = re.compile(rb"[\x07\x18\x1a\x1b]")
_CANCELS: Final = (b"\x18", b"\x1a")
_BODY: Final = re.compile(rb"(\d{1,6})(?:;(.*))?\Z", re.DOTALL)
_TITLES: Final = (0, 2)


class OscReader:
    """Collect (number, text) of each complete command, whatever the pieces it comes in."""

    def __init__(self) -> None:
        self.title = ""
        self._found: list[tuple[int, str]] = []
        self._rest = b""
        self._is_too_long = False

    def feed(self, data: bytes) -> None:
        if not self._rest and not self._is_too_long and _START not in data and data[-1:] != b"\x1b":
            return
        data = self._rest + data
        self._rest = b""
        place = 0
        if self._is_too_long:
            if (end := _END.search(data)) is None:
                return
            self._is_too_long = False
            place = end.start()
        self._scan(data, place)

    def drain(self) -> list[tuple[int, str]]:
        """Hand over what was found since the last call."""
        found, self._found = self._found, []
        return found

    def _scan(self, data: bytes, place: int) -> None:
        while (start := data.find(_START, place)) >= 0:
            end = _END.search(data, start + 2)
            if end is None:
                self._is_too_long = len(data) - start > MAX_BYTES
                self._rest = b"" if self._is_too_long else data[start:]
                return
            place = end.start()
            if end.group() not in _CANCELS and place - start <= MAX_BYTES:
                self._add(data[start + 2 : place])
        if data.endswith(b"\x1b"):
            self._rest = b"\x1b"

    def _add(self, body: bytes) -> None:
        match = _BODY.match(body)
        if match is None:
            return
        number, text = int(match[1]), (match[2] or b"").decode("utf-8", "replace")
        if number in _TITLES:
            self.title = text
        self._found.append((number, text))
        del self._found[:-MAX_WAITING]
