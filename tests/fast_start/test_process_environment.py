"""Where things lie, by the environment."""

import os
from pathlib import Path

import pytest

from csp.fast_start import process_environment
from csp.fast_start.process_environment import home, set_variable, state_dir, unnamed_runtime_dir, xdg


def test_the_home_directory_may_be_named_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert home({"HOME": "/h"}) == "/h"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert home({}) == home({"HOME": ""}) == ""
    assert xdg({}, "XDG_CACHE_HOME", ".cache") == ""


def test_a_base_directory_is_no_relative_path() -> None:
    env = {"HOME": "/h", "XDG_CACHE_HOME": "/c", "XDG_DATA_HOME": "relative"}

    assert xdg(env, "XDG_CACHE_HOME", ".cache") == "/c"
    assert xdg(env, "XDG_DATA_HOME", ".local/share") == "/h/.local/share"
    assert xdg(env, "XDG_CONFIG_HOME", ".config") == "/h/.config"


def test_rooms_are_announced_in_the_runtime_folder_if_there_is_one(tmp_path: Path) -> None:
    assert state_dir({"XDG_RUNTIME_DIR": str(tmp_path), "HOME": "/h"}) == str(tmp_path / "csp")
    for runtime in (str(tmp_path / "none"), "relative", ""):
        assert state_dir({"XDG_RUNTIME_DIR": runtime, "HOME": "/h"}) == "/h/.cache/csp"


def test_a_runtime_folder_that_nobody_named_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_environment, "RUNTIME_DIRS", str(tmp_path))
    assert unnamed_runtime_dir({}) == ""
    folder = tmp_path / str(os.getuid()) / "csp"
    folder.mkdir(parents=True)

    assert unnamed_runtime_dir({}) == str(folder)
    assert unnamed_runtime_dir({"XDG_RUNTIME_DIR": "/r"}) == ""


def test_a_variable_is_set_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_NAME", "before")

    assert set_variable("A_NAME", "after") == "before"
    assert os.environ["A_NAME"] == "after"
    assert set_variable("A_NAME", None) == "after"
    assert "A_NAME" not in os.environ
    assert set_variable("A_NAME", None) is None


def test_a_runtime_folder_that_is_no_absolute_path_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path)

    assert state_dir({"XDG_RUNTIME_DIR": "run", "HOME": "/h"}) == "/h/.cache/csp"
