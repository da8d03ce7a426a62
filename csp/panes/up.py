"""Open a room with its gateway, panes and agents, or join a room that is already open."""

import contextlib
import dataclasses
import itertools
import os
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from csp.config import Settings, process_environment
from csp.errors import CspError, Refused
from csp.http_client import GatewayClient, Object, field, objects
from csp.panes import resume_state
from csp.panes.members import CSP, MemberRequest, PaneMember, choose, renamed, wants_worktree
from csp.panes.pane_borders import HUMAN
from csp.panes.resume_state import SavedConversation, conversations_of, conversations_path
from csp.panes.room_processes import RoomProcesses
from csp.panes.start_gateway import (
    find_running,
    has_lost_supervisor,
    open_to_lan,
    start_gateway,
    supervise_again,
)
from csp.panes.tmux_session import DEFAULT_SIZE, TmuxSession, session_name
from csp.panes.wait_ready import ReadyWait, StartOutcome
from csp.panes.worktrees import check_worktree, ensure_worktree
from csp.protocol.enums import AgentId
from csp.room.agent_names import numbered
from csp.room_registry import Address, RunningRoom
from csp.session_status import SessionStatus, session_of
from csp.sidecar.run_record import SidecarRecord
from csp.terminal.pane_layout import LayoutForm, LayoutName, Size, default_form, share_out

Tell = Callable[[str], None]
_STATUS_LINE: Final = 1
#: The total time for which agents may delay the start of later ones.
_IN_ORDER_S: Final = 10.0
_POLL_S: Final = 0.03
#: The flags for the setting `worktrees`.
WORKTREES: Final = "--worktrees"


def plan(
    settings: Settings, wish: MemberRequest, env: Mapping[str, str], terminal: tuple[int, int] | None
) -> dict[str, Any]:
    """Return the actions that `up` would take, as data; raise the same errors."""
    check_history(settings)
    TmuxSession(settings.room, settings.state_dir)
    lineup = choose(settings, wish, env)
    for member in lineup.members:
        if member.worktree:
            check_worktree(member.cwd, member.agent, env)
    size = _window_size(terminal)
    names = [member.agent for member in lineup.members]
    form = settings_form(settings) or default_form(size)
    windows, at = [], 0
    for index, count in enumerate(share_out(len(names), size, form)):
        windows.append([*([HUMAN] if index == 0 else []), *names[at : at + count]])
        at += count
    return {
        "room": settings.room,
        "session": session_name(settings.room),
        "dir": str(wish.dir),
        "history": str(settings.history_dir / settings.room),
        "size": [size.cols, size.rows],
        "layout": form.name,
        "windows": windows,
        "agents": [
            {
                "id": member.agent,
                "role": member.role,
                "duty": member.duty or None,
                "profile": member.profile or None,
                "command": member.shown_command,
                "cwd": str(member.cwd),
                "worktree": member.worktree,
                "provider": member.provider or None,
            }
            for member in lineup.members
        ],
        "notes": list(lineup.notes),
    }


def settings_form(settings: Settings) -> LayoutForm | None:
    """Return the layout form in the user's settings, if any."""
    name = settings.layout
    return None if name == "auto" else default_form(DEFAULT_SIZE, LayoutName(name))


def _window_size(terminal: tuple[int, int] | None) -> Size:
    return Size(cols=terminal[0], rows=max(1, terminal[1] - _STATUS_LINE)) if terminal else DEFAULT_SIZE


