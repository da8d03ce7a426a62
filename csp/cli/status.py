"""Show the state of agents, the room and settings."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from csp.cli.arguments import JSON, switch, takes
from csp.cli.needs import needs_lines
from csp.cli.output import duration, put, put_json, put_lines, talk
from csp.cli.verb_call import VerbCall
from csp.config import ROWS, process_environment, shown
from csp.errors import Forbidden, NotFound, Refused, Unreachable
from csp.fast_start.process_environment import unnamed_runtime_dir
from csp.http_client import Object, field, objects
from csp.human.safe_text import columns, one_line
from csp.human.status_lines import agent_row, models_of, session_spending, spent_lines
from csp.join.link_state import LinkState
from csp.panes.room_processes import RoomProcesses
from csp.room_registry import running_rooms
from csp.session_status import bracketed, session_of

_TEXT: Final = 60
_SUBJECT: Final = 200
_DETAIL: Final = 100
#: The number of waiting messages to show; the rest are counted.
_WAITING: Final = 20
#: Texts on why a message is waiting and how the wait ends, by reason or else by state.
_WHY: Final = {
    "queued": "{agent} has not started on it yet",
    "typed": "it is being typed",
    "offline": "{agent} is offline; queued until it returns",
    "starting": "{agent} is still starting",
    "busy": "{agent} is busy; queued until this turn ends",
    "dialog": "{agent} has a dialog open; answer it in its pane or with csp approve or csp deny",
    "covered": "{agent} has a dialog open; answer it in its pane or with csp approve or csp deny",
    "typing": "somebody is typing in {agent}'s pane",
    "draft": "there is a draft in {agent}'s input box; send or clear it",
    "paused": "{agent} is paused; continue with csp resume {agent}",
    "turn": "it will be delivered with {agent}'s next turn",
    "loop": "8 agent-to-agent messages in a row; release it with csp continue {id}",
    "stuck": "leftover text in {agent}'s input box could not be sent or cleared; clear it manually",
}


@takes(JSON, examples=("csp agents",))
def agents(call: VerbCall) -> int:
    """List the agents with their states."""
    found = objects(call.gateway.get("/agents"))
    return call.show(found, agent_lines(call, found))


@takes(JSON, examples=("csp status",))
def status(call: VerbCall) -> int:
    """Show the room, its sessions, its agents and each waiting message with its reason."""
    joined = joined_from(call)
    try:
        health = call.gateway.get("/health")
    except Unreachable as exc:
        raise link_problem(call, joined) or exc from exc
    found = objects(call.gateway.get("/agents"))
    sessions = objects(field(call.gateway.get("/sessions"), "items", list))
    queue: list[Object] | None = None
    with contextlib.suppress(Forbidden):  # an agent's token may not list waiting messages
        queue = objects(field(call.gateway.get("/queue"), "items", list))
    needs: list[Object] | None = None
    with contextlib.suppress(Forbidden, NotFound):  # an older gateway has no list
        needs = objects(field(call.gateway.get("/attention"), "items", list))
    usage = call.gateway.get("/usage")
    if call.is_json:
        shown = {"health": health, "agents": found, "sessions": sessions, "queue": queue, "usage": usage}
        shown |= {"attention": needs, "directories": directories(call, found), "joined": joined or None}
        put_json({"url": call.gateway.url, **shown})
        return 0
    is_tunnel = joined and "://" not in joined
    put_lines(health_lines(f"{joined} through {call.gateway.url}" if is_tunnel else call.gateway.url, health))
    put_lines(needs_lines(needs or [], time.time()))
    for item in sessions:
        if not item.get("endedAt"):
            rounds = field(item, "maxRounds", int)
            where = f"round {field(item, 'round', int) + 1}" + (f" of {rounds}" if rounds else "")
            topic = one_line(field(item, "topic", str), _TEXT) or "no topic"
            state = ", ".join(filter(None, (field(item, "status", str), where, session_spending(item))))
            put(f"{field(item, 'mode', str)} {field(item, 'id', str)}: {state}, {topic}")
    put_lines(agent_rows(call, found, usage))
    dirs = directories(call, found)
    if len(set(dirs.values())) > 1:
        put_lines(f"{agent} works in {dir}" for agent, dir in dirs.items())
    put_lines(spent_lines(usage))
    put_lines(queue_lines(queue))
    return 0


@takes(
    switch("--all", "print JSON with the address and the token of every running room, for csp join"),
    examples=("csp token",),
)
def token(call: VerbCall) -> int:
    """Print the token that this command uses, or those of all rooms."""
    if not call.args.all:
        put(call.address.token)
        return 0
    if call.settings.agent:
        raise Refused(f"this pane is agent {call.settings.agent!r}", "use another terminal for this")
    # A command over ssh may have no runtime folder, though the rooms were opened with one.
    other = unnamed_runtime_dir(process_environment())
    found = [room for dir in (call.settings.state_dir, Path(other or "/")) for room in running_rooms(dir)]
    rooms = {room.room: room for room in reversed(found) if not room.joined}
    put_json([{"room": name, "url": room.url, "token": room.token} for name, room in rooms.items()])
    return 0


@takes(JSON, examples=("csp config",))
def config(call: VerbCall) -> int:
    """Show all settings with the sources of their values."""
    settings = call.settings
    rows = [[row.env, shown(settings, row), settings.sources[row.name]] for row in ROWS]
    if call.is_json:
        put_json([{"name": name, "value": value, "source": source} for name, value, source in rows])
        return 0
    put_lines(columns(rows))
    if settings.withheld is not None:
        talk(f"csp: ignored until you accept them with csp trust, from {settings.withheld.path}:")
        for line in settings.withheld.lines:
            talk(f"  {line}")
    return 0


def directories(call: VerbCall, found: list[Object]) -> dict[str, str]:
    """Return the directories of those agents that run on this machine."""
    if not call.address.room:
        return {}
    dirs = RoomProcesses(call.settings.state_dir, call.address.room).directories()
    agents = [field(item, "id", str) for item in found]
    return {agent: dirs[agent] for agent in agents if agent in dirs}


def agent_rows(call: VerbCall, found: list[Object], usage: object) -> list[str]:
    """Return a line for each agent; `usage` names their models."""
    models = models_of(usage)
    session = session_of(call.gateway.get("/mode"))
    words = [session.word_for(field(item, "id", str), field(item, "state", str)) for item in found]
    rows = [
        agent_row(item, bracketed(word), _DETAIL, models.get(str(item.get("id")), ""))
        for item, word in zip(found, words, strict=True)
    ]
    return columns(rows) or ["no agents"]


def agent_lines(call: VerbCall, found: list[Object]) -> Iterator[str]:
    """Yield a line for each agent, with the dialog that it has open."""
    for number, row in enumerate(agent_rows(call, found, call.gateway.get("/usage"))):
        yield row
        yield from dialog_lines(found[number]) if found else ()


def dialog_lines(item: Object) -> list[str]:
    """Return an agent's dialog with the commands that answer it."""
    dialog = item.get("dialog")
    if not isinstance(dialog, dict) or item.get("online") is False:
        return []
    agent, tool = field(item, "id", str), str(dialog.get("tool") or "")
    subject = one_line(str(dialog.get("arguments") or ""), _SUBJECT)
    asked = one_line(str(dialog.get("question") or ""), _SUBJECT)
    wanted = f"{tool}: {subject}" if tool and subject else tool or subject
    choices = [choice for choice in dialog.get("choices") or [] if isinstance(choice, dict)]
    offered = [f"{choice.get('number')} {choice.get('label')}" for choice in choices]
    lines = [f"wants {wanted}" if wanted else "", asked, " · ".join(offered)]
    lines.append(f"answer with: csp approve {agent} [--choice N], or csp deny {agent}")
    return [f"    {line}" for line in lines if line]


