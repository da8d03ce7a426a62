"""What a CLI says of its version, and what is said of one that nobody has tested."""

import os
import subprocess
from pathlib import Path
from typing import Final
from unittest import mock

import pytest

from csp.clis.profile import load_profile
from csp.clis.version_check import TIMEOUT_S, ask_version, untested

CLAUDE: Final = load_profile("claude")


def program(folder: Path, script: str, name: str = "claude") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def asked(argv: list[str], **env: str) -> str:
    return ask_version(CLAUDE, argv, {"PATH": os.environ["PATH"], **env})


def test_the_first_line_is_the_version(tmp_path: Path) -> None:
    said = program(tmp_path, r"printf '\n 2.1.5 (Claude Code) \nnews\n'; echo noise >&2")

    assert asked([said]) == "2.1.5 (Claude Code) "


def test_it_is_asked_by_the_profiles_words_in_the_given_environment(tmp_path: Path) -> None:
    said = program(tmp_path, 'echo "$* $MARK"')

    assert asked([said, "--model", "opus"], MARK="2.0.0") == "--version 2.0.0"


def test_what_is_no_text_is_no_failure(tmp_path: Path) -> None:
    assert asked([program(tmp_path, r"printf '2.1.5 \377\n'")]) == "2.1.5 \ufffd"


def test_a_cli_that_is_asked_reads_nothing_of_the_persons(tmp_path: Path) -> None:
    with mock.patch.object(subprocess, "run", wraps=subprocess.run) as ran:
        asked([program(tmp_path, "cat; echo 2.1.5")])

    assert ran.call_args.kwargs["stdin"] == subprocess.DEVNULL


def test_a_long_first_line_is_cut(tmp_path: Path) -> None:
    assert asked([program(tmp_path, f"echo {'v' * 300}")]) == "v" * 100


@pytest.mark.parametrize("script", ["exit 0", "exec /no/such/program"])
def test_a_cli_that_says_nothing_has_no_version(tmp_path: Path, script: str) -> None:
    assert asked([program(tmp_path, script)]) == ""


def test_a_cli_that_is_not_there_has_no_version(tmp_path: Path) -> None:
    assert asked([str(tmp_path / "claude")]) == ""


def test_a_cli_that_hangs_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.clis.version_check.TIMEOUT_S", 0.2)

    assert asked([program(tmp_path, "exec sleep 60")]) == ""
    assert TIMEOUT_S >= 120, "a slow start on a busy machine is not a hang"


def test_a_wrapper_of_another_name_is_not_asked(tmp_path: Path) -> None:
    """It might begin a session instead."""
    assert asked([program(tmp_path, "echo 2.1.5", name="wrapper")]) == ""


def test_a_shell_is_not_asked(tmp_path: Path) -> None:
    assert ask_version(load_profile("shell"), [program(tmp_path, "echo 5.2", name="bash")], {}) == ""


def test_only_a_version_outside_the_tested_range_is_worth_a_word() -> None:
    assert untested(CLAUDE, "") == ""
    assert untested(CLAUDE, "2.1.197 (Claude Code)") == ""
    assert untested(CLAUDE, "99.0.0 (Claude Code)") == (
        f"claude 99.0.0 (Claude Code), but its profile was tested with {CLAUDE.versions}"
    )
