"""The frames exchanged by the relay and the brain.

A frame is its kind (one ASCII byte), the length of its payload (u32, big endian), the payload. The relay
lives on as little memory as Python allows, so nothing here imports anything.
"""

# Relay to brain.
START = b"S"  # json: pid, rows, cols, starts, held_keys, tty
OUTPUT = b"O"  # what the child wrote, raw
GAP = b"G"  # u64: so many bytes of output were dropped here
KEYS = b"K"  # what the person's terminal sent, raw, when it was read
SIZE = b"W"  # u16 rows, u16 columns
PHASE = b"P"  # one of the words below
ENDED = b"X"  # json: code or signal
DONE = b"D"  # u32: the tag of an INPUT that the child has read whole
WORD = b"C"  # a whole line of the person's that is one of OURS; the child did not get it
REFUSED = b"F"  # u32: the tag of an INPUT_UNLESS that was not written

# Both ways: opaque bytes of a brain, kept for the next one.
NOTE = b"N"

# Brain to relay.
INPUT = b"I"  # u32 tag, then bytes for the child
INPUT_UNLESS = b"U"  # u32 tag, u64 count, then bytes for the child, unless KEYS has had more bytes than that
HOLD = b"H"  # f64 seconds: keep the person's keys back
RELEASE = b"R"  # pass the held keys on now
OURS = b"L"  # lines, one each, which the child shall not get when a person types them alone
NUDGE = b"J"  # make the child redraw
SIGNAL = b"T"  # i32: a signal for the child's process group
AGAIN = b"A"  # json: argv, perhaps env; end the child, then start this

# What a PHASE may say. KEPT follows STOPPED where no shell could have continued the child: we have.
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
    """Cuts a stream of bytes into frames, however it is chunked."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Return the frames, as kind with payload, that `data` completes; ValueError for one too long."""
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
