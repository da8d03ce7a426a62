"""Which gateways of a cluster live."""

import time
from collections.abc import AsyncIterator

import pytest

from csp.cluster import peers as peers_module
from csp.cluster.bus import Bus
from csp.cluster.names import heartbeat_subject
from csp.cluster.peers import Peers
from tests.cluster.nats_servers import NatsServer
from tests.waiting import wait_until


@pytest.fixture
async def bus(nats_server: NatsServer) -> AsyncIterator[Bus]:
    bus = await Bus.open([nats_server.url])
    yield bus
    await bus.close()


async def test_processes_hear_each_other_until_one_leaves(bus: Bus) -> None:
    one, two = Peers(bus), Peers(bus)
    await one.open()
    await two.open()
    await wait_until(lambda: one.heard_at(two.me) and two.heard_at(one.me))
    both = one.living()
    await two.close()
    await wait_until(lambda: one.left_at(two.me))
    await one.close()

    assert {one.me, two.me} <= both
    assert two.me not in one.living()
    assert one.me in one.living()


async def test_a_process_that_is_not_heard_any_more_is_dead(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_module, "DEAD_S", 0.0)
    one, two = Peers(bus), Peers(bus)
    await one.open()
    await two.open()
    await wait_until(lambda: one.heard_at(two.me))
    living = one.living()
    await two.close()
    await one.close()

    assert living == {one.me}


async def test_the_clock_of_a_peer_is_compared(bus: Bus) -> None:
    one = Peers(bus)
    await one.open()
    ahead = b'{"process":"other","at":%f}' % (time.time() + 3600)
    await bus.publish(heartbeat_subject("other"), b"not a heartbeat")
    await bus.publish(heartbeat_subject("other"), ahead)
    await wait_until(lambda: one.heard_at("other"))
    await one.close()

    assert 3500 < one.known["other"].ahead_s < 3700
