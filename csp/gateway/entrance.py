"""The entrance of requests: to the one room of a gateway, or to one of the many rooms of a hub."""

import resource
from collections import Counter
from typing import Protocol

from aiohttp import web
from msgspec.structs import replace

from csp.errors import TooMany
from csp.gateway.auth import Caller, HostGuard
from csp.gateway.gateway import Gateway
from csp.gateway.mcp_endpoint import Bridge
from csp.protocol.enums import AgentId


class RoomEntrance:
    """An open room, as requests use it; `name` is empty if its process has no other room."""

    def __init__(self, gateway: Gateway, name: str = "") -> None:
        self.gateway = gateway
        self.name = name
        self.mcp = Bridge(gateway)
        #: The requests that are being answered.
        self.callers = 0

    def as_guest(self, caller: Caller) -> Caller:
        """Return a caller as the connections of the process know it: agents of two rooms are not the same."""
        return replace(caller, id=AgentId(f"{self.name}/{caller.id}")) if self.name else caller


class Entrance(Protocol):
    """Finds the room of a request."""

    host_guard: HostGuard
    #: How many files the connections may use.
    max_files: int
    #: Answered requests by status.
    requests: Counter[int]

    def own_answer(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """Return the answer to a request that is for no room; None for all others."""

    def split(self, path: str) -> tuple[str, str]:
        """Return the name of the room in a path, and the path within the room; raise NotFound."""

    def identify(self, token: str, head: bytes) -> Caller:
        """Return the holder of a token in the room of a request, or raise CspError."""

    def too_fast(self, agent: AgentId) -> TooMany | None:
        """Return the error for an agent over its rate."""

    async def enter(self, name: str, request: web.BaseRequest) -> RoomEntrance:
        """Return a room for a request, until `leave`; raise CspError if that is not possible."""

    def leave(self, room: RoomEntrance) -> None:
        """End a request."""


class OnlyRoom:
    """The entrance of a gateway with one room."""

    def __init__(self, gateway: Gateway) -> None:
        self._room = RoomEntrance(gateway)
        self.host_guard = gateway.host_guard
        self.requests = gateway.metrics.requests
        self.max_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def own_answer(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """See `Entrance.own_answer`."""
        return None

    def split(self, path: str) -> tuple[str, str]:
        """See `Entrance.split`."""
        return "", path

    def identify(self, token: str, head: bytes) -> Caller:
        """See `Entrance.identify`."""
        return self._room.gateway.identify(token)

    def too_fast(self, agent: AgentId) -> TooMany | None:
        """See `Entrance.too_fast`."""
        return self._room.gateway.throttle.refusal(agent)

    async def enter(self, name: str, request: web.BaseRequest) -> RoomEntrance:
        """See `Entrance.enter`."""
        return self._room

    def leave(self, room: RoomEntrance) -> None:
        """See `Entrance.leave`."""
