"""One request, one answer, against a server that says exactly what a test wants."""

import _socket
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from unittest import mock

import pytest

from csp.fast_start.fast_http import Url, _connect, _secured, exchange

Said = list[bytes]


@contextmanager
def server(*said: bytes) -> Iterator[tuple[Url, Said]]:
    """Answer one request with these pieces, then hang up; keep what was asked."""
    asked: Said = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                data = b""
                while b"\r\n\r\n" not in data or not data.endswith((b"\r\n\r\n", b"body")):
                    data += peer.recv(65536)
                asked.append(data)
                # Who has all it wants may hang up before the last piece.
                with suppress(ConnectionError):
                    for piece in said:
                        peer.sendall(piece)

        thread = threading.Thread(target=answer)
        thread.start()
        yield Url(f"http://127.0.0.1:{listener.getsockname()[1]}/base/"), asked
        thread.join()


def ask(url: Url, body: bytes | None = None, on_sent: Callable[[], None] = lambda: None) -> tuple[int, bytes]:
    return exchange(url, "POST", "/x?a=1", {"X-Auth-Token": "t"}, body, 5.0, on_sent)


def test_a_stream_is_passed_on_in_parts_and_not_returned() -> None:
    parts: list[bytes] = []
    stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    with server(stream) as (url, _):
        answer = exchange(url, "POST", "/x", {}, b"body", 5.0, lambda: None, on_part=parts.append)

    assert (answer, parts) == ((200, b""), [b"hel", b"lo"])


def test_a_body_of_known_length_is_returned_whole() -> None:
    parts: list[bytes] = []
    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, _):
        answer = exchange(url, "POST", "/x", {}, b"body", 5.0, lambda: None, on_part=parts.append)

    assert (answer, parts) == ((200, b"{}"), [])


def test_a_request_has_what_a_server_needs() -> None:
    sent: list[int] = []
    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as (url, asked):
        answer = ask(url, b"body", lambda: sent.append(1))

    assert answer == (200, b"{}")
    assert sent == [1]
    head, _, body = asked[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /base/x?a=1 HTTP/1.1",
        b"Host: " + url.authority.encode(),
        b"Connection: close",
        b"X-Auth-Token: t",
        b"Content-Length: 4",
    ]
    assert body == b"body"


@pytest.mark.parametrize(
    "said",
    [
        (b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello",),
        (b"HTTP/1.1 201 Created\r\ncontent-LENGTH:5\r\n\r\nhello and more",),
        (b"HTTP/1.0 201\r\n\r\nhel", b"lo"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello",),
        (b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",),
    ],
)
@pytest.mark.parametrize("is_bytewise", [False, True])
def test_an_answer_may_end_in_any_way(said: tuple[bytes, ...], is_bytewise: bool) -> None:
    whole = b"".join(said)
    pieces = [whole[at : at + 1] for at in range(len(whole))] if is_bytewise else said
    with server(*pieces) as (url, _):
        assert ask(url) == (201, b"hello")


def test_an_answer_may_be_empty() -> None:
    with server(b"HTTP/1.1 204 No Content\r\n\r\n") as (url, _):
        assert ask(url) == (204, b"")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x" * (1 << 17),
    ],
)
def test_what_is_no_whole_answer_is_a_lost_connection(said: bytes) -> None:
    with server(said) as (url, _), pytest.raises(ConnectionError):
        ask(url)


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port", "prefix"),
    [
        ("http://127.0.0.1:8765", "http", "127.0.0.1", 8765, ""),
        ("http://[::1]:8765/", "http", "::1", 8765, ""),
        ("https://[::1]", "https", "::1", 443, ""),
        ("http://localhost/csp/", "http", "localhost", 80, "/csp"),
        ("https://example.org:8443/a/b", "https", "example.org", 8443, "/a/b"),
    ],
)
def test_an_address_is_taken_apart(url: str, scheme: str, host: str, port: int, prefix: str) -> None:
    found = Url(url)

    assert (found.scheme, found.host, found.port, found.prefix) == (scheme, host, port, prefix)


@pytest.mark.parametrize("failure", [None, ConnectionResetError("gone")])
def test_a_secured_connection_is_timed_and_proves_its_host(failure: OSError | None) -> None:
    ours, theirs = socket.socketpair()
    plain = _socket.socket(fileno=ours.detach())
    with theirs, mock.patch.object(ssl, "create_default_context") as context:
        wrap = context.return_value.wrap_socket
        wrap.side_effect = failure
        try:
            found = _secured(plain, Url("https://room.example:9"), 2.5)
        except ConnectionResetError:
            assert failure
            assert wrap.call_args.args[0].fileno() == -1, "what could not be secured is closed"
        else:
            assert found is wrap.return_value
            assert wrap.call_args.args[0].gettimeout() == 2.5
        assert wrap.call_args.kwargs == {"server_hostname": "room.example"}
        wrap.call_args.args[0].close()


@pytest.mark.parametrize(("scheme", "is_secured"), [("http", False), ("https", True)])
def test_only_https_is_secured(scheme: str, is_secured: bool) -> None:
    made, secured = mock.Mock(), mock.Mock()
    with (
        mock.patch.object(_socket, "getaddrinfo", return_value=[(1, 2, 3, "", ("a", 9))]),
        mock.patch.object(_socket, "socket", return_value=made),
        mock.patch("csp.fast_start.fast_http._secured", return_value=secured) as securing,
    ):
        found = _connect(Url(f"{scheme}://room.example:9"), 2.5)

    assert found is (secured if is_secured else made)
    given = [
        (connection, url.host, limit_s)
        for connection, url, limit_s in map(itemgetter(0), securing.call_args_list)
    ]
    assert given == [(made, "room.example", 2.5)] * is_secured
