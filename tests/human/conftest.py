"""One room for the tests of a module; each test begins with nobody in it."""

from collections.abc import Iterator

import pytest

from tests.human.scene import empty
from tests.rooms import LiveRoom


@pytest.fixture(scope="module")
def shared_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    with LiveRoom(tmp_path_factory.mktemp("room")) as room:
        yield room


@pytest.fixture
def room(shared_room: LiveRoom) -> LiveRoom:
    empty(shared_room)
    return shared_room
