"""The frames exchanged by the relay and the brain.

A frame consists of its kind (one ASCII byte), the length of its payload (u32, big endian) and the payload.
The relay must use as little memory as possible, so this module imports nothing.
"""

# Relay to brain.
START = b"S"  # json: pid, rows, cols, starts, held_keys, tty
OUTPUT = b"O"  # raw output of the child
GAP = b"G"  # u64: the number of output bytes that were dropped here
KEYS = b"K"  # raw input from the person's terminal, at the time it was read
SIZE = b"W"  # u16 rows, u16 columns
PHASE = b"P"  # one of the words below
ENDED = b"X"  # json: code or signal
DONE = b"D"  # u32: the tag of an INPUT that the child has completely read
WORD = b"C"  # a line typed by the person that is one of OURS; the child did not get it
REFUSED = b"F"  # u32: the tag of an INPUT_UNLESS that was not written

# In both directions: opaque bytes from a brain, stored for the next one.
NOTE = b"N"

# Brain to relay.
INPUT = b"I"  # u32 tag, then bytes for the child
INPUT_UNLESS = b"U"  # u32 tag, u64 count, bytes for the child; refused if KEYS had more bytes than count
HOLD = b"H"  # f64 seconds: hold the person's keys back
RELEASE = b"R"  # pass on the held keys now
OURS = b"L"  # lines separated by newlines; one that a person types as a whole must not reach the child
NUDGE = b"J"  # make the child redraw
SIGNAL = b"T"  # i32: a signal for the child's process group
AGAIN = b"A"  # json: argv, optional env; end the child, then start this

# The values of a PHASE. KEPT follows STOPPED if the relay continued the child because no shell could.
STOPPED = b"stopped"
CONTINUED = b"continued"
KEPT = b"kept"
RESTARTED = b"restarted"
NOT_RESTARTED = b"not restarted: "  # followed by the reason

MAX_NOTE_BYTES = 256 * 1024
MAX_PAYLOAD_BYTES = 1024 * 1024
_HEAD_BYTES = 5


def encode(kind: bytes, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return kind + len(payload).to_bytes(4, "big") + payload


class Decoder:
    """A parser that splits a byte stream into frames, however it is chunked."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the kind and payload of each frame that `data` completes; ValueError if one is too long."""
        self._data += data
        frames = []
        start = 0
        while len(self._data) - start >= _HEAD_BYTES:
            length = int.from_bytes(self._data[start + 1 : start + _HEAD_BYTES], "big")
            if length > MAX_PAYLOAD_BYTES:
                raise ValueError(f"a frame of {length} bytes, expected at most {MAX_PAYLOAD_BYTES}")
            end = start + _HEAD_BYTES + length
            if len(self._data) < end:
                break
            frames.append(
                (bytes(self._data[start : start + 1]), bytes(self._data[start + _HEAD_BYTES : end]))
            )
            start = end
        del self._data[:start]
        return frames
