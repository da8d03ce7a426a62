"""Close the pane of a removed agent whose CLI has ended; a running CLI keeps its pane."""

import shutil
from collections.abc import Callable
from pathlib import Path

from csp.errors import CspError
from csp.panes.lock import locked
from csp.panes.resume_state import lineup_path, load_lineup, save_lineup


def close_ended(state_dir: Path, room: str, agent: str, show: Callable[[str], None]) -> bool:
    """Close the pane of an ended agent, so that `up` does not restart it; return whether it was closed."""
    path = lineup_path(state_dir, room)
    if not shutil.which("tmux") or agent not in {member.agent for member in load_lineup(path)}:
        return False
    with locked(state_dir, room, show):
        if not _close(state_dir, room, agent):
            return False
        save_lineup(path, [member for member in load_lineup(path) if member.agent != agent])
    return True


def _close(state_dir: Path, room: str, agent: str) -> bool:
    from csp.panes.tmux_session import TmuxSession

    try:
        panes = TmuxSession(room, state_dir)
    except CspError:
        return False
    seat = panes.seats().get(agent)
    if seat is None or not seat.is_dead:
        return False
    panes.close(seat)
    return True
