"""Turn signals into bytes, so that the loop can wait for them as for everything else."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable
else:
    import _signal as signal


class Signals:
    """Hears some signals for as long as the process lives. `fd` can be read when one has come."""

    def __init__(self) -> None:
        self.fd, self._woken = os.pipe()
        self._was_continued = False
        os.set_blocking(self.fd, False)
        os.set_blocking(self._woken, False)

    def hear(self, numbers: "Iterable[int]") -> None:
        """Begin to hear these."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, self._note)

    def _note(self, number: int, _: object) -> None:
        if number == signal.SIGCONT:
            self._was_continued = True

    def drain(self) -> list[int]:
        """Return the signals that have come, each once."""
        try:
            return list(dict.fromkeys(os.read(self.fd, 4096)))
        except BlockingIOError:
            return []

    def stop(self) -> bool:
        """Stop with our process group until somebody continues it; False if nobody would have.

        The system does not stop a group that no shell looks after, so it need not be asked for one.
        """
        self._was_continued = False
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note)
        return self._was_continued
