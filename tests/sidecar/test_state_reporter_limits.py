"""When a usage limit ends, in the words that CLIs use."""

from datetime import datetime

import pytest

from csp.sidecar.brain.state_reporter import until_time

NOW = datetime(2026, 11, 16, 14, 30, 20)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("3pm", datetime(2026, 11, 16, 15, 0)),
        ("2pm", datetime(2026, 11, 17, 14, 0)),
        ("12am", datetime(2026, 11, 17, 0, 0)),
        ("12:45 p.m.", datetime(2026, 11, 17, 12, 45)),
        ("16:05", datetime(2026, 11, 16, 16, 5)),
        ("Nov 20, 9:00 AM", datetime(2026, 11, 20, 9, 0)),
        ("Jan 2 at 5pm", datetime(2027, 1, 2, 17, 0)),
    ],
)
def test_a_clock_is_the_next_time_it_shows_that(words: str, expected: datetime) -> None:
    assert until_time(words, NOW.timestamp()) == expected.timestamp()


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("in 2h 5m", 7500), ("3 days", 259_200), ("45 minutes", 2700), ("10s", 10), ("1d 1h", 90_000)],
)
def test_a_span_is_counted_from_now(words: str, seconds: int) -> None:
    assert until_time(words, 1000.0) == 1000.0 + seconds


@pytest.mark.parametrize("words", ["", "soon", "25:00", "Feb 30, 9:00 AM", "0m"])
def test_other_words_are_no_time(words: str) -> None:
    assert until_time(words, NOW.timestamp()) is None