@dataclass
class OpenRoom:
    """One `csp up`."""

    _settings: Settings
    _wish: MemberRequest
    _cwd: Path
    _env: Mapping[str, str]
    _show: Tell
    _tell: Tell
    #: The options of `csp gateway` that define how it can be reached.
    _reach: tuple[str, ...] = ()
    _room: RunningRoom | None = None
    _is_new: bool = False
    _places: list[PaneMember] = dataclasses.field(default_factory=list)
    _resumed: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self.panes = TmuxSession(self._settings.room, self._settings.state_dir)
        self._processes = RoomProcesses(self._settings.state_dir, self._settings.room)

    def start(self, terminal: tuple[int, int] | None) -> None:
        """Start everything that is missing, without waiting for the agents to join."""
        check_history(self._settings)
        room = self._room = find_running(self._settings, self._show)
        if room is not None and not room.joined and has_lost_supervisor(room) and room.dir.is_dir():
            # Nothing would restart it after a crash.
            self._tell(f"the supervisor of room {room.room} is gone; its gateway is started again with one")
            self._room = supervise_again(self._settings, room, self._env, self._show, self._reach or None)
        elif room is not None and self._reach[:1] == ("--lan",):
            self._room = open_to_lan(self._settings, room, self._reach[1], self._env, self._show)
        elif room is not None and self._reach and shlex.split(room.options) != list(self._reach):
            self._tell(f"room {room.room} keeps its addresses (to change them: csp down, then csp up)")
        everybody = self.members()
        self._places = [self.place(member) for member in self.wanted(everybody)]
        self.report_found()
        if self._room is None:
            self._room = start_gateway(
                self._settings, self._wish.dir, self._cwd, self._env, self._show, reach=self._reach
            )
        self._processes.save_lineup(everybody)
        self._is_new = not self.panes.id
        if self._is_new:
            size = self.panes.client_size(self._env) if terminal else None
            form = settings_form(self._settings) or resume_state.load_form(self.room.history)
            self.panes.open(size or _window_size(terminal), self._wish.dir, self._env, form)
        else:
            self.panes.save_socket()
        self.seat(self._places)

    def finish(self) -> list[StartOutcome]:
        """Wait for the started agents; return the outcome of each."""
        outcomes = self.wait(self._places)
        if self.restart_failed(self._places, outcomes):
            outcomes = self.wait(self._places)
        self.save()
        return outcomes

    @property
    def room(self) -> RunningRoom:
        """The running room, once it has been found or started."""
        assert self._room is not None
        return self._room

    def summary(self) -> dict[str, Any]:
        """Return a summary with the room's address."""
        panes = self.panes
        found = {"room": self.room.room, "url": self.room.url}
        return {**found, "session": panes.name, "socket": panes.socket, "attach": panes.attach_line}

    def members(self) -> tuple[PaneMember, ...]:
        """Return the members of the open room and those requested now."""
        before = self._processes.lineup() if self._room or self.panes.id else ()
        if before and (not self._wish.is_special or self._names_only(before)):
            self._report_worktrees(before)
            return before
        lineup = choose(self._settings, self._wish, self._env)
        for note in lineup.notes:
            self._tell(note)
        new = {member.agent for member in lineup.members}
        return (*lineup.members, *(member for member in before if member.agent not in new))

    def _report_worktrees(self, members: Sequence[PaneMember]) -> None:
        """Report that agents of an open room do not move when worktrees are switched on or off."""
        wanted = self._settings.worktrees
        staying = [member.agent for member in members if not member.provider and member.worktree != wanted]
        if staying and self._settings.sources.get("worktrees") == WORKTREES:
            how = f"csp down, then csp up {'--worktrees' if wanted else '--no-worktrees'}"
            self._tell(
                f"the room is open, so {', '.join(staying)} cannot change directory (to move them: {how})"
            )

    def _names_only(self, members: Sequence[PaneMember]) -> bool:
        """Return whether agents were requested by name and all of them are among these members."""
        known = {name for member in members for name in (member.agent, member.name)}
        return self._wish.is_plain and set(self._wish.only) <= known

    def wanted(self, members: tuple[PaneMember, ...]) -> tuple[PaneMember, ...]:
        """Return the members to start: all or, in an open room, those that were requested by name."""
        if not (self._room or self.panes.id) or not self._names_only(members):
            return members
        return tuple(member for member in members if {member.agent, member.name} & set(self._wish.only))

    def place(self, member: PaneMember) -> PaneMember:
        """Return the agent with its working directory."""
        history = self._room.history if self._room else self._settings.history_dir / self._settings.room
        return in_worktree(member, history, self._settings.room, self._env)

    def report_found(self) -> None:
        """Report which parts of the room are already running."""
        room = self._room
        if room is None and self.panes.id:
            self._tell(f"the gateway of room {self._settings.room} is gone; starting it again")
        elif room is not None and not self.panes.id:
            self._tell(f"the gateway of room {room.room} is up, but its panes are gone; recreating them")
        elif room is not None:
            self._tell(f"room {room.room} is already running in {room.dir}; joining it")

    def seat(self, members: Sequence[PaneMember]) -> None:
        """Give each agent without a running pane a new one at its final size, then start it."""
        known, seats = self.save(), self.panes.seats()
        there = {str(item.get("id")) for item in self.agents()}
        # Their sidecars still run, but the room has removed them; a sidecar that just started has not joined.
        removed = {run.agent for run in self._processes.sidecars() if run.room_id} - there
        late = [
            member
            for member in members
            if member.agent not in seats or seats[member.agent].is_dead or member.agent in removed
        ]
        self.free_ids([member.agent for member in late], known)
        places = {
            member.agent: seats[member.agent].pane
            if member.agent in seats
            else self.panes.place(member.agent, member.role)
            for member in late
        }
        human = seats.get(HUMAN)
        if self._is_new or human is None or human.is_dead:
            pane = human.pane if human else self.panes.place_human()
            self.panes.run(pane, [*CSP, "chat", "--room", self._settings.room], self._wish.dir)
        deadline = time.monotonic() + _IN_ORDER_S
        for member in late:
            command = resume_state.resumed(member, member.cwd, known)
            if command != member.command:
                self._resumed.add(member.agent)
            self._run(member, places[member.agent], command)
            if member is not late[-1] and member.agent not in there:
                self._wait_until_joined(member.agent, deadline)

    def _wait_until_joined(self, agent: str, deadline: float) -> None:
        """Wait, within limits, until an agent is in the room, so that the agents join in order."""
        while time.monotonic() < deadline:
            seat = self.panes.seats().get(agent)
            if seat is None or seat.is_dead or any(item.get("id") == agent for item in self.agents()):
                return
            time.sleep(_POLL_S)

    def save(self) -> dict[str, SavedConversation]:
        """Save the agents' conversations in the history folder; return all saved ones."""
        resume_state.save_conversations(self.conversations, conversations_of(self._processes.sidecars()))
        return resume_state.load_conversations(self.conversations)

    @property
    def conversations(self) -> Path:
        """The path of the saved conversations."""
        return conversations_path(self.room.history)

    def agents(self) -> list[Object]:
        """Return the agents registered in the room."""
        return objects(GatewayClient(self.room.url, self.room.token).get("/agents"))

    def free_ids(self, agents: Sequence[str], known: Mapping[str, SavedConversation]) -> None:
        """Leave the room for agents that ended without leaving; otherwise the new ones would be renamed."""
        online = {item.get("id") for item in self.agents() if item.get("online")}
        for agent in online & set(agents) & set(known):
            run = SidecarRecord.load(self._processes.agents_dir / str(agent))
            if run is None or not run.is_running:
                with contextlib.suppress(CspError):
                    GatewayClient(self.room.url, known[str(agent)].token).post("/state", {"state": "offline"})

    def restart_failed(self, members: Sequence[PaneMember], outcomes: Sequence[StartOutcome]) -> bool:
        """Restart the CLIs that failed to resume, and return whether there were any."""
        seats = self.panes.seats()
        lost = {outcome.agent for outcome in outcomes if outcome.problem} & self._resumed
        found = [member for member in members if member.agent in lost and seats[member.agent].is_dead]
        for member in found:
            self._tell(f"{member.agent} could not continue its conversation; it starts a new one")
            resume_state.forget_conversation(self.conversations, member.agent)
            self._run(member, seats[member.agent].pane, member.command)
        return bool(found)

    def _run(self, member: PaneMember, pane: str, command: Sequence[str]) -> None:
        argv = sidecar_argv(member, self._settings.room, command, self._processes.save_prompt(member))
        self.panes.run(pane, argv, member.cwd)

    def wait(self, members: Sequence[PaneMember]) -> list[StartOutcome]:
        """Wait for the agents and show their states in the borders; return the outcome of each."""
        waiting = ReadyWait(self._processes.gateway, self.panes, self._processes.agents_dir)
        outcomes = waiting.run([member.agent for member in members], self._show)
        seats = self.panes.seats()
        session = SessionStatus()
        # The gateway may have just gone away again.
        with contextlib.suppress(CspError):
            session = session_of(self._processes.gateway().get("/mode"))
        for outcome in outcomes:
            if outcome.agent in seats:
                word = session.word_for(outcome.agent, outcome.state)
                self.panes.set_state(seats[outcome.agent].pane, word)
        return outcomes


