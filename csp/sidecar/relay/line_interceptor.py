"""Whole lines typed in the pane that are meant for the room, not for the CLI.

The relay lives on as little memory as Python allows, so nothing here imports anything.
"""

_BACKSPACE = 0x7F
_BACKSPACES = (_BACKSPACE, 0x08)
_ENTER = 0x0D
#: After these the composer is empty, whatever stood there.
_WIPES = (_ENTER, 0x03, 0x15)
_LONGEST = 32


class LineInterceptor:
    """Follows the line being typed; takes one that is a word of `ours` out of the CLI's composer again."""

    def __init__(self) -> None:
        self.ours: tuple[bytes, ...] = ()
        self._line = bytearray()
        self._is_known = True

    def feed(self, keys: bytes, *, is_heard: bool = True) -> tuple[bytes, bytes]:
        """Return the keys for the CLI, with the word of ours that they completed, if any and `is_heard`."""
        passed, word = bytearray(), b""
        for key in keys:
            if key == _ENTER and is_heard and self._is_known and bytes(self._line) in self.ours:
                word = bytes(self._line)
                passed += bytes([_BACKSPACE]) * len(word)
            else:
                passed.append(key)
            self._note(key)
        return bytes(passed), word

    def _note(self, key: int) -> None:
        if key in _WIPES:
            self._line.clear()
            self._is_known = True
        elif key in _BACKSPACES:
            del self._line[-1:]
        elif 0x20 <= key < _BACKSPACE and len(self._line) < _LONGEST:
            self._line.append(key)
        else:
            # An arrow, a paste, a completion: the line may be anything until it is sent.
            self._is_known = False
