"""A builder that writes whatever it wants into its worktree gets nothing run, and git is told no secret."""

import os
import shutil
from pathlib import Path

import pytest

from csp.errors import Broken
from csp.panes.worktrees import ensure_worktree, remove_worktrees
from csp.protocol.review_messages import RunContext
from csp.review.run_git import Git
from tests.review.repository import git, make_repository

REF = "refs/csp/runs/r/1-1"


class Trap:
    """A program that leaves a mark where it is run."""

    def __init__(self, folder: Path) -> None:
        self.mark = folder / "sprung"
        self.path = folder / "trap.sh"
        self.path.write_text(f"#!/bin/sh\necho sprung >> {self.mark}\ncat\n")
        self.path.chmod(0o755)

    @property
    def is_sprung(self) -> bool:
        return self.mark.exists()

    def arm(self, repository: Path) -> None:
        """Name the program wherever the settings of a repository may name one."""
        for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "core.editor"):
            git(repository, "config", name, str(self.path))
        for name in ("clean", "smudge", "process"):
            git(repository, "config", f"filter.evil.{name}", str(self.path))
        git(repository, "config", "filter.evil.required", "true")
        git(repository, "config", "diff.evil.textconv", str(self.path))
        git(repository, "config", "diff.evil.command", str(self.path))
        hooks = Path(git(repository, "rev-parse", "--git-dir"))
        hooks = (repository / hooks / "hooks").resolve()
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "post-index-change", "pre-commit", "reference-transaction"):
            shutil.copy(self.path, hooks / name)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


@pytest.fixture
def own() -> Git:
    return Git({"PATH": os.environ["PATH"], "HOME": "/nonexistent"})


