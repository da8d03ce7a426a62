"""Finds the room again: at another address, or as one that no longer knows our token."""

import logging
from dataclasses import replace
from pathlib import Path

from csp.errors import CspError, Unreachable
from csp.oneshot import Gateway, field
from csp.rooms import RunningRoom, running_rooms
from csp.sidecar.run import Run

log = logging.getLogger(__name__)


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


def rejoin(run: Run) -> None:
    """Join anew under our name, for a brain that comes after this one."""
    room = running_room(run)
    if room is None:
        raise Unreachable(f"room {run.room!r} is not running")
    body = {"agentId": run.name, "kind": "cli", "role": run.role}
    try:
        answer = Gateway(room.url, room.token).post("/register", body)
    except CspError as error:
        log.error("room took us no more", extra={"why": error.message})
        raise
    token = field(answer, "token", str)
    replace(run, url=room.url, agent=field(answer, "agentId", str), token=token).save(Path(run.folder))
