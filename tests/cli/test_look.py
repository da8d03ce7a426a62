"""What csp status shows of the room."""

from typing import Any

from csp.cli.look import _health_lines

HEALTH: dict[str, Any] = {
    "room": "dev",
    "status": "ok",
    "seq": 7,
    "uptime_s": 61.0,
    "journal": {"writable": True, "damaged": []},
    "boards": {"count": 0, "notes": 0, "bytes": 0, "largest_bytes": 0, "max_bytes": 4096},
}


def lines(**boards: int) -> list[str]:
    return _health_lines("http://x", HEALTH | {"boards": HEALTH["boards"] | boards})[1:]


def test_empty_whiteboards_are_not_mentioned() -> None:
    assert lines() == []


def test_the_size_of_the_whiteboards_is_shown() -> None:
    assert lines(count=2, notes=5, bytes=2560, largest_bytes=2048) == [
        "whiteboards: 2, 5 notes, 2.5 KiB, the largest 50% full"
    ]


def test_whiteboards_without_a_limit_are_never_full() -> None:
    assert lines(count=1, notes=1, bytes=1024, largest_bytes=1024, max_bytes=0) == [
        "whiteboards: 1, 1 notes, 1.0 KiB"
    ]


def test_a_journal_that_cannot_be_written_or_is_damaged_is_named() -> None:
    found = _health_lines("http://x", HEALTH | {"journal": {"writable": False, "damaged": [3, 4]}})

    assert found[1:] == [
        "journal: cannot be written, nothing new is accepted",
        "journal: 2 damaged lines, see: csp doctor --journal",
    ]