def prepared(own: Git, repository: Path) -> tuple[RunContext, Path]:
    context = own.prepare(repository, repository.parent / "tree")
    tree = Path(context.worktree)
    (tree / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (tree / "work").write_text("done\n")
    return context, tree


def hostile_repository(folder: Path, trap: Trap) -> Path:
    made = make_repository(folder)
    # Two that are made in the same second would be the same commit.
    git(made, "commit", "-q", "--allow-empty", "-m", f"hostile {folder.name}")
    trap.arm(made)
    return made


def test_trap_springs_where_git_trusts_a_repository(tmp_path: Path, trap: Trap) -> None:
    made = hostile_repository(tmp_path / "trusted", trap)
    git(made, "status")

    assert trap.is_sprung


def test_worktree_of_another_repository_is_refused(
    own: Git, repository: Path, tmp_path: Path, trap: Trap
) -> None:
    context, tree = prepared(own, repository)
    made = hostile_repository(tmp_path / "elsewhere", trap)
    (tree / ".git").write_text(f"gitdir: {made / '.git'}\n")
    trap.mark.unlink(missing_ok=True)

    with pytest.raises(Broken, match="was changed, so there is no diff"):
        own.look(context, REF, "m")
    assert not trap.is_sprung


@pytest.mark.parametrize(
    "how", ["a folder", "a link to a folder", "a link to a file", "a pipe", "nonsense", "long"]
)
def test_worktree_whose_git_is_no_file_of_ours_is_refused(
    own: Git, repository: Path, tmp_path: Path, trap: Trap, how: str
) -> None:
    context, tree = prepared(own, repository)
    link = tree / ".git"
    text = link.read_text()
    made = hostile_repository(tmp_path / "elsewhere", trap)
    link.unlink()
    match how:
        case "a folder":
            shutil.copytree(made / ".git", link)
        case "a link to a folder":
            link.symlink_to(made / ".git")
        case "a link to a file":
            (tree / "copy").write_text(text)
            link.symlink_to(tree / "copy")
        case "a pipe":
            os.mkfifo(link)
        case "nonsense":
            link.write_bytes(b"\x00\xff")
        case "long":
            link.write_text(text + "x" * 100_000)
    trap.mark.unlink(missing_ok=True)

    with pytest.raises(Broken, match="was changed, so there is no diff"):
        own.look(context, REF, "m")
    assert not trap.is_sprung


def test_worktree_that_lost_its_git_is_gone(own: Git, repository: Path) -> None:
    context, tree = prepared(own, repository)
    (tree / ".git").unlink()

    with pytest.raises(Broken, match="the worktree at"):
        own.look(context, REF, "m")


def test_no_git_is_run_in_a_repository_inside_of_the_worktree(
    own: Git, repository: Path, tmp_path: Path, trap: Trap
) -> None:
    inner = make_repository(tmp_path / "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "known")
    git(repository, "commit", "-q", "-m", "a submodule")
    context, tree = prepared(own, repository)
    shutil.rmtree(tree / "known")
    for name in ("known", "new"):
        made = hostile_repository(tree / name, trap)
        (made / ".gitattributes").write_text("* filter=evil\n")
        (made / "README").write_text("touched, so that it has to be read\n")
    trap.mark.unlink(missing_ok=True)

    seen = own.look(context, REF, "m")

    assert not trap.is_sprung
    assert "known, new" in seen.note
    assert b"+done" in seen.patch


@pytest.mark.parametrize("what", ["removed", "a file", "empty"])
def test_submodule_that_is_no_repository_any_more(
    own: Git, repository: Path, tmp_path: Path, what: str
) -> None:
    inner = make_repository(tmp_path / "inner")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "known")
    git(repository, "commit", "-q", "-m", "a submodule")
    context, tree = prepared(own, repository)
    if what != "empty":
        shutil.rmtree(tree / "known")
    if what == "a file":
        (tree / "known").write_text("a file\n")

    patch = own.look(context, REF, "m").patch.decode()

    assert ("diff --git a/known b/known" in patch) is (what != "empty")
    assert ("+a file" in patch) is (what == "a file")


def test_hooks_of_the_repository_are_not_run(own: Git, repository: Path, trap: Trap) -> None:
    hooks = repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        shutil.copy(trap.path, hooks / name)
    context, _ = prepared(own, repository)
    own.look(context, REF, "m")

    assert not trap.is_sprung


def hostile_everywhere(repository: Path, trap: Trap) -> None:
    """Have the repository itself name programs, as one does that was unpacked from an archive."""
    (repository / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "attributes")
    trap.arm(repository)
    for name, value in {
        "filter.a=b.clean": str(trap.path),
        "hook.evil.command": str(trap.path),
        "hook.evil.event": "post-checkout",
        "core.alternateRefsCommand": str(trap.path),
        "submodule.recurse": "true",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{trap.path}",
        "protocol.ext.allow": "always",
        "remote.origin.uploadpack": str(trap.path),
        "gpg.program": str(trap.path),
        "commit.gpgSign": "true",
        "merge.evil.driver": str(trap.path),
        "alias.status": f"!{trap.path}",
    }.items():
        git(repository, "config", name, value)
    included = repository / ".git" / "more"
    included.write_text(f'[filter "more"]\n\tclean = {trap.path}\n\tsmudge = {trap.path}\n')
    git(repository, "config", "include.path", str(included))
    (repository / "README").write_text("touched, so that it has to be read\n")
    trap.mark.unlink(missing_ok=True)


def test_nothing_that_a_repository_names_is_run(own: Git, repository: Path, trap: Trap) -> None:
    hostile_everywhere(repository, trap)
    context = own.prepare(repository, repository.parent / "tree")
    tree = Path(context.worktree)
    (tree / ".gitattributes").write_text("* filter=more\na filter=a=b\n")
    (tree / "work").write_text("done\n")
    (tree / "a").write_text("done\n")
    seen = own.look(context, REF, "m")
    own.branch(context, "csp/x", seen.figures.commit)

    assert not trap.is_sprung
    assert b"+done" in seen.patch
    assert "filters configured by the repository itself are not run: a=b, evil, more" in context.note


def test_missing_object_of_a_repository_is_not_fetched_in_its_way(
    own: Git, repository: Path, trap: Trap
) -> None:
    hostile_everywhere(repository, trap)
    blob = git(repository, "rev-parse", "HEAD:README")
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    with pytest.raises(Broken):
        own.prepare(repository, repository.parent / "tree")
    assert not trap.is_sprung


def test_filter_of_the_user_is_run(repository: Path, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text('[filter "loud"]\n\tclean = tr a-z A-Z\n')
    own = Git({"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    context = own.prepare(repository, tmp_path / "tree")
    (tmp_path / "tree" / ".gitattributes").write_text("work filter=loud\n")
    (tmp_path / "tree" / "work").write_text("done\n")

    assert b"+DONE" in own.look(context, REF, "m").patch


def test_no_program_that_a_worktree_brings_is_run_for_an_agents_own_worktree(
    repository: Path, tmp_path: Path, trap: Trap
) -> None:
    hostile_everywhere(repository, trap)
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    place = ensure_worktree(repository, tmp_path / "history", "default", "ann", env)
    (place / "work").write_text("not committed\n")
    (place / "README").write_text("touched\n")
    ensure_worktree(repository, tmp_path / "history", "default", "ann", env)
    kept = remove_worktrees(tmp_path / "history", env)

    assert not trap.is_sprung
    assert kept == [tmp_path / "history" / "worktrees" / "ann"]


def test_git_is_told_no_secret(repository: Path, tmp_path: Path) -> None:
    real = shutil.which("git")
    told = tmp_path / "told"
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nenv >> {told}\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": "/nonexistent", "LC_TIME": "C"}
    secrets = ("CSP_AUTH_TOKEN", "CSP_AGENT", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY")
    context, _ = prepared(Git(env | dict.fromkeys(secrets, "s3cret")), repository)
    Git(env | dict.fromkeys(secrets, "s3cret")).look(context, REF, "m")

    assert "LC_TIME=C" in told.read_text()
    assert "s3cret" not in told.read_text()
