"""The load generator sees what was sent, however the kernel cuts it."""

import socket
from collections.abc import Iterator

import pytest

from csp.errors import Broken
from tests.bench.machine.peers import Client, Listener, Sender, Watcher
from tests.bench.machine.plans import MARK, TEXT, client_frame, numbered

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def event(number: int) -> bytes:
    return numbered(TEXT.encode(), number) + MARK


@pytest.mark.parametrize("cut", range(1, len(event(0))))
def test_a_watcher_counts_an_event_that_comes_in_two_pieces(pair: Pair, cut: int) -> None:
    ours, theirs = pair
    watcher = Watcher(ours, event(0))
    for piece in (event(1)[:cut], event(1)[cut:] + event(2)):
        theirs.sendall(piece)
        watcher.read()

    assert watcher.events == 3


@pytest.mark.parametrize("cut", range(1, len(event(0))))
def test_a_listener_reports_each_number_once(pair: Pair, cut: int) -> None:
    ours, theirs = pair
    heard: list[int] = []
    listener = Listener(ours, b"", lambda number, _: heard.append(number))
    for piece in (event(1)[:cut], event(1)[cut:] + event(2)):
        theirs.sendall(piece)
        listener.read()

    assert heard == [1, 2]


def test_a_watcher_that_is_dropped_ends_the_run(pair: Pair) -> None:
    ours, theirs = pair
    theirs.close()

    with pytest.raises(Broken, match="a watcher was disconnected"):
        Watcher(ours, b"").read()


def test_a_sender_waits_for_the_whole_answer(pair: Pair) -> None:
    ours, theirs = pair
    answers: list[Sender] = []
    sender = Sender(ours, b"message", answers.append)
    sender.send()
    theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    sender.read()
    answers_after_head = len(answers)
    theirs.sendall(b"{}")
    sender.read()

    assert (answers_after_head, len(answers), sender.is_busy) == (0, 1, False)


def test_a_refused_message_ends_the_run(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(b"HTTP/1.1 429 Too Many\r\n\r\n{}")

    with pytest.raises(Broken, match="429"):
        Sender(ours, b"", lambda _: None).read()


def test_a_client_reads_an_answer_of_any_length() -> None:
    body = b"x" * 200_000
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = Client(server.getsockname()[1], "token")
        peer, _ = server.accept()
        with peer:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            answer = client.get("/history")
        client.close()

    assert answer == body


@pytest.mark.parametrize("size", [1, 125, 126, 60_000])
def test_a_frame_holds_its_payload_unchanged(size: int) -> None:
    frame = client_frame(b"x" * size)

    assert frame.endswith(b"\0\0\0\0" + b"x" * size)
