"""The home that Gemini CLI has for one run; what is brought back from it is in test_wiring.py too."""

import fcntl
import json
import os
from pathlib import Path
from unittest import mock

import pytest

from csp.clis.gemini.gemini_home import bring_home, build, without_comments


@pytest.fixture
def home(tmp_path: Path) -> Path:
    build(tmp_path / "run" / "home", tmp_path / "user", {"a": 1}, {"RULES.md": "rules"})
    return tmp_path / "run" / "home"


def test_only_its_user_can_look_into_an_overlay(home: Path) -> None:
    ours = home / ".gemini"

    assert ours.stat().st_mode & 0o777 == 0o700
    for path in (ours / "settings.json", ours / "RULES.md", home / "owner"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_brought_home_keeps_its_mode_and_a_draft_stays_behind(
    home: Path, tmp_path: Path
) -> None:
    for name, mode in (("new.json", 0o640), ("half.json.tmp", 0o600)):
        (home / ".gemini" / name).write_text("{}")
        (home / ".gemini" / name).chmod(mode)
    bring_home(home)
    theirs = tmp_path / "user" / ".gemini"

    assert (theirs / "new.json").stat().st_mode & 0o777 == 0o640
    assert not (theirs / "half.json.tmp").exists()
    assert not home.exists()


def test_a_changed_setting_keeps_the_mode_of_the_users_file(home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "user" / ".gemini" / "settings.json"
    theirs.write_text('{"b": 2}')
    theirs.chmod(0o640)
    (home / ".gemini" / "settings.json").write_text('{"a": 5}')
    bring_home(home)

    assert json.loads(theirs.read_text()) == {"a": 5, "b": 2}
    assert theirs.stat().st_mode & 0o777 == 0o640


def test_a_folder_of_the_users_is_never_mixed_with_one_of_the_run(home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "user" / ".gemini"
    for folder in (home / ".gemini" / "new", home / ".gemini" / "both", theirs / "both"):
        folder.mkdir()
        (folder / "file").write_text(folder.parent.parent.name)
    bring_home(home)

    assert (theirs / "new" / "file").read_text() == "home"
    assert [path.name for path in (theirs / "both").iterdir()] == ["file"]
    assert (theirs / "both" / "file").read_text() == "user"


@pytest.mark.parametrize(("after_s", "text"), [(-1, "theirs"), (1, "ours")])
def test_of_two_files_the_newer_one_stays(home: Path, tmp_path: Path, after_s: int, text: str) -> None:
    ours, theirs = home / ".gemini" / "new.json", tmp_path / "user" / ".gemini" / "new.json"
    for path, at in ((theirs, 1000), (ours, 1000 + after_s)):
        path.write_text("ours" if path is ours else "theirs")
        os.utime(path, (at, at))
    bring_home(home)

    assert theirs.read_text() == text


def test_a_setting_that_was_taken_away_is_taken_away(home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "user" / ".gemini" / "settings.json"
    theirs.write_text('{"a": 1, "b": 2}')
    (home / ".gemini" / "settings.json").write_text("{}")
    bring_home(home)

    assert json.loads(theirs.read_text()) == {"b": 2}


def test_the_overlay_of_another_process_is_left_alone(home: Path) -> None:
    bring_home(home, owner=1)
    assert home.is_dir()
    (home / "owner").write_text("nonsense")
    bring_home(home, owner=os.getpid())
    assert home.is_dir()
    bring_home(home)
    assert not home.exists()


def test_two_never_bring_home_at_once(home: Path) -> None:
    with mock.patch.object(fcntl, "flock") as locked:
        bring_home(home)

    assert locked.call_args.args[1] == fcntl.LOCK_EX


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (r'{"a": "\"// no comment"} // one', r'{"a": "\"// no comment"}'),
        (r'{"a": "\\"} // one', r'{"a": "\\"}'),
        ("/* one */ {} // two", "{}"),
        ("{} /* open", "{}"),
    ],
)
def test_comments_are_left_out_but_not_in_strings(text: str, left: str) -> None:
    assert without_comments(text) == left
