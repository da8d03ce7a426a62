"""The person's terminal, which is raw while the child runs and restored afterwards.

While it is raw, a locked record in a folder contains its original state. An unlocked record was left by a
killed relay; the next start in that terminal restores the terminal first.
"""

import errno
import fcntl
import os
import select
import termios

#: Switches off the modes that a killed TUI leaves on. It saves the cursor first, because leaving the
#: alternate screen restores the saved cursor even if the alternate screen is not in use.
RESET = (
    b"\x1b[?2026l"  # show the output held back by a synchronised update
    b"\x1b[<9u\x1b7\x1b[?1049l\x1b[<9u"  # each screen has its own kitty keyboard flags
    b"\x1b7\x1b[r\x1b8"  # scroll the whole screen; without saving, this moves the cursor
    b"\x1b[?7h\x1b[4l\x1b[?25h"
    b"\x1b[?1l\x1b>\x1b[>4m"  # normal keys
    b"\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l"
    b"\x1b(B\x0f\x1b[0m"
)

CLEAR = b"\x1b[H\x1b[2J"

#: The result of tcgetattr.
Attributes = list[int | list[bytes | int]]

_IFLAG, _OFLAG, _CFLAG, _LFLAG, _CC = 0, 1, 2, 3, 6
_WINSIZE_BYTES = 8
_WRITE_BYTES = 64 * 1024


def repair(fd: int, folder: str) -> bool:
    """Restore a terminal that a killed relay left raw; return whether it was in that state."""
    found = False
    try:
        prefix = _key(fd) + "."
        paths = [f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.startswith(prefix)]
    except OSError:
        paths = []
    for path in paths:
        try:
            record = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
            attributes = _parse(os.read(record, 4096))
            if attributes:
                _set(fd, attributes)
                screen = os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
                os.write(screen, RESET)
                os.close(screen)
            os.unlink(path)
            found = True
        except OSError:
            continue  # a live relay has locked it, or it is not one of our records
        finally:
            os.close(record)
    return found


def _key(fd: int) -> str:
    return "tty" + os.ttyname(fd).replace("/", "-")


def _parse(record: bytes) -> Attributes | None:
    try:
        *numbers, codes = record.decode("ascii").split()
        values: list[bytes | int] = [bytes([code]) for code in bytes.fromhex(codes)]
        attributes: Attributes = [int(number) for number in numbers]
    except ValueError:
        return None
    return [*attributes, values] if len(attributes) == _CC else None


def _set(fd: int, attributes: Attributes) -> None:
    """Set the attributes now; try again if interrupted by the signal that continues us after a stop."""
    while True:
        try:
            return termios.tcsetattr(fd, termios.TCSANOW, attributes)
        except termios.error as exc:
            if exc.args[0] != errno.EINTR:
                raise OSError(*exc.args) from exc


def _raw(attributes: Attributes) -> Attributes:
    iflag, oflag, cflag, lflag, ispeed, ospeed, codes = attributes
    assert isinstance(iflag, int) and isinstance(oflag, int) and isinstance(codes, list)
    assert isinstance(cflag, int) and isinstance(lflag, int)
    iflag &= ~(termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP)
    iflag &= ~(termios.INLCR | termios.IGNCR | termios.ICRNL | termios.IXON)
    lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
    cflag = cflag & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    codes = list(codes)
    codes[termios.VMIN], codes[termios.VTIME] = 1, 0
    return [iflag, oflag & ~termios.OPOST, cflag, lflag, ispeed, ospeed, codes]


class UserTerminal:
    """The person's end: it reads keys and shows bytes, and also works on pipes, which have no raw mode.

    Terminals are reopened, so that non-blocking mode is set on our own file description and not on the
    inherited one, which the shell shares.
    """

    def __init__(self, keys: int, screen: int, folder: str) -> None:
        self.is_tty = os.isatty(keys)
        self.keys = _reopened(keys, os.O_RDONLY)
        self.screen = _reopened(screen, os.O_WRONLY)
        #: Output that the terminal has not accepted yet.
        self.unshown = b""
        # A shared descriptor may block, but not for so few bytes once it is ready.
        self._write_bytes = select.PIPE_BUF if self.screen == screen else _WRITE_BYTES
        self._sizes = next((fd for fd in (keys, screen) if os.isatty(fd)), -1)
        self._folder = folder
        #: The original state of the terminal; None for a pipe or before the terminal is made raw.
        self.before: Attributes | None = None
        self._record = -1
        self._path = ""

    def make_raw(self) -> None:
        """Make the terminal raw and record its original state."""
        if self.is_tty:
            if self.before is None:
                repair(self.keys, self._folder)
                self.before = termios.tcgetattr(self.keys)
                self._save(self.before)
            _set(self.keys, _raw(self.before))

    def restore(self) -> None:
        """Restore the terminal's original state if the terminal still exists."""
        if self.before is not None:
            try:
                _set(self.keys, self.before)
            except OSError:
                return

    def close(self) -> None:
        """Restore the terminal at the end."""
        self.restore()
        if self._record >= 0:
            os.unlink(self._path)
            os.close(self._record)
            self._record = -1

    def show(self, data: bytes = b"") -> None:
        """Write as much as the terminal accepts now and keep the rest; OSError if the terminal is gone."""
        data = self.unshown + data if self.unshown else data
        try:
            count = os.write(self.screen, data[: self._write_bytes])
        except BlockingIOError:
            count = 0
        self.unshown = data[count:]

    def size(self) -> bytes | None:
        """Return the terminal's size as a struct winsize, or None if there is no terminal."""
        if self._sizes < 0:
            return None
        try:
            return fcntl.ioctl(self._sizes, termios.TIOCGWINSZ, bytes(_WINSIZE_BYTES))
        except OSError:
            return None

    def _save(self, attributes: Attributes) -> None:
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            path = f"{self._folder}/{_key(self.keys)}.{os.getpid()}"
            record = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            self._record, self._path = record, path
            fcntl.flock(record, fcntl.LOCK_EX)
            *numbers, codes = attributes
            assert isinstance(codes, list)
            values = (code if isinstance(code, int) else code[0] for code in codes)
            os.write(record, f"{' '.join(map(str, numbers))} {bytes(values).hex()}\n".encode())
        except OSError:
            # Without a record the terminal is not restored after kill -9, but that must not prevent a start.
            return


def _reopened(fd: int, mode: int) -> int:
    try:
        return os.open(os.ttyname(fd), mode | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return fd
