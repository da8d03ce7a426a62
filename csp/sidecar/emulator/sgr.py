"""Rows of styled text from text with colour escapes in it."""

import re
from functools import lru_cache
from typing import Final

from csp.terminal.screen import BLANK, PLAIN, ScreenRow, Style, StyledText

_SGR: Final = re.compile(r"\x1b\[([0-9;:]*)m")
# Links that a formatter may put around their text.
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


def rows_of(text: str, count: int) -> tuple[ScreenRow, ...]:
    """Read lines that end in CR LF or LF; fill up with blank rows to `count`."""
    style = PLAIN
    rows: list[ScreenRow] = []
    if "\x1b]" in text:
        text = _OTHER.sub("", text)
    for line in text.replace("\r\n", "\n").split("\n"):
        row, style = _row(line, style)
        rows.append(row)
    rows.extend([BLANK] * (count - len(rows)))
    return tuple(rows)


def _row(line: str, style: Style) -> tuple[ScreenRow, Style]:
    parts = _SGR.split(line)
    runs: list[StyledText] = []
    for index, part in enumerate(parts):
        if index % 2:
            style = restyled(style, part)
        elif part and runs and runs[-1].style == style:
            runs[-1] = StyledText(runs[-1].text + part, style)
        elif part:
            runs.append(StyledText(part, style))
    return (ScreenRow(tuple(runs)) if runs else BLANK), style


@lru_cache(maxsize=1024)
def restyled(style: Style, parameters: str) -> Style:
    """Give the style that holds after the parameters of one SGR escape."""
    fields = {name: getattr(style, name) for name in Style.__slots__}
    numbers = [int(part.partition(":")[0] or 0) for part in _flat(parameters).split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            fields = {name: getattr(PLAIN, name) for name in Style.__slots__}
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
    return Style(**fields)


def _flat(parameters: str) -> str:
    """Turn colours with colons, as in 38:2::1:2:3, into the form with semicolons."""
    return re.sub(r"([345]8):(2)(?::\d*)?:(\d+):(\d+):(\d+)", r"\1;\2;\3;\4;\5", parameters).replace(
        ":5:", ";5;"
    )


def _colour(numbers: list[int]) -> str | None:
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        return str(numbers.pop(0))
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (numbers.pop(0) & 255 for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    return None
