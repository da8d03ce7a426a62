"""Rooms, transports, proxies for the tests of the client."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from csp.client import Transport
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


@pytest.fixture(params=[Transport.WEBSOCKET, Transport.HTTP])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Each way to talk to a gateway, one after the other."""
    chosen: Transport = request.param
    return chosen
