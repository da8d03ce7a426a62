"""Gateway clients for the MCP tools.

`csp mcp` uses the network; /mcp, which is part of the gateway, calls its routes directly. In both cases the
gateway identifies the caller by its token, decides, and returns its own errors.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from csp.errors import Unreachable
from csp.http_client import GatewayClient, Query
from csp.protocol.enums import ParticipantKind, Role
from csp.protocol.responses import MeView

#: The time within which a killed gateway is restarted.
PATIENCE_S: Final = 20.0
_PAUSE_S: Final = 0.2
#: Calls that are idempotent because they carry an id or repeat a known fact.
_SAFE: Final = frozenset({"/message", "/agent-output", "/board", "/delivery", "/state"})
#: Calls that are idempotent if they carry an id.
_SAFE_WITH_ID: Final = frozenset({"/mode", "/sessions", "/stop", "/collaborations", "/runs"})
_SAFE_BELOW: Final = "/turn/"


class RoomClient(Protocol):
    """The interface of a client for one room and one caller."""

    async def get(self, path: str, **query: Query) -> Any:
        """Return the response to a GET, or raise the gateway's error."""

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the response to a POST, or raise the gateway's error."""


async def me(door: RoomClient) -> MeView:
    """Return the owner of the caller's token."""
    return msgspec.convert(await door.get("/me"), MeView)


def reads_inbox(who: MeView) -> bool:
    """Return whether messages wait for the participant's inbox tool instead of being typed in."""
    return who.kind is ParticipantKind.MCP and who.role is not Role.ROOM


class HttpRoomClient:
    """A room client over HTTP; it calls `connect` to find the gateway again after a failure."""

    def __init__(self, connect: Callable[[], GatewayClient]) -> None:
        self._connect = connect
        self._gateway: GatewayClient | None = None
        self._has_answered = False
        # Connecting may join the room, which concurrent calls must do only once.
        self._connecting = threading.Lock()

    async def get(self, path: str, **query: Query) -> Any:
        return await _in_thread(lambda: self._ask(lambda it: it.get(path, **query), is_safe=True))

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        is_safe = path in _SAFE or path.startswith(_SAFE_BELOW) or (path in _SAFE_WITH_ID and "id" in body)
        return await _in_thread(lambda: self._ask(lambda it: it.post(path, body), is_safe=is_safe))

    def ask(self, call: Callable[[GatewayClient], Any]) -> Any:
        """Make a blocking, repeatable call, and retry it while the gateway is being restarted."""
        return self._ask(call, is_safe=True)

    def _ask(self, call: Callable[[GatewayClient], Any], *, is_safe: bool) -> Any:
        # A room that has never responded may not be running at all, so fail immediately.
        deadline = time.monotonic() + (PATIENCE_S if self._has_answered else 0)
        while True:
            is_sent = False
            try:
                with self._connecting:
                    gateway = self._gateway = self._gateway or self._connect()
                is_sent = True
                answer = call(gateway)
            except Unreachable as exc:
                self._gateway = None
                may_repeat = is_safe or not is_sent or isinstance(exc.__cause__, ConnectionRefusedError)
                if not may_repeat or time.monotonic() >= deadline:
                    raise
                time.sleep(_PAUSE_S)
                continue
            self._has_answered = True
            return answer


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Run a blocking function in a thread that is not waited for at exit, unlike a pool's."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        value, error = None, None
        try:
            value = call()
        except BaseException as exc:
            error = exc
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, daemon=True, name="csp-mcp-call").start()
    return await future
