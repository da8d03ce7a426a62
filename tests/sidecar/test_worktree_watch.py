"""The branch and the changed files of an agent's worktree."""

import asyncio
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from csp.config import process_environment
from csp.sidecar.brain import worktree_watch
from csp.sidecar.brain.worktree_watch import WorktreeWatch, is_own_worktree, work_in
from tests.waiting import wait_until


def git(dir: Path, *words: str) -> None:
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    subprocess.run(["git", *identity, *words], cwd=dir, check=True, capture_output=True)


def make_worktree(tmp_path: Path) -> tuple[Path, Path]:
    """Return a repository and a worktree of it."""
    repo, tree = tmp_path / "repo", tmp_path / "tree"
    repo.mkdir()
    git(repo, "init", "-q")
    (repo / "a").write_text("one\ntwo\n")
    git(repo, "add", "a")
    git(repo, "commit", "-qm", "start")
    git(repo, "worktree", "add", "-q", "-b", "csp/room/ada", str(tree))
    return repo, tree


def test_only_a_linked_worktree_is_an_agents_own(tmp_path: Path) -> None:
    repo, tree = make_worktree(tmp_path)
    (tree / "sub").mkdir()
    module = tmp_path / "module"
    module.mkdir()
    (module / ".git").write_text("gitdir: ../repo/.git/worktrees/tree/modules/module\n")

    found = [is_own_worktree(dir) for dir in (repo, tree, tree / "sub", module, tmp_path)]
    assert found == [False, True, True, False, False]


def test_the_branch_is_told_with_the_changed_files_and_lines(tmp_path: Path) -> None:
    _, tree = make_worktree(tmp_path)
    env = process_environment()
    assert work_in(tree, env) == "csp/room/ada, no changed files"
    (tree / "a").write_text("one\n2\n3\n")
    assert work_in(tree, env) == "csp/room/ada: 1 changed file +2 -1"
    (tree / "new").write_text("x\n")
    assert work_in(tree, env) == "csp/room/ada: 2 changed files +2 -1"
    assert work_in(tmp_path, env) == ""
    assert work_in(tmp_path / "gone", env) == ""


def test_the_worktree_is_looked_at_again_after_the_agent_has_worked(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(worktree_watch, "REST_S", 0.01)
    _, tree = make_worktree(tmp_path)
    told: list[str] = []

    async def watch() -> None:
        reporter = SimpleNamespace(worked=asyncio.Event(), note_work=told.append)
        run = SimpleNamespace(cwd=str(tree))
        watching = asyncio.ensure_future(WorktreeWatch(cast("Any", run), cast("Any", reporter)).run())
        await wait_until(lambda: told, 60, "the first look")
        (tree / "new").write_text("x\n")
        reporter.worked.set()
        await wait_until(lambda: len(told) > 1, 60, "the second look")
        watching.cancel()

    asyncio.run(watch())
    assert told[:2] == ["csp/room/ada, no changed files", "csp/room/ada: 1 changed file"]
