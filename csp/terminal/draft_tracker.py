"""What the person at the pane has typed since the composer was last empty.

The screen shows a draft only after the CLI has drawn it; the keys are known before. They are only counted:
what was typed is nobody's business.
"""

import re
from dataclasses import dataclass
from typing import Final

#: What a terminal says by itself: reports of cursor, focus, mouse, colours, versions, modes, released keys.
_REPORTS: Final = re.compile(
    rb"\x1b\[M[\s\S]{3}"
    rb"|\x1b\[<[\d;]*[Mm]"
    rb"|\x1b\[[IO]"
    rb"|\x1b\[[?>=]?[\d;]*[Rcntxy]"
    rb"|\x1b\[\?[\d;]*(?:\$y|u)"
    rb"|\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)"
    rb"|\x1b\[[\d;:]*:3[u~A-HPQS]"
)
_PASTE: Final = re.compile(rb"\x1b\[200~([\s\S]*?)(?:\x1b\[201~|\Z)")
#: Keys as the newer keyboard protocols spell them: CSI code ; modifiers u, CSI 27 ; modifiers ; code ~.
_SPELT: Final = re.compile(rb"\x1b\[(\d{1,7})(?::\d*)*(?:;(\d{1,3})(?::\d)?)?u|\x1b\[27;(\d{1,3});(\d{1,7})~")
#: Keys that may bring back an older draft: up, down, and what they are in a line editor, search, yank.
_RECALLS: Final = re.compile(rb"\x1b[\[O][\d;:]*[AB]|[\x0e\x10\x12\x19]")
_FUNCTION_KEYS: Final = re.compile(rb"\x1b[\[O][\d;:]*[A-Za-z~^$]|\x1b[\x20-\x7e]")
#: Enter with a modifier, which makes a line break in a composer.
_LINE_BREAKS: Final = re.compile(rb"\x1b\r|\x1b\[13;[2-9]\d*u|\x1b\[27;[2-9]\d*;13~")
#: A sequence that is cut in two by a read goes on in the next one.
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[\d;:?<>=]*|[\]P_^X][^\x07\x1b]+\x1b?)\Z")
_MAX_UNFINISHED: Final = 4096
_CTRL: Final = 4

_ENTER: Final = "\r"
_ESCAPE: Final = "\x1b"
#: What a draft begins with that is not meant for the model.
_COMMANDS: Final = frozenset("/!?#")
_STOPS: Final = frozenset("\x1b\x03")
_WIPES: Final = frozenset("\r\x03\x15")
_BACKSPACES: Final = frozenset("\x7f\x08")


@dataclass(slots=True, kw_only=True)
class DraftTracker:
    """Counts what may stand in the composer."""

    typed: int = 0
    #: When the person last pressed anything, or a key that makes a CLI stop its answer.
    last_key: float | None = None
    last_stop: float | None = None
    #: When Enter was last pressed on a draft that was no command of the CLI's own, so that a turn follows.
    last_sent: float | None = None
    _rest: bytes = b""
    _is_command: bool = False
    _was_escape: bool = False

    @property
    def may_hold_draft(self) -> bool:
        return self.typed > 0

    def feed(self, data: bytes, now: float) -> bool:
        """Take what the terminal sent; tell whether a person pressed a key."""
        data = _REPORTS.sub(b"", self._rest + data)
        self._rest = b""
        cut = _UNFINISHED.search(data)
        if cut and len(cut[0]) < _MAX_UNFINISHED:
            self._rest, data = cut[0], data[: cut.start()]
        if not data:
            return False
        self.last_key = now
        self._count(data, now)
        return True

    def clear(self) -> None:
        """Forget the draft: the screen shows that there is none."""
        self.typed = 0

    def _count(self, data: bytes, now: float) -> None:
        end = 0
        for paste in _PASTE.finditer(data):
            self._count_keys(data[end : paste.start()], now)
            if not self.typed:
                self._is_command = paste[1][:1].decode("ascii", "replace") in _COMMANDS
            self.typed += max(1, len(paste[1]))
            end = paste.end()
        self._count_keys(data[end:], now)

    def _count_keys(self, data: bytes, now: float) -> None:
        if _RECALLS.search(data):
            self.typed = max(1, self.typed)
        data = _LINE_BREAKS.sub(b"\n", data)
        plain = _FUNCTION_KEYS.sub(b"", _SPELT.sub(_spell, data))
        for char in plain.decode("utf-8", "replace"):
            if char in _STOPS:
                self.last_stop = now
            if char == _ENTER and self.typed and not self._is_command:
                self.last_sent = now
            self._count_char(char)

    def _count_char(self, char: str) -> None:
        is_second_escape = char == _ESCAPE and self._was_escape
        self._was_escape = char == _ESCAPE and not self._was_escape
        # The first Escape may only close a menu; the second clears the composer.
        if char in _WIPES or is_second_escape:
            self.typed = 0
        elif char in _BACKSPACES:
            self.typed = max(0, self.typed - 1)
        elif char >= " " or char in "\t\n":
            if not self.typed:
                self._is_command = char in _COMMANDS
            self.typed += 1


def _spell(key: re.Match[bytes]) -> bytes:
    """Return a key of the newer protocols as the plain byte it stands for; a key with none is dropped."""
    code = int(key[1] or key[4])
    is_ctrl = bool(int(key[2] or key[3] or 1) - 1 & _CTRL)
    if code < 128:
        return bytes([code & 0x1F if is_ctrl else code])
    return b"" if 0xE000 <= code <= 0xF8FF else b"?"
