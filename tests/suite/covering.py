"""Choose the tests that cover a file.

`tests/coverage_map.json` records which test files ran code of which source file; `./bin/test --map` writes
it. What it does not know yet is chosen by names and imports: a new test file, a new or moved source file.

Some files are used by nearly every test. Of those only as many run as a person waits for; the map has them in
an order in which the first few run every line of the file.
"""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

MAP: Final = "tests/coverage_map.json"
#: With fewer recorded test files than this, all tests of the package are chosen too.
FEW: Final = 5
#: Files that are not Python are covered by the tests of the module that reads them.
READ_BY: Final = {
    "csp/web/page/": ("tests/web/", "tests/gateway/test_page_routes_files.py"),
    "csp/clis/": ("csp/clis/profile.py", "csp/clis/profile_screen.py"),
    **dict.fromkeys(
        ("docs/", "README.md", "CONTRIBUTING.md", "SECURITY.md"),
        ("tests/docs/test_pages.py", "tests/docs/test_language.py", "tests/docs/test_commands.py"),
    ),
    "prompts/": ("tests/gateway/test_prompt_words.py", "csp/prompt_files.py"),
    "bin/": ("tests/panes/test_setup.py", "tests/panes/test_start.py", "tests/suite/"),
}
#: How much of the recorded time of the whole suite the chosen tests may take, beside the nearest.
SHARE: Final = 0.35
#: What a test file is taken to need that was not recorded yet, in recorded seconds.
UNKNOWN_S: Final = 5.0


class Chosen(NamedTuple):
    """The test files to run, the nearest first, and those that cover the file too but would take too long."""

    tests: list[str]
    left_out: list[str]


def choose(root: Path, paths: Sequence[str]) -> Chosen:
    """Return the test files that cover the given files, as many as there is time for."""
    tests = covering_tests(root, paths)
    nearest = {test for path in paths for test in _nearest(root, _relative(root, path))}
    seconds = read_map(root)["seconds"]
    left_s = SHARE * sum(seconds.values())
    chosen = Chosen([], [])
    for test in tests:
        needs_s = seconds.get(test, UNKNOWN_S)
        if test in nearest or needs_s <= left_s:
            chosen.tests.append(test)
            left_s -= needs_s
        else:
            chosen.left_out.append(test)
    return chosen


def covering_tests(root: Path, paths: Sequence[str]) -> list[str]:
    """Return the test files that cover the given files, the nearest first."""
    chosen: dict[str, None] = {}
    for path in paths:
        relative = _relative(root, path)
        chosen |= dict.fromkeys(_for_one(root, relative))
    if not chosen:
        raise SystemExit(f"no test covers {', '.join(paths)}")
    return list(chosen)


def _relative(root: Path, path: str) -> str:
    absolute = (Path.cwd() / path).resolve()
    if not absolute.is_file():
        raise SystemExit(f"no such file: {path}")
    if not absolute.is_relative_to(root):
        raise SystemExit(f"not a file of this project: {path}")
    return str(absolute.relative_to(root))


def _for_one(root: Path, path: str) -> list[str]:
    if path.startswith("tests/"):
        return _for_test_file(root, path)
    readers = next((readers for prefix, readers in READ_BY.items() if path.startswith(prefix)), None)
    if readers is not None and not path.endswith(".py"):
        seconds = read_map(root)["seconds"]
        found = dict.fromkeys(_named_after(root, path) if path.startswith("csp/") else ())
        for importer in _scripts_importing(root, path):
            found |= dict.fromkeys(_named_after(root, importer))
        for reader in readers:
            is_folder = reader.startswith("tests/")
            tests = _under(root, reader) if is_folder else _for_one(root, reader)
            found |= dict.fromkeys(
                sorted(tests, key=lambda test: seconds.get(test, UNKNOWN_S)) if is_folder else tests
            )
        return list(found)
    return _for_source(root, path)


def _scripts_importing(root: Path, path: str) -> list[str]:
    """Return the scripts of the page that import a script, the nearest first, over any number of steps."""
    sources = {script: script.read_text("utf-8") for script in sorted((root / path).parent.glob("*.js"))}
    found = {root / path: None}
    for script in (waiting := [*found]):
        more = [one for one, text in sources.items() if f'"./{script.name}"' in text and one not in found]
        found |= dict.fromkeys(more)
        waiting += more
    return [str(script.relative_to(root)) for script in found][1:]


def _for_test_file(root: Path, path: str) -> list[str]:
    if Path(path).name.startswith("test_"):
        return [path]
    return [test for test in suite_files(root) if path in _imported(root, test)]


def _for_source(root: Path, path: str) -> list[str]:
    recorded = read_map(root)
    known = [test for test in recorded["covers"].get(path, []) if (root / test).is_file()]
    new = [test for test in suite_files(root) if test not in recorded["seconds"]]
    # Processes that start without site-packages, such as the relay, are not measured.
    package = _under(root, f"tests/{Path(path).parts[1]}/") if len(known) < FEW else []
    return list(dict.fromkeys([*_nearest(root, path), *known, *new, *package]))


def _nearest(root: Path, path: str) -> list[str]:
    """Return the tests that are named after a file, then those that import it, the quick ones first."""
    seconds = read_map(root)["seconds"]
    importing = [test for test in suite_files(root) if path in _imported(root, test)]
    importing.sort(key=lambda test: seconds.get(test, UNKNOWN_S))
    return [*_named_after(root, path), *importing]


@cache
def read_map(root: Path) -> Any:
    """Return the recorded map: for source files the test files, nearest first; for test files the seconds."""
    path = root / MAP
    return json.loads(path.read_text("utf-8")) if path.exists() else {"covers": {}, "seconds": {}}


@cache
def suite_files(root: Path) -> list[str]:
    """Return every test file of the suite, without those that measure."""
    paths = sorted((root / "tests").rglob("test_*.py"))
    found = [str(path.relative_to(root)) for path in paths]
    return [path for path in found if not path.startswith("tests/bench/test_")]


def _under(root: Path, prefix: str) -> list[str]:
    return [test for test in suite_files(root) if test.startswith(prefix)]


def _named_after(root: Path, path: str) -> list[str]:
    """Return the tests of its package that have the name of a file in theirs, the quick ones first.

    Such as test_relay_signals.py for signals.py. A package without any has one of that very name elsewhere.
    """
    stem, seconds = Path(path).stem, read_map(root)["seconds"]
    folder = f"tests/{Path(path).parts[1]}/" if path.startswith("csp/") else "tests/"
    has_name = re.compile(
        rf"test_(.+_)?{re.escape(stem)}(_.+)?" if path.startswith("csp/") else f"test_{stem}"
    )
    named = [test for test in _under(root, folder) if has_name.fullmatch(Path(test).stem)]
    exact = [test for test in suite_files(root) if Path(test).stem == f"test_{stem}"]
    return sorted(named or exact, key=lambda test: seconds.get(test, UNKNOWN_S))


@cache
def _imported(root: Path, test: str) -> frozenset[str]:
    """Return the files of this project that a test file imports, without what those import."""
    tree = ast.parse((root / test).read_text("utf-8"))
    names = {name for node in ast.walk(tree) for name in _names(node)}
    found = {f"{name.replace('.', '/')}.py" for name in names} | {
        f"{name.replace('.', '/')}/__init__.py" for name in names
    }
    return frozenset(path for path in found if (root / path).is_file())


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
