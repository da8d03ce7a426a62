"""`./bin/test --for FILE` finds the tests of any file, also of one that the recorded map does not know."""

import json
from pathlib import Path

import pytest

from tests.suite.covering import SHARE, choose, covering_tests, read_map
from tests.suite.recording import merged, ranked

ROOT = Path(__file__).resolve().parent.parent.parent
MANY = [f"tests/cli/test_{number}.py" for number in range(5)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "csp/room/inbox.py": "",
        "csp/room/fresh.py": "",
        "csp/web/page/modes.js": "",
        "tests/room/test_inbox.py": "",
        "tests/room/test_send.py": "from csp.room import inbox\n",
        "tests/room/test_far.py": "",
        "tests/room/driver.py": "",
        "tests/cli/test_send.py": "from tests.room.driver import x\n",
        "tests/cli/test_new.py": "",
        "tests/web/test_modes.py": "",
        "tests/web/test_looks.py": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in MANY:
        (tmp_path / name).write_text("")
    known = [path for path in map(str, tmp_path.rglob("test_*.py")) if "new" not in path]
    recorded = {
        "covers": {
            "csp/room/inbox.py": ["tests/cli/test_send.py", "tests/gone/test_gone.py", *MANY],
        },
        "seconds": {str(Path(path).relative_to(tmp_path)): 1.0 for path in known},
    }
    (tmp_path / "tests/coverage_map.json").write_text(json.dumps(recorded))
    return tmp_path


def test_the_test_of_the_name_comes_first_then_who_imports_it_then_the_recorded(root: Path) -> None:
    chosen = covering_tests(root, [str(root / "csp/room/inbox.py")])

    assert chosen == [
        "tests/room/test_inbox.py",
        "tests/room/test_send.py",
        "tests/cli/test_send.py",
        *MANY,
        "tests/cli/test_new.py",
    ]


def test_a_longer_name_in_its_package_is_near_too_and_the_quick_ones_come_first(root: Path) -> None:
    seconds = {"tests/room/test_full_inbox.py": 9.0, "tests/room/test_inbox_files.py": 60.0}
    others = ("tests/cli/test_inbox.py", "tests/cli/test_full_inbox.py", "tests/room/test_inboxes.py")
    for name in (*seconds, *others):
        (root / name).write_text("")
    read_map(root)["seconds"] |= seconds

    assert covering_tests(root, [str(root / "csp/room/inbox.py")])[:4] == [
        "tests/room/test_inbox.py",
        "tests/room/test_full_inbox.py",
        "tests/room/test_inbox_files.py",
        "tests/room/test_send.py",
    ]


def test_a_package_without_a_test_of_the_name_gets_the_one_of_another(root: Path) -> None:
    (root / "tests/cli/test_fresh.py").write_text("")

    assert covering_tests(root, [str(root / "csp/room/fresh.py")])[0] == "tests/cli/test_fresh.py"


def test_a_file_that_is_hardly_recorded_gets_the_tests_of_its_package(root: Path) -> None:
    chosen = covering_tests(root, [str(root / "csp/room/fresh.py")])

    assert {test for test in chosen if "/room/" in test} == {
        "tests/room/test_inbox.py",
        "tests/room/test_send.py",
        "tests/room/test_far.py",
    }


def test_a_script_of_the_page_gets_the_tests_of_the_page(root: Path) -> None:
    chosen = covering_tests(root, [str(root / "csp/web/page/modes.js")])

    assert chosen == ["tests/web/test_modes.py", "tests/web/test_looks.py"]


def test_a_script_of_the_page_has_the_tests_of_those_who_import_it_near(root: Path) -> None:
    page = root / "csp/web/page"
    (page / "runs.js").write_text("")
    (page / "markdown.js").write_text('import { readRun } from "./runs.js";\n')
    (page / "chat.js").write_text('import { render } from "./markdown.js";\n')
    for name in ("tests/web/test_chat.py", "tests/web/test_markdown.py"):
        (root / name).write_text("")

    assert covering_tests(root, [str(page / "runs.js")])[:2] == [
        "tests/web/test_markdown.py",
        "tests/web/test_chat.py",
    ]


def test_a_driver_gets_the_tests_that_import_it(root: Path) -> None:
    assert covering_tests(root, [str(root / "tests/room/driver.py")]) == ["tests/cli/test_send.py"]


def test_a_test_file_gets_itself(root: Path) -> None:
    assert covering_tests(root, [str(root / "tests/web/test_looks.py")]) == ["tests/web/test_looks.py"]


@pytest.mark.parametrize(
    ("path", "complaint"), [("csp/nothing.py", "no such file"), ("/etc/passwd", "not a file")]
)
def test_a_file_of_nobody_is_an_error(root: Path, path: str, complaint: str) -> None:
    with pytest.raises(SystemExit, match=complaint):
        covering_tests(root, [path])


def test_of_too_many_tests_the_nearest_and_the_first_of_the_map_are_chosen(root: Path) -> None:
    slow = dict.fromkeys(("tests/room/test_inbox.py", "tests/cli/test_send.py", MANY[0]), 100.0)
    recorded = read_map(root)
    recorded["seconds"] |= slow
    # There is time for the nearest and one more of the slow ones, as the rows stand in the map.
    recorded["seconds"]["tests/room/test_far.py"] = 250.0 / SHARE - sum(recorded["seconds"].values())
    chosen = choose(root, [str(root / "csp/room/inbox.py")])

    assert chosen.tests[:3] == [
        "tests/room/test_inbox.py",
        "tests/room/test_send.py",
        "tests/cli/test_send.py",
    ]
    assert chosen.left_out == [MANY[0]]
    assert set(MANY[1:]) < set(chosen.tests)


def test_the_nearest_run_however_long_they_take(root: Path) -> None:
    recorded = read_map(root)
    recorded["seconds"] |= {"tests/room/test_inbox.py": 100.0, "tests/room/test_send.py": 100.0}

    assert choose(root, [str(root / "csp/room/inbox.py")]).tests == [
        "tests/room/test_inbox.py",
        "tests/room/test_send.py",
    ]


def test_the_first_tests_of_the_map_run_every_line() -> None:
    found = {"quick": {1, 2, 3}, "twin": {1, 2, 3}, "slow": {1, 2, 3, 4}, "other": {5}, "gone": {6}}
    seconds = {"quick": 0.1, "twin": 0.2, "slow": 20.0, "other": 9.0}

    assert ranked(found, seconds, set(seconds)) == ["quick", "other", "slow", "twin"]


def test_newer_tests_of_a_file_come_before_those_that_were_recorded() -> None:
    source, gone = "csp/errors.py", "csp/never_was.py"

    assert merged({source: ["new", "both"]}, {source: ["old", "both"], gone: ["old"]}) == {
        source: ["new", "both", "old"]
    }


def test_every_source_file_has_tests() -> None:
    sources = [
        *(path for path in (ROOT / "csp").rglob("*") if path.suffix in {".py", ".js", ".toml"}),
        *(ROOT / "prompts").glob("*.md"),
    ]
    without = []
    for source in sources:
        try:
            covering_tests(ROOT, [str(source)])
        except SystemExit:
            without.append(str(source.relative_to(ROOT)))

    assert without == []
