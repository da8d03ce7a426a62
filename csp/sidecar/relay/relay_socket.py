"""The relay's end of the socket to its brain, which is restarted whenever it dies.

Frames that the brain has not received yet are kept up to a limit.
"""

import os

from csp.sidecar.relay.child_process import ChildProcess
from csp.sidecar.relay.input_queue import NEVER
from csp.sidecar.relay.job_control import signal
from csp.sidecar.relay.pty_processes import start_brain
from csp.sidecar.relay.relay_frames import GAP, KEYS, MAX_NOTE_BYTES, NOTE, OUTPUT, START, Decoder, encode

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 5.0
_PROVEN_S = 60.0
_START = '{"pid": %d, "rows": %d, "cols": %d, "starts": %d, "held_keys": %s, "tty": "%s"}'
_READ_BYTES = 64 * 1024
MAX_OUTPUT_BYTES = 256 * 1024
_SLACK_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
_MAX_FRAMES_BYTES = 512 * 1024


class BrainLink:
    """The current brain. `fd` is -1 while there is none; `retry_at` is the time of the next start."""

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
        """Start a brain; if that fails, schedule another attempt."""
        try:
            pid, fd = start_brain(self._argv, self._log)
        except OSError:
            self._retry_later(now)
            return False
        self.adopt(pid, fd, now)
        return True

    def adopt(self, pid: int, fd: int, now: float) -> None:
        """Use a brain that has just been started."""
        self.pid, self.fd = pid, fd
        self.starts += 1
        self.retry_at = NEVER
        self._started_at = now
        self._decoder = Decoder()
        self._unsent = b""
        self.is_blocked = False
        self.backlog.start_over()

    def greet(self, child: ChildProcess, *, is_holding: bool) -> None:
        """Queue the greeting for a new brain, then the note that its predecessor left."""
        rows, cols = child.rows_cols
        held = "true" if is_holding else "false"
        start = _START % (child.pid, rows, cols, self.starts, held, child.other_end)
        self.backlog.greet(START, start.encode())
        if self._note:
            self.backlog.greet(NOTE, self._note)
        self.flush()

    def keep(self, note: bytes) -> None:
        """Store a note for the next brain; notes that are too long are ignored."""
        if len(note) <= MAX_NOTE_BYTES:
            self._note = note

    def receive(self) -> list[tuple[bytes, bytes]] | None:
        """Return the frames that have arrived, or None if no more will arrive."""
        try:
            data = os.read(self.fd, _READ_BYTES)
            return self._decoder.feed(data) if data else None
        except BlockingIOError:
            return []
        except (OSError, ValueError):
            return None

    def flush(self) -> None:
        """Write as much as the brain accepts now. Its death is noticed by `receive`."""
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
        """Drop the current brain and ensure that it ends, because two must never run at once."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self._retry_later(now)
        if self.pid:
            pid, self.pid = self.pid, 0
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                return

    def _retry_later(self, now: float) -> None:
        if now - self._started_at > _PROVEN_S:
            self._wait_s = _FIRST_WAIT_S
        self.retry_at = now + self._wait_s
        self._wait_s = min(self._wait_s * 2, _LONGEST_WAIT_S)


class BrainBacklog:
    """The newest output of the child, and the other frames with their positions in it.

    The same bytes are sent to the current brain and again to its successor. A brain that is too slow misses
    the oldest bytes and is informed of their number.
    """

    def __init__(self) -> None:
        self._output = bytearray()
        #: Positions in the child's whole output: its end, and the part sent to the brain.
        self._end = 0
        self._told = 0
        self._frames: list[tuple[int, bytes]] = []
        self._frames_bytes = 0

    def add_output(self, data: bytes) -> None:
        """Append output from the child."""
        self._output += data
        self._end += len(data)
        if len(self._output) > MAX_OUTPUT_BYTES + _SLACK_BYTES:
            del self._output[:-MAX_OUTPUT_BYTES]

    def add(self, kind: bytes, payload: bytes = b"") -> None:
        """Append another frame after the output so far; if there are too many keys, drop the oldest."""
        self._keep(self._end, kind, payload)
        if self._frames_bytes > _MAX_FRAMES_BYTES:
            oldest = next((item for item in self._frames if item[1].startswith(KEYS)), None)
            if oldest is not None:
                self._frames.remove(oldest)
                self._frames_bytes -= len(oldest[1])

    def greet(self, kind: bytes, payload: bytes) -> None:
        """Add a frame that a new brain gets before all output."""
        self._keep(0, kind, payload)

    def _keep(self, place: int, kind: bytes, payload: bytes) -> None:
        frame = encode(kind, payload)
        self._frames.append((place, frame))
        self._frames_bytes += len(frame)

    def start_over(self) -> None:
        """Start over for a new brain, with the output that is still kept."""
        self._frames.clear()
        self._frames_bytes = 0
        self._told = 0

    def unsent_bytes(self) -> int:
        """Return the number of output bytes that have not been sent to the brain yet."""
        return self._end - self._told

    def next_frames(self) -> bytes:
        """Return the next frames to write; empty if everything has been sent."""
        frames = self._frames
        if frames and frames[0][0] <= self._told:
            count = sum(place <= self._told for place, _ in frames)
            taken = b"".join(frame for _, frame in frames[:count])
            del frames[:count]
            self._frames_bytes -= len(taken)
            return taken
        first = max(self._end - len(self._output), self._end - MAX_OUTPUT_BYTES)
        if self._told < first:
            gap, self._told = first - self._told, first
            return encode(GAP, gap.to_bytes(8, "big"))
        last = min(frames[0][0] if frames else self._end, self._told + _PIECE_BYTES)
        if last == self._told:
            return b""
        offset = self._end - len(self._output)
        data = bytes(self._output[self._told - offset : last - offset])
        self._told = last
        return encode(OUTPUT, data)
