"""Find a symbol in the sources and replace part of its text.

A mutant names a symbol and not a path or a line, so that it survives moved files and moved lines:

- `room._take_off_queue`, `Typist.run`: a Python function, class, method or constant. As many leading parts
  of the dotted name as make it unique in csp/ are needed, and no more.
- `modes.js chipText`, `modes.js`: a function, class, method or constant of the page, or a whole file that
  is not Python (`claude/profile.toml`, `collaborate.md`), found by its file name, or by its folder too.

The old text is one fragment of a line, or several whole lines; how far they are indented does not matter.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

#: The folders that hold the product, from the top of the repository.
SOURCES: Final = ("csp", "prompts", "bin")


class BadEdit(Exception):
    """An edit whose symbol or text is not there exactly once."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement of a text inside one symbol."""

    symbol: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Region:
    """The lines of a file that a symbol takes up; `last` is not one of them."""

    path: Path
    first: int
    last: int


def apply(root: Path, edit: Edit) -> Path:
    """Carry out an edit in the tree at `root`; return the changed file."""
    region = locate(root, edit.symbol)
    lines = region.path.read_text("utf-8").splitlines(keepends=True)
    before, inside, after = lines[: region.first], lines[region.first : region.last], lines[region.last :]
    inside = _replaced(inside, edit)
    # The file of a copy may be a link to the original: it is replaced, never written to.
    region.path.unlink()
    region.path.write_text("".join([*before, *inside, *after]), "utf-8")
    # A compiled file is known as stale by whole seconds and its size: a mutant could run as the old code.
    for compiled in region.path.parent.glob(f"__pycache__/{region.path.stem}.*"):
        compiled.unlink()
    return region.path


def locate(root: Path, symbol: str) -> Region:
    """Return where a symbol is defined; fail if that is nowhere, or in more than one place."""
    found = list(_in_named_file(root, symbol) if _names_a_file(symbol) else _in_python(root, symbol))
    if len(found) == 1:
        return found[0]
    places = sorted(f"{region.path.relative_to(root)}:{region.first + 1}" for region in found)
    raise BadEdit(f"symbol {symbol!r} is defined in {places or 'no place'}; expected exactly one")


def _names_a_file(symbol: str) -> bool:
    return Path(symbol.partition(" ")[0]).suffix in {".js", ".css", ".html", ".toml", ".md", ".sh"}


# --- Python --------------------------------------------------------------------------------------


def _in_python(root: Path, symbol: str) -> Iterator[Region]:
    own = symbol.rpartition(".")[2]
    for path in (root / "csp").rglob("*.py"):
        found = _definitions(path, path.stat().st_mtime_ns).get(own, ())
        for name, first, last in found:
            parts = path.relative_to(root).with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if f".{module}.{name}".endswith(f".{symbol}"):
                yield Region(path, first, last)


@cache
def _definitions(path: Path, _changed_ns: int) -> dict[str, list[tuple[str, int, int]]]:
    """Return what a file defines, by the last part of its name."""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    found: dict[str, list[tuple[str, int, int]]] = {}
    for row in _defined_in(tree.body, ""):
        found.setdefault(row[0].rpartition(".")[2], []).append(row)
    return found


def _defined_in(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, int, int]]:
    for node in body:
        last = node.end_lineno or node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield prefix + node.name, first - 1, last
            inner = node.body if isinstance(node, ast.ClassDef) else _functions(node.body)
            yield from _defined_in(inner, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield prefix + target.id, node.lineno - 1, last


def _functions(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the functions inside a function; what it assigns is not a symbol."""
    return [node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


# --- other files ---------------------------------------------------------------------------------


def _in_named_file(root: Path, symbol: str) -> Iterator[Region]:
    name, _, inner = symbol.partition(" ")
    for path in (path for folder in SOURCES for path in sorted((root / folder).rglob(name))):
        lines = path.read_text("utf-8").splitlines()
        region = Region(path, 0, len(lines))
        if not inner:
            yield region
            continue
        regions = [region]
        for part in inner.split("."):
            regions = [found for outer in regions for found in _in_script(lines, outer, part)]
        yield from regions


def _in_script(lines: list[str], outer: Region, name: str) -> Iterator[Region]:
    """Yield what a script defines by a name: it ends with the next line that is indented as little."""
    declared = rf"(?:export )?(?:default )?(?:async )?(?:function\*?|const|let|class) {re.escape(name)}\b"
    method = rf"(?:static |async |get |set )*{re.escape(name)}\([^;]*\{{$"
    pattern = re.compile(rf"^(\s*)(?:{declared}|{method})")
    for index in range(outer.first, outer.last):
        if match := pattern.match(lines[index]):
            indent = len(match[1])
            last = index + 1
            while last < outer.last and not lines[index].rstrip().endswith(";"):
                line = lines[last]
                last += 1
                if line.strip() and len(line) - len(line.lstrip()) <= indent:
                    break
            yield Region(outer.path, index, last)


# --- the text ------------------------------------------------------------------------------------


def _replaced(lines: list[str], edit: Edit) -> list[str]:
    old = [line for line in edit.old.splitlines() if line.strip()]
    if len(old) == 1:
        places = [index for index, line in enumerate(lines) if old[0].strip() in line]
        if len(places) == 1 and lines[places[0]].count(old[0].strip()) == 1:
            return _with_fragment(lines, places[0], old[0].strip(), edit.new)
    else:
        wanted = [line.strip() for line in old]
        stripped = [line.strip() for line in lines]
        places = [index for index in range(len(lines)) if _from(stripped, index, len(wanted)) == wanted]
        if len(places) == 1:
            return _with_lines(lines, places[0], len(wanted), edit.new)
    raise BadEdit(f"{len(places)} places in {edit.symbol} have this text; expected exactly one: {edit.old!r}")


def _from(stripped: list[str], index: int, count: int) -> list[str]:
    """Return up to `count` lines that are not blank."""
    return [line for line in stripped[index : index + 2 * count] if line][:count] if stripped[index] else []


def _with_fragment(lines: list[str], place: int, old: str, new: str) -> list[str]:
    line = lines[place]
    if "\n" not in new.strip():
        return [*lines[:place], line.replace(old, new.strip()), *lines[place + 1 :]]
    if line.strip() != old:
        raise BadEdit(f"{old!r} is part of a line, so it cannot become several")
    return _with_lines(lines, place, 1, new)


def _with_lines(lines: list[str], place: int, count: int, new: str) -> list[str]:
    """Put new lines in the place of old ones, indented like the first of them."""
    end = place
    while count:
        count -= bool(lines[end].strip())
        end += 1
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    fresh = [line for line in new.splitlines() if line.strip()]
    margin = len(fresh[0]) - len(fresh[0].lstrip()) if fresh else 0
    return [*lines[:place], *(f"{indent}{line[margin:]}\n" for line in fresh), *lines[end:]]
