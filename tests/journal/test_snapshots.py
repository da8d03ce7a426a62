import errno
import logging
import os
from pathlib import Path

import pytest

from csp.errors import StorageFailed
from csp.journal import snapshots
from tests.journal.making import commit, encoded, lines_to, opened, said, write_journal


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_snapshot_is_loaded(tmp_path: Path) -> None:
    snapshots.save(tmp_path, 9, b'{"a":1}')
    snapshots.save(tmp_path, 10, b'{"a":2}')

    assert snapshots.load(tmp_path, 100) == snapshots.Snapshot(seq=10, state=b'{"a":2}')


def test_a_snapshot_of_another_journal_is_passed_over(tmp_path: Path) -> None:
    """For example, if only the journal was restored from a copy."""
    with opened(tmp_path) as journal:
        commit(journal, lines_to(3))
        snapshots.save(tmp_path, 3, b"{}", view=journal.view)
        own = snapshots.load(tmp_path, 3, journal.view)
    write_journal(tmp_path, b"".join(line + b"\n" for line in encoded([said(1), said(2), said(3, "other")])))
    with opened(tmp_path) as journal:
        other = snapshots.load(tmp_path, 3, journal.view)

    assert own == snapshots.Snapshot(seq=3, state=b"{}")
    assert other is None


def test_no_snapshot_is_none(tmp_path: Path) -> None:
    assert snapshots.load(tmp_path, 100) is None


def test_the_newest_two_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    for seq in (5, 900, 70, 8000):
        snapshots.save(tmp_path, seq, b"{}")

    assert names(tmp_path) == ["snapshot-0000000000000900.json", "snapshot-0000000000008000.json"]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())


def test_a_snapshot_ahead_of_the_journal_is_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshots.save(tmp_path, 5, b"{}")
    snapshots.save(tmp_path, 8, b"{}")

    loaded = snapshots.load(tmp_path, 7)

    assert loaded is not None and loaded.seq == 5
    assert names(tmp_path) == ["snapshot-0000000000000005.json"]
    assert "snapshot ahead of the journal deleted" in caplog.text


def test_a_snapshot_of_lost_lines_does_not_come_back_when_the_journal_grows(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(50))
    snapshots.save(tmp_path, 30, b'"of the kept lines"')
    snapshots.save(tmp_path, 50, b'"of the lost lines"')
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:40]))
    with opened(tmp_path) as journal:
        shortened = snapshots.load(tmp_path, journal.last_seq)
        commit(journal, encoded(said(seq, "another line") for seq in range(41, 61)))
        grown = snapshots.load(tmp_path, journal.last_seq)

    assert shortened == grown == snapshots.Snapshot(seq=30, state=b'"of the kept lines"')


def test_snapshots_of_lost_lines_do_not_push_out_good_ones(tmp_path: Path) -> None:
    for seq in (30, 50, 60):
        snapshots.save(tmp_path, seq, b"{}")
    snapshots.load(tmp_path, 40)
    snapshots.save(tmp_path, 45, b'"good"')

    assert snapshots.load(tmp_path, 70) == snapshots.Snapshot(seq=45, state=b'"good"')


def test_a_snapshot_that_cannot_be_deleted_is_still_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    snapshots.save(tmp_path, 8, b"{}")
    monkeypatch.setattr(Path, "unlink", refuse)

    assert snapshots.load(tmp_path, 7) is None


def test_the_journal_is_synced_before_a_snapshot_is_written(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    snapshots.save(tmp_path, 5, b"{}", sync=lambda: seen.append(names(tmp_path)))

    assert seen == [[]]
    assert names(tmp_path) == ["snapshot-0000000000000005.json"]


def test_no_snapshot_is_written_of_a_journal_that_cannot_be_synced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise StorageFailed("cannot sync the journal: Input/output error")

    snapshots.save(tmp_path, 5, b"{}", sync=fail)

    assert names(tmp_path) == []
    assert "snapshot not saved" in caplog.text


def test_any_damaged_byte_makes_the_older_one_serve(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    snapshots.save(tmp_path, 5, b'{"old":1}')
    snapshots.save(tmp_path, 8, b'{"new":1}')
    path = tmp_path / "snapshot-0000000000000008.json"
    whole = path.read_bytes()
    caplog.set_level(logging.WARNING)
    for place in range(len(whole)):
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            loaded = snapshots.load(tmp_path, 10)

            assert loaded is not None and loaded.seq == 5, (place, bit)
    assert "snapshot skipped" in caplog.text


def test_every_cut_makes_the_older_one_serve(tmp_path: Path) -> None:
    snapshots.save(tmp_path, 5, b'{"old":1}')
    snapshots.save(tmp_path, 8, b'{"new":1}')
    path = tmp_path / "snapshot-0000000000000008.json"
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        loaded = snapshots.load(tmp_path, 10)

        assert loaded is not None and loaded.seq == 5


def test_a_full_disk_is_only_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(fd: int, data: memoryview, offset: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    snapshots.save(tmp_path, 5, b"{}")
    monkeypatch.setattr(os, "pwrite", full)
    snapshots.save(tmp_path, 8, b"{}")

    assert names(tmp_path) == ["snapshot-0000000000000005.json"]
    assert "snapshot not saved" in caplog.text


def test_temporary_files_of_a_crash_are_swept(tmp_path: Path) -> None:
    (tmp_path / "snapshot-0000000000000004.json.tmp").write_bytes(b"half")
    snapshots.save(tmp_path, 5, b"{}")

    assert names(tmp_path) == ["snapshot-0000000000000005.json"]


def test_a_missing_folder_is_only_warned_about(tmp_path: Path) -> None:
    snapshots.save(tmp_path / "nowhere", 5, b"{}")

    assert names(tmp_path) == []


def test_a_snapshot_of_another_version_or_name_is_passed_over(tmp_path: Path) -> None:
    snapshots.save(tmp_path, 5, b"{}")
    (path,) = snapshots.snapshot_files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"v":1', b'"v":2'))
    assert snapshots.load(tmp_path, 9) is None
    path.write_bytes(whole)
    other = path.with_name("snapshot-0000000000000004.json")
    path.rename(other)
    assert snapshots.load(tmp_path, 9) is None
    other.rename(path)
    found = snapshots.load(tmp_path, 5)

    assert found is not None and (found.seq, found.state) == (5, b"{}")


def test_every_snapshot_can_be_removed_whole_or_not(tmp_path: Path) -> None:
    snapshots.save(tmp_path, 5, b"{}")
    (tmp_path / "snapshot-0000000000000006.json.tmp").write_bytes(b"half")
    (tmp_path / "journal.jsonl").write_bytes(b"")
    snapshots.delete_all(tmp_path)

    assert names(tmp_path) == ["journal.jsonl"]


def test_snapshots_of_lost_lines_are_gone_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    snapshots.save(tmp_path, 9, b"{}")
    monkeypatch.setattr("csp.journal.snapshots.sync_folder", synced.append)
    snapshots.load(tmp_path, 8)
    snapshots.load(tmp_path, 8)

    assert synced == [tmp_path]
