"""Rooms for the tests of the gateway."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cluster.nats_servers import nats_server
from tests.gateway.served import Clock, ServedRoom, served

__all__ = ["nats_server"]


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[ServedRoom]:
    """A served room with the real clock."""
    async with served(tmp_path / "room") as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def still_room(tmp_path: Path, clock: Clock) -> AsyncIterator[ServedRoom]:
    """A served room whose clock is the `clock` of the test."""
    async with served(tmp_path / "room", clock) as running:
        yield running
