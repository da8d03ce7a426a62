"""Authenticate callers by token, Host and Origin.

An agent's token consists of its id, the epoch of its ownership and a keyed hash of both. The epoch is in
the journal and the key in the room's secret file, so tokens survive restarts without being stored.
A page's token has no dot, so the two kinds cannot be confused.

A browser sends requests on behalf of any page, so every route checks the headers that identify the page:
- Host must be one of our own names; otherwise a page under a name that resolves to us (DNS rebinding) could
  read the room. Its port is not compared, because a tunnel may use another one.
- Origin must have exactly this scheme, Host and port, since another port belongs to another server.
- Sec-Fetch-Site, if a browser sends it, must name our own page or a person's own navigation.
The pages of the other gateways of a cluster may call us too, for when their own gateway is lost. That gives
nothing away: such a page has a token of the same room, and its gateway has the same secret.
"""

import hmac
import re
import socket
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from csp.errors import BadInput, Forbidden, Unauthenticated
from csp.gateway.own_address import is_loopback
from csp.protocol.enums import HUMAN, AgentId, Role
from csp.room.permissions import Party, party_of
from csp.room.room_state import Room

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_AGENT_TOKEN: Final = re.compile(r"[a-z0-9-]{1,32}\.\d+\.[0-9a-f]{40}")
#: The prefix of every page token.
PAGE_TOKEN: Final = "csp-page_"
#: The subprotocol with which a page sends its token: a browser's WebSocket cannot send headers.
SUBPROTOCOL: Final = "csp"
_TOKEN_OFFER: Final = "csp-token."
_HOST: Final = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?", re.ASCII | re.IGNORECASE)
_IPV4_IN_IPV6: Final = "::ffff:"
#: Values of Sec-Fetch-Site for our own page, or for a request without a page.
_OWN_SITES: Final = frozenset({"same-origin", "none"})
#: Method, Sec-Fetch-Mode and Sec-Fetch-Dest of a request made when a person follows a link to us. The page
#: that contains the link can neither frame nor read ours.
_VISIT: Final = ("GET", "navigate", "document")
MAX_REMEMBERED: Final = 1024
_OPEN_HERE: Final = "open the page from the gateway itself"
_HINT: Final = "send the token as 'X-Auth-Token: ...' or 'Authorization: Bearer ...'"


class Caller(msgspec.Struct, frozen=True):
    """An authenticated caller and its role."""

    id: AgentId
    role: Role
    epoch: int = 0
    #: The hash of the page token, if the caller used one.
    page: str = ""

    @property
    def reader(self) -> AgentId | None:
        """The agent whose view limits the response; None for a person, who may read everything."""
        return None if self.role is Role.ROOM else self.id

    @property
    def party(self) -> Party:
        """The caller's party in the table of roles."""
        return party_of(self.role, is_page=bool(self.page))


NOBODY: Final = Caller(AgentId(""), Role.NONE)


class TokenStore:
    """Issues tokens and identifies their holders."""

    def __init__(self, secret: bytes, room_token: str = "") -> None:
        if _AGENT_TOKEN.fullmatch(room_token):
            raise BadInput("CSP_AUTH_TOKEN is an agent's token, which cannot be used for a room", "unset it")
        if room_token.startswith(PAGE_TOKEN):
            raise BadInput("CSP_AUTH_TOKEN is a page's token, which cannot be used for a room", "unset it")
        self._secret = secret
        self.room_token = room_token or self._sign("room")
        self._room_token_bytes = self.room_token.encode()
        # The hash of a claim never changes. Whether the claim is still valid is checked on every call.
        self._known: dict[str, tuple[str, str]] = {}

    def issue(self, agent: AgentId, epoch: int) -> str:
        """Return the token of the owner of `agent` in this epoch."""
        claim = f"{agent}.{epoch}"
        return f"{claim}.{self._sign(claim)}"

    def is_signed(self, token: str) -> bool:
        """Return whether a token of an agent was issued with this secret, whether or not it is valid now."""
        claim, _, signature = token.rpartition(".")
        return hmac.compare_digest(signature.encode(errors="replace"), self._sign(claim).encode())

    def identify(self, token: str, room: Room) -> Caller:
        """Return the holder of `token`, or raise Unauthenticated."""
        raw = token.encode(errors="replace")
        if hmac.compare_digest(raw, self._room_token_bytes):
            return Caller(HUMAN, Role.ROOM)
        known = self._known.get(token)
        if known is None:
            claim, _, signature = token.rpartition(".")
            if not hmac.compare_digest(signature.encode(errors="replace"), self._sign(claim).encode()):
                raise Unauthenticated("token is not valid in this room", _HINT)
            agent, _, epoch = claim.rpartition(".")
            known = agent, epoch
            if len(self._known) < MAX_REMEMBERED:
                self._known[token] = known
        agent, epoch = known
        participant = room.participants.get(AgentId(agent))
        if participant is None or str(participant.epoch) != epoch:
            raise Unauthenticated(
                f"token of {agent!r} is no longer valid", "register again with the room's token"
            )
        return Caller(participant.id, Role(participant.role), participant.epoch)

    def _sign(self, claim: str) -> str:
        return hmac.new(self._secret, claim.encode(errors="replace"), sha256).hexdigest()[:40]


