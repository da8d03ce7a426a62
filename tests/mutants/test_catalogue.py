"""Every mutant can be planted, and every part of the product has some."""

import ast
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.catalogue import ROOT, Mutant, files_of, read_all, touched_by
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


def test_a_change_of_source_tests_or_row_chooses_a_mutant() -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "queue-reversed")

    assert files_of(mutant) == {
        "csp/core/queues.py",
        "tests/core/test_laws.py",
        "tests/mutants/core_messages.toml",
    }
    for path in files_of(mutant):
        assert _names(touched_by([mutant], {path})) == ["queue-reversed"]
    assert touched_by([mutant], {"README.md"}) == []


def _names(mutants: list[Mutant]) -> list[str]:
    return [mutant.name for mutant in mutants]
