"""The relay's end of the socket to its brain, which is started again whenever it dies."""

import os

from csp.sidecar.relay.brain_backlog import BrainBacklog
from csp.sidecar.relay.child_process import ChildProcess
from csp.sidecar.relay.input_queue import NEVER
from csp.sidecar.relay.pty_processes import start_brain
from csp.sidecar.relay.relay_frames import MAX_NOTE_BYTES, NOTE, START, Decoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0
_PROVEN_S = 60.0
_START = '{"pid": %d, "rows": %d, "cols": %d, "starts": %d, "held_keys": %s, "tty": "%s"}'
_READ_BYTES = 64 * 1024


class BrainLink:
    """One brain at a time. `fd` is -1 while there is none; `retry_at` is when the next is due."""

    def __init__(self, argv: list[str], log: str) -> None:
        self.backlog = BrainBacklog()
        self.fd = -1
        self.pid = 0
        self.starts = 0
        self.retry_at = NEVER
        self.is_blocked = False
        self._argv = argv
        self._log = log
        self._decoder = Decoder()
        self._unsent = b""
        self._note = b""
        self._started_at = 0.0
        self._wait_s = _FIRST_WAIT_S

    def start(self, now: float) -> bool:
        """Start a brain; if that fails, try later."""
        try:
            pid, fd = start_brain(self._argv, self._log)
        except OSError:
            self._retry_later(now)
            return False
        self.adopt(pid, fd, now)
        return True

    def adopt(self, pid: int, fd: int, now: float) -> None:
        """Take a brain that has just been started."""
        self.pid, self.fd = pid, fd
        self.starts += 1
        self.retry_at = NEVER
        self._started_at = now
        self._decoder = Decoder()
        self._unsent = b""
        self.is_blocked = False
        self.backlog.start_over()

    def greet(self, child: ChildProcess, *, is_holding: bool) -> None:
        """Say first what a new brain must know, then what its predecessor left for it."""
        rows, cols = child.rows_cols
        held = "true" if is_holding else "false"
        start = _START % (child.pid, rows, cols, self.starts, held, child.other_end)
        self.backlog.greet(START, start.encode())
        if self._note:
            self.backlog.greet(NOTE, self._note)
        self.flush()

    def keep(self, note: bytes) -> None:
        """Keep a note for the next brain; one that is too long is no note."""
        if len(note) <= MAX_NOTE_BYTES:
            self._note = note

    def receive(self) -> list[tuple[bytes, bytes]] | None:
        """Return the frames that have come; None when there will be no more."""
        try:
            data = os.read(self.fd, _READ_BYTES)
            return self._decoder.feed(data) if data else None
        except BlockingIOError:
            return []
        except (OSError, ValueError):
            return None

    def flush(self) -> None:
        """Write what the brain takes now. Its death is noticed by `receive`."""
        self.is_blocked = False
        while self.fd >= 0:
            self._unsent = self._unsent or self.backlog.next_frames()
            if not self._unsent:
                return
            try:
                self._unsent = self._unsent[os.write(self.fd, self._unsent) :]
            except BlockingIOError:
                self.is_blocked = True
                return
            except OSError:
                self._unsent = b""
                return

    def lose(self, now: float) -> None:
        """Give a brain up; two must never run."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self.pid:
            pid, self.pid = self.pid, 0
            _kill(pid)
        self._retry_later(now)

    def _retry_later(self, now: float) -> None:
        if now - self._started_at > _PROVEN_S:
            self._wait_s = _FIRST_WAIT_S
        self.retry_at = now + self._wait_s
        self._wait_s = min(self._wait_s * 2, _LONGEST_WAIT_S)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
