"""The keys that a profile may have, and the type of each value."""

import re
from collections.abc import Mapping
from typing import Any, Final

from csp.clis.registry import adapter_names
from csp.errors import BadInput

_STRING: Final = "a string"
_STRINGS: Final = "a list of strings"
_NUMBER: Final = "a number"
_NUMBERS: Final = "a list of whole numbers"
_WHOLE: Final = "a whole number"
_FLAG: Final = "true or false"

_ANSWER: Final = {"key": _STRING, "by_number": _FLAG}
_SIGN: Final = {"pattern": _STRING, "place": _STRING, "kind": _STRING, "is_styled": _FLAG}
_SIGNS: Final = ("blocked", "busy", "limits", "overlays", "starting")
_REQUIRED: Final = {
    "": ("name",),
    "keys.approve": ("key",),
    "keys.deny": ("key",),
    "signals": ("osc", "pattern", "state"),
}
_CHOICES: Final = {
    "kind": ("agent", "shell"),
    "delivery.proof": ("hook", "transcript", "screen", "none"),
    "signals.state": ("idle", "busy", "dialog"),
    "screen.composer.frame": ("borders", "shaded", "sign", "cursor", "none"),
    **{f"screen.{name}.place": ("above", "below", "dialog", "bare") for name in _SIGNS},
}

# A dict is a table, a list of one dict is an array of tables.
_SCHEMA: Final[dict[str, Any]] = {
    "name": _STRING,
    **dict.fromkeys(("commands", "installs", "credentials"), _STRINGS),
    "versions": _STRING,
    "version_args": _STRINGS,
    "kind": _STRING,
    "ready_s": _NUMBER,
    "keys": {
        "submit": _STRING,
        "interrupt": _STRING,
        "clear": _STRINGS,
        "queue": _STRING,
        "approve": _ANSWER,
        "deny": _ANSWER,
    },
    "delivery": {
        "gap_ms": _WHOLE,
        "gap_per_kb_ms": _WHOLE,
        "proof": _STRING,
        "proof_s": _NUMBER,
        "shown_s": _NUMBER,
        "enter_retry_ms": _NUMBERS,
        "neutralise_at": _STRING,
        "multiline": _FLAG,
        "typing_quiet_ms": _WHOLE,
        "idle_stands_ms": _WHOLE,
    },
    "capture": {"kind": _STRING},
    "signals": [{"osc": _NUMBERS, "pattern": _STRING, "state": _STRING}],
    "screen": {
        "furniture": _STRING,
        "composer": {
            **dict.fromkeys(("frame", "top", "bottom", "scrolled"), _STRING),
            **dict.fromkeys(("sign", "other_sign", "edge", "placeholder"), _STRING),
            "placeholder_colours": _STRINGS,
            "is_placeholder_faint": _FLAG,
            "paste_marker": _STRING,
        },
        "dialog": {
            **dict.fromkeys(("choice", "listed", "yes", "no", "top", "side"), _STRING),
            "is_question_first": _FLAG,
            "question": _STRING,
            "max_rows_after": _WHOLE,
            "kinds": [{"pattern": _STRING, "kind": _STRING}],
        },
        **{name: [_SIGN] for name in _SIGNS},
    },
}


def check_tables(tables: Mapping[str, Any], source: str) -> None:
    """Refuse a key that is unknown, a value of the wrong kind, or a missing one; say which, and where."""
    _check(tables, _SCHEMA, "", source)


def _check(table: Mapping[str, Any], schema: Mapping[str, Any], path: str, source: str) -> None:
    for key, value in table.items():
        if key not in schema:
            from difflib import get_close_matches

            near = get_close_matches(key, schema, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(schema)}"
            raise BadInput(f"{source}: unknown key {key!r} {_in(path)}", hint)
        _check_value(value, schema[key], f"{path}.{key}".lstrip("."), source)
    for key in _REQUIRED.get(path, ("pattern", "place") if schema is _SIGN else ()):
        if key not in table:
            raise BadInput(f"{source}: {key!r} is missing {_in(path)}")


def _check_value(value: Any, kind: Any, path: str, source: str) -> None:
    if isinstance(kind, Mapping):
        if not isinstance(value, Mapping):
            raise BadInput(f"{source}: {path!r} is {value!r}, expected a table")
        _check(value, kind, path, source)
    elif isinstance(kind, list):
        if not isinstance(value, list) or not all(isinstance(row, Mapping) for row in value):
            raise BadInput(f"{source}: {path!r} is {value!r}, expected tables, each under [[{path}]]")
        for row in value:
            _check(row, kind[0], path, source)
    elif not _is(value, kind):
        raise BadInput(f"{source}: {path!r} is {value!r}, expected {kind}")
    else:
        kinds = (*adapter_names(), "screen", "none") if path == "capture.kind" else ()
        choices = kinds or _CHOICES.get(path, ())
        if choices and value not in choices:
            raise BadInput(f"{source}: {path!r} is {value!r}, expected one of: {', '.join(choices)}")


def _is(value: Any, kind: str) -> bool:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return {
        _STRING: isinstance(value, str),
        _STRINGS: isinstance(value, list) and all(isinstance(part, str) for part in value),
        _NUMBER: is_whole or isinstance(value, float),
        _NUMBERS: isinstance(value, list) and all(type(part) is int for part in value),
        _WHOLE: is_whole,
        _FLAG: isinstance(value, bool),
    }[kind]


def _in(path: str) -> str:
    return f"in [{path}]" if path else "at the top"


def compiled(pattern: str, where: str) -> re.Pattern[str]:
    """Compile a pattern of a profile; a bad one is the profile's fault, and says where."""
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise BadInput(f"{where}: pattern {pattern!r} is not a regular expression: {exc}") from exc
