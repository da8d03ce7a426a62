"""The child process in the pseudo-terminal."""

import fcntl
import os
import struct
import sys
import termios

from csp.sidecar.relay.input_queue import NEVER
from csp.sidecar.relay.job_control import signal

_WINSIZE = struct.Struct("HHHH")
_NUDGE_S = 0.1
#: The ioctls that return the other end of a pseudo-terminal; Python has no function for this before 3.13.
_TIOCGPTN = 0x80045430
_TIOCPTYGNAME = 0x40807453
#: The signals that end a child, each with its delay in seconds.
_ENDING = ((0.0, signal.SIGHUP), (0.5, signal.SIGTERM), (3.0, signal.SIGKILL))


class ChildProcess:
    """One process and our end of its terminal. `status` is None while it is running."""

    def __init__(self, pid: int, master: int) -> None:
        self.pid = pid
        self.master = master
        self.status: int | None = None
        #: The time of the next timed action.
        self.due_at = NEVER
        self._ending: list[tuple[float, int]] = []
        self._is_nudged = False
        self._size = fcntl.ioctl(master, termios.TIOCGWINSZ, bytes(_WINSIZE.size))
        self.other_end = _other_end(master)

    @property
    def rows_cols(self) -> tuple[int, int]:
        rows, cols, _, _ = _WINSIZE.unpack(self._size)
        return rows, cols

    def has_read(self) -> bool:
        """Return whether the child has read all its input; True if that cannot be determined."""
        try:
            other_end = os.open(self.other_end, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return True
        try:
            return not any(fcntl.ioctl(other_end, termios.FIONREAD, bytes(4)))
        except OSError:
            return True
        finally:
            os.close(other_end)

    def signal(self, number: int) -> None:
        """Send a signal to the child's process group, if it still exists."""
        if self.status is None:
            try:
                os.killpg(self.pid, number)
            except (OSError, ValueError, OverflowError):
                return

    def resize(self, size: bytes) -> bool:
        """Set the size of the child's terminal, a struct winsize; return whether it has changed."""
        is_new, self._size = size != self._size, size
        self._is_nudged = False
        self._set_size(size)
        return is_new

    def _set_size(self, size: bytes) -> None:
        try:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        except OSError:
            return  # the other end of the terminal is closed

    def nudge(self, now: float) -> None:
        """Make the child redraw: remove one row, then restore the size late enough that it sees both."""
        rows, *others = _WINSIZE.unpack(self._size)
        self._set_size(_WINSIZE.pack(rows - 1 if rows > 1 else rows + 1, *others))
        self._is_nudged = True
        self.due_at = min(self.due_at, now + _NUDGE_S)

    def end(self, now: float) -> None:
        """Start ending the child with increasingly strong signals."""
        self.signal(signal.SIGCONT)
        self._ending = [(now + after_s, number) for after_s, number in _ENDING]
        self.due_at = now

    def do_what_is_due(self, now: float) -> None:
        """Perform the actions that are due."""
        self.due_at = NEVER
        if self._is_nudged:
            self.resize(self._size)
        while self._ending and self._ending[0][0] <= now:
            self.signal(self._ending.pop(0)[1])
        if self._ending:
            self.due_at = self._ending[0][0]


def _other_end(master: int) -> str:
    """Return the path of the child's end of a terminal, or "" if it cannot be determined."""
    try:
        if sys.platform == "darwin":
            return os.fsdecode(fcntl.ioctl(master, _TIOCPTYGNAME, bytes(128)).rstrip(b"\0"))
        number = int.from_bytes(fcntl.ioctl(master, _TIOCGPTN, bytes(4)), sys.byteorder)
        return f"/dev/pts/{number}"
    except OSError:
        return ""
