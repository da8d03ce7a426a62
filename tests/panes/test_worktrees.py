"""A git worktree for an agent."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from csp.errors import BadInput, Broken
from csp.panes.worktrees import check_worktree, ensure_worktree, remove_worktrees

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_DIR": "/nonexistent",
}


def git(dir: Path, *words: str) -> str:
    env = {name: value for name, value in ENV.items() if not name.startswith("GIT_")}
    settings = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(
        ["git", *settings, *words], cwd=dir, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    (repo / "sub").mkdir(parents=True)
    git(repo, "init", "-q")
    (repo / "sub" / "file").write_text("one")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    return repo


def test_an_agent_gets_a_worktree_on_a_branch_of_its_own(tmp_path: Path, repo: Path) -> None:
    (repo / "sub" / "file").write_text("not committed")
    place = ensure_worktree(repo / "sub", tmp_path / "history", "default", "ann", ENV)

    assert place == tmp_path / "history" / "worktrees" / "ann" / "sub"
    assert (place / "file").read_text() == "one"
    assert git(place, "branch", "--show-current") == "csp/default/ann"
    assert (repo / "sub" / "file").read_text() == "not committed"


def test_a_worktree_is_used_again_with_the_work_in_it(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    (ensure_worktree(repo, history, "default", "ann", ENV) / "work").write_text("mine")
    again = ensure_worktree(repo, history, "default", "ann", ENV)

    assert (again / "work").read_text() == "mine"


def test_a_worktree_removed_by_hand_comes_back_on_its_branch(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    place = ensure_worktree(repo, history, "default", "ann", ENV)
    (place / "work").write_text("mine")
    git(place, "add", ".")
    git(place, "commit", "-qm", "work")
    subprocess.run(["rm", "-r", str(place)], check=True)

    assert (ensure_worktree(repo, history, "default", "ann", ENV) / "work").read_text() == "mine"


def test_purging_keeps_work_that_is_not_committed(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    dirty = ensure_worktree(repo, history, "default", "ann", ENV)
    clean = ensure_worktree(repo, history, "default", "ben", ENV)
    (dirty / "work").write_text("mine")

    assert remove_worktrees(history, ENV) == [dirty]
    assert (dirty / "work").exists() and not clean.exists()


def test_no_repository_is_a_clear_error(tmp_path: Path, repo: Path) -> None:
    with pytest.raises(BadInput, match="a worktree needs a git repository"):
        ensure_worktree(tmp_path, tmp_path / "history", "default", "ann", ENV)
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    with pytest.raises(BadInput, match="a worktree needs a commit"):
        ensure_worktree(empty, tmp_path / "history", "default", "ann", ENV)


def test_a_worktree_of_a_folder_that_is_not_committed_is_its_top(tmp_path: Path, repo: Path) -> None:
    (repo / "new").mkdir()

    assert ensure_worktree(repo / "new", tmp_path / "history", "r", "ann", ENV) == (
        tmp_path / "history" / "worktrees" / "ann"
    )


def test_a_worktree_that_cannot_be_made_is_one_clear_error(tmp_path: Path, repo: Path) -> None:
    path = tmp_path / "history" / "worktrees" / "ann"
    path.mkdir(parents=True)
    (path / "file").write_text("in the way")
    with pytest.raises(Broken, match=r"cannot make a worktree at .*already exists"):
        ensure_worktree(repo, tmp_path / "history", "default", "ann", ENV)


def test_without_git_it_says_what_needs_it(tmp_path: Path, repo: Path) -> None:
    with pytest.raises(Broken, match="git was not found, but a worktree needs it"):
        ensure_worktree(repo, tmp_path / "history", "default", "ann", {"PATH": "/nowhere"})


def test_a_folder_in_a_repository_is_not_yet_a_worktree_of_its_own(tmp_path: Path, repo: Path) -> None:
    # The history may lie inside of the project: git finds the project's repository from there too.
    history = repo / "history"
    (history / "worktrees" / "ann").mkdir(parents=True)
    place = ensure_worktree(repo, history, "default", "ann", ENV)

    assert git(place, "branch", "--show-current") == "csp/default/ann"


def test_the_folder_of_the_worktrees_is_for_its_user_alone(tmp_path: Path, repo: Path) -> None:
    ensure_worktree(repo, tmp_path / "history", "default", "ann", ENV)

    assert stat.S_IMODE((tmp_path / "history" / "worktrees").stat().st_mode) == 0o700


def test_purging_passes_over_what_is_no_worktree(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    assert remove_worktrees(history, ENV) == []
    ensure_worktree(repo, history, "default", "ann", ENV)
    (history / "worktrees" / "other").mkdir()
    (history / "worktrees" / "other" / "file").write_text("")

    assert remove_worktrees(history, ENV) == []
    assert [path.name for path in (history / "worktrees").iterdir()] == ["other"]


def test_a_worktree_whose_repository_is_gone_is_kept(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    place = ensure_worktree(repo, history, "default", "ann", ENV)
    shutil.rmtree(repo)

    assert remove_worktrees(history, ENV) == [place]


def test_a_check_says_where_in_the_repository_it_is(tmp_path: Path, repo: Path) -> None:
    assert check_worktree(repo / "sub", "ann", ENV) == "sub/"
    assert check_worktree(repo, "ann", ENV) == ""
    with pytest.raises(BadInput, match="agent 'ann': a worktree needs a git repository"):
        check_worktree(tmp_path / "nowhere", "ann", ENV)
