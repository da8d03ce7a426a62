"""Keep a gateway running: start it again when it dies.

The parent holds the listening socket, so that the port stays ours and callers wait through a restart.
"""

import contextlib
import logging
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from csp.errors import CspError, StorageFailed

log = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MAX_RESTARTS: Final = 5
WINDOW_S: Final = 60.0
STORAGE_FAILED: Final = 74

Serve = Callable[[Callable[[], None]], int]


def supervise(serve: Serve) -> int:
    """Run `serve` in a child; start it again after a crash, at most 5 times a minute."""
    guard = _Guard()
    restarts: deque[float] = deque(maxlen=MAX_RESTARTS)
    while True:
        was_ready, code = guard.run_child(serve)
        if code == 0 or guard.is_stopping:
            return 0
        if code == STORAGE_FAILED:
            # A disk that lies does not get better by being asked again.
            return 1
        if not was_ready and code > 0:
            return code
        now = time.monotonic()
        if len(restarts) == MAX_RESTARTS and now - restarts[0] < WINDOW_S:
            log.error("gateway keeps dying", extra={"restarts": MAX_RESTARTS, "within_s": WINDOW_S})
            return 1
        restarts.append(now)
        log.warning("gateway died and is started again", extra={"exit_code": code})


class _Guard:
    """The child of the moment, with the signals that are passed on to it."""

    def __init__(self) -> None:
        self.is_stopping = False
        self._child = 0
        for number in _SIGNALS:
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self.is_stopping = True
        if self._child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGTERM)

    def run_child(self, serve: Serve) -> tuple[bool, int]:
        """Return whether the child ever got ready, and its exit code."""
        ready_out, ready_in = os.pipe()
        # A signal that came between the fork and the child's own handlers would be lost on the child.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._child = os.fork()
        if self._child == 0:
            os.close(ready_out)
            os._exit(_be_child(serve, ready_in))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        os.close(ready_in)
        if self.is_stopping:
            self._stop(signal.SIGTERM, None)
        try:
            was_ready = os.read(ready_out, 1) == b"1"
        finally:
            os.close(ready_out)
        _, status = os.waitpid(self._child, 0)
        self._child = 0
        return was_ready, os.waitstatus_to_exitcode(status)


def _be_child(serve: Serve, ready_in: int) -> int:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def on_ready() -> None:
        os.write(ready_in, b"1")
        os.close(ready_in)

    try:
        return serve(on_ready)
    except CspError as error:
        log.error("gateway failed", extra={"problem": error.message, "hint": error.hint})
        if isinstance(error, StorageFailed):
            return STORAGE_FAILED
    except KeyboardInterrupt:
        return 0
    except BaseException:
        log.exception("gateway crashed")
    return 1
