"""List this user's rooms, running or not."""

from pathlib import Path
from typing import Any

from csp.cli.arguments import JSON, takes
from csp.cli.output import put, put_json
from csp.cli.up import panes_of
from csp.cli.verb_call import VerbCall
from csp.config import Settings, earlier_rooms, process_environment
from csp.errors import CspError
from csp.http_client import GatewayClient, objects
from csp.human.safe_text import columns
from csp.panes.room_processes import RoomProcesses
from csp.project import Claim, claims_folder, read_claims
from csp.room_registry import RunningRoom, running_rooms


@takes(JSON, examples=("csp rooms",))
def rooms(call: VerbCall) -> int:
    """List all rooms with their directories, agents and states, and the commands that open them."""
    env = process_environment()
    claims = {claim.room: claim for claim in read_claims(claims_folder(env))}
    running = {room.room: room for room in running_rooms(call.settings.state_dir)}
    rows = [_row(call.settings, name, claims.get(name), running.get(name)) for name in {**running, **claims}]
    # A room that never ran cannot be opened.
    rows = [row for row in rows if row["state"] != "stopped" or Path(row["history"]).is_dir()]
    # Of a room from an earlier version, only the history is known.
    unknown = dict.fromkeys(("url", "lan", "session", "socket", "joined"))
    for name, history in earlier_rooms(env):
        if name not in running:
            row = {"room": name, "dir": "", "state": "stopped", "agents": [], "history": str(history)}
            rows.append({**row, **unknown, "open": f"csp up --room {name}"})
    rows.sort(key=lambda row: (row["state"] == "stopped", row["room"]))
    if call.is_json:
        put_json(rows)
        return 0
    if not rows:
        put("no rooms yet; open one in your project with: csp up")
    for line in columns([_cells(row) for row in rows]):
        put(line)
    return 0


def _row(settings: Settings, name: str, claim: Claim | None, room: RunningRoom | None) -> dict[str, Any]:
    panes = panes_of(settings.state_dir, name)
    has_panes = panes is not None and bool(panes.id)
    if room:
        state = "running" if has_panes else "no panes"
    else:
        state = "no gateway" if has_panes else "stopped"
    opening = f"csp up --room {name}" + ("" if room or not claim or claim.home else " --dir DIR")
    history = str(room.history) if room else str(Path(claim.history) / name) if claim else ""
    return {
        "room": name,
        "dir": str(room.dir) if room else claim.dir if claim else "",
        "state": state,
        "agents": _agents(settings, room) if room else [],
        "history": history,
        "url": room.url if room else None,
        "lan": room.lan or None if room else None,
        "session": panes.name if panes and has_panes else None,
        "socket": panes.socket if panes and has_panes else None,
        "joined": room.joined or None if room else None,
        "open": f"csp join {room.joined}" if room and room.joined else opening,
    }


def _agents(settings: Settings, room: RunningRoom) -> list[dict[str, Any]]:
    """Return the agents with their states and directories; none if the gateway does not respond."""
    try:
        found = objects(GatewayClient(room.url, room.token).get("/agents"))
    except CspError:
        return []
    dirs = RoomProcesses(settings.state_dir, room.room).directories()
    return [
        {"id": item.get("id"), "state": item.get("state"), "dir": dirs.get(str(item.get("id")))}
        for item in found
    ]


def _cells(row: dict[str, Any]) -> list[str]:
    worktrees = f"{row['history']}/worktrees/"
    agents = ", ".join(
        f"{agent['id']} {agent['state']}{' in a worktree' * str(agent['dir']).startswith(worktrees)}"
        for agent in row["agents"]
    )
    place = row["dir"] or f"history in {row['history']}"
    state = f"{row['state']}, on the network" if row["lan"] else row["state"]
    state = f"{row['state']}, joined" if row["joined"] else state
    return [row["room"], state, place, agents or "-", row["open"]]
