"""Keep a gateway running: restart it when it dies.

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
from csp.fast_start import failure_report

log = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_WAITED_FOR: Final = (*_SIGNALS, signal.SIGCHLD)
MAX_RESTARTS: Final = 5
WINDOW_S: Final = 60.0
STORAGE_FAILED: Final = 74

Serve = Callable[[Callable[[], None]], int]


def supervise(serve: Serve) -> int:
    """Run `serve` in a child; restart it after a crash, at most 5 times a minute."""
    guard = _Guard()
    restarts: deque[float] = deque(maxlen=MAX_RESTARTS)
    while True:
        was_ready, code = guard.run_child(serve)
        if code == 0 or guard.is_stopping:
            return 0
        if code == STORAGE_FAILED:
            # A failed disk does not get better with a restart.
            return 1
        if not was_ready and code > 0:
            return code
        now = time.monotonic()
        if len(restarts) == MAX_RESTARTS and now - restarts[0] < WINDOW_S:
            log.error("gateway keeps dying", extra={"restarts": MAX_RESTARTS, "within_s": WINDOW_S})
            return 1
        restarts.append(now)
        log.warning("gateway died and is restarted", extra={"exit_code": code})


class _Guard:
    """The current child, and whether a signal has asked to stop.

    A signal that comes just before a blocking call would be noticed only after it: Python's handlers run
    between two steps of the interpreter. So the signals are blocked while there is a child, and waited for
    together with its death.
    """

    def __init__(self) -> None:
        self.is_stopping = False

        def stop(number: int, frame: object) -> None:
            self.is_stopping = True

        for number in _SIGNALS:
            signal.signal(number, stop)
        # Some systems discard a signal without a handler even while sigwait waits for it.
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run_child(self, serve: Serve) -> tuple[bool, int]:
        """Forward signals to a child until it ends; return whether it ever got ready, and its exit code."""
        ready_out, ready_in = os.pipe()
        # Blocked before the fork: the child would lose a signal that comes before it has handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
        child = os.fork()
        if child == 0:
            os.close(ready_out)
            os._exit(_be_child(serve, ready_in))
        os.close(ready_in)
        try:
            if self.is_stopping:
                os.kill(child, signal.SIGTERM)
            ended, status = 0, 0
            while not ended:
                if signal.sigwait(_WAITED_FOR) in _SIGNALS:
                    self.is_stopping = True
                    os.kill(child, signal.SIGTERM)
                ended, status = os.waitpid(child, os.WNOHANG)
            os.set_blocking(ready_out, False)
            with contextlib.suppress(BlockingIOError):
                return os.read(ready_out, 1) == b"1", os.waitstatus_to_exitcode(status)
            return False, os.waitstatus_to_exitcode(status)
        finally:
            os.close(ready_out)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED_FOR)


def _be_child(serve: Serve, ready_in: int) -> int:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED_FOR)

    def on_ready() -> None:
        os.write(ready_in, b"1")
        os.close(ready_in)

    try:
        return serve(on_ready)
    except CspError as error:
        log.error("gateway failed", extra={"problem": error.message, "hint": error.hint})
        failure_report.report(error.message, error.hint)
        if isinstance(error, StorageFailed):
            return STORAGE_FAILED
    except KeyboardInterrupt:
        return 0
    except BaseException:
        log.exception("gateway crashed")
    return 1
