"""Patience with a cluster that is just starting."""

import asyncio
import logging
import time
from typing import Final

from csp.errors import LogLost

log = logging.getLogger(__name__)

#: How long a gateway waits for the servers at its start.
START_S: Final = 30.0
_AGAIN_S: Final = 0.5


async def wait_or_raise(error: LogLost, deadline: float) -> None:
    """Wait a moment before the next attempt; raise `error` after the deadline."""
    if time.monotonic() > deadline:
        raise error
    log.info("waiting for NATS", extra={"problem": error.message})
    await asyncio.sleep(_AGAIN_S)
