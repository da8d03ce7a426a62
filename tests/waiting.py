"""Waiting for a condition with a deadline, never for a time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

#: Costs nothing when the condition comes true; on a busy machine a process may not get its turn for seconds.
DEFAULT_TIMEOUT_S: Final = 120.0
#: The shortest deadline, so that a busy machine alone fails no test.
SHORTEST_TIMEOUT_S: Final = 60.0
_PERIOD_S: Final = 0.01
#: Asking may start a process or have the room write a page, on the cores that the answer needs to come true.
_REST_PER_WORK: Final = 9.0
_LONGEST_PERIOD_S: Final = 0.1


async def wait_until(
    condition: Callable[[], T | Awaitable[T]], timeout_s: float = DEFAULT_TIMEOUT_S, what: str = ""
) -> T:
    """Return the condition's first true value; fail, naming it, when there is none in time.

    The condition may be a plain function or a coroutine function. It is asked once more at the deadline.
    """
    timeout_s = max(timeout_s, SHORTEST_TIMEOUT_S)
    deadline = time.monotonic() + timeout_s
    while True:
        asked_at = time.monotonic()
        is_last = asked_at >= deadline
        answer = condition()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if is_last:
            raise AssertionError(_complaint(condition, timeout_s, what, value))
        await asyncio.sleep(_rest_s(asked_at))


def wait_until_sync(condition: Callable[[], T], timeout_s: float = DEFAULT_TIMEOUT_S, what: str = "") -> T:
    """Do what wait_until does, in code that has no event loop."""
    timeout_s = max(timeout_s, SHORTEST_TIMEOUT_S)
    deadline = time.monotonic() + timeout_s
    while True:
        asked_at = time.monotonic()
        is_last = asked_at >= deadline
        value = condition()
        if value:
            return value
        if is_last:
            raise AssertionError(_complaint(condition, timeout_s, what, value))
        time.sleep(_rest_s(asked_at))


async def comes_true(condition: Callable[[], object], within_s: float) -> bool:
    """Report whether a condition comes true soon: for what is tried again if it does not."""
    deadline = time.monotonic() + within_s
    # It may be any condition, so there is no event to wait for.
    while not (is_true := bool(condition())) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(_PERIOD_S)
    return is_true


def comes_true_sync(condition: Callable[[], object], within_s: float) -> bool:
    """Do what comes_true does, in code that has no event loop."""
    deadline = time.monotonic() + within_s
    while not (is_true := bool(condition())) and time.monotonic() < deadline:
        time.sleep(_LONGEST_PERIOD_S)
    return is_true


def _rest_s(asked_at: float) -> float:
    """Return how long to wait before asking again, so that asking takes a tenth of the time at most."""
    work_s = time.monotonic() - asked_at
    return min(max(_PERIOD_S, _REST_PER_WORK * work_s), _LONGEST_PERIOD_S)


def _complaint(condition: Callable[[], object], timeout_s: float, what: str, value: object) -> str:
    code = getattr(condition, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(condition)
    return f"{what or 'condition'} did not come true in {timeout_s:g} s ({place}), last value: {value!r}"
