"""Check this machine, or the journal of a room."""

import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from csp.cli.call import Call
from csp.cli.terminal import put, put_json
from csp.config import Settings, process_environment
from csp.errors import CspError, NotFound
from csp.oneshot import Gateway, field
from csp.rooms import RunningRoom, running_rooms

_OLDEST_PYTHON = (3, 11)


class Finding(NamedTuple):
    """The outcome of one check."""

    check: str
    ok: bool
    detail: str


def doctor(call: Call) -> int:
    """Print what was found; fail if anything is wrong."""
    if call.args.journal:
        return _journal(call)
    findings = check_machine(call.settings)
    if call.is_json:
        put_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            put(f"{'ok' if finding.ok else 'FAIL':4}  {finding.check}: {finding.detail}")
    return 0 if all(finding.ok for finding in findings) else 1


def check_machine(settings: Settings) -> list[Finding]:
    """Return what can be told without changing anything."""
    rooms = running_rooms(settings.state_dir)
    return [
        _check_python(),
        _check_state(settings.state_dir),
        _check_history(settings.history_dir),
        _check_port(settings, rooms),
        *([_check_room(room) for room in rooms] or [Finding("rooms", True, "none is running")]),
        *_check_profiles(process_environment()),
    ]


def _check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", sys.version_info >= _OLDEST_PYTHON, f"{version}, 3.11 or newer is needed")


def _check_state(path: Path) -> Finding:
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:
        return Finding("state folder", True, f"{path} will be made by the first gateway")
    except OSError as exc:
        return Finding("state folder", False, f"{path}: {(exc.strerror or '').lower()}")
    if mode & 0o077:
        return Finding("state folder", False, f"{path} is open to others (mode {mode:o}): chmod 700 it")
    return Finding("state folder", True, str(path))


def _check_history(path: Path) -> Finding:
    place = next(folder for folder in (path, *path.parents) if folder.exists())
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return Finding("history", True, str(path))
    return Finding("history", False, f"{path}: {place} cannot be written")


def _check_port(settings: Settings, rooms: list[RunningRoom]) -> Finding:
    where = f"{settings.host}:{settings.port}"
    reason = _bind_error(settings.host, settings.port)
    if not reason:
        return Finding("port", True, f"{where} is free")
    mine = [room.room for room in rooms if room.url.endswith(f":{settings.port}")]
    if mine:
        return Finding("port", True, f"{where} is used by room {mine[0]}")
    if settings.is_set("port"):
        return Finding("port", False, f"{where}: {reason}")
    return Finding("port", True, f"{where}: {reason}; a gateway takes the next free one")


def _bind_error(host: str, port: int) -> str:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as exc:
        return (exc.strerror or str(exc)).lower()
    return ""


def _check_room(room: RunningRoom) -> Finding:
    name = f"room {room.room}"
    try:
        health = Gateway(room.url, room.token).get("/health")
        return Finding(name, True, f"{field(health, 'status', str)} at {room.url}")
    except CspError as exc:
        return Finding(name, False, exc.message)


def _check_profiles(env: Mapping[str, str]) -> list[Finding]:
    """Compare each agent CLI that is installed with the versions its profile was tested with."""
    from csp.sidecar.profile import checked, load_profile, profile_names
    from csp.sidecar.versions import ask_version, untested

    findings = []
    for profile in (checked(load_profile(name)) for name in profile_names()):
        path = shutil.which(profile.commands[0], path=env.get("PATH")) if profile.versions else None
        if path is None:
            continue
        version = ask_version(profile, [path], env)
        problem = untested(profile, version)
        said = problem or (f"{version}, tested" if version else f"{path} does not say its version")
        # An unknown version is no fault of the machine: it works, with a warning.
        findings.append(Finding(f"profile {profile.name}", bool(version), said))
    return findings


# --- the journal ---------------------------------------------------------------------------------


def _journal(call: Call) -> int:
    from msgspec.structs import asdict

    from csp.journal.scrub import scrub

    path = _journal_path(call)
    report = scrub(path)
    if call.is_json:
        damaged = [asdict(damage) for damage in report.damaged]
        put_json(
            {"journal": str(path), "checked": report.checked, "problems": report.problems, "damaged": damaged}
        )
        return 1 if report.problems else 0
    put(f"{path}: {report.checked} lines checked, {report.problems or 'no'} problems")
    for damage in report.damaged:
        put(f"line {damage.line_number}, after #{damage.after_seq}: {damage.problem}")
    return 1 if report.problems else 0


def _journal_path(call: Call) -> Path:
    """Return the journal that is meant, whether its room is running or not."""
    settings = call.settings
    name = settings.room if settings.is_set("history_dir") else _room_name(call)
    folder = settings.history_dir / name
    if not settings.is_set("history_dir"):
        rooms = {room.room: room.history for room in running_rooms(settings.state_dir)}
        folder = rooms.get(name, folder)
    path = folder / "journal.jsonl"
    if not path.is_file():
        raise NotFound(f"no journal at {str(path)!r}", "name its room with --room, its folder with --history")
    return path


def _room_name(call: Call) -> str:
    if call.settings.is_set("room"):
        return call.settings.room
    try:
        return call.address.room or call.settings.room
    except CspError:
        return call.settings.room
