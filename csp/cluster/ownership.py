"""The owner of a room: a pure function from a gateway's observations to its next step.

The owner of a room is the gateway whose claim is the last one in the log of the room. A claim is an append
like any other, so of several gateways that claim at once, one succeeds, and an owner that does not know of a
later claim cannot append. None of the times below matters for that: they only say when to try. A gateway
that is wrong about another one's death takes the room from it, which costs a moment and loses nothing.
"""

from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

#: An owner is dead after this much silence; each next gateway in rank waits longer, so that one claims first.
SILENT_S: Final = 1.0
SILENT_STEP_S: Final = 0.15
#: The same if nobody listens to the owner's calls, as after a kill.
DEAF_S: Final = 0.3
DEAF_STEP_S: Final = 0.1
#: The same if the owner has said that it leaves, or if the room never had one.
FREE_STEP_S: Final = 0.1
#: Gateways with a higher rank do not wait any longer; most of them may serve other rooms.
MOST_STEPS: Final = 5
#: A gateway with a younger connection may be the one that was cut off, so it does not claim.
YOUNG_S: Final = 1.0


class Step(StrEnum):
    """The next step of a gateway for a room."""

    WAIT = "wait"
    CLAIM = "claim"
    STEP_DOWN = "step_down"


class OwnerSigns(NamedTuple):
    """The observations of a gateway; all times are those of its own clock."""

    me: str
    #: The writer of the last claim that this gateway has read, and when it was read; "" if there is none, or
    #: if that owner has left the room.
    owner: str
    claimed_at: float
    #: Whether this gateway decides for the room at present.
    is_leading: bool
    #: The position of this gateway among those that serve the room; 0 claims first.
    rank: int
    #: Since when it has had its connection; None without one.
    connected_at: float | None
    #: When the owner last gave a sign of life, and since when nobody has listened to its calls.
    heard_at: float
    deaf_since: float | None = None
    #: When the owner said that it leaves.
    left_at: float | None = None


def next_step(signs: OwnerSigns, now: float) -> Step:
    """Return what to do now."""
    is_owner = signs.owner == signs.me
    if signs.is_leading:
        return Step.WAIT if is_owner else Step.STEP_DOWN
    if signs.connected_at is None or now - signs.connected_at < YOUNG_S:
        return Step.WAIT
    if is_owner:
        # An earlier claim of ours, after which somebody else's append was refused or our own failed.
        return Step.CLAIM
    return Step.CLAIM if now >= _free_at(signs) else Step.WAIT


def _free_at(signs: OwnerSigns) -> float:
    """Return when the room counts as free."""
    if not signs.owner:
        assert signs.connected_at is not None
        return max(signs.connected_at + YOUNG_S, signs.claimed_at) + FREE_STEP_S * signs.rank
    # A claim is a sign of life too, and a new connection has not had the time to hear one.
    heard_at = max(signs.heard_at, signs.claimed_at, signs.connected_at or 0.0)
    times = [heard_at + SILENT_S + SILENT_STEP_S * signs.rank]
    if signs.deaf_since is not None:
        times.append(max(signs.deaf_since, signs.claimed_at) + DEAF_S + DEAF_STEP_S * signs.rank)
    if signs.left_at is not None and signs.left_at >= signs.claimed_at:
        times.append(signs.left_at + FREE_STEP_S * signs.rank)
    return min(times)


def rank_of(me: str, room: str, others: frozenset[str]) -> int:
    """Return the position of a gateway among those that live, at most the last one that matters.

    The order differs from room to room.
    """

    def weight(gateway: str) -> bytes:
        return sha256(f"{room}\n{gateway}".encode()).digest()

    own = weight(me)
    return min(sum(weight(other) > own for other in others if other != me), MOST_STEPS)
