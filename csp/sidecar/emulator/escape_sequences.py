"""Parse escape sequences in terminal output: text styles and operating system commands (OSC)."""

import re
from functools import lru_cache
from typing import Final

import msgspec

from csp.protocol.screen_frames import PLAIN, RunView, StyleView
from csp.terminal.screen import BLANK, ScreenRow

MAX_BYTES: Final = 4096
MAX_WAITING: Final = 1000

_START: Final = b"\x1b]"
# Any ESC ends a command, including that of ESC \, so there is no need to wait for the character after it.
_END: Final = re.compile(rb"[\x07\x18\x1a\x1b]")
_CANCELS: Final = (b"\x18", b"\x1a")
_BODY: Final = re.compile(rb"(\d{1,6})(?:;(.*))?\Z", re.DOTALL)
_TITLES: Final = (0, 2)
_SGR: Final = re.compile(r"\x1b\[([0-9;:]*)m")
_COLONS: Final = re.compile(r"([345]8):(2)(?::\d*)?:(\d+):(\d+):(\d+)")
# Hyperlinks that a formatter may put around their text.
_OTHER: Final = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_FLAGS: Final[dict[int, dict[str, bool]]] = {
    1: {"bold": True},
    2: {"faint": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"reverse": True},
    21: {"underline": True},
    22: {"bold": False, "faint": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"reverse": False},
}


class OscReader:
    """A parser that collects the (number, text) of each command, even if it arrives in several pieces."""

    def __init__(self) -> None:
        self.title = ""
        self._found: list[tuple[int, str]] = []
        self._rest = b""
        self._is_too_long = False

    def feed(self, data: bytes) -> None:
        if not self._rest and not self._is_too_long and _START not in data and data[-1:] != b"\x1b":
            return
        data, self._rest, place = self._rest + data, b"", 0
        if self._is_too_long:
            if (end := _END.search(data)) is None:
                return
            self._is_too_long, place = False, end.start()
        while (start := data.find(_START, place)) >= 0:
            end = _END.search(data, start + 2)
            if end is None:
                self._is_too_long = len(data) - start > MAX_BYTES
                self._rest = b"" if self._is_too_long else data[start:]
                return
            place = end.start()
            command = _BODY.match(data, start + 2, place)
            if command is None or end.group() in _CANCELS or place - start > MAX_BYTES:
                continue
            number, text = int(command[1]), (command[2] or b"").decode("utf-8", "replace")
            if number in _TITLES:
                self.title = text
            self._found.append((number, text))
            del self._found[:-MAX_WAITING]
        if data.endswith(b"\x1b"):
            self._rest = b"\x1b"

    def drain(self) -> list[tuple[int, str]]:
        """Return the commands completed since the last call."""
        found, self._found = self._found, []
        return found


def rows_of(text: str, count: int) -> tuple[ScreenRow, ...]:
    """Parse lines that end in CR LF or LF; append blank rows up to `count`."""
    style = PLAIN
    rows: list[ScreenRow] = []
    if "\x1b]" in text:
        text = _OTHER.sub("", text)
    for line in text.replace("\r\n", "\n").split("\n"):
        runs: list[RunView] = []
        for index, part in enumerate(_SGR.split(line)):
            if index % 2:
                style = restyled(style, part)
            elif part and runs and runs[-1].style == style:
                runs[-1] = RunView(runs[-1].text + part, style)
            elif part:
                runs.append(RunView(part, style))
        rows.append(ScreenRow(tuple(runs)) if runs else BLANK)
    rows.extend([BLANK] * (count - len(rows)))
    return tuple(rows)


@lru_cache(maxsize=1024)
def restyled(style: StyleView, parameters: str) -> StyleView:
    """Return the style after applying the parameters of one SGR sequence."""
    fields = msgspec.structs.asdict(style)
    # Convert colours with colons, such as 38:2::1:2:3, to the form with semicolons.
    flat = _COLONS.sub(r"\1;\2;\3;\4;\5", parameters).replace(":5:", ";5;")
    numbers = [int(part.partition(":")[0] or 0) for part in flat.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            fields = msgspec.structs.asdict(PLAIN)
        elif code in _FLAGS:
            fields.update(_FLAGS[code])
        elif code in (38, 48):
            fields["fg" if code == 38 else "bg"] = _colour(numbers)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            fields["fg"] = str(code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            fields["bg"] = str(code - 40 if code < 100 else code - 92)
        elif code == 39:
            fields["fg"] = None
        elif code == 49:
            fields["bg"] = None
        elif code == 58:
            _colour(numbers)
    return StyleView(**fields)


def _colour(numbers: list[int]) -> str | None:
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        return str(numbers.pop(0))
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (numbers.pop(0) & 255 for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    return None