class AddAgents:
    """One `csp add`."""

    def __init__(self, settings: Settings, address: Address, show: Tell) -> None:
        self._show = show
        self._settings = settings
        self._processes = RoomProcesses(settings.state_dir, address.room)
        self.panes = TmuxSession(address.room, settings.state_dir)
        running = self._processes.running()
        if not self.panes.id or running is None:
            raise Refused(f"room {address.room!r} has no panes", "open them with: csp up")
        #: The room's directory.
        self.dir = running.dir
        self._history = running.history

    def add(
        self, member: PaneMember, env: Mapping[str, str] | None = None, *, may_number: bool = False
    ) -> StartOutcome:
        """Add a pane for an agent; raise if its name is taken, unless it may get a number.

        `env` contains variables to add to the environment in which the room was opened.
        """
        processes = self._processes
        items = objects(processes.gateway().get("/agents"))
        online = {field(item, "id", str) for item in items if item.get("online")}
        member = with_free_id(member, online, set(self.panes.seats()), may_number=may_number)
        here = replace(self._settings, history_dir=self._history.parent, room=self._history.name)
        member = replace(member, worktree=wants_worktree(member, None, here))
        place = in_worktree(member, self._history, processes.name, process_environment()).cwd
        pane = self.panes.place(member.agent, member.role)
        self.panes.run(pane, sidecar_argv(member, processes.name, member.command), place, env or {})
        processes.save_lineup((*processes.lineup(), member))
        waiting = ReadyWait(processes.gateway, self.panes, processes.agents_dir)
        (outcome,) = waiting.run([member.agent], self._show)
        self.panes.set_state(pane, outcome.state)
        return outcome


