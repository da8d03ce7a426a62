"""Manage page tokens: login with a link, expiry after a week, and logout.

The holder of the room token requests a one-time link. The link contains its code in the fragment, which
browsers do not send and logs do not contain; the page exchanges the code for its own token. That token acts
for the human, is valid for a week or until logout, and survives restarts of the gateway: a keyed hash of it
is stored in a file next to the room's secret. It is invalid with another secret or another room token.

The page keeps its token in sessionStorage, which a browser binds to scheme, host, port and tab. A cookie
would apply to every port of this host: any other server on the machine would receive it and could set one.

People leave pages open, so a page token may do less than the room's token: read the room, send messages,
steer modes and use the controls of agents. The table of roles lists what is allowed; new routes are closed
to pages until their row opens them. Not allowed are: issuing tokens or links (a leaked page token could be
renewed forever), removing participants, removing text from the history, reports of agents about themselves
(state, delivery, output, working, inbox), and /metrics.
"""

import asyncio
import contextlib
import hmac
import logging
import secrets
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from csp.cluster.page_store import PageStore
from csp.errors import StorageFull, Unauthenticated
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.gateway.auth import PAGE_TOKEN, Caller
from csp.protocol.enums import HUMAN, Role

log = logging.getLogger(__name__)

FILE: Final = "pages.json"
LINK_S: Final = 120.0
PAGE_S: Final = 7 * 86400.0
#: Beyond these limits the oldest entry is dropped, so a new link can always be created.
MAX_LINKS: Final = 32
MAX_PAGES: Final = 64
HINT: Final = "run: csp web"


class _Entry(msgspec.Struct, frozen=True):
    """A logged-in page: the hash of its token and its expiry."""

    hash: str
    expires: float


class PageTokens:
    """The logged-in pages; unused links are kept only in memory."""

    def __init__(
        self,
        folder: Path,
        secret: bytes,
        room_token: str,
        clock: Callable[[], float],
        store: PageStore | None = None,
    ) -> None:
        self._path = folder / FILE
        #: The store that all gateways of the room share; None if there is only one gateway.
        self._store = store
        #: The sessions that are not stored yet.
        self._changed: dict[str, float] = {}
        self._key = secret + room_token.encode()
        self._clock = clock
        self._links: dict[str, float] = {}
        # Held while writing, which is done in threads so that the room does not wait for the disk.
        self._writing = threading.Lock()
        entries: list[_Entry] = []
        try:
            if store is None:
                entries = msgspec.json.decode(read_plain(self._path), type=list[_Entry])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, RecursionError) as exc:
            # Pages have to log in again, which is better than failing to start the room.
            log.warning("page sessions lost", extra={"why": exc.__class__.__name__})
        self._pages = {entry.hash: entry.expires for entry in entries}

    def __len__(self) -> int:
        return len(self._pages)

    # --- login -----------------------------------------------------------------------------------

    def make_link(self) -> tuple[str, float]:
        """Return a login code for one page, and its expiry."""
        now = self._clock()
        self._links = {code: expires for code, expires in self._links.items() if expires > now}
        while len(self._links) >= MAX_LINKS:
            del self._links[next(iter(self._links))]
        code = secrets.token_urlsafe(24)
        self._links[code] = now + LINK_S
        return code, now + LINK_S

    def use_link(self, code: str) -> tuple[str, float]:
        """Exchange a code for a page token and its expiry; `save` stores the token."""
        given = code.encode(errors="replace")
        # Compare all codes, so that the time taken reveals nothing.
        found = [known for known in self._links if hmac.compare_digest(known.encode(), given)]
        expires = self._links.pop(found[0]) if found else 0.0
        if expires <= self._clock():
            raise Unauthenticated("this link has been used or has expired", HINT)
        token = PAGE_TOKEN + secrets.token_urlsafe(32)
        expires = self._clock() + PAGE_S
        self.end_old()
        while len(self._pages) >= MAX_PAGES:
            del self._pages[next(iter(self._pages))]
        self._change(self._hash(token), expires)
        return token, expires

    def identify(self, token: str) -> Caller:
        """Return the caller of the page with this token, or raise Unauthenticated."""
        caller = Caller(HUMAN, Role.ROOM, page=self._hash(token))
        self.check(caller)
        return caller

    def check(self, caller: Caller) -> None:
        """Raise Unauthenticated if the caller's page has logged out."""
        if not self.is_in(caller.page):
            raise Unauthenticated("page session ended or expired (7 days)", HINT)

    def is_in(self, page: str) -> bool:
        """Return whether the token with this hash is valid."""
        return self._pages.get(page, 0.0) > self._clock()

    # --- logout ----------------------------------------------------------------------------------

    def end(self, page: str) -> None:
        """Revoke the token with this hash; `save` stores the revocation."""
        self._change(page, 0.0)

    def end_all(self) -> None:
        """Revoke all page tokens and all unused links."""
        for page in list(self._pages):
            self._change(page, 0.0)
        self._links.clear()

    def end_old(self) -> None:
        """Drop expired tokens."""
        now = self._clock()
        self._pages = {page: expires for page, expires in self._pages.items() if expires > now}

    def record(self, page: str, expires: float) -> None:
        """Note a session that another gateway has stored, or its end."""
        if expires > self._clock():
            self._pages[page] = expires
        else:
            self._pages.pop(page, None)

    def _change(self, page: str, expires: float) -> None:
        self._changed[page] = expires
        if expires:
            self._pages[page] = expires
        else:
            self._pages.pop(page, None)

    async def save(self, *, is_end: bool = False) -> None:
        """Store the sessions; raise StorageFull or LogLost if that is not possible."""
        changed, self._changed = self._changed, {}
        if self._store is None:
            await asyncio.to_thread(self.write, is_end=is_end)
            return
        for page, expires in changed.items():
            await self._store.put(page, expires)

    def write(self, *, is_end: bool = False) -> None:
        """Write the sessions to disk; if a logout cannot be written, no session outlives the gateway."""
        with self._writing:
            entries = [_Entry(page, expires) for page, expires in self._pages.copy().items()]
            try:
                replace_file(self._path, msgspec.json.encode(entries))
            except OSError as exc:
                if is_end:
                    with contextlib.suppress(OSError):
                        self._path.unlink(missing_ok=True)
                raise StorageFull("cannot save page sessions", "free some space on the disk") from exc

    def _hash(self, token: str) -> str:
        return _hash_with(self._key, token)


def page_hash(secret: bytes, room_token: str, token: str) -> str:
    """Return the hash under which the token of a page is stored."""
    return _hash_with(secret + room_token.encode(), token)


def _hash_with(key: bytes, token: str) -> str:
    return hmac.new(key, token.encode(errors="replace"), sha256).hexdigest()
