"""Processes that outlive their test are found by what they were started with."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.leftovers import leftovers
from tests.waiting import wait_until_sync

WAIT = "import sys; sys.stdin.read()"


@pytest.mark.parametrize("place", ["environment", "command line"])
def test_a_running_process_with_a_path_in_the_folder_is_found_until_it_ends(
    tmp_path: Path, place: str
) -> None:
    path = f"{tmp_path}/home"
    env = {**os.environ, "HOME": path} if place == "environment" else dict(os.environ)
    words = [path] if place == "command line" else []
    with subprocess.Popen([sys.executable, "-c", WAIT, *words], env=env, stdin=subprocess.PIPE) as process:
        wait_until_sync(lambda: leftovers(tmp_path))
        (found,) = leftovers(tmp_path)
        process.communicate()

    assert found.startswith(f"{process.pid}: {sys.executable} -c")
    assert leftovers(tmp_path) == []


def test_a_process_of_another_folder_is_not_found(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": f"{tmp_path}-2/home"}
    with subprocess.Popen([sys.executable, "-c", WAIT], env=env, stdin=subprocess.PIPE) as process:
        assert leftovers(tmp_path) == []
        process.communicate()


def test_without_proc_nothing_is_found(tmp_path: Path) -> None:
    assert leftovers(Path("/"), tmp_path / "nothing") == []
