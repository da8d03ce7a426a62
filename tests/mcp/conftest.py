"""One room for all tests of MCP, which run in one worker: what they talk to loads the SDK once."""

from collections.abc import Iterator

import pytest

from tests.rooms import LiveRoom


@pytest.fixture(scope="package")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    """A gateway in a process of its own."""
    with LiveRoom(tmp_path_factory.mktemp("mcp")) as running:
        yield running
