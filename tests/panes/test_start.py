"""The one command: it sets up what is missing, then opens the room."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.panes.place import Place
from tests.panes.scripts import make_clone, make_venv, tools
from tests.rooms import ROOT

SCRIPT: Final = ROOT / "bin" / "start-llm-groupchat.sh"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with only the scripts, and an environment that is fresh or not as a test wants it."""
    return make_clone(tmp_path / "clone")


def run(clone: Path, path: Path, cwd: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": str(path), "HOME": str(cwd), "CI": "1"}
    command = [str(clone / "bin" / "start-llm-groupchat.sh"), *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_with_nothing_missing_it_says_nothing_and_hands_over(clone: Path, tmp_path: Path) -> None:
    make_venv(clone)
    path = tools(tmp_path / "path", tmux="echo tmux 3.4")
    done = run(clone, path, tmp_path, "--demo", "--dir", "a b")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(tmp_path), "up", "--demo", "--dir", "a b"]


@pytest.mark.parametrize("manager", ["apt_get", "dnf", "brew"])
def test_a_missing_tmux_is_installed_with_a_word_before(clone: Path, tmp_path: Path, manager: str) -> None:
    make_venv(clone)
    folder = tmp_path / "path"
    install = (
        f'case "$*" in *install*tmux*) printf "#!/bin/sh\\n" > {folder}/tmux; chmod +x {folder}/tmux;; esac'
    )
    path = tools(folder, **{manager: install}, sudo='shift; exec "$@"')
    done = run(clone, path, tmp_path)
    name = manager.replace("_", "-")

    assert done.returncode == 0, done.stderr
    assert f"start-llm-groupchat.sh: installing with {name}: tmux" in done.stderr
    assert done.stdout.splitlines()[1] == "up"


def test_where_tmux_cannot_be_installed_it_says_what_to_do(clone: Path, tmp_path: Path) -> None:
    make_venv(clone)
    done = run(clone, tools(tmp_path / "path"), tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "start-llm-groupchat.sh: no apt-get, dnf or brew here; please install by hand: tmux"
    )


def test_it_works_through_a_link_from_anywhere(clone: Path, tmp_path: Path) -> None:
    make_venv(clone)
    link = tmp_path / "chat"
    link.symlink_to(clone / "bin" / "start-llm-groupchat.sh")
    path = tools(tmp_path / "path", tmux="exit 0")
    done = subprocess.run(
        [str(link)],
        cwd="/",
        env={"PATH": str(path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == ["/", "up"], done.stderr


@pytest.mark.parametrize("script", ["csp", "start-llm-groupchat.sh"])
@pytest.mark.parametrize("steps", [["absolute"], ["relative"], ["relative", "absolute"]])
def test_each_script_finds_its_clone_through_links(
    clone: Path, tmp_path: Path, script: str, steps: list[str]
) -> None:
    make_venv(clone)
    called = clone / "bin" / script
    for number, step in enumerate(steps):
        link = tmp_path / f"link{number}"
        link.symlink_to(called if step == "absolute" else os.path.relpath(called, tmp_path))
        called = link
    env = {"PATH": str(tools(tmp_path / "path", tmux="exit 0")), "HOME": str(tmp_path)}
    done = subprocess.run(
        [called, "--room", "x"], cwd="/", env=env, capture_output=True, text=True, check=False
    )

    verb = [] if script == "csp" else ["up"]
    assert done.stdout.splitlines() == ["/", *verb, "--room", "x"], done.stderr


def test_it_opens_a_room_in_the_callers_directory(clone: Path, place: Place) -> None:
    make_venv(clone, f'exec {sys.executable} -P -m csp.cli "$@"')
    place.agents("ann")
    place.accept()
    done = subprocess.run(
        [str(clone / "bin" / "start-llm-groupchat.sh"), "--detach"],
        cwd=place.dir,
        env=place.env,
        capture_output=True,
        text=True,
        check=False,
    )
    place.watch()

    assert done.returncode == 0, done.stderr
    assert place.online() == {"ann": "idle"}
    assert place.room.dir == place.dir


def test_packages_that_cannot_be_installed_are_one_clear_line(clone: Path, tmp_path: Path) -> None:
    path = tools(
        tmp_path / "path", tmux="exit 0", uv="case $1 in --version) echo uv 0.9.0;; *) exit 1;; esac"
    )
    done = run(clone, path, tmp_path)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "start-llm-groupchat.sh: the Python packages could not be installed for the reason above"
    )


def test_uv_leaves_its_lock_in_the_cache_and_not_in_tmp(clone: Path, tmp_path: Path) -> None:
    uv = 'case $1 in --version) echo uv 0.9.0;; sync) : >"${TMPDIR:-/tmp}/uv-test.lock"; exit 1;; esac'
    run(clone, tools(tmp_path / "path", tmux="exit 0", uv=uv), tmp_path)

    assert (tmp_path / ".cache" / "csp" / "uv" / "uv-test.lock").exists()


def test_it_keeps_to_what_an_old_bash_knows() -> None:
    text = SCRIPT.read_text() + (ROOT / "bin" / "setup.sh").read_text()

    assert (
        re.findall(r"\b(?:mapfile|readarray|declare -A|local -n|coproc)\b|\$\{\w+(?:\^|,,|@)|&>>|\|&", text)
        == []
    )
    assert os.access(SCRIPT, os.X_OK)


# --- the packages of API models --------------------------------------------------------

_MODELS: Final = """
[[agent]]
name = "claude-api"
provider = "anthropic"
model = "m"
[[agent]]
name = "gem"
provider = 'gemini'  # by way of another package
model = "m"
[[agent]]
name = "claude"
command = "claude"
"""


def with_python(clone: Path, has_extras: bool) -> None:
    python = clone / ".venv" / "bin" / "python"
    python.write_text(f"#!/bin/sh\nexit {0 if has_extras else 1}\n")
    python.chmod(0o755)


@pytest.mark.parametrize("has_extras", [True, False])
def test_what_the_models_of_csp_toml_need_is_installed_once(
    clone: Path, tmp_path: Path, has_extras: bool
) -> None:
    make_venv(clone)
    with_python(clone, has_extras)
    (tmp_path / "csp.toml").write_text(_MODELS)
    uv = f'case "$1" in --version) echo uv 0.9.0;; sync) echo "$*" >> {tmp_path}/synced;; esac'
    path = tools(tmp_path / "path", tmux="echo tmux 3.4", uv=uv)
    done = run(clone, path, tmp_path)
    log = tmp_path / "synced"
    synced = [line.partition("--extra ")[2] for line in log.read_text().splitlines()] if log.exists() else []

    assert (done.returncode, done.stdout.splitlines()[1]) == (0, "up")
    assert synced == ([] if has_extras else ["anthropic", "openai"])
