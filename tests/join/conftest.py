"""A room on a host with sshd, and a laptop that joins it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.join.ssh_host import SshHost
from tests.panes.place import Place
from tests.rooms import LiveRoom


@pytest.fixture
def room(tmp_path: Path) -> Iterator[LiveRoom]:
    """The room on the host, which its supervisor starts again when it is killed."""
    with LiveRoom(tmp_path / "room", "--supervise", name="app") as running:
        yield running


@pytest.fixture
def host(tmp_path: Path, room: LiveRoom) -> Iterator[SshHost]:
    with SshHost(tmp_path / "host", room) as running:
        yield running


@pytest.fixture
def laptop(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path / "laptop") as place:
        yield place
