"""Single HTTP calls to the gateway, each over its own connection."""

import asyncio
from typing import Final, TypeVar
from urllib.parse import urlencode

from csp.client.background_tasks import in_thread
from csp.client.incoming_frames import read_answer
from csp.http_client import GatewayClient, Query
from csp.protocol.enums import Struct

T = TypeVar("T")

#: How long an answer may take, in addition to the requested wait.
TIMEOUT_S: Final = 20.0


class _Health(Struct, frozen=True):
    seq: int


class HttpCalls:
    """The gateway over plain HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self._gateway = GatewayClient(url, token)
        self.url = self._gateway.url
        self.token = token
        #: Requests that their threads have not sent yet; they may do so after the caller was cancelled.
        self._unsent: set[object] = set()

    async def sent(self) -> None:
        """Wait until no earlier request can reach the gateway any more."""
        # A thread cannot wake the loop of a caller that was cancelled.
        while self._unsent:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    async def seq(self) -> int:
        """Return the seq of the room's last event."""
        return (await self.get(_Health, "/health")).seq

    async def get(self, kind: type[T], path: str, wait_s: float = 0, **query: Query) -> T:
        """Return the answer to a GET, which may wait `wait_s` at the gateway."""
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
