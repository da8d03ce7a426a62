"""The search index of a room at work."""

import time

import pytest

from csp.gateway import journal_maintenance
from tests.gateway.served import ServedRoom
from tests.waiting import wait_until


async def _fill(room: ServedRoom) -> None:
    for number in range(40):
        await room.send("all", f"message {number}")


async def test_a_quiet_room_indexes_everything(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_maintenance, "QUIET_S", 0.01)
    await _fill(room)
    room.gateway.spawn(journal_maintenance.index_when_quiet(room.gateway))

    await wait_until(lambda: room.gateway.index.lag_bytes == 0)


async def test_a_room_that_is_never_quiet_indexes_what_lags(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_maintenance, "QUIET_S", 0.01)
    monkeypatch.setattr(journal_maintenance, "MOST_LAG_BYTES", 2000)
    monkeypatch.setattr(journal_maintenance, "BUSY_LINES", 3)
    await _fill(room)
    room.gateway.last_commit = time.monotonic() + 3600
    lag_bytes = room.gateway.index.lag_bytes
    room.gateway.spawn(journal_maintenance.index_when_quiet(room.gateway))

    await wait_until(lambda: room.gateway.index.lag_bytes <= 2000)
    assert lag_bytes > 4000


async def test_indexing_takes_a_small_share_of_a_busy_rooms_time(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    work_s = 0.02
    started: list[float] = []

    def catch_up(max_lines: int) -> int:
        started.append(time.monotonic())
        time.sleep(work_s)
        return 1

    monkeypatch.setattr(journal_maintenance, "QUIET_S", 0.01)
    monkeypatch.setattr(journal_maintenance, "MOST_LAG_BYTES", -1)
    monkeypatch.setattr(room.gateway.index, "catch_up", catch_up)
    room.gateway.last_commit = time.monotonic() + 3600
    room.gateway.spawn(journal_maintenance.index_when_quiet(room.gateway))
    await wait_until(lambda: len(started) >= 3)

    assert started[2] - started[0] > 2 * work_s / journal_maintenance.BUSY_SHARE * 0.95