def read_token(request: web.BaseRequest) -> str:
    """Return the token of a request, or raise Unauthenticated."""
    token = request.headers.get("X-Auth-Token")
    if token is None:
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        token = credentials.strip() if scheme.lower() == "bearer" else ""
    if not token:
        raise Unauthenticated("no token", _HINT)
    return token


def read_offered_token(request: web.BaseRequest) -> str:
    """Return the token that a page offers when it opens a WebSocket, or an empty string.

    Only a page's token is accepted here, and only with an Origin, which the guard has already checked. Other
    programs can send a header and should not come to rely on a second method.
    """
    offers = [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    tokens = [word.removeprefix(_TOKEN_OFFER) for word in offers if word.startswith(_TOKEN_OFFER)]
    if not tokens:
        return ""
    # If no subprotocol matched, aiohttp would log the handshake with the offered token.
    if SUBPROTOCOL not in offers or len(tokens) > 1:
        raise BadInput("unknown subprotocols", f"offer {SUBPROTOCOL!r} with one {_TOKEN_OFFER}TOKEN")
    if "Origin" not in request.headers or not tokens[0].startswith(PAGE_TOKEN):
        raise Forbidden("only a page may offer its token as a subprotocol", _HINT)
    return tokens[0]


class HostGuard:
    """Rejects requests that a browser sends for a foreign page or a rebound host name."""

    def __init__(
        self,
        bound_host: str,
        public_names: str = "",
        public_url: str = "",
        friends: Callable[[], Collection[str]] = tuple,
    ) -> None:
        #: The origins of the other gateways of the cluster.
        self._friends = friends
        public = {name.strip().lower() for name in public_names.split(",")}
        public.add(urlsplit(public_url).hostname or "")
        self._names = set(_LOOPBACK_NAMES) | {bound_host.lower()} | (public - {""})
        # A cache of accepted values, because callers send the same ones with every request.
        self._good: set[str] = set()
        if not is_loopback(bound_host):
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def check(self, request: web.BaseRequest) -> None:
        """Raise Forbidden unless Host, Origin and Sec-Fetch-Site belong to our own page."""
        headers = request.headers
        host = headers.get("Host", "")
        if host not in self._good and not self._is_ours(host, request):
            raise Forbidden(
                f"host {host!r} is not this gateway", "call it by localhost or the address it is bound to"
            )
        if "Origin" in headers or not request.raw_path.startswith("/"):
            own = f"{request.scheme}://{host}".lower()
            for origin in headers.getall("Origin", ()):
                if origin.lower() != own and origin not in self._friends():
                    raise Forbidden(f"origin {origin!r} may not use this gateway", _OPEN_HERE)
            # The request target may also be an absolute URL.
            if not request.raw_path.lower().startswith(("/", f"{own}/")):
                raise Forbidden("the target of the request is not this gateway", "send only a path")
        if headers.get("Sec-Fetch-Site", "none") not in _OWN_SITES and not self.friend_of(request):
            how = request.method, headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")
            if how != _VISIT:
                raise Forbidden("a page from another origin may not use this gateway", _OPEN_HERE)

    def friends(self) -> tuple[str, ...]:
        """Return the origins of the other gateways, whose pages may come here when theirs is lost."""
        return tuple(self._friends())

    def friend_of(self, request: web.BaseRequest) -> str:
        """Return the origin of a request by the page of another gateway; "" for any other request."""
        origin = request.headers.get("Origin", "")
        return origin if origin and origin in self._friends() else ""

    def _is_ours(self, host: str, request: web.BaseRequest) -> bool:
        if not _HOST.fullmatch(host):
            return False
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        # The local address that the caller connected to is also ours.
        local = request.transport.get_extra_info("sockname") if request.transport else None
        address = str(local[0]).removeprefix(_IPV4_IN_IPV6) if local else ""
        if name not in self._names and name != address:
            return False
        if len(self._good) < MAX_REMEMBERED:
            self._good.add(host)
        return True
