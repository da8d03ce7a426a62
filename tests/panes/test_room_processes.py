"""What is known of a room on this machine: its gateway, its members."""

import stat
from pathlib import Path

import pytest

from csp.errors import Broken
from csp.panes.members import PaneMember
from csp.panes.room_processes import RoomProcesses


def test_the_lineup_is_read_as_it_was_written(tmp_path: Path) -> None:
    processes = RoomProcesses(tmp_path, "default")
    members = (PaneMember(name="A", agent="a", command=("x", "y"), cwd=Path("/p"), worktree=True),)
    processes.save_lineup(members)

    assert processes.lineup() == members
    (tmp_path / "default.lineup").write_text("[3]")
    assert processes.lineup() == ()


@pytest.mark.parametrize("text", ["{}", "3", '[{"name": "a"}]', '["x"]', "nonsense", '{"a": 1}'])
def test_a_damaged_lineup_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "default.lineup").write_text(text)

    assert RoomProcesses(tmp_path, "default").lineup() == ()


def test_what_is_written_is_whole_for_its_user_alone_and_follows_no_link(tmp_path: Path) -> None:
    path, foreign = tmp_path / "default.lineup", tmp_path / "foreign"
    foreign.write_text("keep")
    path.symlink_to(foreign)
    RoomProcesses(tmp_path, "default").save_lineup(())

    assert foreign.read_text() == "keep" and not path.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_gateway_that_has_ended_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(Broken, match="the gateway of room 'default' has ended"):
        RoomProcesses(tmp_path, "default").gateway()