def joined_from(call: VerbCall) -> str:
    """Return the target of `csp join` if the room is on another machine, or an empty string."""
    room = call.address.room
    return next((one.joined for one in running_rooms(call.settings.state_dir) if one.room == room), "")


def link_problem(call: VerbCall, joined: str) -> Unreachable | None:
    """Return why a joined room cannot be reached, if its link knows it."""
    state = LinkState.load(call.settings.state_dir, call.address.room) if joined else None
    if state is None or not state.problem:
        return None
    since = duration(max(0.0, time.time() - state.since))
    what = f"the link to {joined} has been down for {since}: {state.problem}"
    return Unreachable(what, "it reconnects by itself")


def health_lines(url: str, health: Object) -> list[str]:
    """Return lines on the state of the gateway, its journal and the whiteboards."""
    journal, boards = field(health, "journal", dict), health.get("boards")
    lines = [
        f"room {field(health, 'room', str)} at {url}: {field(health, 'status', str)},"
        f" seq {field(health, 'seq', int)}, up {duration(field(health, 'uptime_s', float))}"
    ]
    if not journal.get("writable", True):
        lines.append("journal: not writable, nothing new is accepted")
    if journal.get("damaged"):
        lines.append(f"journal: {len(journal['damaged'])} damaged lines, see: csp doctor --journal")
    # A gateway started by an older version does not report its boards.
    if boards and field(boards, "notes", int):
        size, most = field(boards, "bytes", int), field(boards, "max_bytes", int)
        share = f", the largest {field(boards, 'largest_bytes', int) / most:.0%} full" if most else ""
        lines.append(f"whiteboards: {boards['count']}, {boards['notes']} notes, {size / 1024:.1f} KiB{share}")
    return lines


def queue_lines(queue: list[Object] | None) -> list[str]:
    """Return the waiting messages with the reasons for their wait."""
    if queue is None:
        return ["waiting messages are shown only with the room's token"]
    lines = []
    for item in queue[:_WAITING]:
        state, reason = field(item, "state", str), str(item.get("reason") or "")
        number, agent = field(item, "seq", int), field(item, "agent", str)
        age = duration(max(0.0, time.time() - field(item, "at", float)))
        why = _WHY.get(reason or state, "").format(agent=agent, id=number)
        way = f"#{number} from {field(item, 'sender', str)} to {agent}"
        word = f"{state} ({reason})" if reason else state
        lines.append(f"waiting: {way}: {word} for {age}, {why}: {one_line(field(item, 'text', str), _TEXT)}")
    more = len(queue) - len(lines)
    return [*lines, f"waiting: {more} more; list all with: csp status --json"] if more else lines
