"""A room's second listener, for other machines on the network, always with TLS.

Local programs keep using loopback without TLS, so nothing on this machine has to trust a certificate.
The gateway's guards treat requests from both listeners in the same way.
"""

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from csp.errors import Broken
from csp.gateway.lan_certificate import ensure_certificate, utc_now

_BACKLOG: Final = 128


@dataclass(frozen=True, slots=True)
class LanListener:
    """A listening socket for other machines."""

    listener: socket.socket
    tls: ssl.SSLContext
    url: str


def open_lan(address: str, port: int, folder: Path) -> LanListener:
    """Listen on an address of this machine, at the room's port if it is free there."""
    tls = ensure_certificate(folder, address, utc_now()).context()
    for wanted in (port, 0):
        listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address, wanted))
            listener.listen(_BACKLOG)
            listener.setblocking(False)
            return LanListener(listener, tls, lan_url(address, listener.getsockname()[1]))
        except OSError as exc:
            listener.close()
            error = exc
    problem = f"cannot listen on {address}: {(error.strerror or str(error)).lower()}"
    raise Broken(problem, "name another address of this machine: --lan ADDRESS") from error


def lan_url(address: str, port: int) -> str:
    return f"https://{f'[{address}]' if ':' in address else address}:{port}"
