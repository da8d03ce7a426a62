"""Where the panes of a room go."""

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.terminal.pane_layout import MIN_COLS, MIN_ROWS, Size, capacity, human_rows, layout, share_out

_LEAF: Final = re.compile(r"(\d+)x(\d+),(\d+),(\d+),0")
WIDE: Final = Size(cols=200, rows=49)
SMALL: Final = Size(cols=80, rows=23)

Leaf = tuple[int, int, int, int]


def leaves(text: str) -> list[Leaf]:
    """Read the panes of a layout: columns, rows, left, top of each."""
    found = [tuple(map(int, match)) for match in _LEAF.findall(text)]
    return [(cols, rows, left, top) for cols, rows, left, top in found]


def test_three_agents_stand_side_by_side_below_the_human() -> None:
    human, *agents = leaves(layout(3, WIDE, has_human=True))

    assert human == (200, 9, 0, 0)
    assert agents == [(66, 39, 0, 10), (66, 39, 67, 10), (66, 39, 134, 10)]


def test_the_human_has_a_fifth_of_a_high_window() -> None:
    assert [human_rows(rows) for rows in (100, 49, 23, 12, 1)] == [20, 9, 9, 6, 1]


def test_a_narrow_window_stacks_the_agents_the_first_has_most_room() -> None:
    _, *agents = leaves(layout(3, SMALL, has_human=True))

    assert agents == [(40, 13, 0, 10), (39, 6, 41, 10), (39, 6, 41, 17)]


def test_seven_agents_in_a_small_terminal_need_a_second_window() -> None:
    assert share_out(7, SMALL) == [4, 3]
    assert len(leaves(layout(3, SMALL, has_human=False))) == 3


def test_many_agents_need_many_windows() -> None:
    assert share_out(20, SMALL) == [4, 6, 6, 4]


def test_nobody_but_the_human_has_the_whole_window() -> None:
    assert leaves(layout(0, SMALL, has_human=True)) == [(80, 23, 0, 0)]
    assert share_out(0, SMALL) == [0]


def test_the_checksum_is_the_one_tmux_wants() -> None:
    # As `tmux display -p '#{window_layout}'` of tmux 3.3a shows them.
    assert layout(1, Size(cols=80, rows=24), has_human=False) == "b25d,80x24,0,0,0"


@pytest.mark.parametrize("cols", [1, 20, 39])
def test_a_tiny_window_still_takes_one_agent(cols: int) -> None:
    assert capacity(Size(cols=cols, rows=1), has_human=False) == 1


def test_a_low_window_is_the_human_panes_alone() -> None:
    assert share_out(3, Size(cols=80, rows=9)) == [0, 2, 1]
    assert share_out(3, Size(cols=80, rows=12)) == [0, 2, 1]
    assert share_out(3, Size(cols=80, rows=13)) == [2, 1]


@given(st.integers(1, 30), st.integers(MIN_COLS, 400), st.integers(20, 200))
def test_panes_that_fit_are_large_enough_and_do_not_overlap(agents: int, cols: int, rows: int) -> None:
    size = Size(cols=cols, rows=rows)
    counts = share_out(agents, size)

    assert sum(counts) == agents
    for index, count in enumerate(counts):
        panes = leaves(layout(count, size, has_human=index == 0))
        assert len(panes) == count + (index == 0)
        assert _covered(panes) == len(set(_cells(panes)))
        assert all(left + width <= cols and top + height <= rows for width, height, left, top in panes)
        assert all(width >= MIN_COLS and height >= MIN_ROWS for width, height, _, _ in panes[index == 0 :])


def _covered(panes: list[Leaf]) -> int:
    return sum(width * height for width, height, _, _ in panes)


def _cells(panes: list[Leaf]) -> list[tuple[int, int]]:
    return [
        (x, y)
        for width, height, left, top in panes
        for x in range(left, left + width)
        for y in range(top, top + height)
    ]
