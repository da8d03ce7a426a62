"""One room with one human pane for the tests of a module; each test begins with nobody in it."""

from collections.abc import Iterator

import pytest

from tests.human.scene import Pane, empty, open_pane
from tests.rooms import LiveRoom


@pytest.fixture(scope="module")
def shared_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    with LiveRoom(tmp_path_factory.mktemp("room")) as room:
        yield room


@pytest.fixture
def room(shared_room: LiveRoom) -> LiveRoom:
    empty(shared_room)
    return shared_room


@pytest.fixture(scope="module")
def shared_pane(shared_room: LiveRoom) -> Iterator[Pane]:
    with open_pane(shared_room) as pane:
        yield pane


@pytest.fixture
def pane(room: LiveRoom, shared_pane: Pane) -> Pane:
    """The pane of the module, with nothing in it and nobody in the room."""
    shared_pane.begin_anew()
    return shared_pane
