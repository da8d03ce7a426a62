"""The state handed from one brain process to its successor, by way of the relay."""

from typing import Final, Self

import msgspec

from csp.sidecar.capture.screen_capture import AwaitedReply
from csp.sidecar.inject.message_progress import SentPrompt
from csp.terminal.screen_reply import Surround

_TOUCHED: Final = frozenset({"PASTED", "SHOWN", "SENT", "CLEARING", "STUCK"})


class BrainHandover(msgspec.Struct, frozen=True):
    #: What the follower knew when the room had everything that followed from it.
    follower: bytes = b""
    tags: dict[str, SentPrompt] = {}
    #: The message that was being typed, with the phase it was in.
    typing: tuple[str, str] | None = None
    is_ready: bool = False
    is_begun: bool = False
    has_had_composer: bool = False
    #: Whether the program may have been asked anything; rows of its screen whose signs of work mean nothing.
    was_asked: bool = False
    idle_rows: tuple[str, ...] = ()
    is_disk_full: bool = False
    is_paused: bool = False
    unsettled: AwaitedReply | None = None
    #: What the program shows around its conversation.
    surround: Surround | None = None
    #: Controls that were begun; what is set once in a terminal; how much a person has typed.
    controls: tuple[str, ...] = ()
    modes: tuple[bool, bool] = (False, False)
    typed: int = 0

    def dump(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def load(cls, data: bytes) -> Self | None:
        """Read a note back; None for none, or for one that cannot be read."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def stands(self, message: str) -> bool:
        """Tell whether `message` may stand in the composer, or was submitted without a word of it."""
        return self.typing is not None and self.typing[0] == message and self.typing[1] in _TOUCHED
