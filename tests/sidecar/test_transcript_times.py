"""Times in transcripts: when a line was written, when a limit ends."""

import pytest

from csp.clis.plain.transcript import PlainReader
from csp.clis.transcript_reader import Line, seconds, until


@pytest.mark.parametrize(
    ("timestamp", "at"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T01:01:00+01:00", 60.0),
        ("1970-01-01T00:01:00", 60.0),
        ("", 0.0),
        ("soon", 0.0),
    ],
)
def test_a_time_without_a_zone_is_utc_wherever_we_are(
    monkeypatch: pytest.MonkeyPatch, timestamp: str, at: float
) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert seconds(timestamp) == at
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("Resets at 3pm. More", "3pm"),
        ("it resets in 2h\nmore", "2h"),
        ("TRY AGAIN AT 9:00", "9:00"),
        ("try again in an hour", "an hour"),
        ("reset Nov 20 (Europe/Zurich)", "Nov 20 (Europe/Zurich)"),
        ("presets at 3pm", None),
        ("no end", None),
    ],
)
def test_when_a_limit_ends_is_told_in_the_words_of_the_cli(text: str, end: str | None) -> None:
    assert until(text) == end


def test_a_line_as_old_as_the_run_belongs_to_it_and_no_count_is_negative() -> None:
    reader = PlainReader(since=10.0)
    lines = [
        b'{"type": "start", "ts": 9.9}',
        b'{"type": "start", "ts": 10.0}',
        b'{"type": "usage", "input": -1, "output": -2}',
    ]
    started, counted = reader.read([], [Line(path="", data=line) for line in lines], 11.0)

    assert type(started).__name__ == "Started"
    assert (counted.usage.input, counted.usage.output) == (0, 0)  # type: ignore[union-attr]  # a Counted
