"""The files by which rooms are announced, and the tokens of their agents."""

import fcntl
import json
import os
from pathlib import Path
from unittest import mock

import pytest

from csp.errors import BadInput, Broken
from csp.fast_start import room_files
from csp.fast_start.atomic_files import draft_of
from csp.fast_start.room_files import is_name, make_private_dir, read_running, save_token, token_path


@pytest.mark.parametrize(
    ("name", "is_good"),
    [("a", True), ("a-9", True), ("a" * 32, True), ("a" * 33, False), ("", False), ("A", False),
     ("..", False), ("a/b", False), ("a_b", False)],
)  # fmt: skip
def test_a_name_leads_nowhere_else(name: str, is_good: bool) -> None:
    assert is_name(name) is is_good
    if not is_good:
        with pytest.raises(BadInput, match="expected a name"):
            token_path("/state", "room", name)
        with pytest.raises(BadInput, match="expected a name"):
            token_path("/state", name, "ada")


def announce(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({"url": "http://room", **fields}))


def test_a_room_that_holds_its_lock_runs(tmp_path: Path) -> None:
    path = tmp_path / "default.json"
    announce(path)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert read_running(str(path)) == {"url": "http://room"}
    assert read_running(str(path)) is None
    assert not path.exists()


def test_a_room_between_two_processes_of_its_supervisor_runs(tmp_path: Path) -> None:
    path = tmp_path / "default.json"
    announce(path, supervisor=os.getpid())
    assert read_running(str(path)) == {"url": "http://room", "supervisor": os.getpid()}
    announce(path, supervisor=2**22 + 1)
    assert read_running(str(path)) is None
    assert not path.exists()


def test_the_file_of_a_room_that_has_just_begun_anew_is_left(tmp_path: Path) -> None:
    path = tmp_path / "default.json"
    announce(path)
    with mock.patch.object(room_files, "is_at", return_value=False):
        assert read_running(str(path)) is None
    assert path.exists()


def test_a_link_or_nothing_is_no_room(tmp_path: Path) -> None:
    announce(tmp_path / "target")
    (tmp_path / "link.json").symlink_to(tmp_path / "target")

    assert read_running(str(tmp_path / "link.json")) is None
    assert read_running(str(tmp_path / "none.json")) is None
    assert (tmp_path / "target").exists()


def test_nonsense_is_no_room(tmp_path: Path) -> None:
    for text in ("", "[]", "nonsense"):
        path = tmp_path / "default.json"
        path.write_text(text)
        with path.open("rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert read_running(str(path)) is None


def test_a_token_is_private_and_replaced_whole(tmp_path: Path) -> None:
    state = tmp_path / "state"
    path = Path(save_token(str(state), "default", "ada", "one"))
    save_token(str(state), "default", "ada", "two")
    other = save_token(str(state), "default", "ada", "three", kind="mcp")

    assert path == state / "default.agents" / "ada.token"
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert state.stat().st_mode & 0o777 == path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["ada.mcp", "ada.token"]
    assert other.endswith("/ada.mcp")


def test_a_token_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "default.agents").write_text("a file")
    with pytest.raises(Broken, match=r"cannot write '.*ada\.token'"):
        save_token(str(tmp_path), "default", "ada", "one")


def test_a_folder_that_others_can_look_into_is_made_private(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    make_private_dir(folder)

    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_token_is_never_written_through_a_link(tmp_path: Path) -> None:
    folder, other = tmp_path / "default.agents", tmp_path / "other"
    folder.mkdir()
    other.write_text("not ours")
    (folder / "ada.token").symlink_to(other)
    Path(draft_of(folder / "ada.token")).symlink_to(other)
    room_files.save_token(str(tmp_path), "default", "ada", "secret")

    assert (other.read_text(), (folder / "ada.token").read_text()) == ("not ours", "secret")


def test_a_token_that_cannot_be_written_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "default.agents" / "ada.token").mkdir(parents=True)

    with pytest.raises(Broken, match=r"cannot write .*ada\.token': is a directory"):
        room_files.save_token(str(tmp_path), "default", "ada", "secret")


def test_a_file_that_was_removed_meanwhile_is_not_at_its_path(tmp_path: Path) -> None:
    path = tmp_path / "default.json"
    with path.open("w") as file:
        assert room_files.is_at(file.fileno(), str(path))
        path.unlink()
        assert not room_files.is_at(file.fileno(), str(path))
        path.touch()
        assert not room_files.is_at(file.fileno(), str(path))
