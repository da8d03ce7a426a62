"""Run a sidecar's brain in the process that the relay started for it."""

import asyncio
import logging
import os
import socket
from pathlib import Path

from csp.cli.logging_setup import configure
from csp.clis.profile import load_recorded_profile
from csp.errors import Broken, Forbidden, Unauthenticated
from csp.sidecar.brain.brain import run_brain
from csp.sidecar.brain.reconnect import find_room, rejoin
from csp.sidecar.relay.pty_processes import HANDED_FD
from csp.sidecar.run_record import SidecarRecord

log = logging.getLogger(__name__)


def brain(folder: str) -> None:
    """Work until the child has ended; after a failure, the relay starts another brain."""
    configure(is_verbose=False)
    run = SidecarRecord.load(Path(folder))
    if run is None:
        raise Broken(f"the record in {folder!r} cannot be read")
    link = socket.socket(fileno=HANDED_FD)
    spare, run = link.dup(), find_room(run)
    try:
        asyncio.run(run_brain(run, load_recorded_profile(Path(run.profile)), link))
    except (Unauthenticated, Forbidden) as error:
        log.warning("room no longer knew us", extra={"why": error.message})
        # The next sidecar with this name has its id now, or will need it.
        is_relay_gone = os.getppid() != run.pid
        if not is_relay_gone and not rejoin(run):
            log.warning("agent was removed from the room")
            # Leave the CLI to its user until it ends; if we ended, the relay would start another brain.
            spare.setblocking(True)
            while spare.recv(65536):
                pass
