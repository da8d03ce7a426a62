"""The version that a CLI says is asked for only where the command is that CLI."""

import os
from pathlib import Path

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
