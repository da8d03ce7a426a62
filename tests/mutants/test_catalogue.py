"""Every mutant can be planted, and every part of the product has some."""

import ast
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants import catalogue
from tests.mutants.catalogue import ROOT, files_of, read_all
from tests.mutants.edits import SOURCES, apply

MUTANTS = read_all()
#: The fewest mutants that a part must have; the core's are spread over files of their own.
FEWEST = 10
AREAS = {
    *("sidecar", "gateway", "journal", "human", "agents", "mcp", "whiteboard", "review", "panes", "page"),
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("copy")
    for name in SOURCES:
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(mutant.name for mutant in MUTANTS).items() if count > 1] == []


def test_every_part_has_mutants() -> None:
    counts = Counter(mutant.area for mutant in MUTANTS)

    assert {area: counts[area] for area in AREAS if counts[area] < FEWEST} == {}


def test_the_fixed_choice_is_a_dozen() -> None:
    assert len([mutant for mutant in MUTANTS if mutant.always]) == 12


def test_every_mutant_can_be_planted(copy: Path) -> None:
    for mutant in MUTANTS:
        changed: dict[Path, bytes] = {}
        for edit in mutant.edits:
            path = ROOT / apply(copy, edit).relative_to(copy)
            changed[path] = path.read_bytes()
        for path, original in changed.items():
            planted = copy / path.relative_to(ROOT)
            assert planted.read_bytes() != original, f"{mutant.name} changes nothing"
            if path.suffix == ".py":
                ast.parse(planted.read_text("utf-8"), mutant.name)
            planted.write_bytes(original)
            # The places of symbols are remembered by the time of a file.
            shutil.copystat(path, planted)


def test_every_named_test_exists() -> None:
    missing = [f"{mutant.name}: {test}" for mutant in MUTANTS for test in mutant.tests if not _exists(test)]

    assert missing == []


def _exists(test: str) -> bool:
    path, _, name = test.partition("::")
    file = ROOT / path
    if not name:
        return file.exists()
    return file.is_file() and f"def {name.partition('[')[0].rpartition('::')[2]}(" in file.read_text("utf-8")


def test_a_mutant_depends_on_its_source_and_its_tests() -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "queue-reversed")

    assert files_of(mutant) == {"csp/room/messages.py", "tests/room/test_laws.py"}


def test_a_change_of_source_tests_or_row_chooses_a_mutant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Play a clone in which the mutants of one area change in each of the three ways."""
    rows = ["a", "b", "c"]
    texts = {f"csp/{name}.py": f"def run_{name}() -> int:\n    return 1\n" for name in rows}
    texts |= {f"tests/test_{name}.py": "" for name in rows}
    texts["tests/mutants/x.toml"] = "".join(
        f"[[mutant]]\nname='{name}'\nbreaks=''\ntests=['tests/test_{name}.py']\n"
        f"[[mutant.edit]]\nsymbol='run_{name}'\nold='1'\nnew='2'\n"
        for name in rows
    )
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(catalogue, "ROOT", tmp_path)
    monkeypatch.setattr(catalogue, "HERE", tmp_path / "tests/mutants")
    for number in range(2):
        (tmp_path / "note").write_text(str(number))
        git(tmp_path, "init", "-q") if not number else None
        git(tmp_path, "add", "-A")
        git(tmp_path, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x")

    def changed() -> list[str]:
        return [mutant.name for mutant in catalogue.changed_mutants(read_all())]

    assert changed() == []
    (tmp_path / "csp/a.py").write_text(texts["csp/a.py"] + "\n")
    assert changed() == ["a"]
    (tmp_path / "tests/test_b.py").write_text("\n")
    assert changed() == ["a", "b"]
    toml = tmp_path / "tests/mutants/x.toml"
    toml.write_text(toml.read_text().replace("symbol='run_c'\nold='1'", "symbol='run_c'\nold='return 1'"))
    assert changed() == ["a", "b", "c"]


def git(place: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=place, check=True, capture_output=True)
