"""Fill the disk, make it fail or read-only, and give it back."""

import contextlib
import errno
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from csp.errors import CspError
from csp.http_client import oldest
from tests.chaos.cases import Outcome
from tests.chaos.faults import Plan
from tests.chaos.room import HANGS_S, ChaosRoom
from tests.chaos.talk import Talk, all_notes
from tests.gateway.processes import SmallDisk
from tests.namespaces import with_own_mounts

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BROKEN: Final = (errno.EIO, errno.EROFS, errno.EACCES)
_LIVES: Final = 4


def play(folder: Path, seed: str) -> Outcome:
    """Play a case: one in four on a small disk of its own, which really is full."""
    draw = random.Random(seed)
    return _small(folder, draw) if draw.random() < 0.25 else _failing(folder, draw, seed)


# --- errors at any step ----------------------------------------------------------------------------


def _failing(folder: Path, draw: random.Random, seed: str) -> Outcome:
    outcome = Outcome()
    room = ChaosRoom(folder)
    try:
        room.start()
        talk = Talk(room, seed)
        talk.start()
        room.kill()
        for _ in range(_LIVES):
            _fail(room, draw, outcome, talk)
        room.begin()
        outcome.check(room.comes_up(), "the room does not start when the disk is well again")
        talk.finish()
        outcome.wrong += talk.check()
        outcome.add(acknowledged=talk.acknowledged)
        outcome.check(room.end() == 0, "the room does not end in order")
        outcome.check(not room.traceback(), f"there is a traceback in the log: {room.traceback()}")
    finally:
        room.stop()
    return outcome


def _fail(room: ChaosRoom, draw: random.Random, outcome: Outcome, talk: Talk) -> None:
    code = draw.choice((*_FULL, *_BROKEN))
    plan = Plan(
        seed=draw.getrandbits(32),
        fail_from=1 + int(draw.expovariate(1 / 40)),
        fail_steps=1 + int(draw.expovariate(1 / 10)),
        fail_errno=code,
        snapshot_every=draw.choice((5, 25)),
    )
    outcome.add(disk_failures=1)
    room.begin(plan)
    if room.comes_up():
        _until_it_writes(room, talk, outcome, errno.errorcode[code])
    ended = room.ended()
    if ended is None:
        ended = room.end()
    # One that was about to end because of its disk may have let go of its signals before ours came.
    may_end_by = (0, 1, -signal.SIGTERM) if code in _BROKEN else (0, 1)
    outcome.check(ended in may_end_by, f"the gateway ended with {ended} on {errno.errorcode[code]}")


def _until_it_writes(room: ChaosRoom, talk: Talk, outcome: Outcome, name: str) -> None:
    """Wait until the room takes messages again, or has ended because its disk is broken."""
    before = talk.acknowledged
    deadline = time.monotonic() + HANGS_S
    while talk.acknowledged < before + 20 and room.ended() is None:
        if time.monotonic() > deadline:
            health: Any = None
            with contextlib.suppress(CspError):
                health = room.client().get("/health")
            outcome.wrong.append(f"the room takes no messages after {name}; health: {health}")
            return
        time.sleep(0.01)


# --- a disk that is full --------------------------------------------------------------------------


def _small(folder: Path, draw: random.Random) -> Outcome:
    outcome = Outcome()
    with SmallDisk(folder) as room:
        client = room.gateway
        client.post("/register", {"agentId": "ann"})
        promised: dict[str, list[str]] = {"message": [], "note": []}
        for _ in range(draw.randint(0, 20)):
            _say(client, draw, promised)
        for _ in range(2):
            outcome.add(disk_failures=1)
            room.fill(but_bytes=draw.choice((0, 4096, 32_768, 100_000)))
            outcome.wrong += _use_until_full(client, draw, promised)
            if draw.random() < 0.4:
                room.kill9()
                room.wait()
                outcome.wrong += _read(client)
            room.free()
            outcome.check(_is_well(client), "the room stays read-only when there is space again")
            _say(client, draw, promised)
            outcome.wrong += _read(client)
        outcome.wrong += _kept(client, promised)
        outcome.add(acknowledged=sum(map(len, promised.values())))
        outcome.check("Traceback" not in room.said(), "there is a traceback in the log")
        outcome.check(room.end() == 0, "the room does not end in order")
    return outcome


def _say(client: Any, draw: random.Random, promised: dict[str, list[str]]) -> int:
    """Say something; return the status of the answer."""
    kind = draw.choice(list(promised))
    text = f"{kind}-{len(promised[kind])} zebra " + "x" * draw.choice((10, 3000))
    path, body = (
        ("/message", {"to": "ann", "content": text}) if kind == "message" else ("/board", {"text": text})
    )
    try:
        client.post(path, body)
    except CspError as error:
        return error.status
    promised[kind].append(text)
    return 200


def _use_until_full(client: Any, draw: random.Random, promised: dict[str, list[str]]) -> list[str]:
    problems: list[str] = []
    for _ in range(600):
        status = _say(client, draw, promised)
        problems += _read(client) if draw.random() < 0.05 or status != 200 else []
        if status not in (200, 507):
            problems.append(f"a full disk was answered with {status}")
        if status != 200 and draw.random() < 0.3:
            break
    return problems


def _read(client: Any) -> list[str]:
    """Return what cannot be asked; a full disk keeps nobody from reading."""
    problems = []
    for path, query in (
        ("/health", {}),
        ("/board", {}),
        ("/board/search", {"q": "zebra"}),
        ("/history", {"q": "zebra"}),
        ("/inbox/ann", {}),
    ):
        try:
            client.get(path, **query)
        except CspError as error:
            problems.append(f"{path} on a full disk: {error.status} {error.message}")
    return problems


def _is_well(client: Any) -> bool:
    deadline = time.monotonic() + HANGS_S
    while time.monotonic() < deadline:
        if client.get("/health")["status"] == "ok":
            return True
        time.sleep(0.05)
    return False


def _kept(client: Any, promised: dict[str, list[str]]) -> list[str]:
    spoken = [item["text"] for item in oldest(client, types="human_message")]
    notes = [item["text"] for item in all_notes(client)]
    problems = (
        [] if spoken == promised["message"] else [f"{len(spoken)} of {len(promised['message'])} messages"]
    )
    return problems + (
        [] if notes == promised["note"] else [f"{len(notes)} of {len(promised['note'])} notes"]
    )


def is_possible() -> bool:
    """Tell whether a small disk can be mounted here."""
    return subprocess.run([*with_own_mounts(), "true"], capture_output=True, check=False).returncode == 0
