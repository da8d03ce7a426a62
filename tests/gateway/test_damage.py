"""A journal that does not say any more what was written into it."""

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from csp.cli import main
from csp.gateway.gateway import Gateway
from csp.gateway.journal_maintenance import scrub_journal
from tests.gateway.served import Clock, ServedRoom, room_settings
from tests.rooms import LiveRoom, ThreadRoom
from tests.waiting import wait_until_sync


async def _fill(room: ServedRoom) -> None:
    claude = await room.join("claude")
    for number in range(4):
        message = await room.send("claude", f"text *J {number}")
        await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)


def _flip(path: Path, at: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def _forget_snapshots(folder: Path) -> None:
    for path in folder.glob("snapshot-*"):
        path.unlink()


def _doctor(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code and the words of `csp doctor --journal`."""
    capsys.readouterr()
    code = main(["doctor", "--journal", "--history", str(folder.parent), "--room", folder.name])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("place", ["first", "last", "text", "checksum", "newline"])
async def test_a_flipped_bit_is_reported_everywhere(
    room: ServedRoom, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await _fill(room)
    await room.stop()
    path = room.folder / "journal.jsonl"
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    places = {
        "first": 3,
        "last": len(data) - 10,
        "text": data.index(b"*J 2"),
        "checksum": data.index(b'"crc":"') + 9,
        "newline": len(lines[0]) - 1,
    }
    _flip(path, places[place])
    _forget_snapshots(room.folder)
    code, said = await asyncio.to_thread(_doctor, room.folder, capsys)
    await room.start()
    await scrub_journal(room.gateway)

    health = await room.get("/health")
    (notice,) = await room.history("?types=system")
    assert (health["status"], health["journal"]["scrub"]) == ("damaged", "done")
    assert len(health["journal"]["damaged"]) >= 1
    assert notice["target"] == "human" and "csp doctor --journal" in notice["text"]
    assert code == 1
    assert f"line {health['journal']['damaged'][0]}," in said


async def test_a_flipped_bit_in_a_snapshot_is_reported_and_survived(
    room: ServedRoom, capsys: pytest.CaptureFixture[str]
) -> None:
    await _fill(room)
    await room.stop()
    (snapshot,) = room.folder.glob("snapshot-*.json")
    _flip(snapshot, snapshot.stat().st_size // 2)
    code, said = await asyncio.to_thread(_doctor, room.folder, capsys)
    await room.start()
    await scrub_journal(room.gateway)

    assert (await room.get("/health"))["status"] == "damaged"
    assert code == 1 and snapshot.name in said
    assert len(await room.history("?types=human_message")) == 4
    assert (await room.agent("claude"))["online"]


@pytest.mark.parametrize("stride", [61, pytest.param(5, marks=pytest.mark.full)])
async def test_a_room_opens_whichever_bit_is_flipped(
    room: ServedRoom, clock: Clock, tmp_path: Path, stride: int
) -> None:
    await _fill(room)
    source = (room.folder / "journal.jsonl").read_bytes()
    lines = source.count(b"\n")

    for at in range(0, len(source), stride):
        folder = tmp_path / str(at)
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(source)
        (folder / "secret").write_bytes(bytes(32))
        _flip(folder / "journal.jsonl", at, bit=at % 8)
        gateway = Gateway(room_settings(), folder, clock)
        left = len(gateway.writer.journal.view.read_after(0, 1 << 20).lines)
        seq = gateway.writer.room.seq
        await gateway.close()
        shutil.rmtree(folder)

        assert left >= lines - 2, at
        assert lines <= seq <= lines + 1, at


async def test_a_damaged_line_costs_only_itself(room: ServedRoom) -> None:
    claude = await room.join("claude")
    messages = [await room.send("claude", f"text {number}") for number in range(5)]
    await room.stop()
    path = room.folder / "journal.jsonl"
    _flip(path, path.read_bytes().index(b"text 2"))
    _forget_snapshots(room.folder)
    await room.start()
    socket = await room.connect(after=0)
    sent = await room.post("/message", {"to": "claude", "content": "more"})
    await socket.until_seq(sent["seq"])

    assert await room.inbox(claude) == [*messages[:2], *messages[3:], sent["id"]]
    assert socket.seqs == [1, 2, 3, 5, 6, 7]
    assert [item["seq"] for item in await room.history("?after=0")] == [2, 3, 5, 6, 7]


def test_a_running_room_says_that_its_journal_is_damaged(tmp_path: Path) -> None:
    with LiveRoom(tmp_path) as room:
        for number in range(3):
            room.gateway.post("/message", {"to": "all", "content": f"text {number}"})
        room.stop()
        _flip(room.folder / "journal.jsonl", 30)
        room.start()

        def health() -> dict[str, Any]:
            found: dict[str, Any] = room.gateway.get("/health")
            return found

        wait_until_sync(lambda: health()["status"] == "damaged", 60, "the report")
        doctor = subprocess.run(
            [sys.executable, "-m", "csp.cli", "doctor", "--journal", "--json"],
            env=room.env,
            cwd=room.dir,
            capture_output=True,
            text=True,
            check=False,
        )

        assert doctor.returncode == 1
        assert [damage["line_number"] for damage in json.loads(doctor.stdout)["damaged"]] == [1]
        assert "journal damaged" in room.said()


def test_a_sound_journal_is_said_to_be_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ThreadRoom(tmp_path) as room:
        room.gateway.post("/message", {"to": "all", "content": "hello"})
        room.restart()
        wait_until_sync(lambda: room.gateway.get("/health")["journal"]["scrub"] == "done", 60, "the scrub")
        health = room.gateway.get("/health")

        assert (health["status"], health["journal"]["damaged"], health["journal"]["checked"]) == ("ok", [], 1)
        assert _doctor(room.folder, capsys)[0] == 0
