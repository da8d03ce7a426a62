"""This machine's addresses, and the one at which other machines can reach it."""

import contextlib
import ipaddress
import socket
from typing import Final

from csp.errors import BadInput
from csp.setting_types import is_loopback as is_loopback

#: Reserved addresses: connecting a UDP socket sends nothing but makes the kernel choose a local address.
_NOBODY: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def own_address(family: socket.AddressFamily = socket.AF_INET) -> str:
    """Return the address at which other machines on the network can reach this one, or an empty string."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_NOBODY[family], 9))
        return str(probe.getsockname()[0])
    return ""


def check_address(text: str) -> str:
    """Return an IP address in its usual form; raise for a name, a multicast or an unspecified address."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if address is None or address.is_unspecified or address.is_multicast:
        raise BadInput(f"--lan: expected an IP address of this machine, got {text!r}")
    return str(address)
