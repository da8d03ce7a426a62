"""Where the panes of a room go."""

import re
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.terminal.pane_layout import (
    MIN_COLS,
    MIN_ROWS,
    Cell,
    LayoutForm,
    LayoutName,
    Size,
    capacity,
    default_form,
    human_cell,
    layout,
    share_out,
)

_LEAF: Final = re.compile(r"(\d+)x(\d+),(\d+),(\d+),0")
WIDE: Final = Size(cols=200, rows=49)
MIDDLE: Final = Size(cols=120, rows=39)
SMALL: Final = Size(cols=80, rows=23)
TOP: Final = default_form(WIDE, LayoutName.TOP)
LEFT: Final = default_form(WIDE, LayoutName.LEFT)

Leaf = tuple[int, int, int, int]


def leaves(text: str) -> list[Leaf]:
    """Read the panes of a layout: columns, rows, left, top of each."""
    found = [tuple(map(int, match)) for match in _LEAF.findall(text)]
    return [(cols, rows, left, top) for cols, rows, left, top in found]


def test_in_a_wide_window_the_agents_stand_beside_the_human_one_below_the_other() -> None:
    human, *agents = leaves(layout(3, WIDE, LEFT, has_human=True))

    assert human == (90, 49, 0, 0)
    assert agents == [(109, 16, 91, 0), (109, 16, 91, 17), (109, 15, 91, 34)]


def test_many_agents_beside_the_human_get_a_second_column() -> None:
    _, *agents = leaves(layout(6, WIDE, LEFT, has_human=True))

    assert {left for _, _, left, _ in agents} == {91, 146}
    assert min(rows for _, rows, _, _ in agents) == 15


def test_three_agents_stand_side_by_side_below_the_human() -> None:
    human, *agents = leaves(layout(3, MIDDLE, TOP, has_human=True))

    assert human == (120, 15, 0, 0)
    assert agents == [(40, 23, 0, 16), (39, 23, 41, 16), (39, 23, 81, 16)]


def test_in_the_focus_form_the_human_has_a_window_alone() -> None:
    assert share_out(3, WIDE, default_form(WIDE, LayoutName.FOCUS)) == [0, 3]


def test_the_form_follows_the_width_until_somebody_chooses() -> None:
    assert default_form(WIDE) == LEFT
    assert default_form(Size(cols=159, rows=49)) == TOP


@pytest.mark.parametrize(("rows", "expected"), [(100, 40), (49, 19), (23, 9), (12, 6), (1, 1)])
def test_the_human_has_two_fifths_of_a_high_window(rows: int, expected: int) -> None:
    assert TOP.human(Size(cols=120, rows=rows)).rows == expected


def test_in_a_narrow_window_each_agent_has_a_window_of_its_own() -> None:
    assert share_out(3, SMALL, TOP) == [0, 1, 1, 1]
    assert share_out(3, SMALL, LEFT) == [0, 1, 1, 1]
    assert leaves(layout(1, SMALL, TOP, has_human=False)) == [(80, 23, 0, 0)]


def test_many_agents_need_many_windows() -> None:
    assert share_out(20, Size(cols=100, rows=23), TOP) == [4, 6, 6, 4]


def test_nobody_but_the_human_has_the_whole_window() -> None:
    assert leaves(layout(0, SMALL, TOP, has_human=True)) == [(80, 23, 0, 0)]
    assert share_out(0, SMALL, TOP) == [0]


@given(
    st.integers(100, 400), st.integers(20, 200), st.sampled_from([LayoutName.TOP, LayoutName.LEFT]), st.data()
)
def test_a_size_that_a_person_gave_comes_of_its_share_again(
    cols: int, rows: int, name: LayoutName, data: st.DataObject
) -> None:
    size = Size(cols=cols, rows=rows)
    length, least, others = (rows, 9, 8) if name is LayoutName.TOP else (cols, 40, 40)
    chosen = data.draw(st.integers(max(least, -(-length // 20)), max(least, length * 9 // 10 - others)))
    human = Cell(cols=cols, rows=chosen) if name is LayoutName.TOP else Cell(cols=chosen, rows=rows)
    form = LayoutForm(name, 0)

    again = LayoutForm(name, form.share_of(human, size)).human(size)

    assert again == human or chosen > length // 2 or again.rows < least


def test_the_human_pane_is_the_first_of_a_layout() -> None:
    # As `tmux display -p '#{window_layout}'` of tmux 3.3a shows them.
    assert human_cell("6ab7,200x49,0,0{90x49,0,0,1,109x49,91,0,2}") == Cell(cols=90, rows=49)
    assert human_cell("99d5,120x39,0,0[120x15,0,0,1,120x23,0,16{60x23,0,16,2,59x23,61,16,3}]") == Cell(
        cols=120, rows=15
    )
    assert human_cell("b25d,80x24,0,0,0") == Cell(cols=80, rows=24)


def test_the_checksum_is_the_one_tmux_wants() -> None:
    # As `tmux display -p '#{window_layout}'` of tmux 3.3a shows them.
    assert layout(1, Size(cols=80, rows=24), TOP, has_human=False) == "b25d,80x24,0,0,0"


@pytest.mark.parametrize("cols", [1, 20, 39])
def test_a_tiny_window_still_takes_one_agent(cols: int) -> None:
    assert capacity(Size(cols=cols, rows=1), TOP, has_human=False) == 1


def test_a_low_window_is_the_human_panes_alone() -> None:
    assert share_out(3, Size(cols=100, rows=9), TOP) == [0, 2, 1]
    assert share_out(3, Size(cols=100, rows=12), TOP) == [0, 2, 1]
    assert share_out(3, Size(cols=100, rows=13), TOP) == [2, 1]


@given(
    st.integers(1, 30), st.integers(MIN_COLS, 400), st.integers(20, 200), st.sampled_from(list(LayoutName))
)
def test_panes_that_fit_are_large_enough_and_do_not_overlap(
    agents: int, cols: int, rows: int, name: LayoutName
) -> None:
    size = Size(cols=cols, rows=rows)
    form = default_form(size, name)
    counts = share_out(agents, size, form)

    assert sum(counts) == agents
    for index, count in enumerate(counts):
        panes = leaves(layout(count, size, form, has_human=index == 0))
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
