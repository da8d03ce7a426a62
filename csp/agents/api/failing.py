"""What it means that a call failed: whether to try again, after how long, what people are told.

What a provider says may hold a part of the key, so of a refused key nothing is repeated, and everywhere else
what looks like one is taken out.
"""

import math
import random
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from csp.errors import CallFailed

ATTEMPTS: Final = 5
FIRST_S: Final = 0.5
LAST_S: Final = 30.0
_MAX_CHARS: Final = 300
_KEYLIKE: Final = re.compile(
    r"\b(?:sk|pk|key|AIza|gsk|xai)[-_A-Za-z0-9*.…]{6,}|[A-Za-z0-9_-]*\*{3,}[A-Za-z0-9_-]*"
)
_REFUSED_KEY: Final = frozenset({401, 403})
_TOO_MANY: Final = 429
#: What these raise without a status has happened on the way to the provider.
_NETWORK: Final = frozenset({"anthropic", "anyio", "httpcore2", "httpx2", "openai"})
#: A quota that is used up comes with the same code as too many calls, but does not pass by itself.
_FINAL_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_PASSING_CODES: Final = frozenset(
    {"server_error", "rate_limit_exceeded", "overloaded_error", "api_error", "rate_limit_error"}
)


def failure_of(error: Exception, secret: str, now: float) -> CallFailed:
    """Return what an exception of an SDK means; `secret` is the key, which must not be told to anybody."""
    if isinstance(error, CallFailed):
        return error
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return _without_status(error, secret)
    code = _code(error)
    if status < 400:
        # The stream had begun well.
        return CallFailed(_said(error, secret, "the answer broke off"), is_passing=code in _PASSING_CODES)
    if status in _REFUSED_KEY:
        return CallFailed(f"{status}: the key was refused", "check the key, or what it may do")
    headers = getattr(getattr(error, "response", None), "headers", {})
    is_passing = status == _TOO_MANY or status >= 500
    is_final = code in _FINAL_CODES or headers.get("x-should-retry") == "false"
    after_s = retry_after_s(headers, now) if is_passing else None
    return CallFailed(
        _said(error, secret, str(status)), is_passing=is_passing and not is_final, after_s=after_s
    )


def _without_status(error: Exception, secret: str) -> CallFailed:
    if _code(error):
        return CallFailed(
            _said(error, secret, "the answer broke off"), is_passing=_code(error) in _PASSING_CODES
        )
    kind = type(error).__name__
    if isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _NETWORK:
        return CallFailed(f"no connection to the provider ({kind})", is_passing=True)
    return CallFailed(f"the call could not be made: {scrubbed(f'{kind}: {error}', secret)}")


def _code(error: Exception) -> str:
    """Return the provider's own word for what went wrong."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    found = [inner.get(name) for name in ("code", "type")] if isinstance(inner, Mapping) else []
    return next((word for word in found if isinstance(word, str)), "")


def _said(error: Exception, secret: str, what: str) -> str:
    """Return what happened with what the provider said of it."""
    body: Any = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    text = inner.get("message") if isinstance(inner, Mapping) else None
    said = scrubbed(text if isinstance(text, str) else "", secret)
    return f"{what}: {said}" if said else what


def scrubbed(text: str, secret: str) -> str:
    """Return a text of others as one short line without anything that could be a key."""
    plain = text.replace(secret, "[key]") if secret else text
    line = " ".join(_KEYLIKE.sub("[key]", plain).split())
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}…"


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return how long a provider wants to be left alone, if it says so."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            found = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(found):
            return max(0.0, found)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def wait_s(failure: CallFailed, tries: int) -> float:
    """Return how long to wait before the next try: what the provider wants, else longer each time.

    A little is added, so that many connectors do not come back at one moment.
    """
    full = min(LAST_S, FIRST_S * 2.0 ** min(tries, 16))
    jitter_s = full * random.uniform(0.5, 1.0)
    return jitter_s if failure.after_s is None else failure.after_s + jitter_s * 0.2
