"""Recordings of real CLIs: raw bytes, with what tmux showed of them and what the model had said.

Where the expected rows are not tmux's, the row says so here, with the proof.
"""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

DIRECTORY: Final = Path(__file__).parent.parent / "testdata" / "recordings"
NAMES: Final = sorted(path.stem for path in DIRECTORY.glob("*.json"))

# (recording, row): what tmux's row has in it, our row.
NOT_TMUX: Final[dict[tuple[str, int], tuple[str, str]]] = {
    # The names of directories were changed in the captures and, where they stood in one piece, in the bytes.
    # Codex drew this row letter by letter over an older one, so its bytes have the directory's own name.
    ("codex-permission", 10): ("made-by-bash.txt", "• Ran echo side-effect > /tmp/demo/made-by-bash.txt"),
    # tmux 3.3a loses the tone of the thumb, and counts a cell too few for the heart: the row is the model's.
    ("claude-emoji", 8): ("👍 thumbs", "  Row two 👨‍👩‍👧 family, 👍🏽 thumbs, 🇨🇭 flag, ❤️ heart"),
}
# Gemini draws its footer over the last lines of a long answer: they are on no screen, tmux's or ours.
ERASED: Final = {"gemini-long": range(297, 301)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One turn of a CLI."""

    name: str
    data: bytes
    rows: int
    cols: int
    screen: list[str]
    history: list[str]
    cursor: tuple[int, int]
    is_alternate: bool
    title: str
    permission: list[str]
    permission_bytes: int
    pieces: list[tuple[int, int]]
    """Where each piece of the bytes began and ended, as they came."""
    model_texts: list[str]


@cache
def recording(name: str) -> Recording:
    facts = json.loads((DIRECTORY / f"{name}.json").read_text("utf-8"))
    state = dict(part.partition("=")[::2] for part in facts["tmux_state"].split(" ", 4))
    column, row = state["cursor"].split(",")
    history = trimmed(facts["tmux_history"])
    return Recording(
        name=name,
        data=gzip.decompress((DIRECTORY / f"{name}.bin.gz").read_bytes()),
        rows=facts["rows"],
        cols=facts["cols"],
        screen=_expected(name, trimmed(facts["tmux_screen"])),
        history=_expected(name, history),
        cursor=(int(column), int(row)),
        is_alternate=state["alt"] == "1",
        title=state["title"].rstrip(),
        permission=trimmed(facts.get("permission_screen", [])),
        permission_bytes=_shown_before(facts),
        pieces=[(start, start + size) for _, start, size in facts["chunks"]],
        model_texts=[part["reply"]["text"] for part in facts["model"] if part["reply"]["kind"] == "text"],
    )


def trimmed(lines: list[str]) -> list[str]:
    """Cut blanks off the ends of lines, and blank lines off the end."""
    lines = [line.rstrip() for line in lines]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _expected(name: str, lines: list[str]) -> list[str]:
    for (recorded, y), (proof, line) in NOT_TMUX.items():
        if recorded == name:
            assert proof in lines[y]
            lines[y] = line
    return lines


def _shown_before(facts: dict[str, Any]) -> int:
    """Count the bytes that had come when the permission dialog was captured."""
    times = [event["t"] for event in facts["events"] if event["event"] == "permission-shown"]
    return sum(size for at, _, size in facts["chunks"] if times and at <= times[0])
