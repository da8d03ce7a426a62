"""Give an agent its own git worktree."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from csp.errors import BadInput, Broken
from csp.review.safe_git import run_git

_FOLDER: Final = "worktrees"
_OFF: Final = "or let the agents share the directory: --no-worktrees, worktree = false in csp.toml"
_INIT: Final = f"make one: git init; {_OFF}"
_COMMIT: Final = f"make a first one: git commit --allow-empty -m start; {_OFF}"


def worktree_path(history: Path, agent: str) -> Path:
    """Return the path of an agent's worktree, in the room's history folder."""
    return history / _FOLDER / agent


def has_worktree(history: Path, agent: str) -> bool:
    """Return whether an agent has a worktree from an earlier start."""
    return (worktree_path(history, agent) / ".git").exists()


def check_worktree(dir: Path, agent: str, env: Mapping[str, str]) -> str:
    """Return a directory's path within its repository; raise if no worktree can be created."""
    inside = _git(dir, env, "rev-parse", "--show-prefix")
    if inside is None:
        raise BadInput(
            f"agent {agent!r}: a worktree needs a git repository, but {str(dir)!r} is not in one", _INIT
        )
    if _git(dir, env, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        raise BadInput(f"agent {agent!r}: a worktree needs a commit, {str(dir)!r} has none yet", _COMMIT)
    return inside.strip()


def ensure_worktree(dir: Path, history: Path, room: str, agent: str, env: Mapping[str, str]) -> Path:
    """Return the agent's copy of `dir`, which is created once, then reused."""
    inside = check_worktree(dir, agent, env)
    path, branch = worktree_path(history, agent), f"csp/{room}/{agent}"
    if _git(path, env, "rev-parse", "--is-inside-work-tree") is None or not has_worktree(history, agent):
        is_known = _git(dir, env, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}") is not None
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A worktree whose folder was deleted manually is still registered; -f replaces it.
        words = [str(path), branch] if is_known else ["-b", branch, str(path)]
        done = _run(dir, env, "worktree", "add", "-f", *words)
        if done.returncode:
            lines = done.stderr.decode(errors="replace").splitlines()
            said = [line for line in lines if line.startswith(("fatal", "error"))]
            raise Broken(f"cannot make a worktree at {str(path)!r}: {' '.join(said) or 'git failed'}")
    place = path / inside
    return place if place.is_dir() else path


def remove_worktrees(history: Path, env: Mapping[str, str]) -> list[Path]:
    """Remove a room's worktrees; keep and return those with uncommitted work."""
    kept = []
    for path in sorted((history / _FOLDER).glob("*/")):
        done = _run(path, env, "worktree", "remove", str(path))
        if done.returncode and (path / ".git").exists():
            kept.append(path)
    return kept


def _git(dir: Path, env: Mapping[str, str], *words: str) -> str | None:
    done = _run(dir, env, *words) if dir.is_dir() else None
    return os.fsdecode(done.stdout) if done is not None and done.returncode == 0 else None


def _run(dir: Path, env: Mapping[str, str], *words: str) -> "subprocess.CompletedProcess[bytes]":
    try:
        return run_git(dir, words, env)
    except FileNotFoundError as exc:
        raise Broken("git was not found, but a worktree needs it", "install git") from exc
    except subprocess.TimeoutExpired as exc:
        raise Broken(f"git {words[0]} did not end within {exc.timeout:g} s") from exc
