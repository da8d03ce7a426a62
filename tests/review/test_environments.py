"""What the programs of a hostile repository are told by a real gateway: no token, no key of others."""

import os
import shutil
from pathlib import Path
from typing import Final

from tests.review.playing import Run
from tests.review.repository import TEST, git, make_repository
from tests.rooms import LiveRoom

TOKEN: Final = "the-rooms-own-token-0123456789"
KEYS: Final = {"ANTHROPIC_API_KEY": "sk-ant-key", "OPENAI_API_KEY": "sk-openai-key"}
ENV: Final = {
    "CSP_AUTH_TOKEN": TOKEN,
    "HEADER": f"X-Auth-Token: {TOKEN}",
    "CSP_PAGE_SECRET": "the-secret-of-the-pages",
    "COLOUR": "red",
    **KEYS,
}


def program(path: Path, told: Path, after: str) -> Path:
    """Write a program that says what its environment is, then goes on."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nenv >> {told}\n{after}\n")
    path.chmod(0o755)
    return path


def test_no_program_below_a_gateway_is_told_a_secret_of_the_room(tmp_path: Path) -> None:
    by_git, by_repository, by_tests = (
        tmp_path / "git.env",
        tmp_path / "repository.env",
        tmp_path / "tests.env",
    )
    program(tmp_path / "bin" / "git", by_git, f'exec {shutil.which("git")} "$@"')
    trap = program(tmp_path / "trap", by_repository, "cat")
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with LiveRoom(tmp_path / "room", env={**ENV, "PATH": path}) as room:
        repository = make_repository(room.dir)
        (repository / ".gitattributes").write_text("* filter=evil\n")
        git(repository, "add", ".")
        git(repository, "commit", "-qm", "attributes")
        for name in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"):
            git(repository, "config", name, str(trap))
        for name in ("post-checkout", "reference-transaction"):
            program(repository / ".git" / "hooks" / name, by_repository, "")
        by_repository.unlink(missing_ok=True)
        run = Run(room, test=f"env >> {by_tests}; {TEST}")
        run.play()

    assert room.token == TOKEN
    assert not by_repository.exists()
    for told in (by_git, by_tests):
        assert TOKEN not in told.read_text() and "the-secret-of-the-pages" not in told.read_text()
    assert not any(key in by_git.read_text() for key in KEYS.values())
    assert {"COLOUR=red", *(f"{name}={key}" for name, key in KEYS.items())} <= set(
        by_tests.read_text().splitlines()
    )
