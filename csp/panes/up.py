"""Open a room with its gateway, panes and agents, or join an open one."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from csp.config import Settings
from csp.errors import Broken, CspError, Refused
from csp.http_client import GatewayClient, field, objects
from csp.panes.members import CSP, MemberRequest, PaneMember, choose, renamed
from csp.panes.pane_borders import HUMAN
from csp.panes.resume_state import (
    SavedConversation,
    conversations_of,
    conversations_path,
    forget_conversation,
    lineup_path,
    load_conversations,
    load_lineup,
    resumed,
    save_conversations,
    save_lineup,
)
from csp.panes.start_gateway import (
    find_running,
    has_lost_supervisor,
    running_room,
    start_gateway,
    supervise_again,
)
from csp.panes.tmux_session import DEFAULT_SIZE, TmuxSession, session_name
from csp.panes.wait_ready import ReadyWait, StartOutcome
from csp.panes.worktrees import check_worktree, ensure_worktree
from csp.protocol.enums import AgentId
from csp.room.identity import numbered
from csp.room_registry import Address, RunningRoom
from csp.session_status import SessionStatus, session_of
from csp.sidecar.run_record import SidecarRecord, agents_dir
from csp.terminal.pane_layout import Size, share_out

Tell = Callable[[str], None]
_STATUS_LINE: Final = 1


def plan(
    settings: Settings, wish: MemberRequest, env: Mapping[str, str], terminal: tuple[int, int] | None
) -> dict[str, Any]:
    """Return what `up` would do, as data; raise the same errors."""
    _check_history(settings)
    TmuxSession(settings.room, settings.state_dir)
    lineup = choose(settings, wish, env)
    for member in lineup.members:
        if member.worktree:
            check_worktree(member.cwd, member.agent, env)
    size = _window_size(terminal)
    names = [member.agent for member in lineup.members]
    windows, at = [], 0
    for index, count in enumerate(share_out(len(names), size)):
        windows.append([*([HUMAN] if index == 0 else []), *names[at : at + count]])
        at += count
    return {
        "room": settings.room,
        "session": session_name(settings.room),
        "dir": str(wish.dir),
        "history": str(settings.history_dir / settings.room),
        "size": [size.cols, size.rows],
        "windows": windows,
        "agents": [_shown(member) for member in lineup.members],
        "notes": list(lineup.notes),
    }


def _shown(member: PaneMember) -> dict[str, Any]:
    return {
        "id": member.agent,
        "role": member.role,
        "profile": member.profile or None,
        "command": member.shown_command,
        "cwd": str(member.cwd),
        "worktree": member.worktree,
        "provider": member.provider or None,
    }


def _window_size(terminal: tuple[int, int] | None) -> Size:
    return Size(cols=terminal[0], rows=max(1, terminal[1] - _STATUS_LINE)) if terminal else DEFAULT_SIZE


class OpenRoom:
    """One `csp up`."""

    def __init__(
        self,
        settings: Settings,
        wish: MemberRequest,
        cwd: Path,
        env: Mapping[str, str],
        show: Tell,
        tell: Tell,
    ) -> None:
        self._settings = settings
        self._wish = wish
        self._cwd = cwd
        self._env = env
        self._show = show
        self._tell = tell
        self.panes = TmuxSession(settings.room, settings.state_dir)
        self._room: RunningRoom | None = None
        self._is_new = False
        self._resumed: set[str] = set()

    def open(self, terminal: tuple[int, int] | None) -> list[StartOutcome]:
        """Start what is missing; return the outcome of each agent."""
        _check_history(self._settings)
        self._room = find_running(self._settings, self._show)
        self._restore_supervisor()
        everybody = self._members()
        members = self._wanted(everybody)
        places = [self._place(member) for member in members]
        self._report_found()
        if self._room is None:
            self._room = start_gateway(self._settings, self._wish.dir, self._cwd, self._env, self._show)
        save_lineup(lineup_path(self._settings.state_dir, self._settings.room), everybody)
        self._is_new = not self.panes.id
        if self._is_new:
            size = self.panes.client_size(self._env) if terminal else None
            self.panes.open(size or _window_size(terminal), self._wish.dir, self._env)
        self._seat(places)
        outcomes = self._wait(members)
        if self._restart_failed(places, outcomes):
            outcomes = self._wait(members)
        self._save()
        return outcomes

    def _restore_supervisor(self) -> None:
        """Restart a gateway whose supervisor was killed: nobody would restart it after a crash."""
        room = self._room
        if room is not None and has_lost_supervisor(room) and room.dir.is_dir():
            self._tell(f"the supervisor of room {room.room} is gone; its gateway is started again with one")
            self._room = supervise_again(self._settings, room, self._env, self._show)

    def summary(self) -> dict[str, Any]:
        """Return the address of the room."""
        assert self._room is not None
        return {"room": self._room.room, "url": self._room.url, "session": self.panes.name}

    def _members(self) -> tuple[PaneMember, ...]:
        """Return the members: those of the open room, and those that were asked for now."""
        path = lineup_path(self._settings.state_dir, self._settings.room)
        before = load_lineup(path) if self._room or self.panes.id else ()
        if before and (not self._wish.is_special or self._names_only(before)):
            return before
        lineup = choose(self._settings, self._wish, self._env)
        for note in lineup.notes:
            self._tell(note)
        new = {member.agent for member in lineup.members}
        return (*lineup.members, *(member for member in before if member.agent not in new))

    def _names_only(self, members: Sequence[PaneMember]) -> bool:
        """Return whether agents were named and all of them are among these."""
        known = {name for member in members for name in (member.agent, member.name)}
        return self._wish.is_plain and set(self._wish.only) <= known

    def _wanted(self, members: tuple[PaneMember, ...]) -> tuple[PaneMember, ...]:
        """Return the members to start: all, or in an open room those that were named."""
        if not (self._room or self.panes.id) or not self._names_only(members):
            return members
        return tuple(member for member in members if {member.agent, member.name} & set(self._wish.only))

    def _place(self, member: PaneMember) -> PaneMember:
        """Return the agent with its working directory."""
        if not member.worktree:
            return member
        history = self._room.history if self._room else self._settings.history_dir / self._settings.room
        cwd = ensure_worktree(member.cwd, history, self._settings.room, member.agent, self._env)
        return replace(member, cwd=cwd)

    def _report_found(self) -> None:
        room = self._room
        if room is None and self.panes.id:
            self._tell(f"the gateway of room {self._settings.room} is gone; it is started again")
        elif room is not None and not self.panes.id:
            self._tell(f"the gateway of room {room.room} runs, but it has no panes; they are built again")
        elif room is not None:
            self._tell(f"room {room.room} is running in {room.dir}; joining it")

    def _seat(self, members: Sequence[PaneMember]) -> None:
        """Give each agent without a running pane a new one in its final size, then start it."""
        known = self._save()
        seats = self.panes.seats()
        removed = self._removed()
        late = [
            member
            for member in members
            if member.agent not in seats or seats[member.agent].is_dead or member.agent in removed
        ]
        self._free_ids([member.agent for member in late], known)
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
        for member in late:
            command = resumed(member, member.cwd, known)
            if command != member.command:
                self._resumed.add(member.agent)
            self._run(member, places[member.agent], command)

    def _removed(self) -> set[str]:
        """Return the agents that the room has removed while their sidecars run on."""
        room = self._room
        assert room is not None
        found = objects(GatewayClient(room.url, room.token).get("/agents"))
        folder = agents_dir(self._settings.state_dir, room.room)
        runs = [SidecarRecord.load(path) for path in sorted(folder.glob("*/"))]
        # A sidecar that was just started has not joined yet.
        ready = {run.agent for run in runs if run is not None and run.journal}
        return ready - {str(item.get("id")) for item in found}

    def _save(self) -> dict[str, SavedConversation]:
        """Save the conversations of the agents in the history folder; return all of them."""
        path = self._conversations
        save_conversations(path, conversations_of(self._settings.state_dir, self._settings.room))
        return load_conversations(path)

    @property
    def _conversations(self) -> Path:
        assert self._room is not None
        return conversations_path(self._room.history)

    def _free_ids(self, agents: Sequence[str], known: Mapping[str, SavedConversation]) -> None:
        """Leave the room for agents that ended without it; otherwise the new ones would get other names."""
        room = self._room
        assert room is not None
        found = objects(GatewayClient(room.url, room.token).get("/agents"))
        online = {item.get("id") for item in found if item.get("online")}
        folder = agents_dir(self._settings.state_dir, room.room)
        for agent in online & set(agents) & set(known):
            run = SidecarRecord.load(folder / str(agent))
            if run is None or not run.is_running:
                with contextlib.suppress(CspError):
                    GatewayClient(room.url, known[str(agent)].token).post("/state", {"state": "offline"})

    def _restart_failed(self, members: Sequence[PaneMember], outcomes: Sequence[StartOutcome]) -> bool:
        """Restart the CLIs that failed to resume; return whether there were any."""
        seats = self.panes.seats()
        lost = {outcome.agent for outcome in outcomes if outcome.problem} & self._resumed
        found = [member for member in members if member.agent in lost and seats[member.agent].is_dead]
        for member in found:
            self._tell(f"{member.agent} could not go on with its conversation; it starts a new one")
            forget_conversation(self._conversations, member.agent)
            self._run(member, seats[member.agent].pane, member.command)
        return bool(found)

    def _run(self, member: PaneMember, pane: str, command: Sequence[str]) -> None:
        self.panes.run(pane, sidecar_argv(member, self._settings.room, command), member.cwd)

    def _wait(self, members: Sequence[PaneMember]) -> list[StartOutcome]:
        outcomes = _waiting(self._settings, self._settings.room, self.panes).run(
            [member.agent for member in members], self._show
        )
        seats = self.panes.seats()
        session = SessionStatus()
        # The gateway may just have gone away again.
        with contextlib.suppress(CspError):
            session = session_of(_gateway(self._settings, self._settings.room).get("/mode"))
        for outcome in outcomes:
            if outcome.agent in seats:
                word = session.word_for(outcome.agent, outcome.state)
                self.panes.set_state(seats[outcome.agent].pane, word)
        return outcomes


class AddAgents:
    """One `csp add`."""

    def __init__(self, settings: Settings, address: Address, env: Mapping[str, str], show: Tell) -> None:
        self._settings = settings
        self._show = show
        self._room = address.room
        self.panes = TmuxSession(address.room, settings.state_dir)
        running = running_room(settings.state_dir, address.room)
        if not self.panes.id or running is None:
            raise Refused(f"room {address.room!r} has no panes", "open them with: csp up")
        #: The directory of the room.
        self.dir = running.dir

    def add(self, member: PaneMember, env: Mapping[str, str] | None = None) -> StartOutcome:
        """Add a pane for an agent; if its id is taken, it gets the next free one.

        `env` is what it gets beside the environment that the room was opened with.
        """
        member = self._with_free_id(member)
        pane = self.panes.place(member.agent, member.role)
        self.panes.run(pane, sidecar_argv(member, self._room, member.command), member.cwd, env or {})
        path = lineup_path(self._settings.state_dir, self._room)
        save_lineup(path, (*load_lineup(path), member))
        (outcome,) = _waiting(self._settings, self._room, self.panes).run([member.agent], self._show)
        self.panes.set_state(pane, outcome.state)
        return outcome

    def _with_free_id(self, member: PaneMember) -> PaneMember:
        items = objects(_gateway(self._settings, self._room).get("/agents"))
        taken = {field(item, "id", str) for item in items if item.get("online")} | set(self.panes.seats())
        number, agent = 1, AgentId(member.agent)
        while agent in taken:
            number += 1
            agent = numbered(AgentId(member.agent), number)
        return member if number == 1 else renamed(member, agent)


def sidecar_argv(member: PaneMember, room: str, command: Sequence[str]) -> list[str]:
    """Return the command line of an agent's pane."""
    if member.provider:
        return [*command, "--room", room]
    argv = [*CSP, "sidecar", "--room", room, "--name", member.name]
    if member.profile:
        argv += ["--profile", member.profile]
    if member.role != "agent":
        argv += ["--role", member.role]
    return [*argv, "--", *command]


def _waiting(settings: Settings, room: str, panes: TmuxSession) -> ReadyWait:
    return ReadyWait(lambda: _gateway(settings, room), panes, agents_dir(settings.state_dir, room))


def _gateway(settings: Settings, room: str) -> GatewayClient:
    """Return a client of the room's gateway at its current address."""
    found = running_room(settings.state_dir, room)
    if found is None:
        raise Broken(f"the gateway of room {room!r} has ended", "see: csp logs gateway")
    return GatewayClient(found.url, found.token)


def _check_history(settings: Settings) -> None:
    """Raise if the history folder cannot be written."""
    for path in (settings.history_dir, settings.history_dir / settings.room):
        place = next(folder for folder in (path, *path.parents) if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
            hint = "choose another one with --history"
            raise Refused(f"history folder {str(path)!r} cannot be written", hint)
