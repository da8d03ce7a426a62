"""The frames that the brain has not got yet, within bounds."""

from csp.sidecar.relay.relay_frames import GAP, KEYS, OUTPUT, encode

MAX_OUTPUT_BYTES = 256 * 1024
_SLACK_BYTES = 64 * 1024
_PIECE_BYTES = 64 * 1024
_MAX_FRAMES_BYTES = 512 * 1024


class BrainBacklog:
    """The newest output of the child, with the other frames at their places in it.

    The same bytes serve the brain that reads them now or the next one, which is given them again. A brain
    that is too slow misses the oldest, and is told how many.
    """

    def __init__(self) -> None:
        self._output = bytearray()
        #: Places in all that the child ever wrote: its end, how far the brain has been told.
        self._end = 0
        self._told = 0
        self._frames: list[tuple[int, bytes]] = []
        self._frames_bytes = 0

    def add_output(self, data: bytes) -> None:
        """Take in what the child has written."""
        self._output += data
        self._end += len(data)
        if len(self._output) > MAX_OUTPUT_BYTES + _SLACK_BYTES:
            del self._output[:-MAX_OUTPUT_BYTES]

    def add(self, kind: bytes, payload: bytes = b"") -> None:
        """Take in another frame, to be told after the output so far; too many keys push out the oldest."""
        frame = encode(kind, payload)
        self._frames.append((self._end, frame))
        self._frames_bytes += len(frame)
        if self._frames_bytes > _MAX_FRAMES_BYTES:
            oldest = next((item for item in self._frames if item[1].startswith(KEYS)), None)
            if oldest is not None:
                self._frames.remove(oldest)
                self._frames_bytes -= len(oldest[1])

    def greet(self, kind: bytes, payload: bytes) -> None:
        """Take in a frame that a new brain is told before all output."""
        frame = encode(kind, payload)
        self._frames.append((0, frame))
        self._frames_bytes += len(frame)

    def start_over(self) -> None:
        """Start over for a new brain, with the output that is still there."""
        self._frames.clear()
        self._frames_bytes = 0
        self._told = 0

    def unsent_bytes(self) -> int:
        """Return how much output the brain has not been told yet."""
        return self._end - self._told

    def next_frames(self) -> bytes:
        """Return the next frames to write, none if all is told."""
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
