"""How the scripted TUI draws its composer."""

from argparse import Namespace
from collections.abc import Callable
from typing import Final

from tests.tui.drawing import CARET, FAINT, PLAIN

_WIDTH: Final = 60


def framed(knobs: Namespace, draft: str) -> list[str]:
    """Return the rows of a composer that holds `draft`; the caret is marked where text would go."""
    sign = "" if knobs.frame == "bar" else knobs.prompt_sign
    rows = [
        f"{sign}{line}" if not at else " " * len(sign) + line for at, line in enumerate(_lines(knobs, draft))
    ]
    return _FRAMES[knobs.frame](rows)


def _lines(knobs: Namespace, draft: str) -> list[str]:
    caret = "\x1b[7m \x1b[0m" if knobs.drawn_caret else CARET
    lines = draft.split("\n")
    if knobs.collapse and len(lines) > knobs.collapse:
        return [knobs.marker.replace("{more}", str(len(lines) - 1)) + caret]
    if not draft and knobs.placeholder:
        looks = ("", "") if knobs.plain_placeholder else (FAINT, PLAIN)
        return [f"{caret}{looks[0]}{knobs.placeholder}{looks[1]}"]
    return [*lines[:-1], lines[-1] + caret]


def _boxed(rows: list[str]) -> list[str]:
    return [f"╭{'─' * _WIDTH}╮", *(f"│ {row}" for row in rows), f"╰{'─' * _WIDTH}╯", "  help"]


def _barred(rows: list[str]) -> list[str]:
    return ["┃", *(f"┃  {row}" for row in rows), "┃", "┃  Model", f"╹{'▀' * _WIDTH}"]


def _ruled(rows: list[str]) -> list[str]:
    return ["─" * _WIDTH, *rows, "─" * _WIDTH, "  ? for help"]


_FRAMES: Final[dict[str, Callable[[list[str]], list[str]]]] = {
    "sign": lambda rows: rows,
    "box": _boxed,
    "bar": _barred,
    "rules": _ruled,
}
