"""The way to a room over the network: what is asked again after a failure, for how long."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from csp.errors import NotFound, Unreachable
from csp.http_client import GatewayClient
from csp.mcp import room_client as doors
from csp.mcp.room_client import PATIENCE_S, HttpRoomClient, me, reads_inbox
from csp.protocol.enums import ParticipantKind, Role
from tests.mcp.doors import Door
from tests.mcp.doors import me as me_view


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 50.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(doors, "time", made)
    return made


class Asked(GatewayClient):
    """A gateway that fails as often as it is told to; it notes what reaches it."""

    def __init__(
        self, failures: int = 0, error: Callable[[], Exception] = lambda: Unreachable("gone")
    ) -> None:
        self.failures = failures
        self.error = error
        self.seen: list[tuple[str, str, Any]] = []

    def get(self, path: str, **query: Any) -> Any:
        return self._note("GET", path, query)

    def post(self, path: str, body: Any = None) -> Any:
        return self._note("POST", path, body)

    def _note(self, method: str, path: str, given: Any) -> Any:
        self.seen.append((method, path, given))
        if self.failures:
            self.failures -= 1
            raise self.error()
        return {"to": path}


def network(gateway: Asked) -> tuple[HttpRoomClient, list[int]]:
    """Return a way to a gateway that has answered once, with how often it was connected to since."""
    connects: list[int] = []

    def connect() -> GatewayClient:
        connects.append(1)
        return gateway

    made = HttpRoomClient(connect)
    failures, gateway.failures = gateway.failures, 0
    made.ask(lambda it: it.get("/me"))
    gateway.failures = failures
    gateway.seen.clear()
    connects.clear()
    return made, connects


def test_a_room_that_never_answered_is_not_waited_for(clock: Time) -> None:
    gateway = Asked(failures=9)

    with pytest.raises(Unreachable):
        HttpRoomClient(lambda: gateway).ask(lambda it: it.get("/me"))
    assert (len(gateway.seen), clock.now) == (1, 50.0)


async def test_a_room_that_has_answered_gets_20_seconds_to_come_back(clock: Time) -> None:
    gateway = Asked(failures=10_000)
    way, connects = network(gateway)

    with pytest.raises(Unreachable):
        await way.get("/agents")
    assert PATIENCE_S == 20.0
    assert clock.now == pytest.approx(70.0)
    # The address may be another one after a failure, so it is looked up again each time.
    assert len(connects) == len(gateway.seen) - 1 == 100


@pytest.mark.parametrize(
    "path", ["/message", "/agent-output", "/board", "/delivery", "/state", "/turn/vote", "/turn/working"]
)
async def test_what_may_be_said_twice_is_said_again(clock: Time, path: str) -> None:
    gateway = Asked(failures=2)
    way, _ = network(gateway)

    assert await way.post(path, {"a": 1}) == {"to": path}
    assert gateway.seen == [("POST", path, {"a": 1})] * 3


@pytest.mark.parametrize("path", ["/mode", "/sessions", "/collaborations", "/stop", "/messages"])
async def test_what_would_be_done_twice_is_not_said_again(clock: Time, path: str) -> None:
    gateway = Asked(failures=1)
    way, connects = network(gateway)

    with pytest.raises(Unreachable):
        await way.post(path, {})
    assert len(gateway.seen) == 1
    await way.post(path, {})
    assert len(connects) == 1


async def test_what_never_arrived_is_said_again(clock: Time) -> None:
    def refused() -> Exception:
        error = Unreachable("nobody listens")
        error.__cause__ = ConnectionRefusedError()
        return error

    gateway = Asked(failures=1, error=refused)
    way, _ = network(gateway)

    assert await way.post("/mode", {}) == {"to": "/mode"}


async def test_what_could_not_be_connected_is_said_when_it_can(clock: Time) -> None:
    gateway, tries = Asked(), []

    def connect() -> GatewayClient:
        tries.append(1)
        if len(tries) == 2:
            raise Unreachable("no room is running")
        return gateway

    way = HttpRoomClient(connect)
    way.ask(lambda it: it.get("/me"))
    way._gateway = None

    assert await way.post("/mode", {}) == {"to": "/mode"}
    assert len(tries) == 3


async def test_what_the_room_refuses_is_raised_at_once(clock: Time) -> None:
    gateway = Asked(failures=1, error=lambda: NotFound("no such thing"))
    way, connects = network(gateway)

    with pytest.raises(NotFound):
        await way.get("/sessions/s-9", wait=3)
    assert gateway.seen == [("GET", "/sessions/s-9", {"wait": 3})]
    await way.get("/me")
    assert connects == []


def test_calls_at_once_connect_once() -> None:
    gateway, connects, go = Asked(), [], threading.Barrier(4)

    def connect() -> GatewayClient:
        connects.append(1)
        return gateway

    way = HttpRoomClient(connect)

    def ask() -> None:
        go.wait(60)
        way.ask(lambda it: it.get("/me"))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert connects == [1]


async def test_a_call_does_not_hold_up_the_others() -> None:
    is_free = threading.Event()

    class Slow(Asked):
        def get(self, path: str, **query: Any) -> Any:
            assert is_free.wait(60)
            return path

    slow = asyncio.ensure_future(HttpRoomClient(Slow).get("/slow"))
    assert await HttpRoomClient(Asked).get("/quick") == {"to": "/quick"}
    is_free.set()

    assert await slow == "/slow"


@pytest.mark.parametrize(
    ("kind", "role", "is_reader"),
    [
        (ParticipantKind.MCP, Role.AGENT, True),
        (ParticipantKind.MCP, Role.ORCHESTRATOR, True),
        (ParticipantKind.MCP, Role.ROOM, False),
        (ParticipantKind.CLI, Role.AGENT, False),
    ],
)
async def test_only_an_agent_outside_reads_its_inbox_by_tool(
    kind: ParticipantKind, role: Role, is_reader: bool
) -> None:
    who = await me(Door().tell("/me", me_view(kind, role)))

    assert reads_inbox(who) is is_reader
