"""Read a model's reply while it streams."""

import json
import re
from typing import Any, Final

import msgspec

_MESSAGE: Final = re.compile(r'"message"\s*:\s*"')
#: Matches part of a JSON string: plain characters, a code point, or another escape.
_PART: Final = re.compile(r'([^"\\]+)|\\u(.{4})|\\([^u])', re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "", "b": "", "f": ""}
#: A reply with this many characters before a message starts is not treated as an envelope.
_HEAD_CHARS: Final = 2000


def without_nulls(text: str) -> str:
    """Return a reply without its null members, which a strict schema does not allow a model to omit."""
    whole = text.strip()
    if not (whole.startswith("{") and whole.endswith("}")):
        return text
    found = _decoded(whole)
    if None not in found.values():
        return text
    kept = {name: value for name, value in found.items() if value is not None}
    try:
        return json.dumps(kept, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def is_blank(reply: str) -> bool:
    """Return whether a reply is empty, with or without an envelope."""
    message = _decoded(reply).get("message") if reply.strip() else ""
    return isinstance(message, str) and not message.strip()


def _decoded(reply: str) -> dict[str, Any]:
    """Return the members of an envelope, or an empty mapping for other text."""
    try:
        found = msgspec.json.decode(reply)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class Listener:
    """Reads a reply piece by piece and returns only the message from an envelope."""

    def __init__(self) -> None:
        #: Text that was received but has not been returned yet.
        self._rest = ""
        self._is_plain = False
        self._is_open = False
        self._is_over = False
        self._high = ""

    def hear(self, piece: str) -> str:
        """Return the visible text that a piece adds."""
        if self._is_plain:
            return piece
        if self._is_over:
            return ""
        self._rest += piece
        if not self._is_open:
            start = self._rest.lstrip()
            if start and not start.startswith("{"):
                self._is_plain = True
                return self._rest
            found = _MESSAGE.search(self._rest)
            if not found:
                # Text that starts like an envelope but has no message is shown when it is complete.
                self._is_over = len(self._rest) > _HEAD_CHARS
                return ""
            self._is_open, self._rest = True, self._rest[found.end() :]
        words, at = [], 0
        while part := _PART.match(self._rest, at):
            at = part.end()
            plain, code, char = part.groups()
            words.append(plain or (self._unit(code) if code else _ESCAPES.get(char, char)))
        self._rest = self._rest[at:]
        self._is_over = self._rest.startswith('"')
        return "".join(words)

    def _unit(self, code: str) -> str:
        """Return the character for an escape; the first half of a surrogate pair waits for the second."""
        try:
            unit = int(code, 16)
        except ValueError:
            return "�"
        if 0xD800 <= unit < 0xDC00:
            self._high = chr(unit)
            return ""
        high, self._high = self._high, ""
        if 0xDC00 <= unit < 0xE000:
            both = (high + chr(unit)).encode("utf-16", "surrogatepass")
            return both.decode("utf-16", "replace") if high else "�"
        return chr(unit)
