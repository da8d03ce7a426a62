"""The wheel as its users have it: installed without the clone, tried with the demo agents, and removed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.clis.install import CACHE
from tests.panes.place import Done, Place
from tests.rooms import ROOT

UV: Final = shutil.which("uv", path=f"{os.environ['PATH']}:{CACHE}/uv/bin:{Path.home()}/.local/bin") or "uv"


def uv(*words: str, env: dict[str, str] | None = None) -> str:
    """Run uv with what its cache has; download only what that lacks."""
    for offline in (("--offline",), ()):
        done = subprocess.run(
            [UV, *words, *offline],
            cwd=ROOT,
            env=os.environ | (env or {}),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--wheel", "--python", sys.executable, "--out-dir", str(folder))
    (path,) = folder.glob("*.whl")
    return path


class UserPlace(Place):
    """A user without a clone; `command` is how they run the installed package."""

    def __init__(self, folder: Path, command: Sequence[str]) -> None:
        super().__init__(folder)
        self._command = command

    @property
    def env(self) -> dict[str, str]:
        env = super().env
        for name in ("PYTHONPATH", "CSP_HISTORY_DIR"):
            del env[name]
        return env

    def csp(self, *argv: str) -> Done:
        done = subprocess.run(
            [*self._command, *argv], cwd=self.dir, env=self.env, capture_output=True, text=True, check=False
        )
        self.watch()
        return Done(done.returncode, done.stdout, done.stderr)

    def files(self) -> set[str]:
        """Return the files in the home, the project and the folder for running programs."""
        found = (path for top in (self.home, self.dir, self.state) for path in top.rglob("*"))
        return {str(path.relative_to(self.folder)) for path in found if not path.is_dir()}


def try_and_remove(place: UserPlace) -> None:
    """Play a first visit: open the demo room, get an answer, look at a page of the docs, uninstall."""
    opened = place.csp("--demo", "--detach")
    assert opened.code == 0, f"{opened.err}\n{place.shown()}"
    said = place.csp("send", "ada", "tabs or spaces?", "--wait", "--timeout", "60")
    pages = place.csp("docs", "start")
    done = place.csp("uninstall", "--yes")
    left = place.files()

    assert said.code == 0 and "tabs or spaces" in said.out, said
    assert "# Start in five minutes" in pages.out
    assert done.code == 0, done.err
    assert place.left_over() == [] and place.tmux("list-sessions", check=False) == ""
    history = "home/.local/share/csp/history/default/"
    assert f"{history}journal.jsonl" in left
    assert {path for path in left if not path.startswith((history, "home/.local/share/uv/"))} == set()


@pytest.mark.full
def test_an_installed_wheel_needs_no_clone(wheel: Path, tmp_path: Path) -> None:
    # The packages of uv.lock, which are in the cache because the tests run on them.
    venv = tmp_path / "installed"
    project = {"UV_PROJECT_ENVIRONMENT": str(venv), "VIRTUAL_ENV": ""}
    uv(
        "sync",
        "--quiet",
        "--frozen",
        "--no-dev",
        "--no-install-project",
        "--python",
        sys.executable,
        env=project,
    )
    uv("pip", "install", "--quiet", "--no-deps", "--python", str(venv), str(wheel))
    with UserPlace(tmp_path / "user", [str(venv / "bin" / "csp-groupchat")]) as place:
        try_and_remove(place)


@pytest.mark.full
def test_uvx_runs_a_wheel(wheel: Path, tmp_path: Path) -> None:
    command = [UV, "tool", "run", "--python", sys.executable, "--from", str(wheel), "csp-groupchat"]
    with UserPlace(tmp_path / "user", command) as place:
        # Its own home has neither uv's cache nor the certificates of a proxy.
        cache = subprocess.run(
            [UV, "cache", "dir"], capture_output=True, text=True, check=True
        ).stdout.strip()
        kept = {name: value for name, value in os.environ.items() if name.startswith(("SSL_", "UV_"))}
        place.set(UV_CACHE_DIR=cache, **kept)
        try_and_remove(place)
