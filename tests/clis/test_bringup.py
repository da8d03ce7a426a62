"""How the real CLIs come up: versions, isolation, the start-up screens that need a person."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clis.bringup import CLIS, SetUp, bring_up
from tests.clis.driving import driven
from tests.clis.install import CLIS as INSTALLED
from tests.clis.install import PINS, missing, pins
from tests.clis.loopback import Loopback
from tests.models.server import ModelServer

UNTRUSTED = {"claude": "Quick safety check", "gemini": "Do you trust the files in this folder"}
LOGGED_OUT = {"claude": "Not logged in", "codex": "Sign in with ChatGPT", "gemini": "Get started"}
_FETCH = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=20)"
_CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


def test_the_pinned_clis_are_installed() -> None:
    assert missing(PINS, INSTALLED) == []


@pytest.mark.full
@pytest.mark.parametrize("name", CLIS)
def test_each_cli_is_the_pinned_one(name: str, tmp_path: Path) -> None:
    version = next(version for package, version in pins(PINS).items() if name in package)
    with Loopback() as loopback, ModelServer(listener=loopback.listener) as server:
        cli = bring_up(name, server, loopback, tmp_path)
        argv = [cli.argv[0], "--version"]
        run = subprocess.run(argv, env=cli.env, cwd=cli.cwd, capture_output=True, text=True, check=True)

    assert version in run.stdout


def test_another_version_counts_as_missing(tmp_path: Path) -> None:
    package, version = next(iter(pins(PINS).items()))
    path = tmp_path / "node_modules" / package / "package.json"
    path.parent.mkdir(parents=True)

    path.write_text('{"version": "0.0.1"}')
    assert f"{package}@{version}" in missing(PINS, tmp_path)
    path.write_text(f'{{"version": "{version}"}}')
    assert f"{package}@{version}" not in missing(PINS, tmp_path)


def test_a_program_inside_reaches_the_model_server() -> None:
    with Loopback() as loopback, ModelServer(listener=loopback.listener) as server:
        command = loopback.wrap([sys.executable, "-I", "-c", _CONNECT, "127.0.0.1", str(server.port)])
        run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr


def test_a_program_inside_reaches_nothing_else(tmp_path: Path) -> None:
    with Loopback() as loopback, ModelServer(listener=loopback.listener) as server:
        cli = bring_up("claude", server, loopback, tmp_path)
        # An address for documentation: with a way out the answer would be a timeout.
        command = loopback.wrap([sys.executable, "-I", "-c", _FETCH, "http://192.0.2.1/"])
        run = subprocess.run(command, env=cli.env, capture_output=True, text=True, check=False)

    assert "Connection refused" in run.stderr
    assert loopback.is_isolated or sys.platform != "linux" or not _can_unshare()


def test_not_even_without_the_closed_proxy() -> None:
    with Loopback() as loopback:
        command = loopback.wrap([sys.executable, "-I", "-c", _CONNECT, "192.0.2.1", "443"])
        run = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "Network is unreachable" in run.stderr or not loopback.is_isolated


def _can_unshare() -> bool:
    command = ["unshare", "--user", "--map-root-user", "--net", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(UNTRUSTED))
def test_an_untrusted_folder_asks_first(name: str, tmp_path: Path) -> None:
    with driven(name, tmp_path, set_up=SetUp(is_trusted=False)) as at:
        at.terminal.wait_for(UNTRUSTED[name], 120.0)


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(LOGGED_OUT))
def test_without_a_login_a_person_is_asked(name: str, tmp_path: Path) -> None:
    with driven(name, tmp_path, set_up=SetUp(is_logged_in=False)) as at:
        at.terminal.wait_for(LOGGED_OUT[name], 120.0)
