"""Decide where the panes of a room go: which windows, which size, in tmux's own notation.

The human pane lies across the top of the first window, the agents below it: side by side where they are wide
enough, else in columns of several, else in further windows. A low window is the human pane's alone.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

#: A CLI narrower or lower than this is of no use to a person.
MIN_COLS: Final = 39
MIN_ROWS: Final = 6
#: The human pane has a fifth of the window, with its title line at least this much, but never over half.
HUMAN_SHARE: Final = 5
HUMAN_MIN_ROWS: Final = 9
#: Below this height of the window a fifth would be too low for the human pane.
LOW_WINDOW_ROWS: Final = HUMAN_SHARE * HUMAN_MIN_ROWS


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The inside of a window, in characters."""

    cols: int
    rows: int


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a window, as tmux counts it."""

    cols: int
    rows: int
    left: int = 0
    top: int = 0

    def __str__(self) -> str:
        return f"{self.cols}x{self.rows},{self.left},{self.top}"


def human_rows(rows: int) -> int:
    """Return how high the human pane is in a window of that height, with its title line."""
    return max(1, min(max(HUMAN_MIN_ROWS, rows // HUMAN_SHARE), rows // 2))


def capacity(size: Size, *, has_human: bool) -> int:
    """Return how many agents fit into a window: at least one, but none beside the human pane in a low one."""
    # A title line for each row of agents is included.
    height = size.rows - human_rows(size.rows) if has_human else size.rows
    if has_human and height <= MIN_ROWS:
        return 0
    return _columns(size.cols) * max(1, height // (MIN_ROWS + 1))


def share_out(agents: int, size: Size) -> list[int]:
    """Return how many agents each window has; the first is that of the human pane."""
    counts = [min(agents, capacity(size, has_human=True))]
    left = agents - counts[0]
    further = capacity(size, has_human=False)
    while left > 0:
        counts.append(min(left, further))
        left -= counts[-1]
    return counts


def layout(agents: int, size: Size, *, has_human: bool) -> str:
    """Return the layout of one window for tmux's select-layout; the human pane is its first."""
    whole = Cell(cols=size.cols, rows=size.rows)
    if not has_human:
        return _checked(_grid(agents, whole))
    if agents == 0:
        return _checked(f"{whole},0")
    height = human_rows(size.rows)
    human = Cell(cols=size.cols, rows=height)
    below = Cell(cols=size.cols, rows=size.rows - height - 1, top=height + 1)
    return _checked(f"{whole}[{human},0,{_grid(agents, below)}]")


def _columns(cols: int) -> int:
    return max(1, (cols + 1) // (MIN_COLS + 1))


def _grid(agents: int, area: Cell) -> str:
    """Return agents in columns; the first columns have fewer, so that who comes first has more room."""
    columns = min(agents, _columns(area.cols))
    few, more = divmod(agents, columns)
    heights = [few] * (columns - more) + [few + 1] * more
    cells, left = [], area.left
    for width, count in zip(_spread(area.cols, columns), heights, strict=True):
        column, top = [], area.top
        for height in _spread(area.rows, count):
            column.append(f"{Cell(cols=width, rows=height, left=left, top=top)},0")
            top += height + 1
        whole = Cell(cols=width, rows=area.rows, left=left, top=area.top)
        cells.append(column[0] if count == 1 else f"{whole}[{','.join(column)}]")
        left += width + 1
    return cells[0] if columns == 1 else f"{area}{{{','.join(cells)}}}"


def _spread(length: int, parts: int) -> Sequence[int]:
    """Return the lengths of equal parts with a line between each two; the first ones get what is over."""
    part, over = divmod(length - (parts - 1), parts)
    return [part + (index < over) for index in range(parts)]


def _checked(text: str) -> str:
    """Put tmux's checksum before a layout."""
    total = 0
    for char in text:
        total = ((total >> 1) + ((total & 1) << 15) + ord(char)) & 0xFFFF
    return f"{total:04x},{text}"
