"""What a link writes about itself."""

import time
from pathlib import Path

import pytest

from csp.join.link_state import LinkState


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    before = time.time()
    LinkState("server:app", 40123, "no route").save(tmp_path, "app-server")
    found = LinkState.load(tmp_path, "app-server")

    assert found is not None
    assert found[:3] == ("server:app", 40123, "no route")
    assert before <= found.since <= time.time()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"target": "x", "port": "y"}', b"\xff"])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "app.link").write_bytes(data)

    assert LinkState.load(tmp_path, "app") is None
    assert LinkState.load(tmp_path, "other") is None
