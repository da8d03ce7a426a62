"""The way to a room: what the tools ask of its gateway.

`csp mcp` goes over the network; /mcp, which is a part of the gateway, asks the routes themselves. Either way
the gateway knows who asks by the token, decides, says what it refuses.
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

#: A gateway that was killed is back within this time.
PATIENCE_S: Final = 20.0
_PAUSE_S: Final = 0.2
#: Asked twice, these do what they do asked once: they carry an id, or say what already holds.
_SAFE: Final = frozenset({"/message", "/agent-output", "/board", "/delivery", "/state"})
#: These do so if they carry an id.
_SAFE_WITH_ID: Final = frozenset({"/mode", "/sessions", "/stop", "/collaborations", "/runs"})
_SAFE_BELOW: Final = "/turn/"


class RoomClient(Protocol):
    """One caller's way to one room."""

    async def get(self, path: str, **query: Query) -> Any:
        """Return the answer to a GET, or raise what the gateway says."""

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """Return the answer to a POST, or raise what the gateway says."""


async def me(door: RoomClient) -> MeView:
    """Return for whom the caller's token speaks."""
    return msgspec.convert(await door.get("/me"), MeView)


def reads_inbox(who: MeView) -> bool:
    """Tell whether what is said to a participant waits for its own tool; others have it typed in."""
    return who.kind is ParticipantKind.MCP and who.role is not Role.ROOM


class HttpRoomClient:
    """A door over HTTP; `connect` finds the gateway, which may be at another port after a failure."""

    def __init__(self, connect: Callable[[], GatewayClient]) -> None:
        self._connect = connect
        self._gateway: GatewayClient | None = None
        self._has_answered = False
        # To connect may mean to join, which several calls at once must do once.
        self._connecting = threading.Lock()

    async def get(self, path: str, **query: Query) -> Any:
        return await _in_thread(lambda: self._ask(lambda it: it.get(path, **query), is_safe=True))

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        is_safe = path in _SAFE or path.startswith(_SAFE_BELOW) or (path in _SAFE_WITH_ID and "id" in body)
        return await _in_thread(lambda: self._ask(lambda it: it.post(path, body), is_safe=is_safe))

    def ask(self, call: Callable[[GatewayClient], Any]) -> Any:
        """Ask, blocking; what is asked may be asked twice."""
        return self._ask(call, is_safe=True)

    def _ask(self, call: Callable[[GatewayClient], Any], *, is_safe: bool) -> Any:
        # A room that has never answered may not be running at all, which is said at once.
        deadline = time.monotonic() + (PATIENCE_S if self._has_answered else 0)
        while True:
            is_sent = False
            try:
                gateway = self._connected()
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

    def _connected(self) -> GatewayClient:
        with self._connecting:
            gateway = self._gateway = self._gateway or self._connect()
            return gateway


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Run what blocks in a thread that nobody waits for at the end, as they do for those of a pool."""
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
