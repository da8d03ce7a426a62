"""What the tests of sidecars share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sidecar.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A room with a tmux server of its own."""
    with Stage(tmp_path) as stage:
        yield stage
