"""Single questions to the gateway, each over a connection of its own."""

import asyncio
from typing import Final, TypeVar
from urllib.parse import urlencode

from csp.client.background_tasks import in_thread
from csp.client.incoming_frames import read_answer
from csp.http_client import GatewayClient, Query
from csp.protocol.enums import Struct

T = TypeVar("T")

#: How long an answer may take, beyond the wait that was asked for.
TIMEOUT_S: Final = 20.0


class _Health(Struct, frozen=True):
    seq: int


class HttpCalls:
    """The gateway over plain HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self._gateway = GatewayClient(url, token)
        self.url = self._gateway.url
        self.token = token
        #: Requests whose thread has not sent them yet; it may do so after its caller was cancelled.
        self._unsent: set[object] = set()

    async def sent(self) -> None:
        """Return when nothing that was asked before can reach the gateway later."""
        # A thread has no way to wake the loop of a caller that has left it behind.
        while self._unsent:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    async def seq(self) -> int:
        """Return the seq of the room's last event."""
        return (await self.get(_Health, "/health")).seq

    async def get(self, kind: type[T], path: str, wait_s: float = 0, **query: Query) -> T:
        """Return the answer to a GET, which may take `wait_s` to come."""
        if wait_s:
            query["wait"] = wait_s
        full_path = f"{path}?{urlencode(query)}" if query else path
        return await self._ask(kind, "GET", full_path, None, TIMEOUT_S + wait_s)

    async def post(self, kind: type[T], path: str, body: bytes) -> T:
        """Return the answer to a POST."""
        return await self._ask(kind, "POST", path, body, TIMEOUT_S)

    async def _ask(self, kind: type[T], method: str, path: str, body: bytes | None, timeout_s: float) -> T:
        mark = object()

        def on_sent() -> None:
            self._unsent.discard(mark)

        def ask() -> tuple[int, bytes]:
            try:
                return self._gateway.exchange(method, path, body, timeout_s, on_sent)
            finally:
                on_sent()

        self._unsent.add(mark)
        status, raw = await in_thread(ask)
        return read_answer(kind, status, raw, self.url)
