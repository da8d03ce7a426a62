"""git runs no command that a repository names, but those of its user."""

import os
from pathlib import Path

import pytest

from csp.review.safe_git import own_filters, run_git
from tests.review.repository import git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "A_SECRET": "x"}


def set_up(repository: Path, command: str, **settings: str) -> None:
    """Have the repository name commands in its own settings."""
    for name, value in settings.items():
        git(repository, "config", name.replace("__", "."), value.format(command))


@pytest.mark.parametrize("kind", ["clean", "process"])
def test_a_filter_of_a_repository_is_not_run_even_if_it_is_required(
    repository: Path, env: dict[str, str], tmp_path: Path, kind: str
) -> None:
    mark = tmp_path / "mark"
    set_up(repository, f"touch {mark}", **{f"filter__evil__{kind}": "{}", "filter__evil__required": "true"})
    (repository / ".gitattributes").write_text("* filter=evil\n")
    (repository / "new").write_text("text\n")
    done = run_git(repository, ("add", "--all"), env)

    assert (done.returncode, mark.exists()) == (0, False), done.stderr
    assert own_filters(repository, env) == ["evil"]


def test_hooks_and_monitors_of_a_repository_are_not_run(
    repository: Path, env: dict[str, str], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").symlink_to(program)
    (hooks / "reference-transaction").symlink_to(program)
    set_up(repository, str(program), core__hooksPath=str(hooks), core__fsmonitor="{}")
    done = [
        run_git(repository, words, env)
        for words in (("status",), ("branch", "more"), ("checkout", "-q", "more"))
    ]

    assert ([one.returncode for one in done], mark.exists()) == ([0, 0, 0], False)


def test_a_filter_of_the_user_is_run(repository: Path, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text('[filter "mine"]\n\tclean = tr a-z A-Z\n')
    (repository / ".gitattributes").write_text("new filter=mine\n")
    (repository / "new").write_text("text\n")
    run_git(repository, ("add", "--all"), env)
    shown = run_git(repository, ("show", ":new"), env)

    assert shown.stdout == b"TEXT\n"
    assert own_filters(repository, env) == []


def test_git_is_given_what_it_needs_and_no_secret(repository: Path, env: dict[str, str]) -> None:
    git(repository, "config", "alias.show-env", "!env")
    shown = run_git(repository, ("show-env",), env, more={"GIT_INDEX_FILE": "elsewhere"})
    found = dict(line.partition("=")[::2] for line in shown.stdout.decode().splitlines())

    assert "A_SECRET" not in found
    assert {name: found.get(name) for name in ("LC_ALL", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS")} == {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    assert (found["GIT_NO_LAZY_FETCH"], found["GIT_ALLOW_PROTOCOL"]) == ("1", "")
    assert found["GIT_INDEX_FILE"] == "elsewhere"


def test_what_is_given_is_read(repository: Path, env: dict[str, str]) -> None:
    done = run_git(repository, ("hash-object", "--stdin"), env, given=b"text\n")

    assert done.stdout == b"8e27be7d6154a1f68ea9160ef0e18691d20560dc\n"


def test_nothing_is_fetched_from_anywhere(repository: Path, env: dict[str, str], tmp_path: Path) -> None:
    done = run_git(repository, ("fetch", str(make_repository(tmp_path / "other"))), env)

    assert done.returncode != 0
    assert b"not allowed" in done.stderr
