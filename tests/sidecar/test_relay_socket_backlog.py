"""What waits for a brain is bounded, in order, told once."""

from hypothesis import given
from hypothesis import strategies as st

from csp.sidecar.relay.relay_frames import Decoder
from csp.sidecar.relay.relay_socket import MAX_OUTPUT_BYTES, BrainBacklog


def told(backlog: BrainBacklog) -> list[tuple[bytes, bytes]]:
    frames = []
    decoder = Decoder()
    while data := backlog.next_frames():
        frames += decoder.feed(data)
    return frames


def test_frames_keep_their_places_between_output() -> None:
    backlog = BrainBacklog()
    backlog.add_output(b"one")
    backlog.add(b"K", b"x")
    backlog.add(b"W", b"y")
    backlog.add_output(b"two")
    backlog.add_output(b"three")

    assert told(backlog) == [(b"O", b"one"), (b"K", b"x"), (b"W", b"y"), (b"O", b"twothree")]
    assert told(backlog) == []


def test_a_slow_brain_misses_the_oldest_output() -> None:
    backlog = BrainBacklog()
    backlog.add_output(b"seen")
    assert told(backlog) == [(b"O", b"seen")]
    stream = bytes(range(256)) * 4096
    for at in range(0, len(stream), 1000):
        backlog.add_output(stream[at : at + 1000])
    (gap, count), *outputs = told(backlog)

    assert gap == b"G"
    assert int.from_bytes(count, "big") == len(stream) - MAX_OUTPUT_BYTES
    assert {kind for kind, _ in outputs} == {b"O"}
    assert b"".join(payload for _, payload in outputs) == stream[-MAX_OUTPUT_BYTES:]


def test_a_new_brain_is_greeted_first_then_given_the_newest_output() -> None:
    backlog = BrainBacklog()
    backlog.add_output(b"a" * 10 + b"b" * MAX_OUTPUT_BYTES)
    backlog.add(b"K", b"lost with the old brain")
    told(backlog)
    backlog.start_over()
    backlog.greet(b"S", b"{}")
    backlog.greet(b"N", b"note")

    frames = told(backlog)

    assert frames[:3] == [(b"S", b"{}"), (b"N", b"note"), (b"G", (10).to_bytes(8, "big"))]
    assert b"".join(payload for _, payload in frames[3:]) == b"b" * MAX_OUTPUT_BYTES


def test_keys_for_a_brain_that_never_reads_do_not_pile_up() -> None:
    backlog = BrainBacklog()
    backlog.add(b"D", b"kept")
    for number in range(2000):
        backlog.add(b"K", number.to_bytes(2, "big") * 512)
    frames = told(backlog)

    assert frames[0] == (b"D", b"kept")
    assert frames[-1] == (b"K", (1999).to_bytes(2, "big") * 512)
    assert sum(len(payload) for _, payload in frames) < 1 << 20


def test_keys_that_were_pushed_out_do_not_count_any_more() -> None:
    backlog = BrainBacklog()
    for _ in range(1000):
        backlog.add(b"K", bytes(1024))
    told(backlog)
    assert backlog._frames_bytes == 0
    for key in (b"a", b"b", b"c"):
        backlog.add(b"K", key)

    assert told(backlog) == [(b"K", b"a"), (b"K", b"b"), (b"K", b"c")]


@given(st.lists(st.one_of(st.binary(max_size=9), st.sampled_from(["key", "tell"]))))
def test_a_brain_that_keeps_up_misses_nothing(steps: list[bytes | str]) -> None:
    backlog = BrainBacklog()
    written, frames, keys = b"", [], 0
    for step in steps:
        if step == "key":
            backlog.add(b"K", b"k")
            keys += 1
        elif isinstance(step, str):
            frames += told(backlog)
        else:
            backlog.add_output(step)
            written += step
    frames += told(backlog)

    assert b"".join(payload for kind, payload in frames if kind == b"O") == written
    assert sum(kind == b"K" for kind, _ in frames) == keys


def test_no_more_output_is_kept_than_is_ever_told() -> None:
    backlog = BrainBacklog()
    for _ in range(100):
        backlog.add_output(bytes(10_000))

    assert MAX_OUTPUT_BYTES <= len(backlog._output) <= MAX_OUTPUT_BYTES + (64 << 10)


def test_output_is_told_in_pieces_that_fit_a_frame() -> None:
    backlog = BrainBacklog()
    backlog.add_output(bytes(MAX_OUTPUT_BYTES))

    assert {len(payload) for _, payload in told(backlog)} == {64 << 10}


def test_keys_are_dropped_for_what_waits_now_not_for_what_was_told() -> None:
    backlog = BrainBacklog()
    for _ in range(3):
        for _ in range(500):
            backlog.add(b"K", bytes(1000))
        assert len(told(backlog)) == 500
    for _ in range(3):
        for _ in range(500):
            backlog.add(b"K", bytes(1000))
        backlog.start_over()
    for _ in range(500):
        backlog.add(b"K", bytes(1000))

    assert len(told(backlog)) == 500


def test_as_many_keys_are_dropped_as_are_too_many() -> None:
    backlog = BrainBacklog()
    for _ in range(600):
        backlog.add(b"K", bytes(1000))
    kept = len(told(backlog))

    assert 515 <= kept <= 525
