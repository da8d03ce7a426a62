"""Read what a terminal sends: text, pastes, keys by their names."""

import codecs
import re
from dataclasses import dataclass
from typing import Final

#: A sequence that has not gone on for so long was the Escape key alone.
ESCAPE_S: Final = 0.05

_PASTE_START: Final = b"\x1b[200~"
_PASTE_END: Final = b"\x1b[201~"
_SEQUENCE: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[ -~]|[\r\n\x7f\x20-\x4e\x50-\x5a\x5c-\x7e])")
#: Strings that terminals send as answers: OSC, DCS, APC.
_REPORT: Final = re.compile(rb"\x1b[\]P_][^\x07\x1b]*(?:\x07|\x1b\\)")
_PLAIN: Final = re.compile(rb"[^\x00-\x1f\x7f]+")
_SPELLINGS: Final[dict[str, tuple[bytes, ...]]] = {
    "enter": (b"\r",),
    "newline": (b"\n", b"\x1b\r", b"\x1b\n"),
    "escape": (b"\x1b",),
    "backspace": (b"\x7f", b"\x08"),
    "delete": (b"\x1b[3~",),
    "up": (b"\x1b[A", b"\x1bOA", b"\x10"),
    "down": (b"\x1b[B", b"\x1bOB", b"\x0e"),
    "right": (b"\x1b[C", b"\x1bOC", b"\x06"),
    "left": (b"\x1b[D", b"\x1bOD", b"\x02"),
    "home": (b"\x1b[H", b"\x1bOH", b"\x1b[1~", b"\x01"),
    "end": (b"\x1b[F", b"\x1bOF", b"\x1b[4~", b"\x05"),
    "ctrl-c": (b"\x03",),
    "ctrl-d": (b"\x04",),
    "ctrl-k": (b"\x0b",),
    "ctrl-l": (b"\x0c",),
    "ctrl-u": (b"\x15",),
    "ctrl-w": (b"\x17", b"\x1b\x7f"),
    "ctrl-z": (b"\x1a",),
}
_NAMES: Final = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings}


@dataclass(frozen=True, slots=True)
class Text:
    """Characters, typed or pasted."""

    text: str
    is_pasted: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """A key by its name."""

    name: str


class Keys:
    """Turns bytes into keys, however they are cut into pieces."""

    def __init__(self) -> None:
        self._rest = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_waiting(self) -> bool:
        """Tell whether a lone Escape waits to be one; an unfinished paste waits for ever."""
        return self._rest.startswith(b"\x1b") and not self._rest.startswith(_PASTE_START)

    def feed(self, data: bytes) -> list[Text | Key]:
        """Take bytes; return what they say so far."""
        self._rest += data
        found: list[Text | Key] = []
        while self._rest:
            size, one = self._next(self._rest)
            if not size:
                break
            self._rest = self._rest[size:]
            if one is not None:
                found.append(one)
        return found

    def flush(self) -> list[Text | Key]:
        """Take what is unfinished for what it is: Escape, then the rest."""
        if not self.is_waiting:
            return []
        self._rest = self._rest[1:]
        return [Key("escape"), *self.feed(b"")]

    def _next(self, data: bytes) -> tuple[int, Text | Key | None]:
        """Return how many bytes the next key has, with it: 0 if it is not whole, None if it means nothing."""
        if data.startswith(_PASTE_START):
            return _paste(data)
        if data[0] == 0x1B:
            return _escape(data)
        plain = _PLAIN.match(data)
        if plain:
            text = self._decoder.decode(plain[0])
            return plain.end(), Text(text) if text else None
        return 1, _key(data[:1])


def _paste(data: bytes) -> tuple[int, Text | None]:
    text, end, _ = data[len(_PASTE_START) :].partition(_PASTE_END)
    if not end:
        return 0, None
    lines = text.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return len(_PASTE_START) + len(text) + len(end), Text(lines, is_pasted=True)


def _escape(data: bytes) -> tuple[int, Key | None]:
    report = _REPORT.match(data)
    if report:
        return report.end(), None
    found = _SEQUENCE.match(data)
    if found:
        return found.end(), _key(found[0])
    # Two in a row are two keys; one alone may be the start of more.
    return (1, Key("escape")) if data[1:2] == b"\x1b" else (0, None)


def _key(data: bytes) -> Key | None:
    name = _NAMES.get(data)
    return Key(name) if name else None
