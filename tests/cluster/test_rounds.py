"""One timer for the seats of a process."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from csp.cluster import rounds as rounds_module
from csp.cluster.bus import Bus
from csp.cluster.peers import Peer, Peers
from csp.cluster.rounds import Rounds
from csp.cluster.servers import NatsServers
from tests.waiting import wait_until


class Seat:
    """A seat that only counts."""

    def __init__(self, owner: str, *, is_uneasy: bool = False, stream: str = "CSP_J_1") -> None:
        self.owner = owner
        self.is_uneasy = is_uneasy
        self.stream = stream
        self.ticks: list[bool] = []
        self.looks = 0

    def tick(self, now: float, *, is_owner_late: bool) -> None:
        self.ticks.append(is_owner_late)

    def look(self) -> None:
        self.looks += 1


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    bus = Bus(NatsServers(()))
    bus._is_connected.set()
    return bus


async def ticked(bus: Bus, peers: Peers, *seats: Seat) -> None:
    """Go round a few times."""
    rounds, mark = Rounds(bus, peers), Seat("")
    for seat in (*seats, mark):
        rounds.add(seat)
    await wait_until(lambda: len(mark.ticks) > 3)
    await rounds.close()


async def test_a_seat_is_ticked_only_if_something_may_be_wrong(bus: Bus) -> None:
    peers = Peers(bus)
    # Heard a moment from now, so that it stays fresh on a slow machine.
    peers.known = {
        "fresh": Peer(heard_at=time.monotonic() + 600),
        "late": Peer(heard_at=0.0),
        "left": Peer(heard_at=time.monotonic() + 600, left_at=1.0),
    }
    seats = {name: Seat(name) for name in ("fresh", "late", "left", "unknown", peers.me)}
    uneasy = Seat("fresh", is_uneasy=True)
    await ticked(bus, peers, *seats.values(), uneasy)

    assert [name for name, seat in seats.items() if seat.ticks] == ["late", "left", "unknown"]
    assert set(seats["late"].ticks) == {True}
    assert set(uneasy.ticks) == {False}


async def test_without_a_connection_every_seat_is_ticked(bus: Bus) -> None:
    bus._is_connected.clear()
    peers = Peers(bus)
    own = Seat(peers.me)
    await ticked(bus, peers, own)

    assert own.ticks


async def test_a_process_that_was_stopped_knows_nothing_of_what_happened(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds_module, "PAUSED_S", -1.0)
    rounds, seat = Rounds(bus, Peers(bus)), Seat("")
    rounds.add(seat)
    await wait_until(lambda: seat.ticks)
    await rounds.close()

    assert rounds.fresh_since > 0


async def test_after_an_election_the_rooms_of_the_stream_are_read() -> None:
    followed: dict[str, Any] = {}

    async def follow(subject: str, on_message: Any) -> None:
        followed[subject] = on_message

    bus: Any = SimpleNamespace(follow=follow)
    rounds = Rounds(bus, Peers(bus))
    seats = [Seat("", stream=name) for name in ("CSP_J_1", "CSP_J_2")]
    rounds._seats = set(seats)
    await rounds.open()
    (hear,) = followed.values()
    hear(SimpleNamespace(subject=f"{rounds_module.ELECTED}.CSP_J_2"))
    hear(None)
    await asyncio.sleep(0)

    assert [seat.looks for seat in seats] == [0, 1]
