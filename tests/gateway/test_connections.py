"""Who may keep how many connections, and which one makes room for another."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable

import pytest

from csp.errors import CspError, TooMany, Unauthenticated
from csp.gateway import connections as connections_module
from csp.gateway.auth import Caller
from csp.gateway.connections import Connections, Guest, lanes_of, new_event_loop
from csp.protocol.enums import AgentId, Role
from csp.room.caller_limits import Lane, Places
from tests.waiting import wait_until

ANN, BEN = (Caller(AgentId(name), Role.AGENT) for name in ("ann", "ben"))
ROOM = Caller(AgentId("human"), Role.ROOM)
PAGE = Caller(AgentId("human"), Role.NONE, page="hash")
CALLERS = {"token-of-ann": ANN, "token-of-ben": BEN, "token-of-the-room": ROOM}


class Door:
    """Connections with few places; writes down which were closed."""

    def __init__(self, **places: int) -> None:
        self.closed: list[str] = []
        self.too_fast: TooMany | None = None
        self.connections = Connections(self._identify, lambda _: self.too_fast)
        few = {"people": 2, "agents": 4, "strangers": 3, "per_agent": 2} | places
        self.connections.places = Places(**few)

    def _identify(self, token: str, head: bytes) -> Caller:
        if token not in CALLERS:
            raise Unauthenticated("unknown token")
        return CALLERS[token]

    def open(self, name: str, caller: Caller | None = None, *, is_busy: bool = False) -> Guest:
        guest = self.connections.open(lambda: self.closed.append(name))
        guest.is_busy = is_busy
        if caller is not None:
            guest.since = None
            self.connections.place(guest, caller)
        return guest

    def refusal(self, token: str) -> CspError | None:
        return self.connections.refusal(b"GET / HTTP/1.1\r\nX-Auth-Token: %s\r\n" % token.encode())

    def counts(self) -> dict[str, int]:
        return {lane.value: self.connections.count(lane) for lane in Lane}


async def test_each_caller_is_counted_in_its_lane() -> None:
    door = Door()
    door.open("stranger")
    door.open("ann", ANN)
    door.open("page", PAGE)
    door.open("room", ROOM)

    assert door.counts() == {"people": 2, "agents": 1, "strangers": 1}
    assert door.closed == []


async def test_of_too_many_strangers_the_oldest_that_asks_nothing_is_closed() -> None:
    door = Door()
    for name in ("1", "2", "3"):
        door.open(name, is_busy=name == "1")
    door.open("4")
    door.open("5")

    assert (door.closed, door.counts()["strangers"]) == (["2", "3"], 3)


async def test_where_all_strangers_ask_something_the_oldest_is_closed() -> None:
    door = Door()
    for name in ("1", "2", "3", "4"):
        door.open(name, is_busy=True)

    assert door.closed == ["1"]


async def test_without_strangers_there_is_none_to_close() -> None:
    door = Door()
    door.open("ann", ANN)

    assert (door.connections.drop_oldest(), door.closed) == (False, [])


async def test_a_connection_that_ends_leaves_its_place_to_the_next_of_its_agent() -> None:
    door = Door()
    guests = [door.open(name, ANN, is_busy=True) for name in ("1", "2")]
    refused = door.refusal("token-of-ann")
    for guest in guests:
        door.connections.close(guest)
        door.connections.close(guest)

    assert refused is not None
    assert door.refusal("token-of-ann") is None
    door.open("3", ANN, is_busy=True)
    door.open("4", ANN, is_busy=True)
    assert (door.closed, door.counts()["agents"]) == ([], 2)


async def test_an_agent_replaces_a_connection_of_its_own_that_is_idle() -> None:
    door = Door()
    door.open("1", ANN, is_busy=True)
    door.open("2", ANN)

    assert door.refusal("token-of-ann") is None
    door.open("3", ANN, is_busy=True)
    assert door.closed == ["2"]


async def test_an_agent_whose_connections_are_all_busy_gets_no_other() -> None:
    door = Door()
    door.open("1", ANN, is_busy=True)
    door.open("2", ANN, is_busy=True)
    refused = door.refusal("token-of-ann")

    with pytest.raises(TooMany, match="ann has 2 connections") as raised:
        door.open("3", ANN)
    for error in (refused, raised.value):
        assert isinstance(error, TooMany)
        assert (error.message, error.hint, error.after_s) == (
            "ann has 2 connections",
            "close some of them, or try again in 1 s",
            1.0,
        )
    assert (door.refusal("token-of-ben"), door.closed) == (None, [])


async def test_where_agents_have_all_places_the_one_with_most_gives_up_its_newest() -> None:
    door = Door(per_agent=4)
    for name in ("1", "2", "3", "4"):
        door.open(name, ANN, is_busy=True)
    door.open("5", BEN)
    door.open("6", BEN)

    assert (door.closed, door.counts()["agents"]) == (["4", "3"], 4)
    with pytest.raises(TooMany, match="ann has 2 connections"):
        door.open("7", ANN)


async def test_people_have_only_so_many_connections() -> None:
    door = Door()
    first = door.open("1", ROOM)
    door.connections.place(first, ROOM)
    second = door.open("2", PAGE)
    door.connections.place(second, PAGE)

    with pytest.raises(TooMany, match="people have 2 connections"):
        door.open("3", ROOM)


async def test_a_connection_goes_with_the_caller_that_uses_it_last() -> None:
    door = Door()
    guest = door.open("1", ANN)
    door.connections.place(guest, ANN)
    assert door.counts()["agents"] == 1
    door.connections.place(guest, BEN)
    door.open("2", ANN, is_busy=True)
    door.open("3", ANN, is_busy=True)

    assert (door.closed, door.counts()["agents"]) == ([], 3)


@pytest.mark.parametrize("token", ["token-of-the-room", "nobody", ""])
async def test_neither_people_nor_strangers_are_refused_at_the_door(token: str) -> None:
    door = Door()
    door.too_fast = TooMany("too fast", "slower")

    assert door.refusal(token) is None


@pytest.mark.parametrize("connections", [0, 1, 2])
async def test_an_agent_over_its_rate_is_refused_however_many_connections_it_has(connections: int) -> None:
    door = Door()
    for number in range(connections):
        door.open(str(number), ANN)
    door.too_fast = TooMany("too fast", "slower")

    assert door.refusal("token-of-ann") is door.too_fast


async def test_who_owes_the_head_of_a_request_too_long_is_closed_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections_module, "SWEEP_S", 0.01)
    monkeypatch.setattr(connections_module, "HEAD_S", 60.0)
    door = Door()
    now = asyncio.get_running_loop().time()
    for name, caller in (("stranger", None), ("ann", ANN), ("room", ROOM)):
        door.open(name, caller).since = now - 61
        door.open(f"good {name}", caller).since = None if caller else now

    await wait_until(lambda: len(door.closed) == 3, what="the late ones are closed")
    await asyncio.sleep(0.05)
    assert door.closed == ["room", "ann", "stranger"]
    door.connections.close_strangers()
    assert (door.closed[3:], door.counts()) == (["good stranger"], {"people": 1, "agents": 1, "strangers": 0})


async def test_a_stranger_that_was_answered_owes_the_next_request() -> None:
    door = Door()
    stranger, agent = door.open("1"), door.open("2", ANN)
    for guest in (stranger, agent):
        guest.since, guest.is_busy = None, True
        guest.end_request()

    assert (stranger.is_busy, agent.is_busy) == (False, False)
    assert stranger.since is not None
    assert agent.since is None


def in_lanes(scene: Callable[[], Awaitable[None]]) -> None:
    """Run a scene in a loop with lanes, which a gateway of its own process has."""
    loop = new_event_loop()
    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()


def test_the_next_owner_of_a_descriptor_is_served_in_a_lane_of_its_own() -> None:
    async def scene() -> None:
        lanes = lanes_of(asyncio.get_running_loop())
        assert lanes is not None
        ours, theirs = socket.socketpair()
        with ours, theirs:
            door = Door()
            guest = door.open("1", ANN)
            door.connections.read_from(guest, ours.fileno())
            door.connections.close(guest)
            # A person comes next. While agents have to wait for one pass, people do not.
            lanes.register(ours, 1, "person")
            theirs.send(b"x")
            lanes.is_crowded = True
            assert [key.data for key, _ in lanes.select(0) if key.data == "person"] == ["person"]
            lanes.unregister(ours)

    in_lanes(scene)


def test_agents_wait_for_one_pass_when_they_are_put_off() -> None:
    async def scene() -> None:
        lanes = lanes_of(asyncio.get_running_loop())
        assert lanes is not None
        ours, theirs = socket.socketpair()
        with ours, theirs:
            door = Door()
            guest = door.open("1", ANN)
            door.connections.read_from(guest, ours.fileno())
            lanes.register(ours, 1, "agent")
            theirs.send(b"x")
            door.connections.put_agents_off()
            assert [key.data for key, _ in lanes.select(0) if key.data == "agent"] == []
            assert [key.data for key, _ in lanes.select(0) if key.data == "agent"] == ["agent"]
            lanes.unregister(ours)

    in_lanes(scene)


async def test_nobody_is_overdue_for_the_time_in_which_the_room_stood_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections_module, "HEAD_S", 0.2)
    monkeypatch.setattr(connections_module, "SWEEP_S", 0.05)
    door = Door()
    door.open("waits to be read")
    # The loop stands still for longer than a caller has for its head.
    time.sleep(0.4)
    await asyncio.sleep(0.01)
    assert door.closed == []

    await wait_until(lambda: door.closed == ["waits to be read"])
