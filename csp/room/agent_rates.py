"""How fast an agent may go: a bucket of tokens for each, a quota of operations for all."""

from collections.abc import Sequence
from typing import Final, NamedTuple

#: What one agent may do in a second for as long as it likes; a busy agent needs a tenth of it.
OPERATIONS_PER_S: Final = 500.0
#: What an agent that has been quiet may do at once.
BURST: Final = 2000.0
#: Operations of all agents between which the server looks after everybody else.
MAX_QUOTA: Final = 8
#: How much time a pass of the server may use before agents get a smaller quota.
SLOW_PASS_S: Final = 0.005


class Bucket(NamedTuple):
    """The tokens that were left at a time."""

    tokens: float
    at: float


def draw(bucket: Bucket | None, now: float) -> tuple[Bucket, float]:
    """Take one token; return the bucket with the seconds until there is one, 0 if it was taken."""
    if bucket is None:
        return Bucket(BURST - 1, now), 0.0
    tokens = min(BURST, bucket.tokens + max(0.0, now - bucket.at) * OPERATIONS_PER_S)
    if tokens < 1:
        return Bucket(tokens, max(now, bucket.at)), (1 - tokens) / OPERATIONS_PER_S
    return Bucket(tokens - 1, max(now, bucket.at)), 0.0


def is_full(bucket: Bucket, now: float) -> bool:
    """Tell whether a bucket can be forgotten, because a new one would be as good."""
    return bucket.tokens + (now - bucket.at) * OPERATIONS_PER_S >= BURST


def next_quota(quota: int, took_s: float) -> int:
    """Return how many operations agents get in the next pass, after one that took so long."""
    return max(1, quota // 2) if took_s > SLOW_PASS_S else min(MAX_QUOTA, quota + 1)


def in_turn(ready: Sequence[int], last: int, limit: int) -> list[int]:
    """Return at most `limit` of those that are ready: the ones after the last served, then the first.

    Whoever is ready is served before anybody is served twice.
    """
    if len(ready) <= limit:
        return list(ready)
    ordered = sorted(ready)
    after = [one for one in ordered if one > last]
    return (after + ordered)[:limit]
