"""Login and logout routes of the page."""

import asyncio
import contextlib
import logging
import socket
from typing import Final

from csp.errors import BadInput, StorageFull
from csp.gateway.auth import is_loopback
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call
from csp.protocol.requests import EnterBody, LeaveBody
from csp.protocol.responses import Done, EnteredView, LinkView

log = logging.getLogger(__name__)

_ANY: Final = {"0.0.0.0": (socket.AF_INET,), "::": (socket.AF_INET, socket.AF_INET6)}
#: Reserved addresses: connecting a UDP socket sends nothing, but the kernel picks its local address.
_NOBODY: Final = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


async def link(gateway: Gateway, call: Call) -> Answer:
    """Create a login link for one page."""
    code, expires = gateway.page_tokens.make_link()
    hosts = tuple(await asyncio.to_thread(addresses, gateway.settings.host))
    return LinkView(success=True, code=code, path=f"/#link={code}", expires=expires, hosts=hosts)


async def enter(gateway: Gateway, call: Call) -> Answer:
    """Exchange the code of a link for a page token."""
    body: EnterBody = call.body
    token, expires = gateway.page_tokens.use_link(body.code)
    try:
        await asyncio.to_thread(gateway.page_tokens.save)
    except StorageFull:
        gateway.page_tokens.end(gateway.page_tokens.identify(token).page)
        raise
    log.info("page entered", extra={"pages": len(gateway.page_tokens)})
    return EnteredView(success=True, token=token, room=gateway.settings.room, expires=expires)


async def leave(gateway: Gateway, call: Call) -> Answer:
    """Revoke the caller's page token, or those of all pages."""
    body: LeaveBody = call.body
    if not body.all and not call.caller.page:
        raise BadInput("this is the room's token, not a page's", "set all to end every page")
    if body.all:
        gateway.page_tokens.end_all()
    else:
        gateway.page_tokens.end(call.caller.page)
    gateway.drop_stale_sockets()
    # Long polls with a revoked token wake up and fail.
    gateway.broadcast.wake(None)
    await asyncio.to_thread(gateway.page_tokens.save, is_end=True)
    log.info("page left", extra={"pages": len(gateway.page_tokens)})
    return Done()


def addresses(host: str) -> list[str]:
    """Return the addresses at which other machines reach a gateway bound to `host`."""
    if is_loopback(host):
        return []
    if host and host not in _ANY:
        return [host]
    found = dict.fromkeys(_own_address(family) for family in _ANY.get(host, (socket.AF_INET,)))
    return [address for address in found if address and not is_loopback(address)]


def _own_address(family: socket.AddressFamily) -> str:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((_NOBODY[family], 9))
        return str(probe.getsockname()[0])
    return ""
