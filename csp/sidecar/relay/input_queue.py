"""Queue the child's input (the person's keys and the brain's text) until the child has read it."""

import os

#: A source is not read while more than this is queued from it.
MAX_KEYS_BYTES = 64 * 1024
MAX_INPUT_BYTES = 2 * 1024 * 1024
MAX_HOLD_S = 1.5
NEVER = float("inf")
#: The first and the maximum interval for checking whether the child has read its input.
_FIRST_LOOK_S = 0.02
_MAX_LOOK_S = 0.25
_BACKSPACE = 0x7F
_BACKSPACES = (_BACKSPACE, 0x08)
_ENTER = 0x0D
#: Keys that always leave the composer empty.
_WIPES = (_ENTER, 0x03, 0x15)
_LONGEST = 32

#: The number of the brain that sent an input, and that brain's own tag for it.
Tag = tuple[int, int]


class InputQueue:
    """The queue to the child. A person's keys keep their order and never end up inside an input."""

    def __init__(self) -> None:
        #: The queued bytes, each with the tag of the input, or None for keys.
        self._queue: list[tuple[bytearray, Tag | None]] = []
        self._held = bytearray()
        self._held_since = NEVER
        self.held_until = NEVER
        self._keys_bytes = 0
        self._input_bytes = 0

    @property
    def is_holding(self) -> bool:
        return self.held_until != NEVER

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is waiting to be written."""
        return not self._queue

    @property
    def takes_keys(self) -> bool:
        return self._keys_bytes < MAX_KEYS_BYTES

    @property
    def takes_input(self) -> bool:
        return self._input_bytes < MAX_INPUT_BYTES

    def press(self, keys: bytes) -> None:
        """Queue keys from the person."""
        self._keys_bytes += len(keys)
        if self.is_holding:
            self._held += keys
        else:
            self._enqueue_keys(keys)

    def _enqueue_keys(self, keys: bytes | bytearray) -> None:
        if self._queue and self._queue[-1][1] is None:
            self._queue[-1][0].extend(keys)
        elif keys:
            self._queue.append((bytearray(keys), None))

    def insert(self, data: bytes, tag: Tag) -> None:
        """Queue an input from the brain."""
        self._input_bytes += len(data)
        self._queue.append((bytearray(data), tag))

    def hold(self, seconds: float, now: float) -> None:
        """Hold back keys from now on; no key waits longer than MAX_HOLD_S, however often this is called."""
        if not self.is_holding:
            self._held_since = now
        self.held_until = min(now + max(0.0, seconds), self._held_since + MAX_HOLD_S)

    def release(self) -> None:
        """Pass on the held keys."""
        self.held_until = NEVER
        self._enqueue_keys(self._held)
        self._held = bytearray()

    def write(self, fd: int) -> list[Tag]:
        """Write as much as the child accepts now; return the tags of inputs that were written completely."""
        done = []
        while self._queue:
            data, tag = self._queue[0]
            if data:
                try:
                    count = os.write(fd, data)
                except BlockingIOError:
                    break
                del data[:count]
                if tag is None:
                    self._keys_bytes -= count
                else:
                    self._input_bytes -= count
            if data:
                break
            del self._queue[0]
            if tag is not None:
                done.append(tag)
        return done

    def clear(self) -> None:
        """Drop all input for a child that has ended."""
        self._queue.clear()
        self._keys_bytes = len(self._held)
        self._input_bytes = 0


class UnreadInput:
    """A scheduler that checks, at increasing intervals, whether the child has read its input."""

    def __init__(self) -> None:
        self._tags: list[Tag] = []
        self._period_s = _FIRST_LOOK_S
        self.look_at = NEVER

    def add(self, tags: list[Tag], now: float) -> None:
        """Remember inputs that were just written; the kernel delivers them after a short delay."""
        if tags:
            self._tags += tags
            self._period_s = _FIRST_LOOK_S
            self.look_at = min(self.look_at, now + _FIRST_LOOK_S)

    def look(self, has_read: bool, now: float) -> list[Tag]:
        """Return the inputs that have been read; if there are none, schedule the next check."""
        if not has_read:
            self._period_s = min(2 * self._period_s, _MAX_LOOK_S)
            self.look_at = now + self._period_s
            return []
        read, self._tags, self.look_at = self._tags, [], NEVER
        return read

    def clear(self) -> None:
        """Forget all inputs, because they can no longer be read."""
        self._tags, self.look_at = [], NEVER


class LineInterceptor:
    """An interceptor of whole lines typed in the pane that are for the room and not for the CLI.

    It tracks the line being typed, and deletes one that is in `ours` from the CLI's composer.
    """

    def __init__(self) -> None:
        self.ours: tuple[bytes, ...] = ()
        self._line = bytearray()
        self._is_known = True

    def feed(self, keys: bytes, *, is_heard: bool = True) -> tuple[bytes, bytes]:
        """Return the keys for the CLI and, if `is_heard`, the line in `ours` that they complete, else b""."""
        passed, word = bytearray(), b""
        for key in keys:
            if key == _ENTER and is_heard and self._is_known and bytes(self._line) in self.ours:
                word = bytes(self._line)
                passed += bytes([_BACKSPACE]) * len(word)
            else:
                passed.append(key)
            if key in _WIPES:
                self._line.clear()
                self._is_known = True
            elif key in _BACKSPACES:
                del self._line[-1:]
            elif 0x20 <= key < _BACKSPACE and len(self._line) < _LONGEST:
                self._line.append(key)
            else:
                # After an arrow, a paste or a completion, the line is unknown until it is sent.
                self._is_known = False
        return bytes(passed), word
