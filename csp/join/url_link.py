"""A link to gateways that are reachable by themselves: clients connect to them directly."""

import asyncio
import stat
from pathlib import Path
from typing import Final, Never

from csp.errors import BadInput, CspError, Forbidden, Unauthenticated, Unreachable
from csp.fast_start.atomic_files import read_plain
from csp.fast_start.fast_http import Url, split_urls, trust
from csp.gateway.own_address import is_loopback
from csp.http_client import GatewayClient, field
from csp.join.announcement import Announcement

#: How often the gateways are asked whether they still answer.
CHECK_S: Final = 5.0
_MAX_TOKEN: Final = 4096


class UrlLink:
    """Announces the gateways of a room, and notes when none of them answers."""

    def __init__(self, urls: str, token_file: Path, ca_file: str, announcement: Announcement) -> None:
        self._urls = urls
        self._token_file = token_file
        self._ca_file = ca_file
        self._announcement = announcement

    async def run(self) -> Never:
        """Announce the room once it can be reached with the token; raise if it cannot."""
        is_up = False
        while True:
            try:
                token = read_token(self._token_file)
                await asyncio.to_thread(check, self._urls, token, self._ca_file)
                if not is_up:
                    self._announcement.make(self._urls, token, self._ca_file)
                is_up = True
            except CspError as error:
                if not self._announcement.is_made:
                    raise
                is_up = False
                self._announcement.note_loss(error.message)
            await asyncio.sleep(CHECK_S)


def check(urls: str, token: str, ca_file: str) -> str:
    """Return the name of the room at these gateways; raise if the token is not that of the room."""
    for url in split_urls(urls):
        parts = Url(url)
        if parts.scheme != "https" and not is_loopback(parts.host):
            problem = f"{url} is not encrypted, and the room's token would be sent over the network"
            raise BadInput(problem, "use https, or ssh: csp join USER@HOST:ROOM")
    if ca_file:
        trust(urls, ca_file)
    gateway = GatewayClient(urls, token)
    try:
        who = gateway.get("/me")
    except Unauthenticated as exc:
        raise Forbidden("the token is not valid in this room", "print it there with: csp token") from exc
    if field(who, "role", str) != "room":
        raise Forbidden("the token is that of an agent", "print the room's token there with: csp token")
    return field(who, "room", str)


def read_token(path: Path) -> str:
    """Return the token in a file that only its owner can read."""
    try:
        mode, data = path.stat().st_mode, read_plain(path, _MAX_TOKEN)
    except OSError as exc:
        raise Unreachable(f"cannot read the token in {str(path)!r}: {(exc.strerror or '').lower()}") from exc
    if stat.S_IMODE(mode) & 0o077:
        raise BadInput(f"others can read the token in {str(path)!r}", f"chmod 600 {path}")
    token = data.decode(errors="replace").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise BadInput(f"--token-file: expected one line with a token in {str(path)!r}")
    return token
