"""Bytes of a terminal into keys: text, pastes, control keys."""

import codecs
import re
from dataclasses import dataclass
from typing import Final

PASTE_START: Final = "\x1b[200~"
PASTE_END: Final = "\x1b[201~"
# CSI and SS3 sequences: arrows, terminal replies, focus, mouse.
_SEQUENCE: Final = re.compile(r"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|O[A-Za-z])")
_UNFINISHED: Final = re.compile(r"\x1b(\[[0-9;?<>=]*|O)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key: `kind` is text, paste, enter, escape, interrupt, erase, kill or sequence."""

    kind: str
    text: str = ""


_CONTROLS: Final = {"\r": "enter", "\x03": "interrupt", "\x7f": "erase", "\x08": "erase", "\x15": "kill"}


class Keyboard:
    """Cuts what the terminal sends into keys, wherever the reads were split."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""

    @property
    def is_waiting(self) -> bool:
        """Whether an ESC stands alone: a key by itself, unless more comes soon."""
        return self._pending.startswith("\x1b") and not self._pending.startswith(PASTE_START)

    def feed(self, data: bytes) -> list[Key]:
        self._pending += self._decoder.decode(data)
        keys = []
        while (key := self._take()) is not None:
            keys.append(key)
        return keys

    def flush(self) -> list[Key]:
        """Take a lone ESC as the key."""
        pending, self._pending = self._pending, ""
        return [Key(kind="escape")] if pending else []

    def _take(self) -> Key | None:
        text = self._pending
        if not text:
            return None
        if text.startswith(PASTE_START):
            body, end, rest = text[len(PASTE_START) :].partition(PASTE_END)
            if not end:
                return None
            self._pending = rest
            return Key(kind="paste", text=body.replace("\r\n", "\n").replace("\r", "\n"))
        if text[0] == "\x1b":
            return self._take_sequence(text)
        self._pending = text[1:]
        if text[0] in _CONTROLS:
            return Key(kind=_CONTROLS[text[0]])
        return Key(kind="text", text=text[0])

    def _take_sequence(self, text: str) -> Key | None:
        if _UNFINISHED.match(text):
            return None
        found = _SEQUENCE.match(text)
        self._pending = text[found.end() :] if found else text[1:]
        return Key(kind="sequence", text=found.group()) if found else Key(kind="escape")
