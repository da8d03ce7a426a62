"""Validate the tables of a profile against the classes that they are converted to."""

import inspect
import re
from collections.abc import Mapping
from enum import EnumMeta
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

from csp.clis.registry import adapter_names
from csp.errors import BadInput

EXPECTED: Final[dict[Any, str]] = {
    **dict.fromkeys((str, re.Pattern[str]), "a string"),
    **dict.fromkeys((tuple[str, ...], frozenset[str]), "a list of strings"),
    tuple[int, ...]: "a list of whole numbers",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def check_table(table: Mapping[str, Any], kind: type, path: str, source: str) -> None:
    """Raise an error that names any unknown key, value of the wrong type or missing value."""
    known = inspect.signature(kind).parameters
    place = f"in [{path}]" if path else "at the top"
    for key, value in table.items():
        if key not in known:
            from difflib import get_close_matches

            near = get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
            raise BadInput(f"{source}: unknown key {key!r} {place}", hint)
        _check_value(value, known[key].annotation, f"{path}.{key}".lstrip("."), source)
    for key, parameter in known.items():
        if parameter.default is parameter.empty and key not in table:
            raise BadInput(f"{source}: {key!r} is missing {place}")


def _check_value(value: Any, kind: Any, path: str, source: str) -> None:
    found = f"{source}: {path!r} is {value!r}, expected"
    if NoneType in get_args(kind):
        kind, _ = get_args(kind)
    choices = choices_of(kind, path)
    kind = str if choices else kind
    if kind in EXPECTED:
        if not _is(value, kind):
            raise BadInput(f"{found} {EXPECTED[kind]}")
        if choices and value not in choices:
            raise BadInput(f"{found} one of: {', '.join(choices)}")
    elif get_origin(kind) is tuple:
        if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
            raise BadInput(f"{found} tables, each under [[{path}]]")
        for row in value:
            check_table(row, get_args(kind)[0], path, source)
    elif not isinstance(value, Mapping):
        raise BadInput(f"{found} a table")
    elif get_origin(kind) is not dict:
        check_table(value, kind, path, source)


def choices_of(kind: Any, path: str) -> tuple[str, ...]:
    """Return the allowed values; empty if any text is allowed."""
    if path == "capture.kind":
        return (*adapter_names(), "screen", "none")
    if isinstance(kind, EnumMeta):
        return tuple(kind)
    return get_args(kind) if get_origin(kind) is Literal else ()


def _is(value: Any, kind: Any) -> bool:
    if get_origin(kind) in (tuple, frozenset):
        return isinstance(value, list) and all(type(part) is get_args(kind)[0] for part in value)
    if kind is float:
        return type(value) in (int, float)
    return type(value) is (kind if isinstance(kind, type) and kind in (int, bool) else str)
