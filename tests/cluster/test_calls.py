"""Commands between gateways: in order, again after a loss, and refusals back."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest

from csp.cluster.bus import Bus
from csp.cluster.calls import Answer, Calls, Failure, RemoteCommand
from tests.cluster.nats_servers import NatsServer
from tests.waiting import wait_until

ROOM: Final = "r"


class Side:
    """The calls of one process, and what came in."""

    def __init__(self, bus: Bus, name: str, room: str = ROOM) -> None:
        self.bus = bus
        self.calls = Calls(bus, name, room)
        self.got: list[str] = []
        self.replies: list[str] = []
        self.answers: list[Answer] = []
        self.echoes: list[bool] = []
        self.is_accepting = True
        self.calls.on_calls = self._accept
        self.calls.on_answers = self.answers.extend
        self.calls.on_echo = self.echoes.append

    def _accept(self, reply: str, calls: Sequence[RemoteCommand]) -> bool:
        if self.is_accepting:
            self.got += [call.id for call in calls if call.id not in self.got]
            self.replies.append(reply)
        return self.is_accepting

    def add(self, *ids: str) -> None:
        for call_id in ids:
            self.calls.add(RemoteCommand(call_id, "Send", msgspec.Raw(b'{"text":"hi"}')))


@pytest.fixture
async def sides(nats_server: NatsServer) -> AsyncIterator[tuple[Side, Side]]:
    buses = [await Bus.open([nats_server.url]) for _ in range(2)]
    edge, owner = Side(buses[0], "edge"), Side(buses[1], "owner")
    for side in (edge, owner):
        await side.calls.open()
        async with side.bus._answering(10) as client:
            await client.flush()
    yield edge, owner
    for side in (edge, owner):
        await side.calls.close()
        await side.bus.close()


async def test_calls_reach_the_owner_in_their_order(sides: tuple[Side, Side]) -> None:
    edge, owner = sides
    ids = [str(number) for number in range(500)]
    edge.add(*ids[:200])
    edge.calls.redirect("owner")
    for call_id in ids[200:]:
        edge.add(call_id)
        await asyncio.sleep(0)
    await wait_until(lambda: len(owner.got) == 500)

    assert owner.got == ids


async def test_what_was_removed_is_not_sent(sides: tuple[Side, Side]) -> None:
    edge, owner = sides
    edge.add("1", "2", "3")
    edge.calls.remove("2")
    edge.calls.redirect("owner")
    await wait_until(lambda: len(owner.got) == 2)
    for call_id in "13":
        edge.calls.remove(call_id)

    assert owner.got == ["1", "3"]
    assert edge.calls.open_bytes == 0


async def test_a_refusal_comes_back(sides: tuple[Side, Side]) -> None:
    edge, owner = sides
    edge.calls.redirect("owner")
    edge.add("1")
    await wait_until(lambda: owner.replies)
    failure = Failure("TooMany", "no", "wait", 2.0)
    owner.calls.answer(owner.replies[0], [Answer("1", failure=failure), Answer("2", 7)])
    await wait_until(lambda: len(edge.answers) == 2)

    assert edge.answers == [Answer("1", failure=failure), Answer("2", 7)]


async def test_an_owner_without_a_listener_is_known_at_once(sides: tuple[Side, Side]) -> None:
    edge, _ = sides
    edge.calls.redirect("owner")
    edge.calls.probe()
    await wait_until(lambda: edge.echoes)
    edge.calls.redirect("nobody")
    edge.calls.probe()
    await wait_until(lambda: len(edge.echoes) == 2)

    assert edge.echoes == [True, False]


async def test_calls_that_nobody_heard_are_repeated_before_later_ones(sides: tuple[Side, Side]) -> None:
    edge, owner = sides
    edge.calls.redirect("late")
    edge.add("1", "2")
    await wait_until(lambda: False in edge.echoes)
    edge.add("3")
    late = Side(owner.bus, "late")
    await late.calls.open()
    await wait_until(lambda: len(late.got) == 3)
    await late.calls.close()

    assert late.got == ["1", "2", "3"]


async def test_a_new_owner_gets_everything_open_in_order(sides: tuple[Side, Side]) -> None:
    edge, owner = sides
    other = Side(owner.bus, "other")
    await other.calls.open()
    edge.calls.redirect("other")
    edge.add("1", "2", "3")
    await wait_until(lambda: len(other.got) == 3)
    edge.calls.remove("2")
    edge.calls.redirect("owner")
    edge.add("4")
    await wait_until(lambda: len(owner.got) == 3)
    await other.calls.close()

    assert owner.got == ["1", "3", "4"]


async def test_what_the_owner_did_not_accept_comes_again_and_nothing_overtakes_it(
    sides: tuple[Side, Side],
) -> None:
    edge, owner = sides
    owner.is_accepting = False
    edge.calls.redirect("owner")
    edge.add("1")
    await wait_until(lambda: not edge.calls._unsent)
    # The owner has refused this one when it answers the next question.
    edge.calls.probe()
    await wait_until(lambda: edge.echoes)
    owner.is_accepting = True
    edge.add("2")

    def repeated() -> bool:
        edge.calls.refresh()
        return len(owner.got) == 2

    await wait_until(repeated)
    assert owner.got == ["1", "2"]


async def test_calls_that_come_before_the_claim_is_acknowledged_are_kept(sides: tuple[Side, Side]) -> None:
    edge, owner = sides
    owner.is_accepting = False
    owner.calls.hold()
    edge.calls.redirect("owner")
    edge.add("1", "2")
    edge.calls.probe()
    await wait_until(lambda: edge.echoes)
    owner.is_accepting = True
    owner.calls.release()

    assert owner.got == ["1", "2"]


async def test_a_cut_connection_loses_no_call_and_no_order(tmp_path: Path) -> None:
    with NatsServer(tmp_path) as server:
        buses = [await Bus.open([server.url]) for _ in range(2)]
        edge, owner = Side(buses[0], "edge"), Side(buses[1], "owner")
        for side in (edge, owner):
            await side.calls.open()
        edge.calls.redirect("owner")
        edge.add("0")
        await wait_until(lambda: owner.got)
        server.signal(signal.SIGSTOP)
        edge.add(*(str(number) for number in range(1, 100)))
        await asyncio.to_thread(server.kill)
        edge.add(*(str(number) for number in range(100, 200)))
        await asyncio.to_thread(server.start)

        def all_there() -> bool:
            edge.calls.refresh()
            return len(owner.got) == 200

        await wait_until(all_there)
        for side in (edge, owner):
            await side.calls.close()
            await side.bus.close()

    assert owner.got == [str(number) for number in range(200)]
