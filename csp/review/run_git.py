"""Git operations for a run: its worktree, the diff of each step, and a branch at the end.

Nothing here is forced, and the user's working tree is never touched: the worktree is detached, the diff is
made with a separate index, and the recorded states are kept under refs/csp/runs.

A builder may write anything to its worktree, and git runs commands that a repository configures. The user's
own repository therefore determines where a worktree belongs, never the `.git` in the worktree. Commands
configured by a repository are not run, and git is never started in a repository nested in the worktree.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from csp.errors import Broken
from csp.protocol.review_messages import DiffFigures, RunContext
from csp.review.safe_git import own_filters, run_git

#: The maximum size of a patch in the journal; the file contains all of it.
MAX_PATCH_CHARS: Final = 48_000
_NAMES: Final = 20
_AUTHOR: Final = ("-c", "user.name=csp", "-c", "user.email=csp@localhost", "-c", "commit.gpgsign=false")
#: All options are explicit, because user settings could change any of them and make a patch unusable.
_PLAIN: Final = (
    *("--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=none"),
)
# Otherwise, git would omit files that a builder wrote outside its sparse checkout.
_WHOLE: Final = ("-c", "core.sparseCheckout=false")
_GITLINK: Final = b"160000"
_MAX_LINK_BYTES: Final = 8192


class WorktreeState(NamedTuple):
    """The state of a worktree: figures, the patch truncated for the journal, and the full patch.

    `note` describes the work that is not in the patch.
    """

    figures: DiffFigures
    text: str
    patch: bytes
    note: str = ""


class Git:
    """Runs git in the directories used by runs."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def prepare(self, dir: Path, place: Path) -> RunContext:
        """Return the directory of a run: a worktree at `place` if `dir` is in a repository, else `dir`."""
        if not dir.is_absolute() or not dir.is_dir():
            return RunContext(note=f"there is no directory {str(dir)!r}, so there is no diff")
        top = self._ask(dir, "rev-parse", "--show-toplevel")
        base = self._ask(dir, "rev-parse", "--verify", "--quiet", "HEAD")
        if top is None or base is None:
            what = "not in a git repository" if top is None else "in a git repository without a commit"
            return RunContext(dir=str(dir), note=f"{str(dir)!r} is {what}, so there is no diff")
        if (place / ".git").exists():
            # It was created before a crash.
            more = {"GIT_DIR": str(self._own_folder(dir, place))}
            base = self._must(dir, "rev-parse", "--verify", "HEAD", more=more)
        else:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._must(dir, "worktree", "prune")
            self._must(dir, "worktree", "add", "--detach", str(place), base)
        notes = []
        # A submodule is a repository with settings of its own.
        if self._ask(dir, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"):
            notes.append("uncommitted changes in the repository are not part of the run")
        if (place / ".gitmodules").exists():
            notes.append("the submodules of the repository are empty in the worktree")
        if filters := own_filters(dir, self._env):
            notes.append(f"filters configured by the repository itself are not run: {', '.join(filters)}")
        note = "; ".join(notes)
        return RunContext(dir=str(dir), worktree=str(place), repository=top, base=base, note=note)

    def look(self, context: RunContext, ref: str, message: str) -> WorktreeState:
        """Create the diff of the worktree against its base, including new and binary files; keep it as a
        commit.

        Ignored files are omitted; files hidden by index flags are included.
        """
        tree, home = Path(context.worktree), Path(context.repository)
        own = self._own_folder(home, tree)
        with tempfile.TemporaryDirectory(prefix="csp-index-") as folder:
            index = Path(folder) / "index"
            if (own / "index").is_file():
                shutil.copy(own / "index", index)
            more = {"GIT_DIR": str(own), "GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(index)}
            self._stage_all(tree, more)
            written = self._must(tree, "write-tree", more=more)
        base = context.base
        commit = self._must(home, *_AUTHOR, "commit-tree", written, "-p", base, "-m", message)
        self._must(home, "update-ref", ref, commit)
        patch = self.patch(home, base, commit)
        plain = ("--no-ext-diff", "--no-textconv", "--no-renames")
        lines = self._must(home, "diff", "--numstat", *plain, base, commit).splitlines()
        counts = [line.split("\t")[:2] for line in lines]
        figures = DiffFigures(
            base=base,
            commit=commit,
            files=len(counts),
            insertions=sum(int(one) for one, _ in counts if one.isdigit()),
            deletions=sum(int(one) for _, one in counts if one.isdigit()),
            bytes=len(patch),
            sha256=hashlib.sha256(patch).hexdigest(),
        )
        # The files of nested repositories are not in the patch.
        raw = self._raw(home, "diff-tree", "-r", "-z", base, commit).split(b"\0")
        changes = zip(raw[::2], raw[1::2], strict=False)
        inner = [name for change, name in changes if change.split()[1:2] == [_GITLINK]]
        names = b", ".join(inner).decode(errors="replace")
        note = f"only the commit of {names}, a separate git repository, is in the diff" if inner else ""
        return WorktreeState(figures, cut_patch(patch), patch, note)

    def _own_folder(self, home: Path, tree: Path) -> Path:
        """Return the git directory of the worktree at `tree`, as recorded in the repository at `home`.

        Raise Broken if the worktree is gone, or if its `.git` file points elsewhere.
        """
        common = self._ask(home, "rev-parse", "--git-common-dir")
        link = Path(os.path.realpath(tree)) / ".git"
        for own in sorted((home / common / "worktrees").glob("*")) if common and link.exists() else ():
            if _named_in(own / "gitdir", "") == str(link):
                if _named_in(link, "gitdir: ") != os.path.realpath(own):
                    raise Broken(f"the file {str(link)!r} was changed, so there is no diff")
                return own
        raise Broken(f"the worktree at {str(tree)!r} no longer exists")

    def _stage_all(self, tree: Path, more: Mapping[str, str]) -> None:
        """Stage all new, changed and removed files, including those marked as unchanged.

        Only the commit of a nested repository is staged: `git add` would run git inside known ones to check
        whether they are clean.
        """
        is_sparse = self._ask(tree, "config", "--bool", "core.sparseCheckout") == "true"
        for line in self._raw(tree, *_WHOLE, "ls-files", "-v", "-z", more=more).split(b"\0"):
            state, _, name = line.partition(b" ")
            path = os.fsdecode(name)
            if state.islower():
                self._must(tree, "update-index", "--no-assume-unchanged", "--", path, more=more)
            if state in (b"S", b"s") and (not is_sparse or os.path.lexists(tree / path)):
                self._must(tree, *_WHOLE, "update-index", "--no-skip-worktree", "--", path, more=more)
        known = self._raw(tree, "ls-files", "--stage", "-z", more=more).split(b"\0")
        inner = [line.partition(b"\t")[2] for line in known if line.startswith(_GITLINK)]
        paths = [b":/", *(b":(top,exclude,literal)" + path for path in inner)]
        add = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
        self._raw(tree, *_WHOLE, *add, more=more, given=paths)
        update = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
        self._raw(tree, *update, more=more, given=inner)

    def patch(self, dir: Path, base: str, commit: str) -> bytes:
        """Return the patch from `base` to `commit`, for `git apply`."""
        return self._raw(dir, "diff", *_PLAIN, base, commit)

    def branch(self, context: RunContext, name: str, commit: str) -> str:
        """Create a branch at `commit`, never moving an existing one; return its name."""
        place = Path(context.repository)
        # A branch cannot be created if its name is a prefix folder of another branch.
        wishes = [f"{one}-{number}" for one in (name, name.replace("/", "-")) for number in range(1, _NAMES)]
        why = f"{len(wishes)} branches are already called {name!r}"
        for wish in wishes:
            wanted = wish.removesuffix("-1")
            there = self._ask(place, "rev-parse", "--verify", "--quiet", f"refs/heads/{wanted}")
            if there == commit:
                return wanted
            if there is None:
                try:
                    self._must(place, "branch", "--no-track", wanted, commit)
                except Broken as exc:
                    why = exc.message
                else:
                    return wanted
        raise Broken(why, "delete some of them")

    def _ask(self, dir: Path, *words: str) -> str | None:
        done = self._run(dir, *words)
        return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else None

    def _raw(
        self, dir: Path, *words: str, more: Mapping[str, str] | None = None, given: Sequence[bytes] = ()
    ) -> bytes:
        done = self._run(dir, *words, more=more, given=given)
        if done.returncode:
            said = " ".join(done.stderr.decode(errors="replace").split())
            verb = next(word for word in words if not word.startswith("-") and "=" not in word)
            raise Broken(f"git {verb} failed in {str(dir)!r}: {said}")
        return done.stdout

    def _must(self, dir: Path, *words: str, more: Mapping[str, str] | None = None) -> str:
        return self._raw(dir, *words, more=more).decode(errors="replace").strip()

    def _run(
        self, dir: Path, *words: str, more: Mapping[str, str] | None = None, given: Sequence[bytes] = ()
    ) -> "subprocess.CompletedProcess[bytes]":
        try:
            return run_git(dir, words, self._env, more=more, given=b"".join(one + b"\0" for one in given))
        except FileNotFoundError as exc:
            if exc.filename != "git":
                raise Broken(f"the directory {str(dir)!r} no longer exists") from exc
            raise Broken("git was not found", "install git") from exc
        except (subprocess.TimeoutExpired, OSError, ValueError) as exc:
            raise Broken(f"git {words[0]} failed: {exc}") from exc


def _named_in(file: Path, before: str) -> str:
    """Return the resolved path after `before` in a one-line file; "" for any other file."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as opened:
            text = os.fsdecode(opened.read(_MAX_LINK_BYTES)).removesuffix("\n")
    except OSError:
        return ""
    name = text.removeprefix(before)
    if not text.startswith(before) or not os.path.isabs(name):
        return ""
    # Return the path of the link itself, wherever it points.
    return os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))


def cut_patch(patch: bytes) -> str:
    """Return a patch truncated for the journal."""
    text = patch.decode(errors="replace")
    if len(text) <= MAX_PATCH_CHARS:
        return text
    return text[:MAX_PATCH_CHARS] + f"\n[cut: the patch has {len(patch)} bytes, see the run's folder]\n"
