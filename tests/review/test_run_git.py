"""What is taken from git, on real repositories in every state."""

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from csp.errors import Broken
from csp.protocol.review_messages import RunContext
from csp.review.run_git import MAX_PATCH_CHARS, Git, cut_patch
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
    (tree / "README.sh").symlink_to("README")
    (tree / "run").write_text("#!/bin/sh\n")
    (tree / "run").chmod(0o755)
    seen = own.look(context, "refs/csp/runs/r/1-1", "m")
    patch = tmp_path / "p.patch"
    patch.write_bytes(seen.patch)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "apply", "--index", str(patch))

    assert (clone / "new dir" / "ü.bin").read_bytes() == bytes(range(256))
    assert not (clone / "check.py").exists()
    assert (seen.figures.files, seen.figures.bytes) == (5, len(seen.patch))
    assert git(clone, "write-tree") == git(repository, "rev-parse", f"{seen.figures.commit}^{{tree}}")
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
    git(repository, "commit", "-q", "--allow-empty", "-m", "meanwhile")

    assert own.prepare(repository, tree) == context
    assert (tree / "new").exists()


def test_worktree_whose_folder_was_removed_is_made_again(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    shutil.rmtree(tree)

    assert own.prepare(repository, tree) == context
    assert (tree / "README").exists()


def test_dirty_tree_is_left_alone_and_told(own: Git, repository: Path) -> None:
    (repository / "new").write_text("git does not know it, so nobody misses it\n")
    assert prepared(own, repository)[0].note == ""
    (repository / "README").write_text("dirty\n")
    context, tree = prepared(own, repository)

    assert "uncommitted" in context.note
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

    assert (context.worktree, "there is no diff" in context.note) == ("", True)


def test_git_that_fails_is_named(own: Git, repository: Path) -> None:
    with pytest.raises(Broken, match="git diff failed"):
        own.patch(repository, "none", "none")
    context, _ = prepared(own, repository)
    with pytest.raises(Broken, match="git commit-tree failed"):
        own.look(replace(context, base="0" * 40), "refs/csp/x", "m")


def test_a_missing_directory_is_told_from_a_missing_git(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(Broken, match=r"the directory .* no longer exists"):
        Git({"PATH": os.environ["PATH"]}).patch(tmp_path / "gone", "HEAD", "HEAD")
    with pytest.raises(Broken, match="git was not found"):
        Git({"PATH": str(tmp_path)}).patch(repository, "HEAD", "HEAD")


def test_git_alone_says_what_is_ignored(own: Git, repository: Path) -> None:
    (repository / ".gitignore").write_text("*.o\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "ignore")
    context, tree = prepared(own, repository)
    (tree / "__pycache__").mkdir()
    for name in ("a.o", "b.c", "__pycache__/x"):
        (tree / name).write_text("x\n")
    seen = own.look(context, "refs/csp/runs/r/1-1", "m")

    assert [line for line in seen.text.splitlines() if line.startswith("+++")] == [
        "+++ b/__pycache__/x",
        "+++ b/b.c",
    ]


def test_settings_of_a_user_do_not_spoil_the_patch(repository: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    settings = "noprefix = true\nmnemonicPrefix = true\nexternal = false\nsubmodule = log\nrelative = true\n"
    (home / ".gitconfig").write_text(f"[diff]\n{settings}[color]\nui = always\n")
    own = Git({"PATH": os.environ["PATH"], "HOME": str(home)})
    context, tree = prepared(own, repository)
    (tree / "README").write_text("changed\n")
    patch = tmp_path / "p.patch"
    patch.write_bytes(own.look(context, "refs/csp/runs/r/1-1", "m").patch)

    assert git(repository, "apply", "--check", str(patch)) == ""


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_builder_cannot_hide_a_file_in_the_index(own: Git, repository: Path, flag: str) -> None:
    context, tree = prepared(own, repository)
    git(tree, "update-index", flag, "README", "check.py")
    (tree / "README").write_text("changed\n")
    (tree / "check.py").unlink()

    assert own.look(context, "refs/csp/runs/r/1-1", "m").figures.files == 2
    assert git(tree, "status", "--porcelain") == ""


def test_sparse_checkout_does_not_look_like_a_removal(own: Git, repository: Path) -> None:
    (repository / "far").mkdir()
    (repository / "far" / "away").write_text("x\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "far")
    context, tree = prepared(own, repository)
    git(tree, "sparse-checkout", "set", "--no-cone", "/README", "/check.py")
    (tree / "README").write_text("changed\n")

    assert not (tree / "far").exists()
    assert own.look(context, "refs/csp/runs/r/1-1", "m").figures.files == 1


def test_a_file_beyond_a_sparse_checkout_is_in_the_diff_if_it_was_written(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    git(tree, "sparse-checkout", "set", "--no-cone", "/README")
    (tree / "check.py").write_text("changed\n")
    git(tree, "update-index", "--skip-worktree", "check.py")

    assert own.look(context, "refs/csp/runs/r/1-1", "m").figures.files == 1


def test_repository_inside_is_told_to_be_left_out(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    make_repository(tree / "inner")
    seen = own.look(context, "refs/csp/runs/r/1-1", "m")

    assert seen.note == "only the commit of inner, a separate git repository, is in the diff"


def test_submodules_are_told_to_be_empty(own: Git, repository: Path, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    git(repository, "commit", "-q", "-m", "sub")
    context, tree = prepared(own, repository)
    (tree / "README").write_text("changed\n")
    seen = own.look(context, "refs/csp/runs/r/1-1", "m")

    assert context.note == "the submodules of the repository are empty in the worktree"
    assert (seen.figures.files, seen.note) == (1, "")


def test_branch_named_as_the_folder_of_ours_is_passed_by(own: Git, repository: Path) -> None:
    context, _ = prepared(own, repository)
    commit = own.look(context, "refs/csp/runs/r/1-1", "m").figures.commit
    git(repository, "branch", "csp")

    assert own.branch(context, "csp/r", commit) == "csp-r"
    git(repository, "branch", "-m", "csp", "csp/r/deep")
    assert own.branch(context, "csp/r", commit) == "csp/r-2"


@pytest.mark.parametrize("has_more", [True, False])
def test_worktree_that_is_gone_is_not_taken_for_what_is_around_it(
    own: Git, repository: Path, *, has_more: bool
) -> None:
    git(repository.parent, "init", "-q")
    context, tree = prepared(own, repository)
    (tree / ".git").unlink()
    if not has_more:
        shutil.rmtree(tree)
    with pytest.raises(Broken, match="the worktree at"):
        own.look(context, "refs/csp/runs/r/1-1", "m")


def test_figures_count_lines_of_text_alone(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "README").write_text("one\ntwo\nthree\nfour\n")
    (tree / "new.bin").write_bytes(b"\0\1")
    (tree / "check.py").unlink()
    figures = own.look(context, "refs/csp/runs/r/1-1", "m").figures

    assert (figures.files, figures.insertions, figures.deletions) == (3, 4, 3)
    assert (figures.base, len(figures.sha256)) == (context.base, 64)


def test_a_branch_is_made_on_the_commit_and_found_again(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / "new").write_text("x")
    commit = own.look(context, "refs/csp/runs/r/1-1", "the goal").figures.commit

    assert own.branch(context, "csp/r", commit) == own.branch(context, "csp/r", commit) == "csp/r"
    assert git(repository, "rev-parse", "csp/r") == commit
    assert own.branch(context, "csp/r", context.base) == "csp/r-2"
    assert git(repository, "log", "-1", "--format=%an %s", commit) == "csp the goal"
    assert git(repository, "rev-parse", f"{commit}^") == context.base


def test_git_knows_no_other_repository(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    own = Git({**os.environ, "GIT_DIR": str(other), "GIT_WORK_TREE": str(other)})

    assert own.prepare(repository, tmp_path / "place").repository == str(repository)


def test_git_that_hangs_is_given_up(own: Git, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.review.safe_git.TIMEOUT_S", 0.05)
    bin_dir = repository.parent / "bin"
    bin_dir.mkdir()
    (bin_dir / "git").write_text("#!/bin/sh\nexec sleep 5\n")
    (bin_dir / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_dir}:{os.environ['PATH']}")

    with pytest.raises(Broken, match=r"git diff failed: .*timed out"):
        Git(os.environ).patch(repository, "a", "b")


@pytest.mark.parametrize("dir", ["relative", "/no/such/place"])
def test_a_place_that_is_none_has_no_diff(own: Git, tmp_path: Path, dir: str) -> None:
    context = own.prepare(Path(dir), tmp_path / "place")

    assert (context.worktree, context.dir) == ("", "") and "there is no diff" in context.note


def test_a_patch_of_the_largest_size_is_shown_whole() -> None:
    assert cut_patch(b"x" * MAX_PATCH_CHARS) == "x" * MAX_PATCH_CHARS
    cut = cut_patch(b"x" * (MAX_PATCH_CHARS + 1))
    assert cut.startswith("x" * MAX_PATCH_CHARS + "\n[cut: the patch has 48001 bytes")
