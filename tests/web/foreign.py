"""A page of somebody else on this machine: a web server on the next port, with whatever page a test wants."""

from types import TracebackType
from typing import Self

from aiohttp import web

from tests.closing import close
from tests.rooms import free_port


class ForeignSite:
    """One server that is not ours; it keeps the cookies that browsers send it."""

    def __init__(self) -> None:
        self.port = free_port()
        self.html = "<!doctype html><title>foreign</title>"
        self.cookies: list[str] = []

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{any:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await close(self._runner)

    async def _answer(self, request: web.Request) -> web.Response:
        self.cookies += request.headers.getall("Cookie", [])
        return web.Response(text=self.html, content_type="text/html")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"
