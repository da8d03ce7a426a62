"""Single HTTP calls to the gateway, each over its own connection."""

from typing import Final, TypeVar

from msgspec import field

from csp.client.background_tasks import in_thread
from csp.client.incoming_frames import read_answer
from csp.http_client import GatewayClient
from csp.protocol.enums import Struct

T = TypeVar("T")

#: The timeout for a response.
TIMEOUT_S: Final = 20.0


class RoomPlace(Struct, frozen=True):
    """Which room a gateway serves, and how far it is; earlier gateways do not say which.

    A replica may be behind the room.
    """

    seq: int
    room_id: str = field(name="roomId", default="")
    replica: bool = False


class HttpCalls:
    """The gateway over plain HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self._gateway = GatewayClient(url, token)
        self.url = self._gateway.url
        self.token = token

    async def place(self) -> RoomPlace:
        """Return which room this is, and its last event."""
        return await self._ask(RoomPlace, "GET", "/health", None)

    async def post(self, kind: type[T], path: str, body: bytes) -> T:
        """Return the response to a POST."""
        return await self._ask(kind, "POST", path, body)

    async def _ask(self, kind: type[T], method: str, path: str, body: bytes | None) -> T:
        status, raw = await in_thread(lambda: self._gateway.exchange(method, path, body, TIMEOUT_S))
        return read_answer(kind, status, raw, self.url)
