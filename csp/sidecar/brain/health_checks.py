"""Watch for external problems of a CLI: a moved room, a full disk or an untested version."""

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from csp.client import Client
from csp.clis.version_check import ask_version, untested
from csp.errors import Unreachable
from csp.protocol.enums import NoticeKind
from csp.sidecar.brain.reconnect import has_moved
from csp.sidecar.brain.state_reporter import StateReporter
from csp.sidecar.run_record import SidecarRecord
from csp.sidecar.state.cli_state import CliState

log = logging.getLogger(__name__)

MOVED_S: Final = 3.0
SPACE_S: Final = 3.0
#: The delay before asking a CLI for its version, which must not slow its start.
VERSION_S: Final = 5.0
#: The free space needed for hook events, which are small but not empty.
LEAST_BYTES: Final = 16 * 1024


class HealthChecks:
    """The three health checks, each in its own task."""

    def __init__(
        self,
        run: SidecarRecord,
        cli: CliState,
        client: Client,
        reporter: StateReporter,
        hand_over: Callable[[], None],
    ) -> None:
        self._run, self._cli, self._client = run, cli, client
        self._reporter, self._hand_over = reporter, hand_over

    async def watch_room(self) -> None:
        """End this brain when the room has moved; the next one will find it at its new address."""
        while True:
            await asyncio.sleep(MOVED_S)
            if not self._client.status.is_connected and has_moved(self._run):
                raise Unreachable("the room has moved to another address")

    async def watch_space(self) -> None:
        """Notify people when the disk is full; repeat the notice only if space was available in between."""
        cli = self._cli
        while True:
            if cli.is_disk_full != is_full(Path(self._run.folder)):
                cli.is_disk_full = not cli.is_disk_full
                if cli.is_disk_full:
                    self._reporter.notify(NoticeKind.DISK_FULL, self._run.folder)
                self._hand_over()
            await asyncio.sleep(SPACE_S)

    async def check_version(self) -> None:
        """Warn once about a version that the profile was not tested with, then wait until cancelled."""
        await asyncio.sleep(VERSION_S)
        run, profile = self._run, self._cli.profile
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


def is_full(folder: Path) -> bool:
    """Return whether the disk has too little space or no free inode; a missing folder counts as not full."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    # Some file systems do not report inodes.
    return found.f_bavail * found.f_frsize < LEAST_BYTES or (found.f_files > 0 and found.f_favail == 0)
