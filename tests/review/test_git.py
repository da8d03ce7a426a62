"""What is taken from git, on real repositories in every state."""

import os
from pathlib import Path

import pytest

from csp.errors import Broken
from csp.review.git import MAX_PATCH_CHARS, Git
from csp.wire import RunContext
from tests.review.repository import git, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


@pytest.fixture
def own() -> Git:
    return Git({"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_DIR": "/nowhere"})


def prepared(own: Git, repository: Path) -> tuple[RunContext, Path]:
    context = own.prepare(repository, repository.parent / "tree")
    return context, Path(context.worktree)


def test_diff_has_new_changed_removed_and_binary_files(own: Git, repository: Path, tmp_path: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "README").write_text("changed\n")
    (tree / "check.py").unlink()
    (tree / "new dir").mkdir()
    (tree / "new dir" / "ü.bin").write_bytes(bytes(range(256)))
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "x.pyc").write_bytes(b"x")
    seen = own.look(context, "refs/csp/runs/r/1-1", "m")
    patch = tmp_path / "p.patch"
    patch.write_bytes(seen.patch)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "apply", "--index", str(patch))

    assert (clone / "new dir" / "ü.bin").read_bytes() == bytes(range(256))
    assert not (clone / "check.py").exists() and not (clone / "__pycache__").exists()
    assert (seen.figures.files, seen.figures.bytes) == (3, len(seen.patch))
    assert git(repository, "rev-parse", "refs/csp/runs/r/1-1") == seen.figures.commit


def test_looking_changes_nothing_in_the_worktree(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "new").write_text("x")
    git(tree, "add", "new")
    (tree / "new").write_text("y")
    before = git(tree, "status", "--porcelain")
    own.look(context, "refs/csp/runs/r/1-1", "m")

    assert git(tree, "status", "--porcelain") == before == "AM new"
    assert git(repository, "branch", "--format", "%(refname:short)").splitlines()[-1] == "main"


def test_what_the_builder_commits_is_in_the_diff(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "new").write_text("x")
    git(tree, "add", "new")
    git(tree, "commit", "-q", "-m", "mine")

    assert "+x" in own.look(context, "refs/csp/runs/r/1-1", "m").text


def test_long_patch_is_cut_in_the_journal_alone(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "long").write_text("word\n" * MAX_PATCH_CHARS)
    seen = own.look(context, "refs/csp/runs/r/1-1", "m")

    assert len(seen.text) < MAX_PATCH_CHARS + 200 and "[cut: the patch has" in seen.text
    assert len(seen.patch) > 5 * MAX_PATCH_CHARS


def test_worktree_is_used_again_after_a_crash(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "new").write_text("x")

    assert own.prepare(repository, tree) == context
    assert (tree / "new").exists()


def test_dirty_tree_is_left_alone_and_told(own: Git, repository: Path) -> None:
    (repository / "README").write_text("dirty\n")
    context, tree = prepared(own, repository)

    assert "not committed" in context.note
    assert (tree / "README").read_text() == "maths\n"
    assert (repository / "README").read_text() == "dirty\n"


def test_branch_that_is_there_is_never_moved(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "new").write_text("x")
    commit = own.look(context, "refs/csp/runs/r/1-1", "m").figures.commit
    git(repository, "branch", "csp/r")

    assert own.branch(context, "csp/r", commit) == "csp/r-2"
    assert own.branch(context, "csp/r", commit) == "csp/r-2"
    assert git(repository, "rev-parse", "csp/r") == git(repository, "rev-parse", "main")


@pytest.mark.parametrize("name", ["plain", "empty", "missing", "nul"])
def test_where_there_is_no_commit_there_is_no_worktree(own: Git, tmp_path: Path, name: str) -> None:
    places = {"plain": tmp_path, "empty": tmp_path / "empty", "missing": tmp_path / "x", "nul": Path("x")}
    if name == "empty":
        places[name].mkdir()
        git(places[name], "init", "-q")
    context = own.prepare(places[name], tmp_path / "tree")

    assert (context.worktree, "no diff is taken" in context.note) == ("", True)


def test_git_that_fails_is_named(own: Git, repository: Path) -> None:
    with pytest.raises(Broken, match="git diff failed"):
        own.patch(repository, "none", "none")
    with pytest.raises(Broken, match="git commit-tree failed"):
        own.look(RunContext(worktree=str(repository), base="0" * 40), "refs/csp/x", "m")
