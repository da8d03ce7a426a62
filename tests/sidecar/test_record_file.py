"""The record of a sidecar as a file: whole, private, found again by its name."""

import json
import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from csp.sidecar.record_file import (
    begin_to_join,
    end_to_join,
    is_running,
    left_behind,
    read_record,
    write_record,
)
from tests.waiting import wait_until_sync

GONE = 2**22 + 1


def test_a_record_is_private_and_whole(tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "ada"
    write_record(str(folder), {"pid": 7, "name": "ada"})

    assert read_record(str(folder)) == {"pid": 7, "name": "ada"}
    assert [path.name for path in folder.iterdir()] == ["run.json"]
    assert (folder / "run.json").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_record_that_cannot_be_written_leaves_the_old_one_and_no_draft(tmp_path: Path) -> None:
    write_record(str(tmp_path), {"pid": 7})
    with (
        mock.patch.object(os, "replace", side_effect=OSError("full")),
        pytest.raises(OSError, match="full"),
    ):
        write_record(str(tmp_path), {"pid": 8})

    assert read_record(str(tmp_path)) == {"pid": 7}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"pid": "7"}', "{}"])
def test_what_is_no_record_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)

    assert read_record(str(tmp_path)) is None


def test_only_a_sidecar_of_that_name_that_is_gone_is_left_behind(tmp_path: Path) -> None:
    agents = tmp_path / "default.agents"
    assert left_behind(str(tmp_path), "default", "ada") is None
    for entry, name, pid in (("a", "bob", GONE), ("b", "ada", os.getpid()), ("c", "ada", GONE)):
        (agents / entry).mkdir(parents=True)
        (agents / entry / "run.json").write_text(json.dumps({"pid": pid, "name": name, "entry": entry}))

    found = left_behind(str(tmp_path), "default", "ada")
    assert found is not None and found["entry"] == "c"
    assert left_behind(str(tmp_path), "other", "ada") is None


def killed_while_joining(state_dir: Path, name: str, launch: str, pid: int = GONE) -> Path:
    note = state_dir / "default.agents" / f".joining-{pid}"
    write_record(str(note), {"pid": pid, "name": name, "launch": launch})
    return note


def test_only_one_sidecar_of_that_name_gets_the_launch_of_one_that_was_killed(tmp_path: Path) -> None:
    killed_while_joining(tmp_path, "ada", "killed")
    first = begin_to_join(str(tmp_path), "default", "ada", "own")
    second = begin_to_join(str(tmp_path), "default", "ada", "another")

    assert (first, second) == ("killed", "another")


@pytest.mark.parametrize(("name", "pid"), [("bob", GONE), ("ada", 1)])
def test_the_launch_of_another_or_of_one_that_runs_is_not_taken(tmp_path: Path, name: str, pid: int) -> None:
    note = killed_while_joining(tmp_path, name, "not ours", pid)

    assert begin_to_join(str(tmp_path), "default", "ada", "own") == "own"
    assert note.exists()


def test_a_launch_that_another_has_just_taken_is_not_taken_twice(tmp_path: Path) -> None:
    killed_while_joining(tmp_path, "ada", "killed")
    with mock.patch.object(os, "rename", side_effect=FileNotFoundError):
        assert begin_to_join(str(tmp_path), "default", "ada", "own") == "own"


def test_who_joins_leaves_a_note_until_it_has_joined(tmp_path: Path) -> None:
    begin_to_join(str(tmp_path), "default", "ada", "own")
    (note,) = (tmp_path / "default.agents").iterdir()
    noted = read_record(str(note))
    end_to_join(str(tmp_path), "default")
    end_to_join(str(tmp_path), "default")

    assert noted == {"pid": os.getpid(), "name": "ada", "launch": "own"}
    assert not list((tmp_path / "default.agents").iterdir())


def test_a_full_disk_keeps_nobody_from_joining(tmp_path: Path) -> None:
    with mock.patch.object(os, "replace", side_effect=OSError("full")):
        assert begin_to_join(str(tmp_path), "default", "ada", "own") == "own"


def test_who_was_about_to_join_is_no_record_of_a_sidecar(tmp_path: Path) -> None:
    killed_while_joining(tmp_path, "ada", "killed")

    assert left_behind(str(tmp_path), "default", "ada") is None


def test_a_process_of_another_user_runs() -> None:
    with mock.patch.object(os, "kill", side_effect=PermissionError):
        assert is_running(1)
    assert is_running(os.getpid())
    assert not is_running(GONE)


def test_a_process_that_nobody_has_collected_runs_no_more() -> None:
    with subprocess.Popen(["true"]) as child:
        wait_until_sync(lambda: not is_running(child.pid), what="its end")
        os.kill(child.pid, 0)
