"""Interpret a failed call: whether and when to retry it, and how to describe it to people.

A provider's message may contain part of the key. So nothing is quoted if a key was refused, and in all
other messages text that looks like a key is removed.
"""

import json
import math
import random
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from csp.errors import CallFailed
from csp.model_providers import sdk_packages

ATTEMPTS: Final = 5
FIRST_S: Final = 0.5
LAST_S: Final = 30.0
_MAX_CHARS: Final = 300
_KEYLIKE: Final = re.compile(
    r"\b(?:sk|pk|key|AIza|gsk|xai)[-_A-Za-z0-9*.…]{6,}|(?<![A-Za-z0-9_-])[A-Za-z0-9_-]*(?:\*{3,}[A-Za-z0-9_-]*)+"
)
_REFUSED_KEY: Final = frozenset({401, 403})
_TOO_MANY: Final = 429
#: The maximum nesting depth of the message in the body.
_DEPTH: Final = 4
#: The upper limit for Retry-After; larger values are ignored.
_LONGEST_S: Final = 24 * 3600.0
#: Errors from these packages without a status occurred on the way to the provider.
_NETWORK: Final = frozenset({"anyio", "httpcore2", "httpx2"} | sdk_packages())
#: An exhausted quota has the same status as too many calls, but does not recover by itself.
_FINAL_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_PASSING_CODES: Final = frozenset(
    {
        *("server_error", "rate_limit_exceeded", "server_is_overloaded"),
        *("overloaded_error", "api_error", "rate_limit_error"),
    }
)


def failure_of(error: Exception, secret: str, now: float) -> CallFailed:
    """Return the failure for an SDK's exception; `secret` is the key, which must not be revealed."""
    if isinstance(error, CallFailed):
        return error
    status, body, code = getattr(error, "status_code", None), getattr(error, "body", None), _code(error)
    if not isinstance(status, int) and not body:
        kind = type(error).__name__
        if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _NETWORK:
            return CallFailed(f"no connection to the provider ({kind})", is_passing=True)
        return CallFailed(f"the call could not be made: {scrubbed(f'{kind}: {error}', secret)}")
    if not isinstance(status, int) or status < 400:
        # The error occurred after the start of the stream.
        return broken_off(code, body, secret)
    if status in _REFUSED_KEY:
        return CallFailed(f"{status}: the key was refused", "check the key and its permissions")
    headers = getattr(getattr(error, "response", None), "headers", {})
    is_passing = status == _TOO_MANY or status >= 500
    is_final = code in _FINAL_CODES or headers.get("x-should-retry") == "false"
    after_s = retry_after_s(headers, now) if is_passing else None
    said = _said(body, secret, str(status))
    return CallFailed(said, is_passing=is_passing and not is_final, after_s=after_s)


def broken_off(code: object, body: object, secret: str, what: str = "the response broke off") -> CallFailed:
    """Return the failure for an error that a provider sent instead of or in the middle of a response."""
    word = str(code or "")
    is_status = word.isdecimal() and (int(word) == _TOO_MANY or int(word) >= 500)
    return CallFailed(_said(body or code, secret, what), is_passing=word in _PASSING_CODES or is_status)


def _code(error: Exception) -> str:
    """Return the provider's own error code."""
    body = getattr(error, "body", None)
    while isinstance(body, list) and body:
        body = body[0]
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    found = [inner.get(name) for name in ("code", "type")] if isinstance(inner, Mapping) else []
    return next((str(word) for word in found if isinstance(word, str | int)), "")


def _said(body: object, secret: str, what: str) -> str:
    """Return `what` with the provider's message, parsed from any of the usual formats except HTML."""
    if isinstance(body, bytes):
        data: bytes = body
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            body = data.decode(errors="replace")
    for _ in range(_DEPTH):
        if isinstance(body, list):
            body = body[0] if body else ""
        elif isinstance(body, Mapping):
            body = next((body[name] for name in ("error", "message", "detail", "code") if body.get(name)), "")
    text = str(body) if isinstance(body, str | int) else ""
    said = "" if text.lstrip().startswith("<") else scrubbed(text, secret)
    return f"{what}: {said}" if said else what


def scrubbed(text: str, secret: str) -> str:
    """Return external text as one short line without anything that could be a key."""
    plain = text.replace(secret, "[key]") if secret else text
    line = " ".join(_KEYLIKE.sub("[key]", plain).split())
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return the provider's Retry-After in seconds, or None if it sent none."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            found = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(found):
            return _bounded(found)
    try:
        return _bounded(parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _bounded(after_s: float) -> float:
    return min(max(0.0, after_s), _LONGEST_S)


def wait_s(failure: CallFailed, tries: int) -> float:
    """Return the delay before the next try: the one that the provider requests, or else an increasing one.

    A random part is added so that many connectors do not retry at the same moment.
    """
    full = min(LAST_S, FIRST_S * 2.0 ** min(tries, 16))
    jitter_s = full * random.uniform(0.5, 1.0)
    # Wait a little even if a provider repeatedly requests no delay.
    return jitter_s if failure.after_s is None else max(failure.after_s + jitter_s * 0.2, jitter_s)
