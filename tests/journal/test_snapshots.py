import errno
import logging
import os
from pathlib import Path

import pytest

from csp.journal import snapshots


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_snapshot_is_loaded(tmp_path: Path) -> None:
    snapshots.save(tmp_path, 9, b'{"a":1}')
    snapshots.save(tmp_path, 10, b'{"a":2}')

    assert snapshots.load(tmp_path, 100) == snapshots.Snapshot(seq=10, state=b'{"a":2}')


def test_no_snapshot_is_none(tmp_path: Path) -> None:
    assert snapshots.load(tmp_path, 100) is None


def test_the_newest_two_are_kept_for_their_owner_alone(tmp_path: Path) -> None:
    for seq in (5, 900, 70, 8000):
        snapshots.save(tmp_path, seq, b"{}")

    assert names(tmp_path) == ["snapshot-0000000000000900.json", "snapshot-0000000000008000.json"]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())


def test_a_snapshot_ahead_of_the_journal_is_passed_over(tmp_path: Path) -> None:
    snapshots.save(tmp_path, 5, b"{}")
    snapshots.save(tmp_path, 8, b"{}")

    loaded = snapshots.load(tmp_path, 7)

    assert loaded is not None and loaded.seq == 5


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
    assert "snapshot passed over" in caplog.text


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
