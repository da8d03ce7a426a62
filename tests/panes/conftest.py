"""A place for each test, or one for all tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.panes.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A place that all tests of a module use, one after the other."""
    with Place(tmp_path_factory.mktemp("place")) as place:
        yield place


@pytest.fixture
def bare(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place without a room, whose tmux server is that of this process too."""
    for name in ("TMUX", "TMUX_PANE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in place.env.items():
        monkeypatch.setenv(name, value)
    return place
