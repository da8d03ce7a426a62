"""Close the pane of a removed agent whose CLI has ended; a running CLI keeps its pane."""

import shutil
from collections.abc import Callable
from pathlib import Path

from csp.errors import CspError
from csp.panes.lock import locked
from csp.panes.room_processes import RoomProcesses


def close_ended(state_dir: Path, room: str, agent: str, show: Callable[[str], None]) -> bool:
    """Close the pane of an ended agent, so that `up` does not restart it; return whether it was closed."""
    processes = RoomProcesses(state_dir, room)
    if not shutil.which("tmux") or agent not in {member.agent for member in processes.lineup()}:
        return False
    from csp.panes.tmux_session import TmuxSession

    with locked(state_dir, room, show):
        try:
            panes = TmuxSession(room, state_dir)
        except CspError:
            return False
        seat = panes.seats().get(agent)
        if seat is None or not seat.is_dead:
            return False
        panes.close(seat)
        processes.save_lineup([member for member in processes.lineup() if member.agent != agent])
    return True
