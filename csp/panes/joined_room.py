"""Take part in a room on another machine with agents of this one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from csp.config import Settings
from csp.errors import Refused
from csp.fast_start.process_environment import xdg
from csp.http_client import field
from csp.join.target import suffixed
from csp.panes.members import CSP, PaneMember, renamed
from csp.panes.resume_state import load_conversations
from csp.panes.start_gateway import running_room, start_server
from csp.panes.up import OpenRoom
from csp.protocol.enums import AgentId
from csp.room.agent_names import numbered
from csp.room_registry import RunningRoom, make_private_dir


class JoinedRoom(OpenRoom):
    """Panes with agents of this machine in a room whose link is up; `machine` is this one's name."""

    machine: str = ""

    def members(self) -> tuple[PaneMember, ...]:
        """Return the members, under names that no agent of another machine has."""
        ours = {run.agent for run in self._processes.sidecars()} | set(load_conversations(self.conversations))
        ours |= {member.agent for member in self._processes.lineup()}
        taken = {field(agent, "id", str) for agent in self.agents()} - ours
        members = list(super().members())
        for number, member in enumerate(members):
            if member.agent in taken:
                agent = free_name(member.agent, self.machine, taken)
                self._tell(f"{member.agent} is an agent of another machine, so the one here is {agent}")
                members[number] = renamed(member, agent)
        return tuple(members)

    def report_found(self) -> None:
        """Report where the room is."""
        if not self.panes.id:
            self._tell(f"room {self.room.room} is on another machine: {self.room.joined}")
        else:
            super().report_found()


def free_name(agent: str, machine: str, taken: set[str]) -> str:
    """Return the name of an agent whose own is taken: claude-laptop, or else claude-laptop-2."""
    number, wanted = 1, AgentId(suffixed(agent, machine))
    while numbered(wanted, number) in taken:
        number += 1
    return numbered(wanted, number)


def joined_folder(env: Mapping[str, str]) -> Path:
    """Return the folder for what this machine keeps about joined rooms, such as agents' conversations."""
    return Path(xdg(env, "XDG_DATA_HOME", ".local/share")) / "csp" / "joined"


def find_link(settings: Settings, target: str) -> RunningRoom | None:
    """Return the running link to a target; raise if the name belongs to another room."""
    room = running_room(settings.state_dir, settings.room)
    if room is not None and room.joined != target:
        what = f"is joined from {room.joined}" if room.joined else "is a room of this machine"
        raise Refused(f"{settings.room!r} {what}", "choose another name with --as NAME")
    return room


def start_link(
    settings: Settings, words: Sequence[str], cwd: Path, env: Mapping[str, str], show: Callable[[str], None]
) -> RunningRoom:
    """Start the link of a room in the background; `words` are the arguments of `csp join`."""
    make_private_dir(settings.state_dir)
    return start_server(settings, [*CSP, "join", *words, "--link-only"], cwd, env, show, "link")


def settings_of(settings: Settings, name: str, env: Mapping[str, str]) -> Settings:
    """Return the settings of a joined room."""
    folder = joined_folder(env)
    (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    sources = {**settings.sources, "room": "csp join", "history_dir": "csp join"}
    return replace(settings, room=name, history_dir=folder, sources=sources)
