"""Find the pages that people read, their links and their blocks."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent.parent
DOCS: Final = ROOT / "docs"
#: What a page says about a block that cannot be run, or about the room that its blocks need.
_NOT_RUN: Final = re.compile(r"<!-- not run: (.+?) -->")
_FENCE: Final = re.compile(
    r"^(?P<mark>`{3,}|:{3,})(?P<kind>[^\n`]*)\n(?P<body>.*?)^(?P=mark)\s*$", re.DOTALL | re.MULTILINE
)
_LINK: Final = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|(?:src|srcset|href)=\"([^\"]+)\"")


class Block(NamedTuple):
    """A block of commands; `reason` says why it cannot be run, if that is so."""

    page: str
    line: int
    text: str
    reason: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each command with the lines of output that are shown for it."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield command, shown


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def pages() -> list[str]:
    """Return every page of the project, relative to its top."""
    found = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def written_pages() -> list[str]:
    """Return the pages that people write: all but the reference, which is made from the code."""
    made = "docs/reference/"
    return [page for page in pages() if not page.startswith(made) and page != "CHANGELOG.md"]


def blocks(page: str, kind: str = "console") -> list[Block]:
    """Return the blocks of a page that are marked as this kind."""
    text, found = text_of(page), []
    for fence in _FENCE.finditer(text):
        if fence["kind"].strip() == kind:
            above = text[: fence.start()].rstrip("\n").rpartition("\n")[2]
            reason = _NOT_RUN.fullmatch(above.strip())
            line = text.count("\n", 0, fence.start()) + 1
            found.append(Block(page, line, fence["body"], reason[1] if reason else ""))
    return found


def has_room(page: str) -> bool:
    """Tell whether the commands of a page need the demo room to be open."""
    return "<!-- room: demo -->" in text_of(page)


def prose(page: str) -> str:
    """Return a page without its fenced blocks and code; the lines stay where they are."""
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])  # noqa: E731
    return re.sub(r"`[^`\n]*`", blank, _FENCE.sub(blank, text_of(page)))


def links(page: str) -> list[str]:
    """Return the targets of the links and pictures of a page."""
    return [first or second for first, second in _LINK.findall(prose(page))]


def anchors(page: str) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", text_of(page)), re.MULTILINE)
    return {slug(heading) for heading in headings}


def slug(heading: str) -> str:
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def main() -> None:
    """Print the blocks that are not executed, with the reasons, and their number."""
    found = [block for page in pages() for block in blocks(page)]
    marked = [block for block in found if block.reason]
    for block in marked:
        print(f"{block.place}: {block.reason}")
    print(f"{len(marked)} of {len(found)} blocks are not executed")


if __name__ == "__main__":
    main()
