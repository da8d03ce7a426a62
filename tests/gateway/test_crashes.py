"""What a crash, a cut or a failing disk leaves behind."""

import asyncio
import json
import shutil
from pathlib import Path
from threading import Thread

import pytest

from csp.errors import CspError
from csp.gateway.gateway import Gateway
from csp.protocol.enums import HUMAN
from csp.protocol.events import is_intact
from csp.room.commands import Send
from tests.gateway.processes import Process
from tests.gateway.served import Clock, room_settings, served
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

# --- kill -9 -------------------------------------------------------------------------------------


def test_everything_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    with LiveRoom(tmp_path) as room:
        room.gateway.post("/register", {"agentId": "claude"})
        acknowledged: list[str] = []
        threads = [Thread(target=_post_until_it_dies, args=(room, n, acknowledged)) for n in range(4)]
        for thread in threads:
            thread.start()
        wait_until_sync(lambda: len(acknowledged) > 20, what="some messages")

        room.kill9()
        for thread in threads:
            thread.join(20)
        room.start()

        items = room.gateway.get("/history", after=0, limit=1000)["items"]
        waiting = room.gateway.get("/inbox/claude")["items"]
        kept = [item["id"] for item in items]
        assert set(acknowledged) <= set(kept)
        assert len(kept) == len(set(kept))
        assert kept == [item["id"] for item in waiting][: len(kept)]
        assert room.gateway.get("/health")["seq"] == len(kept) + 1


def _post_until_it_dies(room: LiveRoom, number: int, acknowledged: list[str]) -> None:
    for count in range(200):
        body = {"to": "claude", "content": "hello", "id": f"w{number}:{count}"}
        try:
            acknowledged.append(room.gateway.post("/message", body)["id"])
        except CspError:
            return


# --- a journal cut off ---------------------------------------------------------------------------


async def _write_journal(folder: Path) -> bytes:
    """Return a journal as a crash would leave it: without the snapshot of an orderly end."""
    async with served(folder) as room:
        claude = await room.join("claude")
        for text in ("one", "zwei: äöü", "three", "four"):
            message = await room.send("claude", text)
            await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)
        return (folder / "journal.jsonl").read_bytes()


@pytest.mark.parametrize("stride", [23, pytest.param(1, marks=pytest.mark.full)])
async def test_a_journal_cut_anywhere_in_its_last_lines_opens(
    tmp_path: Path, clock: Clock, stride: int
) -> None:
    journal = await _write_journal(tmp_path / "source")
    lines = journal.splitlines(keepends=True)
    start = len(journal) - sum(map(len, lines[-3:]))
    lost: set[int] = set()

    # The ends of lines and the places right beside them are where it matters.
    edges = [start + sum(map(len, lines[-3:number])) + near for number in (-2, -1) for near in (-1, 0, 1)]
    for end in sorted({*range(start, len(journal) + 1, stride), *edges, len(journal) - 1, len(journal)}):
        folder = tmp_path / str(end)
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(journal[:end])
        (folder / "secret").write_bytes(bytes(32))
        pieces = journal[:end].split(b"\n")
        whole = len(pieces) - 1 + is_intact(pieces[-1])
        gateway = Gateway(room_settings(), folder, clock)
        seqs = [gateway.writer.safe_seq]
        if end % 5 == 0:
            seqs += [event.seq for event in await gateway.submit(Send(sender=HUMAN, to="all", text="more"))]
        await gateway.close()
        shutil.rmtree(folder)

        assert seqs == [whole, whole + 1][: len(seqs)], end
        lost.add(bool(pieces[-1]) - is_intact(pieces[-1]))
    assert lost == {0, 1}


async def test_a_cut_journal_beside_a_newer_snapshot_opens(tmp_path: Path) -> None:
    async with served(tmp_path / "room") as room:
        claude = await room.join("claude")
        messages = [await room.send("claude", f"text {number}") for number in range(3)]
        await room.stop()
        path = room.folder / "journal.jsonl"
        path.write_bytes(path.read_bytes()[:-20])
        await room.start()

        assert await room.inbox(claude) == messages[:2]
        assert [item["text"] for item in await room.history()] == ["text 0", "text 1"]
        assert (await room.post("/message", {"to": "claude", "content": "again"}))["seq"] == 4


# --- a disk that fails ---------------------------------------------------------------------------


def test_a_disk_that_cannot_sync_stops_the_gateway(tmp_path: Path) -> None:
    room = Process(tmp_path)
    trigger = tmp_path / "fail"
    room.program = ("-m", "tests.gateway.failing_disk", str(trigger))
    with room:
        sent = [room.gateway.post("/message", {"to": "all", "content": f"text {n}"})["id"] for n in range(5)]
        trigger.touch()

        with pytest.raises(CspError) as caught:
            room.gateway.post("/message", {"to": "all", "content": "lost"})
        code = room.wait_for_end()
        kept = [event.id for event in room.journal()]

    assert caught.value.status >= 500
    assert code == 1
    assert kept[:5] == sent and len(kept) in (5, 6)
    assert room.lines() == [
        "csp: cannot sync the journal: Input/output error (check the disk and the folder's permissions)"
    ]
    assert "Traceback" not in room.said()
    assert not (room.state_dir / "default.json").exists()


def test_a_supervisor_does_not_insist_on_a_disk_that_fails(tmp_path: Path) -> None:
    room = Process(tmp_path, "--supervise")
    trigger = tmp_path / "fail"
    room.program = ("-m", "tests.gateway.failing_disk", str(trigger))
    with room:
        trigger.touch()
        with pytest.raises(CspError):
            room.gateway.post("/message", {"to": "all", "content": "lost"})
        code = room.wait_for_end()

    assert code == 1
    assert "started again" not in room.said()
    assert "Input/output error" in room.said()


async def test_requests_under_way_hear_of_a_failing_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path / "room") as room:
        monkeypatch.setattr("csp.journal.jsonl_journal.sync_data", _fail)
        calls = [room.call("POST", "/message", {"to": "all", "content": "lost"}) for _ in range(5)]
        answers = await asyncio.gather(*calls)

        assert {answer.status for answer in answers} <= {500, 507}
        assert all(json.loads(answer.raw)["error"] for answer in answers)
        assert room.gateway.writer.broken.exception() is not None
        assert await room.history() == []


def _fail(fd: int) -> None:
    raise OSError(5, "Input/output error")
