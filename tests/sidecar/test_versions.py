"""The version of a CLI is asked for and compared; space on the disk is measured."""

import os
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from csp.sidecar import space
from csp.sidecar.profile import load_profile
from csp.sidecar.versions import ask_version, untested

CLAUDE = load_profile("claude")


def program(folder: Path, text: str, name: str = "claude") -> list[str]:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return [str(path), "--resume"]


def test_the_first_line_that_the_cli_says_is_its_version(tmp_path: Path) -> None:
    argv = program(tmp_path, 'echo "$1 $2 $WHO"; echo more')

    assert ask_version(CLAUDE, argv, {"WHO": "me", "PATH": os.defpath}) == "--version  me"


def test_what_is_not_the_cli_itself_is_not_run(tmp_path: Path) -> None:
    argv = program(tmp_path, f"touch {tmp_path}/ran", "wrapper")

    assert ask_version(CLAUDE, argv, {}) == ""
    assert ask_version(load_profile("shell"), program(tmp_path, f"touch {tmp_path}/ran", "sh"), {}) == ""
    assert not (tmp_path / "ran").exists()
    assert ask_version(CLAUDE, ["/none/claude"], {}) == ""


def test_only_a_version_outside_the_range_is_worth_a_word() -> None:
    assert untested(CLAUDE, "") == untested(CLAUDE, "2.1.197 (Claude Code)") == ""
    assert untested(CLAUDE, "3.0.0").startswith("claude is 3.0.0, but its profile was tested with >=2.1,<2.2")


@pytest.mark.parametrize(
    ("blocks", "files", "free_files", "is_full"),
    [(4, 100, 50, False), (3, 100, 50, True), (4, 100, 0, True), (4, 0, 0, False)],
)
def test_a_disk_is_full_without_blocks_or_files(
    blocks: int, files: int, free_files: int, is_full: bool
) -> None:
    found = SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_files=files, f_favail=free_files)
    with mock.patch.object(space.os, "statvfs", return_value=found):
        assert space.is_full(Path("/")) is is_full


def test_a_folder_that_is_gone_is_not_full() -> None:
    assert not space.is_full(Path("/none/such"))
