"""Serve the files of the page and the routes for logging in and out.

The files need no token, because they contain no secrets; the page loads its data with its own token. They
are read in a thread for each request, so that edits appear after a reload. A browser that already has the
same bytes gets a 304.
"""

import asyncio
import html
import logging
import re
import socket
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Final

from aiohttp import web

from csp.errors import BadInput, LogLost, NotFound, StorageFull
from csp.gateway.gateway import Gateway
from csp.gateway.own_address import is_loopback, own_address
from csp.gateway.route_table import Posted
from csp.model_providers import well_known
from csp.protocol.requests import EnterBody, LeaveBody, NoBody
from csp.protocol.responses import Done, EnteredView, LinkView

log = logging.getLogger(__name__)

_ANY: Final = {"0.0.0.0": (socket.AF_INET,), "::": (socket.AF_INET, socket.AF_INET6)}
_FOLDER: Final = Path(__file__).parent.parent / "web" / "page"
INDEX: Final = "index.html"
#: Only names without folders and with these types are served, so no name can point outside the folder.
_NAME: Final = re.compile(r"[a-z0-9_-][a-z0-9._-]*\.(js|css|svg|png|ico|webmanifest)", re.ASCII)
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}
#: Code and styles load only from the gateway, no string becomes markup, and no other page may frame ours.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'{others}; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


async def link(gateway: Gateway, call: Posted[NoBody]) -> LinkView:
    """Create a login link for one page."""
    code, expires = gateway.page_tokens.make_link()
    hosts = tuple(await asyncio.to_thread(addresses, gateway.settings.host))
    return LinkView(success=True, code=code, path=f"/#link={code}", expires=expires, hosts=hosts)


async def enter(gateway: Gateway, call: Posted[EnterBody]) -> EnteredView:
    """Exchange the code of a link for a page token."""
    body = call.body
    token, expires = gateway.page_tokens.use_link(body.code)
    try:
        await gateway.page_tokens.save()
    except (StorageFull, LogLost):
        gateway.page_tokens.end(gateway.page_tokens.identify(token).page)
        raise
    log.info("page entered", extra={"pages": len(gateway.page_tokens)})
    return EnteredView(success=True, token=token, room=gateway.settings.room, expires=expires)


async def leave(gateway: Gateway, call: Posted[LeaveBody]) -> Done:
    """Revoke the caller's page token, or those of all pages."""
    body = call.body
    if not body.all and not call.caller.page:
        raise BadInput("this is the room's token, not a page's", "set all to sign out all pages")
    if body.all:
        gateway.page_tokens.end_all()
    else:
        gateway.page_tokens.end(call.caller.page)
    gateway.drop_stale_sockets()
    # Wake long polls, so that those with a revoked token fail.
    gateway.broadcast.wake(None)
    await gateway.page_tokens.save(is_end=True)
    log.info("page left", extra={"pages": len(gateway.page_tokens)})
    return Done()


def addresses(host: str) -> list[str]:
    """Return the addresses at which other machines reach a gateway bound to `host`."""
    if is_loopback(host):
        return []
    if host and host not in _ANY:
        return [host]
    found = dict.fromkeys(own_address(family) for family in _ANY.get(host, (socket.AF_INET,)))
    return [address for address in found if address and not is_loopback(address)]


async def serve_index(
    request: web.BaseRequest, params: dict[str, str], others: tuple[str, ...] = ()
) -> web.StreamResponse:
    """Serve the page itself; it may use the other gateways of its room."""
    return await _serve(request, INDEX, others)


async def serve_file(
    request: web.BaseRequest, params: dict[str, str], others: tuple[str, ...] = ()
) -> web.StreamResponse:
    """Serve a file of the page."""
    name = params["file"]
    if not _NAME.fullmatch(name):
        raise NotFound(f"the page has no file {name!r}", "open / instead")
    return await _serve(request, name)


async def _serve(request: web.BaseRequest, name: str, others: tuple[str, ...] = ()) -> web.StreamResponse:
    try:
        body = await asyncio.to_thread((_FOLDER / name).read_bytes)
    except OSError as exc:
        raise NotFound(f"the page has no file {name!r}", "open / instead") from exc
    body = with_gateways(with_providers(body), others) if name == INDEX else body
    tag = sha256(body).hexdigest()[:32]
    headers = _HEADERS | {"ETag": f'"{tag}"', "Content-Security-Policy": policy_for(others)}
    if any(known.value in (tag, "*") for known in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers | {"Content-Type": _TYPES[name.rpartition(".")[2]]})


def policy_for(others: Iterable[str]) -> str:
    """Return the policy of a page that may also connect to other gateways."""
    sources = (f" {url} ws{url.removeprefix('http')}" for url in others)
    return _POLICY.format(others="".join(sources))


def with_gateways(page: bytes, others: Iterable[str]) -> bytes:
    """Return the page with the URLs of the other gateways inserted."""
    meta = f'<meta name="csp-gateways" content="{html.escape(" ".join(others))}" />'
    return page.replace(b"<!-- gateways -->", meta.encode())


def with_providers(page: bytes) -> bytes:
    """Return the page with the model providers inserted into its form."""
    options = "".join(f"<option>{name}</option>" for name in well_known())
    return page.replace(b"<!-- providers -->", options.encode())
