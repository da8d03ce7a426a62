"""csp report: the time that a person means, and the lines of the report."""

from datetime import datetime
from typing import Any

import pytest

from csp.cli.report import read_since, report_lines
from csp.errors import BadInput

NOW = datetime(2026, 11, 20, 7, 30).timestamp()
HOUR = 3600.0
QUIET: dict[str, Any] = {
    "since": NOW - 8 * HOUR,
    "until": NOW,
    "sessions": [],
    "agents": [],
    "waits": [],
    "slept_s": 0.0,
    "commits": [],
    "tests": [],
    "spent": [],
    "needs": [],
    "next": "",
}


@pytest.mark.parametrize(
    ("words", "hours"),
    [("8h", 8.0), ("90min", 1.5), ("90 m", 1.5), ("1d", 24.0), ("07:00", 0.5), ("23:30", 8.0)],
)
def test_time_is_before_now(words: str, hours: float) -> None:
    assert read_since(words, NOW) == NOW - hours * HOUR


def test_date_is_a_time() -> None:
    assert read_since("2026-11-19T22:00", NOW) == datetime(2026, 11, 19, 22).timestamp()


@pytest.mark.parametrize("words", ["", "yesterday", "25:00", "-3h"])
def test_other_words_are_refused_with_examples(words: str) -> None:
    with pytest.raises(BadInput, match="unknown time") as caught:
        read_since(words, NOW)
    assert "90min" in caught.value.hint


def test_quiet_night_is_three_lines() -> None:
    assert list(report_lines(QUIET)) == [
        "from 2026-11-19 23:30 to 2026-11-20 07:30 (8 h 0 min)",
        "no session ran",
        "nothing needs you",
    ]


def test_long_night_fits_a_screen() -> None:
    session = {"id": "s-3", "mode": "autopilot", "status": "ended", "reason": "emergency_turns"}
    times = {"started_at": NOW - 7 * HOUR, "ended_at": NOW - HOUR, "topic": "make the tests pass"}
    agent = {"turns": 3, "replies": 2, "cancelled": 1, "failed": [{"reason": "no reply", "count": 2}] * 3}
    wait = {
        "session": "s-3",
        "agent": "ada",
        "kind": "reset",
        "detail": "",
        "since": NOW - HOUR,
        "ended": None,
    }
    view = QUIET | {
        "sessions": [session | times] * 9,
        "agents": [agent | {"agent": "ada"}] * 3,
        "waits": [wait] * 9,
        "commits": [{"directory": "/p", "total": 30, "subjects": ["abc Fix (ada)"] * 20}],
        "tests": [{"run": "run-1", "summary": "pytest: passed", "passed": True, "at": NOW}],
        "needs": ["ada asks to run a command"] * 9,
        "next": "/approve ada",
    }
    lines = list(report_lines(view))

    assert "s-3 autopilot: stopped by the turn limit after 6 h 0 min; make the tests pass" in lines
    assert "ada: 3 turns, 2 replies, 1 cancelled" in lines
    assert "wait: ada at a usage limit for 1 h 0 min until now" in lines
    assert "wait: 9 in all, 9 h 0 min together" in lines
    assert "30 commits in /p" in lines
    assert lines[-1] == "next: /approve ada  (in a shell: csp approve ada)"
    assert len(lines) <= 40


@pytest.mark.parametrize("line", ["/focus ada", "@ada"])
def test_answer_in_a_pane_has_no_shell_command(line: str) -> None:
    assert list(report_lines(QUIET | {"needs": ["x"], "next": line}))[-1] == f"next: {line}"
