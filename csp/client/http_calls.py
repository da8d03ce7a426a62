"""Single HTTP calls to the gateway, each over its own connection."""

from typing import Final, TypeVar

from msgspec import field

from csp.client.background_tasks import in_thread
from csp.client.incoming_frames import read_answer
from csp.fast_start.fast_http import split_urls
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
    """A room's gateways over plain HTTP; `url` is the one that the connection uses."""

    def __init__(self, url: str, token: str) -> None:
        self._gateway = GatewayClient(url, token)
        urls = split_urls(url)
        self._each = [GatewayClient(one, token) for one in urls] if len(urls) > 1 else [self._gateway]
        self._at = 0
        self.token = token

    def __len__(self) -> int:
        return len(self._each)

    @property
    def url(self) -> str:
        return self._each[self._at].url

    def move_on(self) -> None:
        """Let the connection use the next gateway."""
        self._at = (self._at + 1) % len(self._each)

    async def place(self, timeout_s: float = TIMEOUT_S) -> RoomPlace:
        """Return which room the connection's gateway serves, and its last event."""
        return await _ask(RoomPlace, self._each[self._at], "GET", "/health", None, timeout_s)

    async def post(self, kind: type[T], path: str, body: bytes) -> T:
        """Return the response of any gateway to a POST."""
        return await _ask(kind, self._gateway, "POST", path, body, TIMEOUT_S)


async def _ask(
    kind: type[T], gateway: GatewayClient, method: str, path: str, body: bytes | None, timeout_s: float
) -> T:
    status, raw = await in_thread(lambda: gateway.exchange(method, path, body, timeout_s))
    return read_answer(kind, status, raw, gateway.url)
