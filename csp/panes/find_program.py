"""Find a command's program on the PATH, in the CLI's own install location, or in a shell alias.

A shell resolves aliases only in typed commands, so a program that starts `claude` by name does not
find one that is only an alias. We query the shell for its aliases; its output is data and is never run.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from csp.clis.profile import GENERIC, profile_for
from csp.fast_start.child_environment import USER, child_environment

#: The time limit for a shell's start-up files, and the maximum amount of its output to read.
ALIASES_S: Final = 5.0
_MAX_BYTES: Final = 1_000_000
#: Shells that list their aliases as `name=value`, with shell quoting.
_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"})
_ALIAS: Final = re.compile(r"(?:alias )?(?P<name>[A-Za-z0-9][\w.+-]*)=(?P<value>.+)")
#: Shell syntax; an alias that uses it is ignored.
_FOR_A_SHELL: Final = re.compile(r"[;&|<>()`$*?\[\]{}\n]")
_HOME: Final = re.compile(r"\A(?:~|\$HOME|\$\{HOME\})(?=/)")
_HOME_VARIABLE: Final = re.compile(r"\$HOME(?=/)|\$\{HOME\}(?=/)")


class FoundProgram(NamedTuple):
    """A command that can be started, and its profile if the program's name does not imply it."""

    command: tuple[str, ...]
    profile: str = ""


def find(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> FoundProgram | None:
    """Return the command in a form that can be started from `cwd`; None if its program is not found."""
    program, *rest = command
    where = str(cwd / program) if "/" in program else program
    if shutil.which(where, path=env.get("PATH")):
        return FoundProgram(tuple(command))
    if "/" in program:
        return None
    profile = profile_for(program)
    # A known CLI may be installed outside the PATH.
    places = (_at_home(place, env) for place in profile.installs)
    words = next(([place] for place in places if _is_program(place)), [])
    if not words:
        value = aliases(env).get(program, "")
        words = [] if _FOR_A_SHELL.search(_HOME_VARIABLE.sub("", value)) else _split(value)
        words = [_at_home(word, env) for word in words]
        if words and "/" not in words[0]:
            words[0] = shutil.which(words[0], path=env.get("PATH")) or ""
        if not words or not _is_program(words[0]):
            return None
    is_lost = profile.name not in (GENERIC, profile_for(words[0]).name)
    return FoundProgram((*words, *rest), profile.name if is_lost else "")


def aliases(env: Mapping[str, str]) -> dict[str, str]:
    """Return the aliases of the user's interactive shell, or none if it does not respond."""
    shell = env.get("SHELL", "")
    if not shell.startswith("/") or Path(shell).name not in _SHELLS:
        return {}
    return dict(_aliases(shell, tuple(sorted(env.items()))))


@lru_cache(maxsize=4)
def _aliases(shell: str, env: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the output of `alias`, within limits because start-up files may print text or never end."""
    with tempfile.TemporaryFile() as out:
        try:
            process = subprocess.Popen(
                [shell, "-i", "-c", "alias"],
                env=child_environment(USER, dict(env)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                # Detached from our terminal, which an interactive shell would take over.
                start_new_session=True,
            )
        except OSError:
            return ()
        try:
            process.wait(ALIASES_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return ()
        out.seek(0)
        lines = out.read(_MAX_BYTES).decode("utf-8", "replace").splitlines()
    found = [match for line in lines if (match := _ALIAS.fullmatch(line.strip()))]
    # The value is quoted for a shell, so it must parse as one word.
    read = [(match["name"], _split(match["value"])) for match in found]
    return tuple((name, words[0]) for name, words in read if len(words) == 1)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _at_home(place: str, env: Mapping[str, str]) -> str:
    """Return the path with `~` expanded."""
    return _HOME.sub(lambda _: env.get("HOME", ""), place)


def _is_program(path: str) -> bool:
    return path.startswith("/") and os.path.isfile(path) and os.access(path, os.X_OK)
