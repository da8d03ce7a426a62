"""Report the failure of a csp command to its parent process, as data on a separate pipe.

The command's output on stderr is for people and may be reworded at any time.
"""

import os

from csp.fast_start import fast_json
from csp.fast_start.process_environment import set_variable

VARIABLE = "CSP_FAILURE_FD"
_MOST_CHARS = 4000

#: This process's end of the pipe, if the parent is listening.
_claimed: list[int] = []


def claim() -> None:
    """Take over the pipe from the parent; programs that this process starts do not inherit it."""
    number = set_variable(VARIABLE, None) or ""
    if number.isdecimal():
        try:
            os.set_inheritable(int(number), False)
        except OSError:
            return
        _claimed[:] = [int(number)]


def report(message: str, hint: str = "") -> None:
    """Report a failure to the parent if it is listening."""
    line = fast_json.dumps({"message": message[:_MOST_CHARS], "hint": hint[:_MOST_CHARS]})
    for fd in _claimed:
        try:
            os.write(fd, line.encode() + b"\n")
        except OSError:
            # The parent has ended or is not reading.
            return


class FailurePipe:
    """The pipe for one child, which must get `fd` and the `variables` in its environment."""

    def __init__(self) -> None:
        self._reader, self.fd = os.pipe()
        os.set_blocking(self._reader, False)
        self.variables = {VARIABLE: str(self.fd)}

    def __enter__(self) -> "FailurePipe":
        return self

    def __exit__(self, *failure: object) -> None:
        os.close(self._reader)
        os.close(self.fd)

    def read(self) -> tuple[str, str]:
        """Return the last message and hint that the child reported; both are empty if there were none."""
        try:
            lines = os.read(self._reader, 65536).splitlines()
        except BlockingIOError:
            lines = []
        found = fast_json.loads(lines[-1]) if lines else {}
        return found.get("message", ""), found.get("hint", "")
