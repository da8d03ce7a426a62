"""Finds the room again: at another address, or as one that no longer knows our token."""

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Final
from zlib import crc32

from csp.errors import CspError, Unreachable
from csp.oneshot import Gateway, field
from csp.rooms import RunningRoom, running_rooms
from csp.sidecar.run import Run

log = logging.getLogger(__name__)

_FIRST_BYTES: Final = 4096


def running_room(run: Run) -> RunningRoom | None:
    """Return the room of a sidecar as it runs now, if it does on this machine."""
    state_dir = Path(run.folder).parent.parent
    return next((room for room in running_rooms(state_dir) if room.room == run.room), None)


def has_moved(run: Run) -> bool:
    """Note a new address of the room in our record; tell whether there is one."""
    room = running_room(run)
    if room is None or room.url == run.url:
        return False
    replace(run, url=room.url).save(Path(run.folder))
    return True


def journal_of(run: Run) -> int:
    """Return which journal the room has now, by its first line; a room that begins anew has another one."""
    room = running_room(run)
    try:
        with (room.history / "journal.jsonl").open("rb") if room else open(os.devnull, "rb") as file:
            return crc32(file.readline(_FIRST_BYTES))
    except OSError:
        return 0


def note_journal(run: Run) -> Run:
    """Remember which room we are in, so that a new one is told from one that has removed us."""
    if run.journal:
        return run
    noted = replace(run, journal=journal_of(run))
    noted.save(Path(run.folder))
    return noted


def rejoin(run: Run) -> bool:
    """Join anew for a brain that comes after this one, unless the room has removed us."""
    room = running_room(run)
    if room is None:
        raise Unreachable(f"room {run.room!r} is not running")
    known = [field(agent, "id", str) for agent in Gateway(room.url, room.token).get("/agents")]
    if run.agent not in known and run.journal and run.journal == journal_of(run):
        return False
    body = {"agentId": run.name, "kind": "cli", "role": run.role, "capabilities": [Path(run.profile).stem]}
    try:
        answer = Gateway(room.url, room.token).post("/register", body)
    except CspError as error:
        log.error("room took us no more", extra={"why": error.message})
        raise
    token = field(answer, "token", str)
    agent = field(answer, "agentId", str)
    replace(run, url=room.url, agent=agent, token=token, journal=0).save(Path(run.folder))
    return True
