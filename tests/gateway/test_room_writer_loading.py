"""How a room comes back from its folder: from its newest snapshot and the lines after it."""

from pathlib import Path

import pytest

from csp.gateway.room_writer import load_room
from csp.journal import snapshots
from csp.journal.jsonl_journal import JsonlJournal
from csp.room.room_state import dump
from tests.gateway.test_broadcast import event


def journal_of(folder: Path, count: int) -> JsonlJournal:
    journal = JsonlJournal.open(folder)
    journal.append([event(seq)[1] for seq in range(1, count + 1)], 1)
    journal.sync()
    journal.commit()
    return journal


def test_the_lines_after_the_snapshot_are_counted(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, 3)
    early, lacked_all = load_room(journal)
    snapshots.save(tmp_path, early.seq, dump(early))
    journal.append([event(4)[1], event(5)[1]], 4)
    journal.sync()
    journal.commit()
    room, lacked = load_room(journal)
    journal.close()

    assert (early.seq, lacked_all) == (3, 3)
    assert (room.seq, lacked, room.ts) == (5, 2, 1.0)


def test_a_snapshot_of_nonsense_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = journal_of(tmp_path, 3)
    snapshots.save(tmp_path, 2, b'{"seq":"two"}')
    room, lacked = load_room(journal)
    journal.close()

    assert (room.seq, lacked) == (3, 3)
    assert "snapshot skipped" in caplog.messages
