"""Parse when a usage limit ends from the words of a CLI, such as "resets at 5pm"."""

import re
from datetime import datetime, timedelta
from typing import Final

_CLOCK: Final = re.compile(
    r"(?<![\d:])(\d{1,2})(?::(\d{2}))?\s*([ap])\.?m\b|(?<![\d:])(\d{1,2}):(\d{2})(?!\s*[ap]m)", re.I
)
_SPAN: Final = re.compile(
    r"(?<!\d)(\d{1,9})\s*(d|h|m|s)(?:ays?|ours?|rs?|in(?:ute)?s?|ec(?:ond)?s?)?\b", re.I
)
_DATE: Final = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(\d{1,2})\b", re.I)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNITS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def until_time(words: str, now: float) -> float | None:
    """Return the Unix time that `words` such as "3pm", "Nov 20, 9:00 AM", "in 2h 5m" mean; None for none."""
    clock = _CLOCK.search(words)
    if clock:
        return _clock_time(clock, _DATE.search(words), now)
    span_s = sum(int(count) * _UNITS[unit.lower()] for count, unit in _SPAN.findall(words))
    return now + span_s if span_s else None


def _clock_time(clock: re.Match[str], date: re.Match[str] | None, now: float) -> float | None:
    hour, minute = int(clock[1] or clock[4]), int(clock[2] or clock[5] or 0)
    if clock[3]:
        hour = hour % 12 + (12 if clock[3].lower() == "p" else 0)
    today = datetime.fromtimestamp(now)
    try:
        when = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if date:
            when = when.replace(month=_MONTHS.index(date[1].lower()) + 1, day=int(date[2]))
            return (when if when >= today else when.replace(year=when.year + 1)).timestamp()
    except ValueError:
        return None
    # A clock without a date is the next time it shows that.
    return (when if when > today else when + timedelta(days=1)).timestamp()
