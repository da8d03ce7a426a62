"""Compile the [screen] tables of a profile."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from csp.clis.profile_schema import compiled
from csp.errors import BadInput
from csp.terminal.screen import ComposerRules, DialogRules, Frame, ScreenRules, Sign, SignPlace

_PATTERNS: Final = frozenset(
    (
        *("top", "bottom", "scrolled", "sign", "other_sign", "edge", "placeholder", "paste_marker"),
        *("choice", "listed", "yes", "no", "side", "question", "furniture", "pattern"),
    )
)
_CHOICE_GROUPS: Final = {"mark", "number", "label"}
_LISTED_GROUPS: Final = {"mark", "label"}


def screen_rules(tables: Mapping[str, Any], source: str) -> ScreenRules:
    """Compile tables whose keys have been checked."""
    composer = _values(tables.get("composer", {}), f"{source}: [screen.composer]")
    composer["frame"] = Frame(composer.get("frame", "none"))
    colours = frozenset(composer.get("placeholder_colours", ()))
    return ScreenRules(
        composer=ComposerRules(**(composer | {"placeholder_colours": colours})),
        dialog=_dialog(tables.get("dialog", {}), f"{source}: [screen.dialog]"),
        **{
            name: _signs(tables.get(name, ()), f"{source}: [[screen.{name}]]")
            for name in ("blocked", "busy", "limits", "overlays", "starting")
        },
        furniture=compiled(tables["furniture"], f"{source}: [screen]") if "furniture" in tables else None,
    )


def _dialog(table: Mapping[str, Any], where: str) -> DialogRules:
    values = _values({key: value for key, value in table.items() if key != "kinds"}, where)
    kinds = _signs([{**row, "place": "dialog"} for row in table.get("kinds", ())], f"{where}: kinds")
    if "choice" in values and not set(values["choice"].groupindex) >= _CHOICE_GROUPS:
        raise BadInput(f"{where}: 'choice' needs the groups (?P<mark>), (?P<number>), (?P<label>)")
    if "listed" in values and not set(values["listed"].groupindex) >= _LISTED_GROUPS:
        raise BadInput(f"{where}: 'listed' needs the groups (?P<mark>), (?P<label>)")
    return DialogRules(**values, kinds=kinds)


def _signs(rows: Sequence[Mapping[str, Any]], where: str) -> tuple[Sign, ...]:
    return tuple(Sign(**(_values(row, where) | {"place": SignPlace(row["place"])})) for row in rows)


def _values(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    return {
        key: compiled(value, f"{where} {key}") if key in _PATTERNS else value for key, value in table.items()
    }
