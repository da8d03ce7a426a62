"""Every requirement of the plans that CSP grew out of, with the tests that prove it.

`requirements.tsv` has one row for each: its id (plan and place in it), what is asked for, whether CSP does it
as asked (`tested`) or otherwise (`different`, with a note that says how), and the tests that would fail if it
broke.
"""

import ast
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
TABLE: Final = ROOT / "tests" / "requirements.tsv"
HEAD: Final = ["id", "requirement", "status", "tests", "note"]
#: The ids in their order; a row that is dropped, added or renamed has to be meant.
COUNT: Final = 241
IDS_SHA256: Final = "a7752492e3112596704e67f4796fd8a83d133a189a83b18fc9c2c042379d5412"
NODE: Final = re.compile(r"(tests/[\w/]+\.py)::(test_\w+)(?:\[(.+)\])?")


class Requirement(NamedTuple):
    id: str
    requirement: str
    status: str
    tests: str
    note: str

    @property
    def nodes(self) -> list[str]:
        return self.tests.split(";") if self.tests else []


@cache
def table() -> tuple[Requirement, ...]:
    lines = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()]
    assert lines[0] == HEAD
    assert [line for line in lines if len(line) != len(HEAD)] == []
    return tuple(Requirement(*line) for line in lines[1:])


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests in a file."""
    file = ROOT / path
    if not file.is_file():
        return frozenset()
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def texts_in(path: str) -> frozenset[str]:
    """Return the texts that are written in a file, those of parameters among them."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
    return frozenset(
        node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def is_test(node: str) -> bool:
    found = NODE.fullmatch(node)
    if found is None or found[2] not in names_in(found[1]):
        return False
    return found[3] is None or found[3] in texts_in(found[1])


def test_no_requirement_disappears() -> None:
    ids = [row.id for row in table()]

    assert len(ids) == COUNT
    assert hashlib.sha256("\n".join(ids).encode()).hexdigest() == IDS_SHA256


def test_no_id_occurs_twice() -> None:
    ids = [row.id for row in table()]

    assert [id for id in ids if ids.count(id) > 1] == []


def test_every_requirement_says_what_is_asked_for() -> None:
    assert [row.id for row in table() if not row.requirement.strip()] == []


def test_every_requirement_is_tested_or_different() -> None:
    assert [row.id for row in table() if row.status not in ("tested", "different")] == []


def test_every_requirement_has_a_test() -> None:
    assert [row.id for row in table() if not row.nodes] == []


def test_every_test_of_a_requirement_exists() -> None:
    missing = [f"{row.id}: {node}" for row in table() for node in row.nodes if not is_test(node)]

    assert missing == []


def departures() -> str:
    """Return the table of departures as docs/departures.md has to have it."""
    rows = [f"| {row.requirement} | {row.note} |" for row in table() if row.status == "different"]
    return "\n".join(["| asked for | instead |", "|---|---|", *rows])


def test_every_difference_is_a_documented_departure() -> None:
    text = (ROOT / "docs" / "departures.md").read_text("utf-8")
    found = re.search(r"<!-- departures -->\n(.*?)\n<!-- /departures -->", text, re.DOTALL)

    assert [row.id for row in table() if row.status == "different" and not row.note] == []
    assert found is not None and found[1].strip() == departures()


@pytest.mark.parametrize(
    "node",
    [
        "tests/test_requirements.py::test_nothing",
        "tests/test_nothing.py::test_every_requirement_has_a_test",
        "tests/test_requirements.py::test_every_requirement_...",
        "tests/test_requirements.py",
        f"tests/gateway/test_settings.py::test_setting_reaches_the_place_where_it_acts[{COUNT}]",
        "",
    ],
)
def test_a_name_that_is_not_a_test_is_found(node: str) -> None:
    assert not is_test(node)


def test_a_parameter_may_be_named() -> None:
    assert is_test(
        "tests/gateway/test_settings.py::test_setting_reaches_the_place_where_it_acts[max_minutes]"
    )
