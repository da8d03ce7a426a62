"""What a start finds wrong, or who has fallen silent, is told without being asked for."""

from pathlib import Path

from csp.gateway.journal_maintenance import report_mending
from tests.gateway.served import Clock, ServedRoom, served


async def _notices(room: ServedRoom) -> list[str]:
    page = await room.get("/history?types=system")
    return [str(item["text"]) for item in page["items"]]


async def test_a_torn_line_is_told_to_the_room(room: ServedRoom) -> None:
    await room.send("all", "whole")
    await room.stop()
    with (room.folder / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"v":1,"type":"human_mess')
    await room.start()
    await report_mending(room.gateway)

    (notice,) = await _notices(room)
    assert "torn" in notice


async def test_a_journal_in_order_is_not_spoken_of(room: ServedRoom) -> None:
    await room.send("all", "whole")
    await room.restart()
    await report_mending(room.gateway)

    assert await _notices(room) == []


async def test_an_id_can_be_taken_over_as_soon_as_its_owner_was_silent_for_long(
    tmp_path: Path, clock: Clock
) -> None:
    async with served(tmp_path / "room", clock, offline_after_s=60.0) as room:
        first = await room.join("claude")
        clock.now += 59.0
        second = await room.join("claude")
        clock.now += 1.5
        third = await room.join("claude")

        assert (first.id, second.id, third.id) == ("claude", "claude-2", "claude")
        assert (await room.call("GET", "/agents", token=first.token)).status == 401
