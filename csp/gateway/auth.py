"""Who is calling: tokens, Host, Origin.

An agent's token is its id, the epoch of its ownership, a keyed hash over both. The journal holds
the epoch, the room's secret file the key, so a token outlives restarts without being stored anywhere.
"""

import hmac
import ipaddress
import re
import socket
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

import msgspec
from aiohttp import web

from csp.core.room import Room
from csp.errors import BadInput, Forbidden, Unauthenticated
from csp.wire import HUMAN, AgentId, Role

_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_AGENT_TOKEN: Final = re.compile(r"[a-z0-9-]{1,32}\.\d+\.[0-9a-f]{40}")
MAX_REMEMBERED: Final = 1024
_HINT: Final = "send the token as 'X-Auth-Token: ...' or 'Authorization: Bearer ...'"


class Caller(msgspec.Struct, frozen=True):
    """Whose words these are, and what they may ask for."""

    id: AgentId
    role: Role
    epoch: int = 0


NOBODY: Final = Caller(AgentId(""), Role.NONE)


class Tokens:
    """Make tokens, and tell whose a token is."""

    def __init__(self, secret: bytes, room_token: str = "") -> None:
        if _AGENT_TOKEN.fullmatch(room_token):
            raise BadInput("CSP_AUTH_TOKEN holds an agent's token, which cannot be a room's", "unset it")
        self._secret = secret
        self.room_token = room_token or self._sign("room")
        self._room_token_bytes = self.room_token.encode()
        # The hash over a claim never changes; whether the claim still holds is asked every time.
        self._known: dict[str, tuple[str, str]] = {}

    def issue(self, agent: AgentId, epoch: int) -> str:
        """Return the token of the owner of `agent` in this epoch."""
        claim = f"{agent}.{epoch}"
        return f"{claim}.{self._sign(claim)}"

    def identify(self, token: str, room: Room) -> Caller:
        """Return who holds `token`, or raise Unauthenticated."""
        raw = token.encode(errors="replace")
        if hmac.compare_digest(raw, self._room_token_bytes):
            return Caller(HUMAN, Role.ROOM)
        agent, epoch = self._known.get(token) or self._check(token)
        participant = room.participants.get(AgentId(agent))
        if participant is None or str(participant.epoch) != epoch:
            raise Unauthenticated(
                f"token of {agent!r} is no longer valid", "register again with the room's token"
            )
        return Caller(participant.id, Role(participant.role), participant.epoch)

    def _check(self, token: str) -> tuple[str, str]:
        claim, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self._sign(claim).encode()):
            raise Unauthenticated("token is not valid in this room", _HINT)
        agent, _, epoch = claim.rpartition(".")
        if len(self._known) < MAX_REMEMBERED:
            self._known[token] = (agent, epoch)
        return agent, epoch

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


class HostGuard:
    """Refuse requests that a foreign page or a rebound name sent through a browser."""

    def __init__(self, bound_host: str) -> None:
        self._names = set(_LOOPBACK_NAMES) | {bound_host.lower()}
        # Callers repeat themselves; what was good once is not taken apart again.
        self._good: set[str] = set()
        if not is_loopback(bound_host):
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def check(self, request: web.BaseRequest) -> None:
        """Raise Forbidden unless Host, and Origin where there is one, are ours."""
        host = request.headers.get("Host", "")
        if host not in self._good and not self._is_ours(host, request):
            raise Forbidden(
                f"host {host!r} is not this gateway", "call it by localhost or the address it is bound to"
            )
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower().partition("://")[2] != host.lower():
            raise Forbidden(
                f"origin {origin!r} may not use this gateway", "open the page from the gateway itself"
            )

    def _is_ours(self, host: str, request: web.BaseRequest) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        local = request.transport.get_extra_info("sockname") if request.transport else None
        if name not in self._names and (local is None or name != local[0]):
            return False
        if len(self._good) < MAX_REMEMBERED:
            self._good.add(host)
        return True


def is_loopback(host: str) -> bool:
    """Tell whether nobody outside this machine can reach `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
