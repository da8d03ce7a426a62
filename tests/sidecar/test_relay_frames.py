"""Frames survive any chunking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.sidecar.relay.relay_frames import MAX_NOTE_BYTES, MAX_PAYLOAD_BYTES, Decoder, encode

FRAMES = st.lists(st.tuples(st.sampled_from([b"O", b"K", b"I"]), st.binary(max_size=40)))


def test_a_frame_is_kind_length_payload() -> None:
    assert encode(b"O", b"ab\x00") == b"O\x00\x00\x00\x03ab\x00"
    assert encode(b"R") == b"R\x00\x00\x00\x00"


@given(FRAMES, st.integers(1, 9))
def test_frames_come_out_as_they_went_in(frames: list[tuple[bytes, bytes]], size: int) -> None:
    stream = b"".join(kind + len(payload).to_bytes(4, "big") + payload for kind, payload in frames)
    decoder = Decoder()
    got = [frame for at in range(0, len(stream), size) for frame in decoder.feed(stream[at : at + size])]

    assert got == frames


def test_an_unfinished_frame_is_kept_back() -> None:
    decoder = Decoder()

    assert decoder.feed(b"O\x00\x00\x00\x02a") == []
    assert decoder.feed(b"bK\x00\x00") == [(b"O", b"ab")]
    assert decoder.feed(b"\x00\x00") == [(b"K", b"")]


def test_a_frame_that_is_too_long_is_refused_before_it_has_come() -> None:
    with pytest.raises(ValueError, match="expected at most"):
        Decoder().feed(b"O" + (MAX_PAYLOAD_BYTES + 1).to_bytes(4, "big"))


def test_the_longest_frame_is_taken() -> None:
    payload = bytes(MAX_PAYLOAD_BYTES)

    assert Decoder().feed(encode(b"O", payload)) == [(b"O", payload)]


def test_the_limits_of_a_frame_and_a_note() -> None:
    """A note has to hold what is known of a long run, and to fit into a frame."""
    assert MAX_PAYLOAD_BYTES == 1 << 20
    assert MAX_NOTE_BYTES == 1 << 18
