"""Captures of real CLIs in tmux: rows with colours (.ansi), cursor and flags (.info); or their bytes."""

import gzip
import re
from pathlib import Path
from typing import Final

from csp.sidecar.emulator.escape_sequences import rows_of
from csp.terminal.screen import Screen

DIRECTORY: Final = Path(__file__).parent.parent / "testdata" / "screens"
CLIS: Final = ("claude", "codex", "gemini")


def cases(cli: str) -> set[str]:
    return {path.stem for path in (DIRECTORY / cli).glob("*.info")}


def capture(cli: str, case: str) -> Screen:
    info = (DIRECTORY / cli / f"{case}.info").read_text("utf-8")
    ansi = (DIRECTORY / cli / f"{case}.ansi").read_text("utf-8")
    facts = dict(re.findall(r"(\w+)=(\S*)", info))
    cols, rows = (int(side) for side in facts.get("size", "120x40").split("x"))
    column, row = (int(place) for place in facts["cursor"].split(","))
    title = re.search(r"title=(.*?)\s+dead=", info)
    return Screen(
        rows=rows_of(ansi.removesuffix("\n"), rows),
        cols=cols,
        cursor_row=row,
        cursor_col=column,
        cursor_visible=facts["flag"] == "1",
        alternate=facts["alt"] == "1",
        title=title[1] if title else "",
    )


def raw_bytes(cli: str, case: str) -> bytes:
    return gzip.decompress((DIRECTORY / cli / f"{case}.bin.gz").read_bytes())
