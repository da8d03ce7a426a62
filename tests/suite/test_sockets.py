"""sockets.py: a leaked socket leads back to the test that made it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CONFTEST: Final = """
from tests.suite.sockets import SocketOrigins


def pytest_configure(config):
    config.pluginmanager.register(SocketOrigins())
"""
LEAK: Final = """
import gc
import socket


def test_leaks():
    holder = [socket.socket()]
    holder.append(holder)


def test_collects():
    gc.collect()
"""


def test_the_report_of_a_leak_names_the_test_that_made_it(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(LEAK)
    words = ["-m", "pytest", "-W", "error", "-p", "no:cacheprovider", "--rootdir", ".", "-c", os.devnull]
    done = subprocess.run(
        [sys.executable, *words, "test_it.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "in test_it.py::test_leaks\n" in done.stdout
    assert f"{tmp_path / 'test_it.py'}:7\n" in done.stdout
