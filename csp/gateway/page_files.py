"""Serve the files of the page, which need no token.

They contain no secrets; the page loads its data with its own token. Files are read for each request, in a
thread, so that an edit shows after a reload; a browser that has the same bytes gets a 304.
"""

import asyncio
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from aiohttp import web

from csp.errors import NotFound
from csp.model_providers import well_known

_FOLDER: Final = Path(__file__).parent.parent / "web" / "page"
INDEX: Final = "index.html"
#: Only flat names of these types are served, so no name leads out of the folder.
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
#: Code and styles come from the gateway only, no string becomes markup, no other page may frame us.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


async def serve_index(request: web.BaseRequest, params: dict[str, str]) -> web.StreamResponse:
    """Serve the page itself."""
    return await _serve(request, INDEX)


async def serve_file(request: web.BaseRequest, params: dict[str, str]) -> web.StreamResponse:
    """Serve a file of the page."""
    name = params["file"]
    if not _NAME.fullmatch(name):
        raise NotFound(f"the page has no file {name!r}", "open / instead")
    return await _serve(request, name)


async def _serve(request: web.BaseRequest, name: str) -> web.StreamResponse:
    try:
        body = await asyncio.to_thread((_FOLDER / name).read_bytes)
    except OSError as exc:
        raise NotFound(f"the page has no file {name!r}", "open / instead") from exc
    body = with_providers(body) if name == INDEX else body
    tag = sha256(body).hexdigest()[:32]
    headers = _HEADERS | {"ETag": f'"{tag}"'}
    if any(known.value in (tag, "*") for known in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers | {"Content-Type": _TYPES[name.rpartition(".")[2]]})


def with_providers(page: bytes) -> bytes:
    """Return the page with the providers of models that its form offers."""
    options = "".join(f"<option>{name}</option>" for name in well_known())
    return page.replace(b"<!-- providers -->", options.encode())
