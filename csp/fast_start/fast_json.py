"""Read and write JSON with the C functions of the json package, which itself is slow to load."""

import _json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLANK = " \t\n\r"
_CONSTANTS = {"-Infinity": float("-inf"), "Infinity": float("inf"), "NaN": float("nan")}


class _AsUsual:
    """The defaults that the json package passes to its scanner."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int
    parse_constant = _CONSTANTS.__getitem__


def _refuse(value: object) -> object:
    raise TypeError(f"a {type(value).__name__} cannot be encoded as JSON")


_scan = _json.make_scanner(_AsUsual())  # type: ignore[arg-type]  # any object with these attributes works


def loads(raw: bytes | str) -> "Any":
    """Decode a JSON text in UTF-8; raise ValueError if it is invalid."""
    text = (raw if isinstance(raw, str) else raw.decode("utf-8")).strip(_BLANK)
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    if end != len(text):
        raise ValueError("not json")
    return value


def dumps(value: "Any", *, is_ascii: bool = True) -> str:
    """Encode a value as JSON."""
    quote = _json.encode_basestring_ascii if is_ascii else _json.encode_basestring
    encode = _json.make_encoder({}, _refuse, quote, None, ": ", ", ", False, False, True)
    return "".join(encode(value, 0))
