"""A place for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.panes.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path) as place:
        yield place
