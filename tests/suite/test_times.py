"""The order in which the tests of a run start."""

import subprocess
import sys
from pathlib import Path
from typing import Final
from unittest import mock

import pytest

from tests.suite import times
from tests.suite.__main__ import lanes_for
from tests.suite.times import ROOT

CONFTEST: Final = """
from tests.suite.times import in_order
def pytest_addoption(parser): parser.addoption("--in-order")
def pytest_collection_modifyitems(config, items): in_order(items, config.getoption("--in-order").split(","))
"""


def test_the_nearest_tests_run_first_with_the_fixtures_of_their_folders(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "conftest.py").write_text(CONFTEST)
    folder = tmp_path / "tests" / "part"
    folder.mkdir(parents=True)
    (folder / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef room(): return 1\n")
    for name in ("part/test_near.py", "test_above.py", "part/test_far.py"):
        arguments = "room" if name.startswith("part/") else ""
        (tmp_path / "tests" / name).write_text(f"def test_it({arguments}): pass\n")
    order = ["tests/part/test_near.py", "tests/test_above.py", "tests/part/test_far.py"]
    words = [*sorted(order), "--in-order", ",".join(order), "-v", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    passed = [line.split("::")[0] for line in done.stdout.splitlines() if "PASSED" in line]
    assert passed == order, done.stdout + done.stderr


def test_a_file_without_a_time_starts_before_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"tests/test_short.py": 0.1, "tests/test_long.py": 9.0, "tests/test_exhaustive.py": 0.0}
    monkeypatch.setattr(times, "read_map", lambda _: {"seconds": seconds})
    files = ["tests/test_short.py", "tests/test_exhaustive.py", "tests/test_long.py", "tests/test_new.py"]
    items = [mock.create_autospec(pytest.Item, nodeid=f"{file}::test_it", instance=True) for file in files]
    times.longest_first(items)

    assert [item.nodeid.partition("::")[0] for item in items] == [
        "tests/test_exhaustive.py",
        "tests/test_new.py",
        "tests/test_long.py",
        "tests/test_short.py",
    ]


def test_the_tests_of_a_file_are_given_by_folder_and_run_nearest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    ((part,),) = lanes_for(["csp/gateway/agent_launcher.py"])
    (words,) = part.commands
    order = words[words.index("--in-order") + 1].split(",")
    given = [word for word in words if word.startswith("tests/") and "," not in word]

    assert given == sorted(order) != order
    assert order[0] == "tests/gateway/test_agent_launcher.py"
