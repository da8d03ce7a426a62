"""Waiting for a condition with a deadline, never for a time."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

DEFAULT_TIMEOUT_S: Final = 10.0
_PERIOD_S: Final = 0.01


async def wait_until(
    condition: Callable[[], T | Awaitable[T]], timeout_s: float = DEFAULT_TIMEOUT_S, what: str = ""
) -> T:
    """Return the condition's first true value; fail, naming it, when there is none in time.

    The condition may be a plain function or a coroutine function. It is asked once more at the deadline.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        is_last = time.monotonic() >= deadline
        answer = condition()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        if is_last:
            raise AssertionError(_complaint(condition, timeout_s, what, value))
        await asyncio.sleep(_PERIOD_S)


def wait_until_sync(condition: Callable[[], T], timeout_s: float = DEFAULT_TIMEOUT_S, what: str = "") -> T:
    """Do what wait_until does, in code that has no event loop."""
    deadline = time.monotonic() + timeout_s
    while True:
        is_last = time.monotonic() >= deadline
        value = condition()
        if value:
            return value
        if is_last:
            raise AssertionError(_complaint(condition, timeout_s, what, value))
        time.sleep(_PERIOD_S)


def _complaint(condition: Callable[[], object], timeout_s: float, what: str, value: object) -> str:
    code = getattr(condition, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(condition)
    return f"{what or 'condition'} did not come true in {timeout_s:g} s ({place}), last value: {value!r}"
