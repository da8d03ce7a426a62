"""The life of a message on its way to one recipient."""

from typing import Final

from csp.protocol.enums import DeliveryState as S
from csp.protocol.enums import HeldReason

_ENDED: Final[frozenset[S]] = frozenset()

#: Where a delivery may go from each state. `submitted` ends the work; a proof may still come later.
MOVES: Final[dict[S, frozenset[S]]] = {
    S.QUEUED: frozenset({S.HELD, S.TYPED, S.SUBMITTED, S.CONFIRMED, S.FAILED, S.WITHDRAWN, S.EXPIRED}),
    S.HELD: frozenset(
        {S.QUEUED, S.HELD, S.TYPED, S.SUBMITTED, S.CONFIRMED, S.FAILED, S.WITHDRAWN, S.EXPIRED}
    ),
    S.TYPED: frozenset({S.HELD, S.SUBMITTED, S.CONFIRMED, S.FAILED}),
    S.SUBMITTED: frozenset({S.CONFIRMED}),
    S.CONFIRMED: _ENDED,
    S.FAILED: _ENDED,
    S.WITHDRAWN: _ENDED,
    S.EXPIRED: _ENDED,
}
PENDING: Final = frozenset({S.QUEUED, S.HELD, S.TYPED})
UNDELIVERED: Final = frozenset({S.FAILED, S.WITHDRAWN, S.EXPIRED})


def may_move(old: S, new: S) -> bool:
    """Tell whether a delivery may go from `old` to `new`."""
    return new in MOVES[old]


def is_untouched(state: S, reason: str) -> bool:
    """Tell whether nothing has reached the recipient's composer, so that nothing has to be undone there."""
    return state in (S.QUEUED, S.HELD) and reason != HeldReason.STUCK
