"""A relay in a pane of a real tmux, measured against the same program without one."""

from pathlib import Path

import pytest

from tests.bench.machine import relay
from tests.bench.machine.relay import KINDS, Kind, Tmux


@pytest.mark.parametrize("kind", KINDS)
def test_a_pane_takes_a_flood(tmp_path: Path, kind: Kind) -> None:
    with Tmux(tmp_path) as tmux:
        assert relay.flood_mb_s(tmux, kind, tmp_path, megabytes=2) > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_comes_back(tmp_path: Path, kind: Kind) -> None:
    with Tmux(tmp_path) as tmux:
        assert relay.echo_us(tmux, kind, tmp_path, keys=20) > 0


def test_starts_and_memory_are_measured(tmp_path: Path) -> None:
    assert relay.bare_start_s() > 0
    assert relay.child_first_byte_s("relay", tmp_path) > 0
    assert 1 < relay.bare_memory_mb() < relay.relay_memory_mb(tmp_path) < 1.3 * relay.bare_memory_mb()
