"""How fast agents may go: buckets, quotas, whose turn it is."""

from collections import Counter

import pytest

from csp.room.caller_limits import (
    BURST,
    MAX_QUOTA,
    OPERATIONS_PER_S,
    SLOW_PASS_S,
    Bucket,
    draw,
    in_turn,
    is_full,
    next_quota,
)


def test_an_agent_that_was_quiet_may_do_a_burst_at_once() -> None:
    bucket, waits = None, []
    for _ in range(int(BURST) + 1):
        bucket, wait_s = draw(bucket, 0.0)
        waits.append(wait_s)

    assert waits == [0.0] * int(BURST) + [pytest.approx(1 / OPERATIONS_PER_S)]


def test_what_a_busy_agent_does_is_never_refused() -> None:
    bucket, waits = None, set()
    for number in range(5 * 1000):
        bucket, wait_s = draw(bucket, 5.0 + (number - 1000) / 200 if number > 1000 else 0.0)
        waits.add(wait_s)

    assert waits == {0.0}


def test_an_agent_has_its_rate_in_the_long_run() -> None:
    bucket: Bucket | None = Bucket(0.0, 0.0)
    taken = 0
    for tick in range(10_000):
        bucket, wait_s = draw(bucket, tick / 1000)
        taken += not wait_s

    assert taken == pytest.approx(10 * OPERATIONS_PER_S, abs=2)


def test_who_waits_as_long_as_it_was_told_gets_a_token() -> None:
    bucket, wait_s = draw(Bucket(0.25, 7.0), 7.0)

    assert wait_s == pytest.approx(0.75 / OPERATIONS_PER_S)
    assert draw(bucket, 7.0 + wait_s + 1e-9)[1] == 0.0


def test_a_clock_that_goes_back_gives_nothing() -> None:
    bucket, wait_s = draw(Bucket(0.0, 10.0), 5.0)

    assert (bucket.at, wait_s > 0) == (10.0, True)


@pytest.mark.parametrize(("bucket", "expected"), [(Bucket(BURST, 0.0), True), (Bucket(0.0, 0.0), False)])
def test_only_a_full_bucket_can_be_forgotten(bucket: Bucket, expected: bool) -> None:
    assert is_full(bucket, 1.0) is expected
    assert is_full(Bucket(0.0, 0.0), BURST / OPERATIONS_PER_S)


def test_a_slow_pass_halves_the_quota_and_quick_ones_bring_it_back() -> None:
    quotas = [MAX_QUOTA]
    for took_s in [SLOW_PASS_S * 2] * 8 + [0.0] * 40:
        quotas.append(next_quota(quotas[-1], took_s))

    assert quotas[1] == MAX_QUOTA // 2
    assert min(quotas) == 1
    assert quotas[-1] == MAX_QUOTA


def test_everybody_is_served_before_anybody_is_served_twice() -> None:
    ready, last, served = list(range(5, 105)), -1, Counter[int]()
    for _ in range(25):
        chosen = in_turn(ready, last, 16)
        last = chosen[-1]
        served.update(chosen)

    assert set(served.values()) == {4}


def test_few_who_are_ready_are_all_served() -> None:
    assert in_turn([9, 3], 5, 2) == [9, 3]
