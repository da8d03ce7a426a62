"""Rooms and proxies for the tests of the client."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.client.proxy import Proxy
from tests.rooms import Room, ThreadRoom


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A room whose gateway runs."""
    with ThreadRoom(tmp_path / "room", env={"CSP_DURABILITY": "flush"}) as running:
        yield running


@pytest.fixture
async def proxy(room: Room) -> AsyncIterator[Proxy]:
    """A way to the room that can be disturbed."""
    async with Proxy(room.port) as between:
        yield between
