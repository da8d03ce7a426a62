"""The finder of routes."""

import pytest

from csp.errors import NotFound
from csp.gateway.route_table import RouteTable


@pytest.fixture
def table() -> RouteTable[str]:
    table: RouteTable[str] = RouteTable()
    table.add("GET", "/board", "list")
    table.add("POST", "/board", "write")
    table.add("GET", "/board/search", "search")
    table.add("GET", "/board/{id}", "show")
    table.add("GET", "/agents/{id}/screen", "screen")
    table.add("POST", "/agents/{id}/{verb}", "control")
    return table


@pytest.mark.parametrize(
    ("path", "targets", "params"),
    [
        ("/board", {"GET": "list", "POST": "write"}, {}),
        ("/board/search", {"GET": "search"}, {}),
        ("/board/n-1", {"GET": "show"}, {"id": "n-1"}),
        ("/agents/claude/pause", {"POST": "control"}, {"id": "claude", "verb": "pause"}),
    ],
)
def test_a_path_has_its_targets_by_method(
    table: RouteTable[str], path: str, targets: dict[str, str], params: dict[str, str]
) -> None:
    assert table.find(path) == (targets, params)


def test_a_path_belongs_to_the_first_pattern_that_fits(table: RouteTable[str]) -> None:
    assert table.find("/agents/claude/screen") == ({"GET": "screen"}, {"id": "claude"})


@pytest.mark.parametrize("path", ["", "/", "/boards", "/board/n-1/more", "/agents/claude"])
def test_an_unknown_path_is_not_found(table: RouteTable[str], path: str) -> None:
    with pytest.raises(NotFound, match="no route"):
        table.find(path)
