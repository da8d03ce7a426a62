"""Receive signals, and make Ctrl-Z work for a child in its own session.

The kernel stops a process group by SIGTSTP only while one of its members has a parent outside the group but
in the same session, which could continue it. A child alone in a new session has none, so Ctrl-Z would do
nothing. Two helper processes that wait for a pipe to close solve this: one in the child's group, and its
parent in the child's session.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
else:
    import _signal as signal  # signal itself imports enum, a tenth of the relay's memory

__all__ = ["Signals", "has_shell_above", "open_life", "signal", "stand_by"]

_WAIT = ["/bin/sh", "-c", "read _"]


def has_shell_above() -> bool:
    """Return whether a shell could continue us, so that stopping is safe."""
    group, session, pid = os.getpgrp(), os.getsid(0), os.getppid()
    try:
        while pid > 1 and os.getsid(pid) == session:
            if os.getpgid(pid) != group:
                return True
            pid = _parent(pid)
    except OSError:
        return False
    return False


def open_life() -> tuple[int, int]:
    """Return a pipe for `stand_by`, the reading end first; -1 for both if nobody could continue us."""
    return os.pipe() if has_shell_above() else (-1, -1)


def _parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[1])


def stand_by(life: int) -> None:
    """Start the helpers from the child before its exec; they end when the other end of `life` is closed."""
    group = os.getpgrp()
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        # The program must not have children that it did not start, so init adopts them.
        if os.fork() == 0:
            os.setpgid(0, 0)
            if os.fork() == 0:
                os.setpgid(0, group)
            _wait_for_the_end(life)
    finally:
        os._exit(0)


def _wait_for_the_end(life: int) -> None:
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(number, signal.SIG_IGN)
    os.dup2(life, 0)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    os.closerange(3, 1 << 16)
    os.execve(_WAIT[0], _WAIT, {})


class Signals:
    """A converter of signals to bytes, so that the loop can wait for them like for any other input.

    Signals are received until the process ends. `fd` is readable when one has arrived.
    """

    def __init__(self) -> None:
        self.fd, self._woken = os.pipe()
        self._was_continued = False
        os.set_blocking(self.fd, False)
        os.set_blocking(self._woken, False)

    def hear(self, numbers: "Iterable[int]") -> None:
        """Start receiving these signals."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, self._note)

    def _note(self, number: int, _: object) -> None:
        if number == signal.SIGCONT:
            self._was_continued = True

    def drain(self) -> list[int]:
        """Return the signals that have arrived, each once."""
        try:
            return list(dict.fromkeys(os.read(self.fd, 4096)))
        except BlockingIOError:
            return []

    def stop(self) -> bool:
        """Stop our process group until somebody continues it; return False if the kernel did not stop it.

        The kernel does not stop a group without a shell, so there is no need to check for one.
        """
        self._was_continued = False
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note)
        return self._was_continued
