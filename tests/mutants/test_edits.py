"""A mutant's symbol is found wherever it is defined, and only the text that was meant changes."""

from pathlib import Path

import pytest

from tests.mutants.edits import BadEdit, Edit, apply, locate

MODULE = '''"""A module."""

LIMIT = 3


class Room:
    size: int = 1

    def grow(self, by: int) -> int:
        if by > 0:
            self.size += by

            return self.size
        return 0


def grow(by: int) -> int:
    return by + 1
'''
SCRIPT = """export function chipText(mode) {
  if (!mode) {
    return "";
  }
  return mode.name;
}

class Board {
  draw(rows) {
    return rows.length;
  }
}
const SIZE = 3;
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {"csp/a/room.py": MODULE, "csp/web/page/modes.js": SCRIPT}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("symbol", "first", "last"),
    [
        ("room.LIMIT", "LIMIT = 3", "LIMIT = 3"),
        ("Room", "class Room:", "        return 0"),
        ("Room.size", "    size: int = 1", "    size: int = 1"),
        ("Room.grow", "    def grow(self, by: int) -> int:", "        return 0"),
        ("room.grow", "def grow(by: int) -> int:", "    return by + 1"),
        ("modes.js", "export function chipText(mode) {", "const SIZE = 3;"),
        ("modes.js chipText", "export function chipText(mode) {", "}"),
        ("modes.js Board", "class Board {", "}"),
        ("modes.js Board.draw", "  draw(rows) {", "  }"),
        ("modes.js SIZE", "const SIZE = 3;", "const SIZE = 3;"),
    ],
)
def test_a_symbol_is_found_with_its_first_and_last_line(
    root: Path, symbol: str, first: str, last: str
) -> None:
    region = locate(root, symbol)

    lines = region.path.read_text().splitlines()[region.first : region.last]
    assert (lines[0], lines[-1]) == (first, last)


def test_a_symbol_is_found_in_another_file_after_a_move(root: Path) -> None:
    (root / "csp/b").mkdir()
    (root / "csp/a/room.py").rename(root / "csp/b/room.py")

    assert locate(root, "Room.grow").path == root / "csp/b/room.py"


@pytest.mark.parametrize("symbol", ["grow", "Room.shrink", "modes.js draw2", "nowhere.js"])
def test_a_symbol_that_is_not_defined_once_is_an_error(root: Path, symbol: str) -> None:
    with pytest.raises(BadEdit, match="expected exactly one"):
        locate(root, symbol)


def test_part_of_a_line_is_replaced(root: Path) -> None:
    path = apply(root, Edit("Room.grow", "by > 0", "by >= 0"))

    assert path.read_text() == MODULE.replace("by > 0", "by >= 0")


def test_lines_are_replaced_whatever_their_indent_and_blank_lines(root: Path) -> None:
    path = apply(root, Edit("Room.grow", "self.size += by\nreturn self.size", "return 7\n"))

    assert path.read_text() == MODULE.replace(
        "            self.size += by\n\n            return self.size\n", "            return 7\n"
    )


def test_nested_lines_keep_their_depth(root: Path) -> None:
    path = apply(root, Edit("room.grow", "return by + 1", "if by:\n    return 2\nreturn 3"))

    assert "    if by:\n        return 2\n    return 3\n" in path.read_text()


def test_a_line_is_removed(root: Path) -> None:
    path = apply(root, Edit("Room.grow", "self.size += by", ""))

    assert "self.size += by" not in path.read_text()


@pytest.mark.parametrize("old", ["return", "no such text", "return 0\nreturn 1"])
def test_a_text_that_is_not_there_once_is_an_error(root: Path, old: str) -> None:
    with pytest.raises(BadEdit, match="expected exactly one"):
        apply(root, Edit("Room.grow", old, "x"))


def test_a_script_is_edited(root: Path) -> None:
    path = apply(root, Edit("modes.js chipText", "if (!mode) {", "if (mode) {"))

    assert path.read_text() == SCRIPT.replace("!mode", "mode")


def test_the_original_of_a_linked_copy_stays(root: Path, tmp_path: Path) -> None:
    original = tmp_path / "original.py"
    original.hardlink_to(root / "csp/a/room.py")

    apply(root, Edit("Room.grow", "by > 0", "by < 0"))

    assert original.read_text() == MODULE
