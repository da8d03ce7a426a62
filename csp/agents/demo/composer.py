"""The text that is being written, with a cursor in it."""

from collections import deque
from typing import Final

from csp.agents.demo.key_decoder import Key, Text

REMEMBERED: Final = 50


class Composer:
    """One draft; `cursor` counts characters from its start."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._sent: deque[str] = deque(maxlen=REMEMBERED)
        self._recalled = 0

    def take(self, key: Text | Key) -> bool:
        """Do what an editing key says; return whether it was one."""
        if isinstance(key, Text):
            self._insert(_without_controls(key.text))
            return True
        if key.name == "newline":
            self._insert("\n")
            return True
        act = _ACTS.get(key.name)
        if act is not None:
            act(self)
        return act is not None

    def clear(self) -> None:
        self.text, self.cursor, self._recalled = "", 0, 0

    def send(self) -> str:
        """Return the draft, which is gone with that."""
        text = self.text
        if text.strip():
            self._sent.append(text)
        self.clear()
        return text

    # --- acts ------------------------------------------------------------------------------------

    def _insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def _cut(self, start: int, end: int) -> None:
        start = max(0, start)
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _backspace(self) -> None:
        self._cut(self.cursor - 1, self.cursor)

    def _delete(self) -> None:
        self._cut(self.cursor, self.cursor + 1)

    def _cut_before(self) -> None:
        self._cut(0, self.cursor)

    def _cut_behind(self) -> None:
        self._cut(self.cursor, self._line()[1])

    def _cut_word(self) -> None:
        kept = self.text[: self.cursor].rstrip()
        self._cut(max(kept.rfind(" "), kept.rfind("\n")) + 1, self.cursor)

    def _left(self) -> None:
        self.cursor = max(0, self.cursor - 1)

    def _right(self) -> None:
        self.cursor = min(len(self.text), self.cursor + 1)

    def _home(self) -> None:
        self.cursor = self._line()[0]

    def _end(self) -> None:
        self.cursor = self._line()[1]

    def _up(self) -> None:
        start, _ = self._line()
        if start == 0:
            self._recall(1)
            return
        column, before = self.cursor - start, self.text.rfind("\n", 0, start - 1) + 1
        self.cursor = min(before + column, start - 1)

    def _down(self) -> None:
        start, end = self._line()
        if end == len(self.text):
            self._recall(-1)
            return
        after = self.text.find("\n", end + 1)
        self.cursor = min(end + 1 + self.cursor - start, len(self.text) if after < 0 else after)

    def _line(self) -> tuple[int, int]:
        """Return where the line with the cursor starts, ends."""
        end = self.text.find("\n", self.cursor)
        return self.text.rfind("\n", 0, self.cursor) + 1, len(self.text) if end < 0 else end

    def _recall(self, step: int) -> None:
        """Bring back what was sent before; never in the place of a draft of one's own."""
        is_own = self.text and not (self._recalled and self.text == self._sent[-self._recalled])
        wanted = self._recalled + step
        if is_own or not 0 <= wanted <= len(self._sent):
            return
        self._recalled = wanted
        self.text = self._sent[-wanted] if wanted else ""
        self.cursor = len(self.text)


def _without_controls(text: str) -> str:
    """Return text as it may be shown: nothing in it can act on the terminal."""
    return "".join(char for char in text if char in "\n\t" or (char >= " " and not "\x7f" <= char <= "\x9f"))


_ACTS: Final = {
    "backspace": Composer._backspace,
    "delete": Composer._delete,
    "left": Composer._left,
    "right": Composer._right,
    "up": Composer._up,
    "down": Composer._down,
    "home": Composer._home,
    "end": Composer._end,
    "ctrl-u": Composer._cut_before,
    "ctrl-k": Composer._cut_behind,
    "ctrl-w": Composer._cut_word,
}
