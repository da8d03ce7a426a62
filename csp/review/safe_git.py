"""Run git without running commands that a repository configures.

A repository's own settings may name programs: filters, hooks, a file monitor, or a fetcher of missing
objects. A clone does not copy such settings, but an unpacked archive may contain them, and a program in a
worktree can write them. Programs named in the user's own settings, such as git-lfs, are run.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from csp.fast_start.child_environment import TOOL, child_environment

TIMEOUT_S: Final = 120.0
_SAFE: Final = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "submodule.recurse=false"),
)
_QUIET: Final = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    # Missing objects of a repository would be fetched by a command from its settings.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}
#: The scopes of a repository's own settings, as opposed to those of the user or the system.
_REPOSITORYS: Final = ("local", "worktree")
#: Settings that name a command, with their replacements.
_COMMANDS: Final = (
    (re.compile(r"filter\..+\.(clean|smudge|process)", re.DOTALL), ""),
    (re.compile(r"filter\..+\.required", re.DOTALL), "false"),
    (re.compile(r"hook\..+\.command", re.DOTALL), ""),
    (re.compile(r"hook\..+\.enabled", re.DOTALL), "false"),
    (re.compile(r"core\.(sshcommand|gitproxy|alternaterefscommand|askpass|editor|pager)"), ""),
)
_FILTER: Final = re.compile(r"filter\.(.+)\.(?:clean|smudge|process)", re.DOTALL)
#: Commands that read only the repository's own records, so they run no filters.
_READERS: Final = frozenset({"rev-parse", "config"})


def run_git(
    dir: Path,
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    more: Mapping[str, str] | None = None,
    given: bytes = b"",
) -> "subprocess.CompletedProcess[bytes]":
    """Run git in `dir` with the necessary part of `env` and the variables in `more`."""
    own = {**_QUIET, **(more or {})}
    if words[0] not in _READERS:
        settings = _named_commands(dir, env, own)
        # Override these settings with variables, because an argument could not have a = in a name.
        own["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (name, value) in enumerate(settings.items()):
            own |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return _run(dir, words, env, own, given)


def own_filters(dir: Path, env: Mapping[str, str]) -> list[str]:
    """Return the names of the filters that a repository configures, which are not run."""
    found = [_FILTER.fullmatch(name) for name in _named_commands(dir, env, _QUIET)]
    return sorted({match[1] for match in found if match})


def _named_commands(dir: Path, env: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return a repository's settings that name a command, with their replacements."""
    done = _run(dir, ("config", "--list", "--show-scope", "--name-only", "-z"), env, own, b"")
    words = os.fsdecode(done.stdout).split("\0")
    names = [name for scope, name in zip(words[::2], words[1::2], strict=False) if scope in _REPOSITORYS]
    return {name: instead for name in names for pattern, instead in _COMMANDS if pattern.fullmatch(name)}


def _run(
    dir: Path, words: Sequence[str], env: Mapping[str, str], own: Mapping[str, str], given: bytes
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["git", *_SAFE, *words],
        cwd=dir,
        env=child_environment(TOOL, env, own),
        input=given,
        capture_output=True,
        check=False,
        timeout=TIMEOUT_S,
    )
