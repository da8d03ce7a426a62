"""Find the rollouts of one running Codex process.

Codex has no flag for its session. The rollouts of a run are those that its own processes have open for
writing, which distinguishes two runs in one directory. Codex also reads other runs' rollouts at startup.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from csp.clis.transcript_reader import FoundTranscripts, decoded
from csp.fast_start.child_environment import TOOL, child_environment
from csp.fast_start.process_environment import process_environment

_LSOF_TIMEOUT_S: Final = 5.0
_FIRST_LINE_BYTES: Final = 1 << 20


class _Meta(msgspec.Struct):
    #: A string such as "cli"; an object for a thread that the CLI runs for itself.
    source: msgspec.Raw = msgspec.Raw(b'""')


class _First(msgspec.Struct):
    type: str = ""
    payload: _Meta | None = None


def process_family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found, waiting = [], [pid]
    while waiting:
        parent = waiting.pop()
        found.append(parent)
        if sys.platform != "linux":
            command, own = ["pgrep", "-P", str(parent)], child_environment(TOOL, process_environment())
            run = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
            waiting += map(int, run.stdout.split())
            continue
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                with contextlib.suppress(OSError):
                    waiting += map(int, _read(f"/proc/{parent}/task/{thread}/children").split())
    return found


def written_files(pids: Iterable[int]) -> set[Path]:
    """Return the files that processes have open for writing; inaccessible processes are skipped."""
    if sys.platform != "linux":
        return _listed(pids)
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    info = _read(f"/proc/{pid}/fdinfo/{fd}").splitlines()
                    # The kernel prints the flags of an open file in octal.
                    flags = next((line.split()[1] for line in info if line.startswith("flags:")), "0")
                    if int(flags, 8) & os.O_ACCMODE != os.O_RDONLY:
                        found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return {Path(name) for name in found if name.startswith("/")}


def _listed(pids: Iterable[int]) -> set[Path]:
    command = ["lsof", "-w", "-Fan", "-p", ",".join(map(str, pids))]
    own = child_environment(TOOL, process_environment())
    try:
        run = subprocess.run(
            command, env=own, capture_output=True, text=True, check=False, timeout=_LSOF_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return set()
    found, access = set(), ""
    for line in run.stdout.splitlines():
        match line[:1]:
            case "f":
                access = ""
            case "a":
                access = line[1:]
            case "n" if line.startswith("n/") and access in ("w", "u"):
                found.add(Path(line[1:]))
    return found


def find_rollouts(sessions: Path, pid: int) -> FoundTranscripts:
    """Return the rollouts that a Codex process writes, and the folders in which it will create new ones."""
    files = written_files(process_family(pid))
    found = [path for path in files if path.name.startswith("rollout-") and path.suffix == ".jsonl"]
    begin = {path: _source(path)[:1] for path in found}
    return FoundTranscripts(
        main=sorted(path for path in found if begin[path] == b'"'),
        subagents=sorted(path for path in found if begin[path] == b"{"),
        folders=newest_folders(sessions),
    )


def _source(path: Path) -> bytes:
    """Return the source of a thread from its rollout, or b"" if it cannot be read."""
    try:
        with path.open("rb") as file:
            first = decoded(file.readline(_FIRST_LINE_BYTES), _First)
    except OSError:
        return b""
    return bytes(first.payload.source) if first and first.payload else b""


def newest_folders(sessions: Path) -> list[Path]:
    """Return the folder of Codex's sessions and the folders of its newest year, month and day."""
    folders = [sessions]
    for _ in ("year", "month", "day"):
        try:
            names = [entry.name for entry in os.scandir(folders[-1]) if entry.name.isdigit()]
        except OSError:
            break
        if not names:
            break
        folders.append(folders[-1] / max(names))
    return folders


def _read(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()
