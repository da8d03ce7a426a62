"""Turn the types of the code into tables of Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

_REF: Final = "$ref"
#: Longer lists of values are shown by the name of their type.
MAX_VALUES: Final = 14


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a `|` in a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


def fields_table(kind: type[msgspec.Struct], without: frozenset[str] = frozenset()) -> str:
    """Return the fields of a type as a table, or nothing if it has none."""
    rows = [row for row in field_rows(kind) if row[0].strip("`") not in without]
    if not rows:
        return ""
    has_help = any(row[3] for row in rows)
    head = ("field", "type", "default", "meaning")
    width = len(head) if has_help else len(head) - 1
    return table(head[:width], (row[:width] for row in rows))


def field_rows(kind: type[msgspec.Struct]) -> list[tuple[str, str, str, str]]:
    """Return name, type, default and meaning of each field as it is on the wire."""
    (schema,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    described = parts[schema[_REF]]
    needed = described.get("required", [])
    return [
        (f"`{name}`", shape(one, parts), default_of(name, one, needed), str(one.get("description", "")))
        for name, one in described.get("properties", {}).items()
    ]


def default_of(name: str, schema: Mapping[str, Any], needed: Sequence[str]) -> str:
    if name in needed:
        return "required"
    value = schema.get("default")
    return "" if value in (None, "", [], {}) else f"`{msgspec.json.encode(value).decode()}`"


def shape(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """Return a type in words: `list of string`, `integer`, `"typed" or "submitted"`."""
    if _REF in schema:
        target = parts[schema[_REF]]
        return shape(target, parts) if "enum" in target else schema[_REF]
    if "anyOf" in schema:
        shapes = [shape(one, parts) for one in schema["anyOf"] if one != {"type": "null"}]
        return " or ".join(dict.fromkeys(shapes))
    if "enum" in schema:
        values = [f"`{value}`" for value in schema["enum"]]
        return " ".join(values) if len(values) <= MAX_VALUES else str(schema.get("title", "a name"))
    if "const" in schema:
        return f"`{schema['const']}`"
    return _plain(schema, parts)


def _plain(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    match schema.get("type"):
        case "array" if schema.get("items"):
            return f"list of {shape(schema['items'], parts)}"
        case "array":
            return "list"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"object of {shape(schema['additionalProperties'], parts)}"
        case str(name):
            return name
        case list(names):
            return " or ".join(name for name in names if name != "null")
        case _:
            return "any"
