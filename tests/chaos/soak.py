"""Use a room for a while and see what grows: memory, open files, threads, files on the disk."""

import os
import time
from pathlib import Path
from typing import Final

from csp.http_client import oldest
from tests.chaos.cases import Outcome
from tests.chaos.faults import Plan
from tests.chaos.room import ChaosRoom

SOAK_S: Final = 60.0
_MESSAGES: Final = 50


def play(folder: Path, seed: str, *, soak_s: float = SOAK_S) -> Outcome:
    """Talk in rounds; compare the second quarter of the time with the last."""
    outcome = Outcome()
    room = ChaosRoom(folder)
    try:
        room.begin(Plan(snapshot_every=4096))
        outcome.check(room.comes_up(), "the room does not start")
        token = room.client().post("/register", {"agentId": "ann"})["token"]
        began, sent = time.monotonic(), 0
        seen: list[tuple[float, int, int]] = []
        while time.monotonic() - began < soak_s or len(seen) < 4:
            sent += _round(room, token, sent)
            seen.append((resident_mb(room), _open_files(room), sent))
        before, after = seen[len(seen) // 4], seen[-1]
        thousands = max(1e-3, (after[2] - before[2]) / 1000)
        outcome.add(soak_messages=sent)
        outcome.notes["memory after the soak, MB"] = after[0]
        outcome.notes["memory growth, MB per 1,000 messages"] = (after[0] - before[0]) / thousands
        outcome.notes["open files, growth"] = after[1] - before[1]
        outcome.check(after[1] - before[1] < 20, f"open files grew from {before[1]} to {after[1]}")
        kept = [item["text"] for item in oldest(room.client(), types="human_message")]
        outcome.check(kept == [f"soak {n}" for n in range(sent)], f"lost: {sent - len(kept)} of the soak")
        outcome.check(room.end() == 0, "the room does not end in order")
        outcome.check(not room.traceback(), f"there is a traceback in the log: {room.traceback()}")
    finally:
        room.stop()
    return outcome


def _round(room: ChaosRoom, token: str, sent: int) -> int:
    client, ann = room.client(), room.client(token)
    for number in range(sent, sent + _MESSAGES):
        message = client.post("/message", {"to": "ann", "content": f"soak {number}"})
        ann.post("/delivery", {"id": message["id"], "state": "confirmed"})
    client.post("/board", {"text": f"a note after {sent} messages"})
    client.get("/board/search", q="note")
    client.get("/history", q="soak")
    return _MESSAGES


def resident_mb(room: ChaosRoom) -> float:
    """Return how much memory the gateway holds."""
    pages = int(Path(f"/proc/{room.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _open_files(room: ChaosRoom) -> int:
    return len(os.listdir(f"/proc/{room.pid}/fd"))
