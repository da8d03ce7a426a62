"""End a room's panes and gateway and remove their files, or close one agent's pane."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from csp.clis.wiring import unwire
from csp.errors import CspError, Refused
from csp.panes.pane_borders import MARK
from csp.panes.processes import Process, alive, end, family, matching
from csp.panes.resume_state import conversations_of, conversations_path, save_conversations, save_form
from csp.panes.room_processes import RoomProcesses, locked, prompt_path
from csp.panes.tmux_session import TmuxSession, room_key
from csp.panes.worktrees import remove_worktrees
from csp.room_registry import RunningRoom
from csp.sidecar.run_record import SidecarRecord


@dataclass(slots=True)
class EndReport:
    """The parts of a room that were ended, those that would not end, and those left running."""

    ended: list[str] = field(default_factory=list)
    stubborn: list[Process] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def end_room(
    state_dir: Path, room: str, history: Path, show: Callable[[str], None], panes: TmuxSession | None
) -> EndReport:
    """End all processes of a room; `panes` is None on a machine without tmux."""
    report, processes = EndReport(), RoomProcesses(state_dir, room)
    running = processes.running()
    ours, foreign = sidecars_of(processes)
    kept = conversations_path(running.history if running else history)
    save_conversations(kept, conversations_of(processes.sidecars()))
    report.left = [f"{run.agent} runs in its own terminal and is not ended" for run in foreign]
    pids = [run.pid for run in ours if run.is_running and _is_relay(run)]
    # A brain outlives its relay to post its last replies, which needs the gateway.
    brains = {process.pid for run in ours for process in matching(f"brain({run.folder!r})")}
    ending = family([*pids, *brains, *(panes.pids() if panes else [])])
    has_panes = panes is not None and bool(panes.id)
    if panes is not None and has_panes:
        save_form(kept.parent, panes.form)
        panes.kill()
        report.ended.append(f"tmux session {panes.name}")
    if ending:
        show("waiting for the agents to end…")
        for pid in pids if not has_panes else ():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGHUP)
        report.stubborn += end(ending)
    report.ended += [run.agent for run in ours if run.pid in pids]
    # A CLI may have written its conversation just before it ended.
    save_conversations(kept, conversations_of(processes.sidecars()))
    if running is not None:
        end_gateway(report, running, show)
    remove_files(processes, ours, keep_folder=bool(foreign or report.stubborn))
    return report


def sidecars_of(processes: RoomProcesses) -> tuple[list[SidecarRecord], list[SidecarRecord]]:
    """Return the sidecars of our panes, including ended ones, and those that run elsewhere."""
    known, key = processes.sidecars(), room_key(processes.state_dir, processes.name)
    foreign = [run for run in known if run.is_running and run.env.get(MARK) != key]
    return [run for run in known if run not in foreign], foreign


def _is_relay(run: SidecarRecord) -> bool:
    """Return whether a record's process is still the sidecar, because pids are reused."""
    # A relay has its own process title, or the command line of the sidecar.
    signs = (f"csp-sidecar-{run.agent}", f" --name {run.name} ")
    commands = [process.command for process in family([run.pid]) if process.pid == run.pid]
    return any(sign in command for sign in signs for command in commands)


def end_gateway(report: EndReport, room: RunningRoom, show: Callable[[str], None]) -> None:
    """End the gateway and its supervisor."""
    show("waiting for the gateway to end…")
    pids = [pid for pid in (room.supervisor, room.pid) if pid]
    processes = family(pids)
    if not processes:
        return
    # A supervisor forwards the signal; without one, this is the gateway itself.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pids[0], signal.SIGTERM)
    report.stubborn += end(processes)
    report.ended.append(f"link to {room.joined}" if room.joined else f"gateway at {room.url}")


def remove_files(processes: RoomProcesses, runs: list[SidecarRecord], *, keep_folder: bool) -> None:
    """Remove the room's files in the state folder, and the folder itself if it is empty."""
    state_dir, agents = processes.state_dir, processes.agents_dir
    for run in runs:
        folder = Path(run.folder)
        unwire(folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_name(f"{run.agent}.token").unlink(missing_ok=True)
        prompt_path(folder.parent, run.agent).unlink(missing_ok=True)
    if not keep_folder:
        for folder in sorted(agents.glob("*/")):
            unwire(folder)
    # Room names contain no dots, so all of these belong to this room.
    for path in sorted(state_dir.glob(f"{processes.name}.*")):
        if not keep_folder or path not in (agents, state_dir / f"{processes.name}.json"):
            _remove(path)
    forget_terminals(state_dir / "terminals")
    for path in (state_dir / "terminals", state_dir):
        with contextlib.suppress(OSError):
            path.rmdir()


def forget_terminals(folder: Path) -> None:
    """Remove the records of closed terminals that killed relays left behind."""
    for record in folder.glob("tty-*"):
        terminal = record.name.removeprefix("tty").partition(".")[0].replace("-", "/")
        if not os.path.exists(terminal):
            record.unlink(missing_ok=True)


def purge(history: Path, env: Mapping[str, str]) -> list[Path]:
    """Remove a room's history; return the worktrees that were kept because of uncommitted work."""
    if not history.is_dir():
        return []
    kept = remove_worktrees(history, env)
    for entry in history.iterdir():
        if entry.name != "worktrees" or not kept:
            _remove(entry)
    if not kept:
        history.rmdir()
    return kept


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def check_ended(report: EndReport) -> None:
    """Raise if any process would not end."""
    left = alive(set(report.stubborn))
    if left:
        names = ", ".join(f"{process.pid} ({process.command[:60]})" for process in sorted(left))
        raise Refused(f"would not end: {names}", "look at them with ps, end them with kill -9")


class RemovedPane(StrEnum):
    """The state of a removed agent's pane."""

    NONE = "none"
    CLOSED = "closed"
    #: The agent's program is still running in the pane.
    RUNNING = "running"


def close_pane_of(
    state_dir: Path, room: str, agent: str, show: Callable[[str], None], *, ends_program: bool
) -> RemovedPane:
    """Close a removed agent's pane, so that `up` does not start the agent again.

    A pane whose program is still running is closed only if `ends_program` is true.
    """
    processes = RoomProcesses(state_dir, room)
    if not shutil.which("tmux"):
        return RemovedPane.NONE
    with locked(state_dir, room, show):
        try:
            panes = TmuxSession(room, state_dir)
        except CspError:
            return RemovedPane.NONE
        seat = panes.seats().get(agent)
        if seat is None:
            return RemovedPane.NONE
        processes.save_lineup([member for member in processes.lineup() if member.agent != agent])
        if not (seat.is_dead or ends_program):
            return RemovedPane.RUNNING
        panes.close(seat)
    return RemovedPane.CLOSED
