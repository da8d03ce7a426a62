"""A room whose gateway runs in a thread of the tests: there in a moment, with nothing kept from before."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar
from unittest import mock

from aiohttp import web

from csp.config import Settings
from csp.gateway import journal_maintenance, server
from csp.gateway.gateway import Gateway
from csp.gateway.http_server import make_runner
from tests.closing import stop_accepting
from tests.rooms import LiveRoom, free_port

T = TypeVar("T")

_PATIENCE_S: Final = 60.0


class GatewayThread:
    """An event loop in a thread of its own, so that tests may ask the gateway by blocking calls."""

    def __init__(self) -> None:
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread; return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE_S)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        self._loop.close()


class ThreadedRoom(LiveRoom):
    """A room at the thread's port, or at one of its own for a room that lives beside others.

    With `is_cached`, a browser may keep the files of the page from one visit to the next. Asking again for
    all of them takes a third of a visit. What a browser does with the real headers is tested without it.
    """

    def __init__(
        self,
        folder: Path,
        thread: GatewayThread,
        *,
        name: str = "default",
        port: int = 0,
        is_cached: bool = False,
    ) -> None:
        super().__init__(folder, name=name)
        self._is_cached = is_cached
        self.port = port or thread.port
        self.url = f"http://127.0.0.1:{self.port}"
        self._gateway_thread = thread

    def start(self) -> None:
        self._gateway_thread.run(self._serve())

    async def _serve(self) -> None:
        settings = Settings(
            room=self.name,
            history_dir=self.history_dir,
            state_dir=self.home.parent / "run" / "csp",
            durability="flush",
        )
        self._served = Gateway(settings, self.folder, time.time)
        self._runner = make_runner(self._served, shutdown_timeout_s=0.1)
        await self._runner.setup()
        if self._is_cached:
            _let_files_be_cached(self._runner)
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await self._site.start()
        self._served.run_worker.dir = self.dir
        # Reading the journal for damage is a process for each start, and no matter of the page.
        with mock.patch.object(journal_maintenance, "scrub_journal", _no_scrub):
            server.start_background(self._served)
        self._token = self._served.tokens.room_token

    def stop(self) -> None:
        self._gateway_thread.run(self._end())

    async def _end(self) -> None:
        await stop_accepting(self._runner)
        await server.shut_down(self._served, self._runner, None)

    def kill9(self) -> None:
        """End as a crash looks from outside: every connection is cut without a word."""
        self._gateway_thread.run(self._cut())

    async def _cut(self) -> None:
        await stop_accepting(self._runner)
        await self._site.stop()
        assert self._runner.server is not None
        for connection in self._runner.server.connections:
            transport = connection.transport
            if transport is not None:
                transport.abort()
        await server.shut_down(self._served, self._runner, None)

    def said(self) -> str:
        raise NotImplementedError("the log of this gateway is that of the tests; use a LiveRoom")


async def _no_scrub(gateway: Gateway) -> None:
    """Leave the journal alone."""


def _let_files_be_cached(runner: web.ServerRunner) -> None:
    """Allow the browser to keep the files of the page, which do not change while tests run."""
    served = runner.server
    assert isinstance(served, web.Server)
    answer = served.request_handler

    async def answer_for_long(request: web.BaseRequest) -> web.StreamResponse:
        response = await answer(request)
        if request.path.startswith("/page/") and response.headers.get("Cache-Control") == "no-cache":
            response.headers["Cache-Control"] = "max-age=86400"
        return response

    served.request_handler = answer_for_long
