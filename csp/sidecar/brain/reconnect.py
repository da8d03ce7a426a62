"""Reconnect after the gateway has moved or the room was reset."""

import logging
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from csp.clis.profile import profile_name
from csp.errors import CspError, Unreachable
from csp.fast_start.room_files import read_running
from csp.http_client import GatewayClient, field, page
from csp.sidecar.record_file import capabilities_of, read_record
from csp.sidecar.run_record import SidecarRecord

log = logging.getLogger(__name__)


class RoomConnection(NamedTuple):
    """The running room of a sidecar, with the room's own token."""

    url: str
    token: str


def running_room(run: SidecarRecord) -> RoomConnection | None:
    """Return a sidecar's room if it is running on this machine."""
    state_dir = Path(run.folder).parent.parent
    found = read_running(str(state_dir / f"{run.room}.json")) or {}
    try:
        return RoomConnection(url=found["url"], token=found["token"])
    except KeyError:
        return None


def has_moved(run: SidecarRecord) -> bool:
    """Return whether the room is running at another address, which the next brain will use."""
    room = running_room(run)
    return room is not None and room.url != run.url


def room_id_of(room: RoomConnection) -> str:
    """Return the id of a room, or "" if it is not known; a room that was reset has another."""
    gateway = GatewayClient(room.url, room.token)
    try:
        health = gateway.get("/health")
        if isinstance(health, dict) and health.get("roomId"):
            return field(health, "roomId", str)
        # A gateway of an earlier version; what its history begins with stays the same.
        first = page(gateway, after=0, limit=1)
        return " ".join(f"{field(item, 'ts', float)} {field(item, 'id', str)}" for item in first)
    except CspError as error:
        log.warning("room did not say its id", extra={"why": error.message})
        return ""


def find_room(run: SidecarRecord) -> SidecarRecord:
    """Return the record with the room's current address and id.

    The id distinguishes a new room from one that has removed us.
    """
    room = running_room(run)
    if room is None:
        return run
    found = replace(run, url=room.url, room_id=run.room_id or room_id_of(room))
    if found != run:
        try_to_save(found)
    return found


def try_to_save(run: SidecarRecord, *, is_first: bool = False) -> bool:
    """Write the record and return whether that succeeded; a sidecar also runs without one.

    Only a sidecar's first record may replace that of another one. Otherwise a brain whose relay was killed
    would overwrite the next sidecar's token with one that is no longer valid.
    """
    found = None if is_first else read_record(run.folder)
    if found and found["pid"] != run.pid:
        log.warning("record belongs to another sidecar", extra={"pid": found["pid"]})
        return False
    try:
        run.save(Path(run.folder))
    except OSError as exc:
        log.warning("record could not be written", extra={"reason": str(exc)})
        return False
    return True


def rejoin(run: SidecarRecord) -> bool:
    """Rejoin on behalf of the next brain unless the room has removed us."""
    room = running_room(run)
    if room is None:
        raise Unreachable(f"room {run.room!r} is not running")
    known = [field(agent, "id", str) for agent in GatewayClient(room.url, room.token).get("/agents")]
    if run.agent not in known and run.room_id and run.room_id == room_id_of(room):
        return False
    body = {
        "agentId": run.name,
        "kind": "cli",
        "role": run.role,
        "capabilities": capabilities_of(profile_name(Path(run.profile)), run.duty),
    }
    try:
        answer = GatewayClient(room.url, room.token).post("/register", body)
    except CspError as error:
        log.error("registration refused", extra={"why": error.message})
        raise
    token = field(answer, "token", str)
    agent = field(answer, "agentId", str)
    try_to_save(replace(run, url=room.url, agent=agent, token=token, room_id=""))
    return True
