"""The way from a request to the MCP application; the tools themselves are in tests/mcp."""

import asyncio
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from csp.errors import Forbidden, NotFound, Unauthenticated
from csp.gateway import mcp_endpoint as mcp_module
from csp.gateway.auth import Caller
from csp.gateway.mcp_endpoint import Bridge, LocalClient
from csp.protocol.enums import AgentId, Role
from tests.gateway.served import ServedRoom

CLAUDE = Caller(AgentId("claude"), Role.AGENT, epoch=1)


class Walk:
    """One request through a bridge whose gateway and application note what they are asked."""

    def __init__(self, caller: Caller = CLAUDE) -> None:
        self.steps: list[str] = []
        self.caller = caller
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.error: Exception | None = None
        raw = [(b"X-Auth-Token", b"t"), (b"Authorization", b"t"), (b"Cookie", b"c"), (b"Accept", b"json")]
        self.transport = SimpleNamespace(is_closing=lambda: False)
        self.request: Any = SimpleNamespace(
            headers={"X-Auth-Token": "t"}, raw_headers=raw, read=self._read, transport=self.transport
        )
        self.bridge = Bridge(self)  # type: ignore[arg-type]  # it has what is used
        self.bridge._app = asyncio.get_running_loop().create_future()
        self.bridge._app.set_result(self)  # type: ignore[arg-type]  # it has what is used

    async def _read(self) -> bytes:
        self.steps.append("read")
        return b"{}"

    async def identify_at_latest(self, token: str) -> Caller:
        return self.caller

    async def arrive(self, caller: Caller) -> None:
        self.steps.append("arrive")

    def recheck(self, caller: Caller) -> None:
        self.steps.append("recheck")
        if self.error is not None:
            raise self.error

    @contextmanager
    def connected(self, caller: Caller) -> Any:
        self.steps.append("here")
        yield
        self.steps.append("gone")

    async def answer(self, headers: Any, body: bytes, inside: LocalClient, take: Any) -> None:
        self.steps.append("answer")
        self.headers, self.body = headers, body
        start = {"type": "http.response.start", "status": 202, "headers": [(b"Content-Type", b"text/plain")]}
        await take(start)
        await take({"type": "http.response.body", "body": b"a"})
        await take({"type": "http.response.body", "body": b"b"})

    async def run(self) -> web.Response:
        response = await self.bridge.handle(self.request, {})
        assert isinstance(response, web.Response)
        return response


async def test_a_call_is_checked_counted_and_answered() -> None:
    walk = Walk()
    response = await walk.run()

    assert walk.steps == ["arrive", "read", "recheck", "here", "answer", "gone"]
    assert (walk.headers, walk.body) == ([(b"accept", b"json")], b"{}")
    assert (response.status, response.body) == (202, b"ab")
    assert response.headers["Content-Type"] == "text/plain"
    assert response.headers["Cache-Control"] == "no-store"


async def test_a_page_and_a_token_that_died_meanwhile_are_refused() -> None:
    page, dead = Walk(Caller(AgentId("human"), Role.ROOM, page="hash")), Walk()
    dead.error = Unauthenticated("dead")
    with pytest.raises(Forbidden, match="a page may not POST /mcp"):
        await page.run()
    with pytest.raises(Unauthenticated):
        await dead.run()

    assert "answer" not in page.steps + dead.steps


async def test_work_for_a_caller_that_is_gone_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_module, "_LOOK_S", 0.0)
    ended: list[str] = []
    walk = Walk()

    async def work() -> None:
        try:
            walk.transport.is_closing = lambda: True
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("work")

    with pytest.raises(ConnectionResetError):
        await mcp_module._while_connected(walk.request, work())

    assert ended == ["work"]


async def test_a_failure_of_the_application_is_the_callers() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await mcp_module._while_connected(Walk().request, work())


async def test_a_caller_that_gives_up_leaves_the_loading_to_the_others_and_a_failure_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works: list[Any] = []
    gateway: Any = SimpleNamespace(spawn=lambda work: works.append(asyncio.ensure_future(work)))
    go_on = asyncio.Event()
    bridge = Bridge(gateway)

    async def to_thread(*_: object) -> Any:
        await go_on.wait()
        raise RuntimeError("cannot be loaded")

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    first, second = asyncio.ensure_future(bridge._loaded()), asyncio.ensure_future(bridge._loaded())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        await second
    await asyncio.gather(*works, return_exceptions=True)

    assert (len(works), bridge._app) == (1, None)


# --- from inside ---------------------------------------------------------------------------------


async def test_routes_asked_from_inside_are_checked_as_from_outside(room: ServedRoom) -> None:
    member = await room.join("claude")
    caller = room.gateway.identify(member.token)
    inside = LocalClient(room.gateway, caller)
    sent = await inside.post("/message", {"to": "human", "content": "hello"})
    page = await inside.get("/history", limit=1, q="hello", before=None)
    state = await inside.get(f"/messages/{sent['id'].replace('-', '%2D')}")

    assert [item["text"] for item in page["items"]] == ["hello"]
    assert state["id"] == sent["id"]
    with pytest.raises(Forbidden):
        await inside.post("/stop", {})
    with pytest.raises(NotFound, match="no route '/nowhere'"):
        await inside.get("/nowhere")
    with pytest.raises(NotFound, match="no route '/stop'"):
        await inside.get("/stop")
    await room.call("DELETE", "/agents/claude")
    with pytest.raises(Unauthenticated):
        await inside.get("/agents")


async def test_an_answer_of_plain_text_comes_as_it_is(room: ServedRoom) -> None:
    inside = LocalClient(room.gateway, Caller(AgentId("human"), Role.ROOM))

    assert (await inside.get("/metrics")).startswith("# TYPE csp_events_total counter\n")
