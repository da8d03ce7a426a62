"""Watches what can go wrong around a CLI: a room that moves, a full disk, a version that was not tested."""

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from csp.client import Client
from csp.clis.profile import Profile
from csp.clis.version_check import ask_version, untested
from csp.errors import Unreachable
from csp.protocol.enums import NoticeKind
from csp.sidecar.brain.disk_space import is_full
from csp.sidecar.brain.reconnect import has_moved
from csp.sidecar.brain.state_reporter import StateReporter
from csp.sidecar.run_record import SidecarRecord

log = logging.getLogger(__name__)

MOVED_S: Final = 3.0
SPACE_S: Final = 3.0
#: Asking a CLI for its version must not slow its start.
VERSION_S: Final = 5.0


class HealthChecks:
    """Three watches, each a task of its own."""

    def __init__(
        self,
        run: SidecarRecord,
        profile: Profile,
        client: Client,
        reporter: StateReporter,
        *,
        on_disk: Callable[[bool], None],
        is_disk_full: bool,
    ) -> None:
        self._run, self._profile, self._client = run, profile, client
        self._reporter, self._on_disk = reporter, on_disk
        #: Whether a person has been told that the disk is full.
        self.is_disk_full = is_disk_full

    async def watch_room(self) -> None:
        """End this brain when the room has moved: the next one will find it at its new address."""
        while True:
            await asyncio.sleep(MOVED_S)
            if not self._client.status.is_connected and has_moved(self._run):
                raise Unreachable("the room has moved to another address")

    async def watch_space(self) -> None:
        """Tell a person of a full disk, again only after there was space on it."""
        while True:
            if self.is_disk_full != is_full(Path(self._run.folder)):
                self.is_disk_full = not self.is_disk_full
                if self.is_disk_full:
                    self._reporter.notify(NoticeKind.DISK_FULL, self._run.folder)
                self._on_disk(self.is_disk_full)
            await asyncio.sleep(SPACE_S)

    async def check_version(self) -> None:
        """Warn once about a version that the profile was not tested with, then rest until cancelled."""
        await asyncio.sleep(VERSION_S)
        run, profile = self._run, self._profile
        version = await asyncio.to_thread(ask_version, profile, run.argv, run.env)
        problem = untested(profile, version)
        digest = hashlib.sha256(version.encode()).hexdigest()[:12]
        mark = Path(run.folder).parent / f"{profile.name}-{digest}.seen"
        if problem and not mark.exists():
            log.warning("version was not tested", extra={"problem": problem})
            self._reporter.notify(NoticeKind.UNTESTED_VERSION, problem)
            with contextlib.suppress(OSError):
                mark.touch()
        await asyncio.get_running_loop().create_future()
