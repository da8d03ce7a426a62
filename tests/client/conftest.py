"""Rooms, transports, proxies for the tests of the client."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from csp.client import Transport
from tests.client.proxy import Proxy
from tests.rooms import LiveRoom


@pytest.fixture
def room(tmp_path: Path) -> Iterator[LiveRoom]:
    """A room whose gateway runs."""
    with LiveRoom(tmp_path / "room") as running:
        yield running


@pytest.fixture
async def proxy(room: LiveRoom) -> AsyncIterator[Proxy]:
    """A way to the room that can be disturbed."""
    async with Proxy(room.port) as between:
        yield between


@pytest.fixture(params=[Transport.WEBSOCKET, Transport.HTTP])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Each way to talk to a gateway, one after the other."""
    chosen: Transport = request.param
    return chosen
