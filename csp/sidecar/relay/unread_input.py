"""Input that was written to the child, which it may not have read yet."""

from csp.sidecar.relay.input_queue import NEVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from csp.sidecar.relay.input_queue import Tag

#: How soon to look whether the child has read what was typed, and how seldom while it does not read.
_FIRST_LOOK_S = 0.02
_MAX_LOOK_S = 0.25


class UnreadInput:
    """Says when to look whether the child has read what was typed; looks become rarer while it has not."""

    def __init__(self) -> None:
        self._tags: list[Tag] = []
        self._period_s = _FIRST_LOOK_S
        self.look_at = NEVER

    def add(self, tags: "list[Tag]", now: float) -> None:
        """Remember inputs that are written now. The kernel takes a moment to pass them on."""
        if tags:
            self._tags += tags
            self._period_s = _FIRST_LOOK_S
            self.look_at = min(self.look_at, now + _FIRST_LOOK_S)

    def look(self, has_read: bool, now: float) -> "list[Tag]":
        """Return the inputs that turned out to be read; without any, set the time of the next look."""
        if not has_read:
            self._period_s = min(2 * self._period_s, _MAX_LOOK_S)
            self.look_at = now + self._period_s
            return []
        read, self._tags, self.look_at = self._tags, [], NEVER
        return read

    def clear(self) -> None:
        """Forget them, as nobody is there any more to read them."""
        self._tags, self.look_at = [], NEVER
