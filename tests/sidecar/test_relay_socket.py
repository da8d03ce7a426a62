"""How soon a brain that died is followed by another, what it is told first."""

import os
import socket
from unittest import mock

import pytest

from csp.sidecar.relay.input_queue import NEVER
from csp.sidecar.relay.relay_frames import MAX_NOTE_BYTES, Decoder, encode
from csp.sidecar.relay.relay_socket import BrainBacklog, BrainLink


def test_each_wait_for_a_brain_is_longer_up_to_five_seconds_and_short_again_after_a_minute() -> None:
    link, now, waits = BrainLink(["/none/such"], "/dev/null"), 1000.0, []
    for _ in range(8):
        link.adopt(0, -1, now)
        assert link.retry_at == NEVER
        link.lose(now + 1)
        waits.append(round(link.retry_at - now - 1, 3))
        now = link.retry_at
    link.adopt(0, -1, now)
    link.lose(now + 61)

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert round(link.retry_at - now - 61, 3) == 0.1
    assert link.starts == 9


def test_a_brain_that_cannot_be_started_is_tried_later() -> None:
    link = BrainLink(["/none/such"], "/dev/null")

    assert not link.start(50.0)
    assert (link.fd, link.starts, link.retry_at) == (-1, 0, 50.1)


def test_a_new_brain_is_greeted_with_the_last_note_that_was_not_too_long() -> None:
    link = BrainLink([], "")
    child = mock.Mock(pid=7, rows_cols=(24, 80), other_end="/dev/pts/3")
    link.keep(b"an older note")
    link.keep(b"note")
    link.keep(bytes(MAX_NOTE_BYTES + 1))
    link.adopt(1, -1, 0.0)
    link.greet(child, is_holding=True)
    frames = Decoder().feed(link.backlog.next_frames())

    assert frames == [
        (b"S", b'{"pid": 7, "rows": 24, "cols": 80, "starts": 1, "held_keys": true, "tty": "/dev/pts/3"}'),
        (b"N", b"note"),
    ]


def connected(link: BrainLink) -> socket.socket:
    ours, its = socket.socketpair()
    ours.setblocking(False)
    link.adopt(0, ours.detach(), 0.0)
    return its


def test_half_a_frame_of_a_dead_brain_is_not_the_start_of_the_next_ones() -> None:
    link = BrainLink([], "")
    with connected(link) as first:
        first.send(encode(b"I", b"halved")[:7])
        assert link.receive() == []
    assert link.receive() is None
    link.lose(1.0)
    with connected(link) as second:
        second.send(encode(b"R"))
        assert link.receive() == [(b"R", b"")]
        assert link.receive() == [], "nothing has come"
        second.send(b"I" + bytes([255] * 4))
        assert link.receive() is None, "a brain that is out of step is given up"
    link.lose(1.0)


def test_a_brain_that_takes_nothing_blocks_until_it_reads_and_its_rest_is_not_the_next_ones() -> None:
    link = BrainLink([], "")
    with connected(link) as first:
        link.backlog.add_output(bytes(200_000))
        while not link.is_blocked:
            link.backlog.add_output(bytes(200_000))
            link.flush()
        first.recv(1)
    link.lose(1.0)
    with connected(link) as second:
        assert not link.is_blocked
        link.backlog.greet(b"S", b"{}")
        link.flush()
        assert second.recv(7) == encode(b"S", b"{}")
    link.flush()
    assert not link._unsent, "what a dead brain did not take is dropped"
    link.lose(1.0)


def test_the_line_to_a_brain_that_is_given_up_is_closed() -> None:
    link = BrainLink([], "")
    with connected(link) as brain:
        before = link.fd
        link.lose(1.0)

        assert brain.recv(1) == b""
        assert (before >= 0, link.fd) == (True, -1)


def test_two_brains_never_run() -> None:
    with mock.patch.object(os, "kill", side_effect=ProcessLookupError) as killed:
        link = BrainLink([], "")
        link.adopt(4321, -1, 0.0)
        link.lose(1.0)

    assert killed.call_args.args == (4321, 9)
    assert link.pid == 0


@pytest.mark.parametrize("count", [0, 10])
def test_what_is_not_told_yet_is_counted(count: int) -> None:
    backlog = BrainBacklog()
    backlog.add_output(bytes(count))
    before = backlog.unsent_bytes()
    while backlog.next_frames():
        pass

    assert (before, backlog.unsent_bytes()) == (count, 0)
