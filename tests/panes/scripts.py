"""A clone with only the scripts of bin/, and a PATH on which a test decides what there is."""

import shutil
from pathlib import Path
from typing import Final

from tests.rooms import ROOT

_TOOLS: Final = (
    *("bash", "cat", "chmod", "cp", "dirname", "env", "id", "mkdir", "mktemp", "mv", "readlink", "rm", "sed"),
    *("sh", "sort", "uname"),
)


def make_clone(folder: Path) -> Path:
    """Copy the scripts, without an environment for them."""
    shutil.copytree(ROOT / "bin", folder / "bin")
    (folder / "csp").mkdir()
    shutil.copy(ROOT / "csp" / "model_providers.py", folder / "csp")
    (folder / "uv.lock").touch()
    (folder / "pyproject.toml").touch()
    return folder


def make_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def tools(folder: Path, **programs: str) -> Path:
    """Make a PATH of a few usual tools and of scripts."""
    folder.mkdir()
    for name in _TOOLS:
        found = shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    for name, text in programs.items():
        make_program(folder / name.replace("_", "-"), text)
    return folder


def make_venv(clone: Path, runs: str = 'printf "%s\\n" "$PWD" "$@"') -> None:
    """Pretend that the environment is set up: its csp says what it is called with, if not told otherwise."""
    make_program(clone / ".venv" / "bin" / "csp", runs)
    (clone / ".venv" / ".csp-synced").write_text(f"{clone.resolve()}\n")
