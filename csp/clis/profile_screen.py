"""Validate and compile the patterns of a profile."""

import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from csp.clis.profile_schema import check_table
from csp.errors import BadInput
from csp.terminal.screen import ScreenRules

_GROUPS: Final = {"choice": ("mark", "number", "label"), "listed": ("mark", "label")}
_T = TypeVar("_T")


def screen_rules(table: Mapping[str, Any], source: str) -> ScreenRules:
    """Validate and compile the table [screen]."""
    check_table(table, ScreenRules, "screen", source)
    rules = with_patterns(ScreenRules, table, "screen", source)
    for name, groups in _GROUPS.items():
        pattern: re.Pattern[str] | None = getattr(rules.dialog, name)
        if pattern and not pattern.groupindex.keys() >= set(groups):
            needed = ", ".join(f"(?P<{group}>)" for group in groups)
            raise BadInput(f"{source}: [screen.dialog]: {name!r} needs the groups {needed}")
    return rules


def with_patterns(kind: type[_T], table: Any, path: str, source: str) -> _T:
    """Convert a validated table; an invalid pattern raises an error with its location in the profile."""
    try:
        return msgspec.convert(table, kind, dec_hook=_compiled)
    except msgspec.ValidationError as exc:
        what, _, place = str(exc).removesuffix("`").rpartition(" - at `$")
        tables, _, key = f"{path}{place}".rpartition(".")
        raise BadInput(f"{source}: [{tables}] {key}: {what}") from exc


def _compiled(_: type, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise ValueError(f"pattern {pattern!r} is not a regular expression: {exc}") from exc
