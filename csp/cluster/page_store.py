"""The logins of a room's pages, for all its gateways: the last message of a subject for each page."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from csp.cluster.background import end_task
from csp.cluster.bus import Bus
from csp.cluster.names import page_subject
from csp.cluster.setup import API_S, create_stream
from csp.errors import LogLost

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger(__name__)

STREAM: Final = "CSP_K"
#: No login lasts as long as this.
_KEPT_S: Final = 8 * 86400
_AT_ONCE: Final = 1000
#: A page and when its login expires; 0 if it has ended.
OnPage = Callable[[str, float], None]


class PageStore:
    """The logins of one room."""

    def __init__(self, bus: Bus, room: str) -> None:
        self._bus = bus
        self._room = room
        self._end: Callable[[], Awaitable[None]] | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self, replicas: int) -> None:
        """Create the stream if there is none."""
        config = {
            "name": STREAM,
            "subjects": ["csp.k.>"],
            "storage": "file",
            "num_replicas": replicas,
            "max_msgs_per_subject": 1,
            "max_age": _KEPT_S * 10**9,
            "allow_direct": True,
        }
        await create_stream(self._bus, config, or_one=True)

    async def put(self, page: str, expires: float) -> None:
        """Store a login; raise LogLost if it may not have been stored."""
        subject = page_subject(self._room, page)
        answer = await self._bus.request(subject, json.dumps(expires).encode(), timeout_s=API_S)
        if "error" in json.loads(answer.data):
            raise LogLost("the login of the page was not stored", "try again")

    async def follow(self, on_page: OnPage) -> None:
        """Report each change from now on, and everything after a lost connection."""

        def hear(message: "Msg | None") -> None:
            if message is not None:
                _report(message, message.subject, on_page)
            else:
                self._reading = asyncio.create_task(self._read_again(on_page))

        self._end = await self._bus.follow(page_subject(self._room, "*"), hear)

    async def read(self, on_page: OnPage) -> None:
        """Report all logins as they are now."""
        body = json.dumps({"multi_last": [page_subject(self._room, "*")], "batch": _AT_ONCE}).encode()
        subject = f"$JS.API.DIRECT.GET.{STREAM}"
        async with self._bus.reading:
            found = [one async for one in self._bus.request_many(subject, body, timeout_s=API_S)]
        for message in found:
            headers = message.headers or {}
            if "Status" in headers:
                return
            _report(message, headers["Nats-Subject"], on_page)

    async def expiry(self, page: str) -> float:
        """Return when the login of a page expires; 0 if there is none."""
        found: list[float] = []
        body = json.dumps({"last_by_subj": page_subject(self._room, page)}).encode()
        async with self._bus.reading:
            message = await self._bus.request(f"$JS.API.DIRECT.GET.{STREAM}", body, timeout_s=API_S)
        headers = message.headers or {}
        if "Status" not in headers:
            _report(message, headers["Nats-Subject"], lambda _, expires: found.append(expires))
        return found[0] if found else 0.0

    async def _read_again(self, on_page: OnPage) -> None:
        with contextlib.suppress(LogLost):
            await self.read(on_page)

    async def close(self) -> None:
        """Stop reporting."""
        if self._end is not None:
            await self._end()
        await end_task(self._reading)


def _report(message: "Msg", subject: str, on_page: OnPage) -> None:
    with contextlib.suppress(ValueError):
        on_page(subject.rpartition(".")[2], float(json.loads(message.data)))