def with_free_id(
    member: PaneMember, online: Collection[str], seats: Collection[str], *, may_number: bool
) -> PaneMember:
    """Return an agent with the next free id if it may get a number; raise if its own is taken.

    A user who adds an agent that is already there would write to the wrong one of the two.
    """
    wanted = AgentId(member.agent)
    free = next(
        one
        for one in (numbered(wanted, number) for number in itertools.count(1))
        if one not in online and one not in seats
    )
    if free == wanted:
        return member
    if may_number:
        return renamed(member, free)
    if wanted in online:
        raise Refused(f"{wanted} is already in the room", f"choose another name, such as {free}")
    hint = f"start it again: csp restart {wanted}; or close its pane: csp remove {wanted} --end"
    raise Refused(f"{wanted} still has a pane", hint)


def in_worktree(member: PaneMember, history: Path, room: str, env: Mapping[str, str]) -> PaneMember:
    """Return an agent that works in its git worktree, if it uses one; create the worktree if missing."""
    if not member.worktree:
        return member
    return replace(member, cwd=ensure_worktree(member.cwd, history, room, member.agent, env))


def sidecar_argv(member: PaneMember, room: str, command: Sequence[str], prompt_file: str = "") -> list[str]:
    """Return the command line for an agent's pane."""
    words = ["--duty", member.duty] if member.duty else []
    words += ["--prompt-file", prompt_file] if prompt_file else []
    if member.provider:
        return [*command, *words, "--room", room]
    argv = [*CSP, "sidecar", "--room", room, "--name", member.name]
    if member.profile:
        argv += ["--profile", member.profile]
    if member.role != "agent":
        argv += ["--role", member.role]
    return [*argv, *words, "--", *command]


def check_history(settings: Settings) -> None:
    """Raise if the history folder is not writable."""
    for path in (settings.history_dir, settings.history_dir / settings.room):
        place = next(folder for folder in (path, *path.parents) if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            hint = "choose another one with --history"
            raise Refused(f"history folder {str(path)!r} cannot be written", hint)
