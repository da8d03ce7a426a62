"""What the tests of sidecars share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sidecar.stage import Stage


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A room for the tests of a module that do not get in each other's way: each has agents of its own."""
    with Stage(tmp_path_factory.mktemp("shared")) as stage:
        yield stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A room with a tmux server of its own."""
    with Stage(tmp_path) as stage:
        yield stage
