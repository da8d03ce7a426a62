"""A passage out of a namespace: what connects to a port inside reaches the same port outside."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator

from tests.clis.loopback import Loopback


@contextlib.contextmanager
def passage(loopback: Loopback, port: int) -> Iterator[None]:
    """Keep the passage open; where there is no namespace, none is needed."""
    listener = loopback.listen(port)
    if listener is None:
        yield
        return
    with listener:
        threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, port: int) -> None:
    with contextlib.suppress(OSError):
        while True:
            inside, _ = listener.accept()
            threading.Thread(target=_carry, args=(inside, port), daemon=True).start()


def _carry(inside: socket.socket, port: int) -> None:
    """Carry one connection, in both directions, until one side has ended."""
    with inside, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as outside:
        other = {inside: outside, outside: inside}
        while True:
            readable, _, _ = select.select(list(other), [], [])
            for source in readable:
                data = source.recv(65536)
                if not data:
                    return
                other[source].sendall(data)
