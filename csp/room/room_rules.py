"""The rules a room is run with: times, limits, the texts of the prompts."""

from collections.abc import Mapping

import msgspec

from csp.protocol.enums import ParticipantKind
from csp.protocol.session_parts import Limits


class WindowSize(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what was said comes with a turn: so many items, or so many tokens of them."""

    items: int = 8
    tokens: int = 2500


DEFAULT_WINDOW = WindowSize()


class RoomRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say; they may differ from one start of the gateway to the next."""

    warn_s: float = 90.0
    timeout_s: float = 120.0
    #: How long a turn may be kept open by signs of work, by a dialog, by a draft in the way.
    longest_s: float = 1800.0
    soft_turns: int = 25
    #: Limits count tokens that are new: input that was not read from a cache, and output.
    soft_tokens: int = 250_000
    window: WindowSize = DEFAULT_WINDOW
    limits: Limits = Limits(turns=200, tokens=1_000_000, minutes=20.0)
    #: Whether the replies of a session go onto its board; after how many notes who sums them up, 0 for never.
    board_replies: bool = True
    summary_after: int = 50
    summariser: str = ""
    #: How much text a board may hold; 0 for no limit.
    board_max_bytes: int = 64 * 1024 * 1024
    #: Texts that must never stand on a board.
    secrets: tuple[str, ...] = ()
    prompts: Mapping[str, str] = msgspec.field(default_factory=dict)

    def timeout_of(self, kind: ParticipantKind) -> float:
        """Return how long a turn may take; a model that thinks behind an API shows no sign of it."""
        return self.timeout_s * 2.5 if kind is ParticipantKind.API else self.timeout_s


DEFAULT_RULES = RoomRules()
