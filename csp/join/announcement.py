"""The order for a link, and the announcement of its room on this machine."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from csp.join.link_state import LinkState
from csp.room_registry import RoomFile, RunningRoom, announce_again, remove_room, write_room

log = logging.getLogger(__name__)

OnReady = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOrder:
    """A room to join: `name` is its name here, `target` is what the person asked for."""

    name: str
    target: str
    state_dir: Path
    dir: Path
    history: Path
    project: str


class Announcement:
    """The announcement of a joined room; it stays while the link reconnects."""

    def __init__(self, order: LinkOrder, port: int, on_ready: OnReady) -> None:
        self._order = order
        self._port = port
        self._on_ready = on_ready
        self._file: RoomFile | None = None

    @property
    def is_made(self) -> bool:
        """Return whether the room has been announced."""
        return self._file is not None

    def make(self, url: str, token: str, ca_file: str = "") -> None:
        """Announce the room, or replace what the announcement says."""
        order = self._order
        room = RunningRoom(
            room=order.name,
            url=url,
            token=token,
            pid=os.getpid(),
            supervisor=os.getppid(),
            dir=order.dir,
            history=order.history,
            started=time.time(),
            project=order.project,
            joined=order.target,
            ca_file=ca_file,
        )
        LinkState(order.target, self._port).save(order.state_dir, order.name)
        log.info("link is up", extra={"room": order.name, "target": order.target})
        if self._file is not None:
            announce_again(self._file, room)
            return
        self._file = write_room(order.state_dir, room)
        self._on_ready()

    def note_loss(self, problem: str) -> bool:
        """Write why there is no connection; return whether there was one."""
        order = self._order
        before = LinkState.load(order.state_dir, order.name)
        was_up = before is None or not before.problem
        if was_up:
            log.warning("link is down", extra={"room": order.name, "why": problem})
        if before is None or before.problem != problem:
            LinkState(order.target, self._port, problem).save(order.state_dir, order.name)
        return was_up

    def withdraw(self) -> None:
        """Remove the announcement."""
        if self._file is not None:
            remove_room(self._file)
            self._file = None
