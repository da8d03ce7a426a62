"""End a room: its panes, its gateway and their files, and nothing else."""

import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from csp.clis.wiring import unwire
from csp.errors import Refused
from csp.panes.pane_borders import MARK
from csp.panes.processes import Process, alive, end, family, matching
from csp.panes.resume_state import conversations_of, conversations_path, save_conversations
from csp.panes.start_gateway import running_room
from csp.panes.tmux_session import TmuxSession, room_key
from csp.panes.worktrees import remove_worktrees
from csp.room_registry import RunningRoom
from csp.sidecar.run_record import SidecarRecord, agents_dir


@dataclass(slots=True)
class EndReport:
    """What was ended, what would not end, and what was left running."""

    ended: list[str] = field(default_factory=list)
    stubborn: list[Process] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def end_room(
    state_dir: Path, room: str, history: Path, show: Callable[[str], None], panes: TmuxSession | None
) -> EndReport:
    """End everything of a room; `panes` is None on a machine without tmux."""
    report = EndReport()
    running = running_room(state_dir, room)
    ours, foreign = _runs(state_dir, room)
    kept = conversations_path(running.history if running else history)
    save_conversations(kept, conversations_of(state_dir, room))
    report.left = [f"{run.agent} runs in a terminal of its own and stays" for run in foreign]
    _end_panes(report, panes, ours, show)
    # A CLI may have written its conversation only just before its end.
    save_conversations(kept, conversations_of(state_dir, room))
    if running is not None:
        _end_gateway(report, running, show)
    _remove_files(state_dir, room, ours, keep_folder=bool(foreign or report.stubborn))
    return report


def _runs(state_dir: Path, room: str) -> tuple[list[SidecarRecord], list[SidecarRecord]]:
    """Return the sidecars of our panes, ended ones included, and those that run elsewhere."""
    runs = [SidecarRecord.load(folder) for folder in sorted(agents_dir(state_dir, room).glob("*/"))]
    key = room_key(state_dir, room)
    known = [run for run in runs if run is not None]
    foreign = [run for run in known if run.is_running and run.env.get(MARK) != key]
    return [run for run in known if run not in foreign], foreign


def _end_panes(
    report: EndReport, panes: TmuxSession | None, runs: list[SidecarRecord], show: Callable[[str], None]
) -> None:
    pids = [run.pid for run in runs if run.is_running and _is_relay(run)]
    there = panes is not None and bool(panes.id)
    # A brain outlives its relay to post its last replies, which needs the gateway.
    brains = {process.pid for run in runs for process in matching(f"brain({run.folder!r})")}
    processes = family([*pids, *brains, *(panes.pids() if panes else [])])
    if panes is not None and there:
        panes.kill()
        report.ended.append(f"tmux session {panes.name}")
    if processes:
        show("waiting for the agents to end…")
        for pid in pids if not there else ():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGHUP)
        report.stubborn += end(processes)
    report.ended += [run.agent for run in runs if run.pid in pids]


def _is_relay(run: SidecarRecord) -> bool:
    """Return whether the process of a record is still the sidecar; pids are reused."""
    # A relay has its own process title, or the command line of the sidecar.
    signs = (f"csp-sidecar-{run.agent}", f" --name {run.name} ")
    return any(
        sign in process.command for sign in signs for process in family([run.pid]) if process.pid == run.pid
    )


def _end_gateway(report: EndReport, room: RunningRoom, show: Callable[[str], None]) -> None:
    show("waiting for the gateway to end…")
    pids = [pid for pid in (room.supervisor, room.pid) if pid]
    processes = family(pids)
    if not processes:
        return
    # A supervisor forwards the signal; without one this is the gateway itself.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pids[0], signal.SIGTERM)
    report.stubborn += end(processes)
    report.ended.append(f"gateway at {room.url}")


def _remove_files(state_dir: Path, room: str, runs: list[SidecarRecord], *, keep_folder: bool) -> None:
    """Remove the room's files in the state folder, and the folder itself if it is empty."""
    for run in runs:
        folder = Path(run.folder)
        unwire(folder)
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_name(f"{run.agent}.token").unlink(missing_ok=True)
    if not keep_folder:
        for folder in sorted(agents_dir(state_dir, room).glob("*/")):
            unwire(folder)
    # Room names contain no dots, so all of these belong to this room.
    for path in sorted(state_dir.glob(f"{room}.*")):
        if not keep_folder or path not in (agents_dir(state_dir, room), state_dir / f"{room}.json"):
            _remove(path)
    _forget_terminals(state_dir / "terminals")
    for path in (state_dir / "terminals", state_dir):
        with contextlib.suppress(OSError):
            path.rmdir()


def _forget_terminals(folder: Path) -> None:
    """Remove the records that killed relays left for closed terminals."""
    for record in folder.glob("tty-*"):
        terminal = record.name.removeprefix("tty").partition(".")[0].replace("-", "/")
        if not os.path.exists(terminal):
            record.unlink(missing_ok=True)


def purge(history: Path, env: Mapping[str, str]) -> list[Path]:
    """Remove the history of a room; return the worktrees kept for their uncommitted work."""
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
    """Raise if something would not end."""
    left = alive(set(report.stubborn))
    if left:
        names = ", ".join(f"{process.pid} ({process.command[:60]})" for process in sorted(left))
        raise Refused(f"would not end: {names}", "look at them with ps, end them with kill -9")
