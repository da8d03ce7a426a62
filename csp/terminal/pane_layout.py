"""Compute the windows and sizes of a room's panes, in tmux's own layout notation.

There are three forms. `top`: the human pane is at the top of the first window, with the agents below it.
`left`: it is on the left, with the agents beside it in a column. `focus`: it has the first window to itself.
Agents are side by side if they are wide enough, else in columns of several, else in more windows. In a
narrow terminal each agent has its own window, because two panes side by side would be unreadable.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

#: A narrower or shorter pane is of no use to a CLI.
MIN_COLS: Final = 39
MIN_ROWS: Final = 6
#: Minimum height of CLIs beside the human pane; a second column is added before they get shorter.
GOOD_ROWS: Final = 10
#: Minimum size of the human pane, including its title line.
HUMAN_MIN_ROWS: Final = 9
HUMAN_MIN_COLS: Final = 40
#: From this width on, the human pane is on the left; below the second width, each agent has its own window.
WIDE_COLS: Final = 160
NARROW_COLS: Final = 100


class LayoutName(StrEnum):
    """The forms that a person can choose."""

    TOP = "top"
    LEFT = "left"
    FOCUS = "focus"


#: The human pane's share of the window in thousandths, because whole percentages would make its size drift.
SHARES: Final = {LayoutName.TOP: 400, LayoutName.LEFT: 450, LayoutName.FOCUS: 1000}
_HALF: Final = 500


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The inner size of a window, in characters."""

    cols: int
    rows: int


class LayoutForm(msgspec.Struct, frozen=True):
    """The form of a room's windows, and the human pane's share of the first one, in thousandths."""

    name: LayoutName
    share: int

    def human(self, size: Size) -> "Cell":
        """Return the human pane's cell in a window with agents."""
        if self.name is LayoutName.LEFT:
            return Cell(cols=_part(size.cols, self.share, HUMAN_MIN_COLS, MIN_COLS), rows=size.rows)
        return Cell(cols=size.cols, rows=_part(size.rows, self.share, HUMAN_MIN_ROWS, MIN_ROWS + 1))

    def share_of(self, human: "Cell", size: Size) -> int:
        """Return the share that corresponds to a human pane of this size."""
        part, whole = (human.cols, size.cols) if self.name is LayoutName.LEFT else (human.rows, size.rows)
        # Rounded up, so that the share yields the same size again.
        return min(950, max(50, -(-1000 * part // whole)))


def default_form(size: Size, name: LayoutName | None = None) -> LayoutForm:
    """Return the form for a window of this size, or the form with this name and its default share."""
    name = name or (LayoutName.LEFT if size.cols >= WIDE_COLS else LayoutName.TOP)
    return LayoutForm(name, SHARES[name])


def _part(length: int, share: int, least: int, least_of_others: int) -> int:
    """Return the human pane's part of a length; with a default share it is never more than half."""
    most = length // 2 if share <= _HALF else length - least_of_others - 1
    return max(1, min(max(least, length * share // 1000), most))


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """A place in a window, in tmux's coordinates."""

    cols: int
    rows: int
    left: int = 0
    top: int = 0

    def __str__(self) -> str:
        return f"{self.cols}x{self.rows},{self.left},{self.top}"


def capacity(size: Size, form: LayoutForm, *, has_human: bool) -> int:
    """Return the number of agents that fit into a window; it may be 0 only next to the human pane."""
    if size.cols < NARROW_COLS:
        return 0 if has_human else 1
    if not has_human:
        return _columns(size.cols) * max(1, size.rows // (MIN_ROWS + 1))
    if form.name is LayoutName.FOCUS:
        return 0
    area = _beside(form, size)
    # Includes a title line for each row of agents.
    if area.rows < MIN_ROWS or area.cols < MIN_COLS:
        return 0
    return _columns(area.cols) * max(1, (area.rows + 1) // (MIN_ROWS + 1))


def share_out(agents: int, size: Size, form: LayoutForm) -> list[int]:
    """Return the number of agents in each window; the first window is that of the human pane."""
    counts = [min(agents, capacity(size, form, has_human=True))]
    left = agents - counts[0]
    further = capacity(size, form, has_human=False)
    while left > 0:
        counts.append(min(left, further))
        left -= counts[-1]
    return counts


def layout(agents: int, size: Size, form: LayoutForm, *, has_human: bool) -> str:
    """Return the layout of one window for tmux's select-layout, with the human pane first."""
    whole = Cell(cols=size.cols, rows=size.rows)
    if not has_human:
        return _checked(_grid(agents, whole, _columns_for(agents, whole)))
    if agents == 0:
        return _checked(f"{whole},0")
    human, area = form.human(size), _beside(form, size)
    if form.name is LayoutName.LEFT:
        # One column, as long as each agent is tall enough.
        columns = min(_columns_for(agents, area), -(-agents * (GOOD_ROWS + 1) // (area.rows + 1)))
        return _checked(f"{whole}{{{human},0,{_grid(agents, area, max(1, columns))}}}")
    return _checked(f"{whole}[{human},0,{_grid(agents, area, _columns_for(agents, area))}]")


def human_cell(text: str) -> Cell:
    """Return the size of the first pane in a tmux layout string."""
    body = text.partition(",")[2]
    inner = body[min((at for at in map(body.find, "[{") if at >= 0), default=-1) + 1 :]
    cols, _, rows = inner.split(",", 1)[0].partition("x")
    return Cell(cols=int(cols), rows=int(rows))


def _beside(form: LayoutForm, size: Size) -> Cell:
    """Return the part of the window that the human pane leaves to the agents."""
    human = form.human(size)
    if form.name is LayoutName.LEFT:
        return Cell(cols=size.cols - human.cols - 1, rows=size.rows, left=human.cols + 1)
    return Cell(cols=size.cols, rows=size.rows - human.rows - 1, top=human.rows + 1)


def _columns(cols: int) -> int:
    return max(1, (cols + 1) // (MIN_COLS + 1))


def _columns_for(agents: int, area: Cell) -> int:
    return min(agents, _columns(area.cols))


def _grid(agents: int, area: Cell, columns: int) -> str:
    """Arrange agents in columns; the first columns have fewer, so that the first agents have more space."""
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
    """Return the lengths of equal parts separated by single lines; the first parts get the remainder."""
    part, over = divmod(length - (parts - 1), parts)
    return [part + (index < over) for index in range(parts)]


def _checked(text: str) -> str:
    """Return a layout prefixed with tmux's checksum."""
    total = 0
    for char in text:
        total = ((total >> 1) + ((total & 1) << 15) + ord(char)) & 0xFFFF
    return f"{total:04x},{text}"
