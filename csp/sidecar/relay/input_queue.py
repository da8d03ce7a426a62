"""The input that is still to be written to the child: the person's keys and the brain's text."""

import os

#: More than this of either, and its source is not read for a while.
MAX_KEYS_BYTES = 64 * 1024
MAX_INPUT_BYTES = 2 * 1024 * 1024
MAX_HOLD_S = 1.5
NEVER = float("inf")

#: Which brain gave an input, with its own name for it.
Tag = tuple[int, int]


class InputQueue:
    """One queue to the child. The keys of a person never fall inside an input, nor is their order changed."""

    def __init__(self) -> None:
        #: Each with the tag of the input, or None for keys.
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
        """Say whether nothing waits to be written now."""
        return not self._queue

    @property
    def takes_keys(self) -> bool:
        return self._keys_bytes < MAX_KEYS_BYTES

    @property
    def takes_input(self) -> bool:
        return self._input_bytes < MAX_INPUT_BYTES

    def press(self, keys: bytes) -> None:
        """Take in the person's keys."""
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
        """Take in what the brain wants typed."""
        self._input_bytes += len(data)
        self._queue.append((bytearray(data), tag))

    def hold(self, seconds: float, now: float) -> None:
        """Keep keys back from now on; no key waits longer than MAX_HOLD_S, however often this is asked."""
        if not self.is_holding:
            self._held_since = now
        self.held_until = min(now + max(0.0, seconds), self._held_since + MAX_HOLD_S)

    def release(self) -> None:
        """Pass on the keys that were kept back."""
        self.held_until = NEVER
        self._enqueue_keys(self._held)
        self._held = bytearray()

    def write(self, fd: int) -> list[Tag]:
        """Write what the child takes now; return the tags of inputs that are written whole."""
        done = []
        while self._queue:
            data, tag = self._queue[0]
            if data:
                try:
                    count = os.write(fd, data)
                except BlockingIOError:
                    break
                del data[:count]
                self._account(tag, count)
            if data:
                break
            del self._queue[0]
            if tag is not None:
                done.append(tag)
        return done

    def _account(self, tag: Tag | None, count: int) -> None:
        if tag is None:
            self._keys_bytes -= count
        else:
            self._input_bytes -= count

    def clear(self) -> None:
        """Forget what was meant for a child that is gone."""
        self._queue.clear()
        self._keys_bytes = len(self._held)
        self._input_bytes = 0
