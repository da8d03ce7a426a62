"""Clients of a room with several gateways: the one in use dies or freezes in the middle of their work."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

import pytest

from csp.client import Client
from csp.protocol.enums import DeliveryState, ReportedState
from csp.protocol.events import DeliveryMoved, MessageEvent, decode_event
from tests.client.reading import read_delivered, read_texts, read_until, texts
from tests.cluster.gateways import TOKEN, Gateways
from tests.cluster.nats_servers import NatsCluster, NatsServer
from tests.forks import run
from tests.rooms import LiveRoom

WORDS: Final = [f"{number}" for number in range(60)]


@pytest.fixture(scope="module", params=["one server", pytest.param("three servers", marks=pytest.mark.full)])
def gateways(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    """Three gateways over one NATS server, or over three that replicate."""
    folder = tmp_path_factory.mktemp("nats")
    with contextlib.ExitStack() as stack:
        if request.param == "one server":
            urls = [stack.enter_context(NatsServer(folder)).url]
        else:
            urls = stack.enter_context(NatsCluster(folder)).urls
        yield stack.enter_context(Gateways(tmp_path_factory.mktemp("gateways"), urls))


def urls(first: LiveRoom, gateways: Gateways) -> str:
    """Return the gateways as a client's list that begins with this one."""
    return ",".join([first.url, *(url for url in gateways.urls if url != first.url)])


@contextlib.asynccontextmanager
async def disturbed(gateway: LiveRoom, how: str) -> AsyncIterator[None]:
    """Kill a gateway, or stop its process; it is back afterwards."""
    if how == "killed":
        await asyncio.to_thread(gateway.kill9)
        yield
        await asyncio.to_thread(gateway.start)
        return
    pid = gateway.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def say(client: Client, words: Sequence[str], prefix: str) -> None:
    for word in words:
        await client.send("all", f"{prefix} {word}")


@pytest.mark.parametrize("how", ["killed", "frozen"])
@pytest.mark.parametrize("role", ["owner", "edge"])
async def test_nothing_is_lost_or_doubled_when_the_gateway_of_a_client_goes(
    gateways: Gateways, role: str, how: str
) -> None:
    first = await asyncio.to_thread(lambda: gateways.owner() if role == "owner" else gateways.edges()[0])
    given, name = urls(first, gateways), f"{role} {how}"
    async with Client(given, TOKEN) as reader, Client(given, TOKEN) as writer:
        await reader.connected()
        sending = asyncio.create_task(say(writer, WORDS, name))
        before = await read_until(reader, lambda items: len(texts(items)) >= 10)
        async with disturbed(first, how):
            await sending
            after = await read_texts(reader, f"{name} {WORDS[-1]}")
    journal = await asyncio.to_thread(gateways.wait_equal)

    assert texts(before) + after == [f"{name} {word}" for word in WORDS]
    assert journal.count(f'"{name} '.encode()) == len(WORDS)


@pytest.mark.parametrize("how", ["killed", "frozen"])
async def test_a_delivery_is_received_and_answered_once(gateways: Gateways, how: str) -> None:
    first = await asyncio.to_thread(gateways.owner)
    given, name = urls(first, gateways), f"ada-{how}"
    joined = await Client.register(given, TOKEN, name)
    async with Client(given, joined.token) as agent, Client(given, TOKEN) as writer:
        await agent.connected()
        sent = [await writer.send(name, "before")]
        before = await read_delivered(agent, "before")
        async with disturbed(first, how):
            answering = asyncio.create_task(agent.output("the answer", reply_to=sent[0].id))
            sent.append(await writer.send(name, "meanwhile"))
            meanwhile = await read_delivered(agent, "meanwhile")
            await agent.report(sent[1].id, ReportedState.TYPED)
            await answering
        await writer.send(name, "after")
        after = await read_delivered(agent, "after")
    journal = await asyncio.to_thread(gateways.wait_equal)
    events = [decode_event(line) for line in journal.splitlines()]
    answers = [event for event in events if isinstance(event, MessageEvent) and event.sender == name]
    typed = [event for event in events if isinstance(event, DeliveryMoved) and event.message == sent[1].id]

    assert (before, meanwhile, after) == (["before"], ["meanwhile"], ["after"])
    assert [event.text for event in answers] == ["the answer"]
    assert [event.state for event in typed].count(DeliveryState.TYPED) == 1


async def test_commands_are_executed_once_while_gateways_come_and_go(gateways: Gateways) -> None:
    first = await asyncio.to_thread(gateways.edges)
    env = {**first[0].env, "CSP_GATEWAY_URL": urls(first[0], gateways), "CSP_AUTH_TOKEN": TOKEN}

    async def send(word: str) -> int:
        done = await asyncio.to_thread(run, ["send", "all", f"by command {word}"], first[0].dir, env)
        assert done.returncode == 0, done.stderr
        return done.returncode

    sending = [asyncio.create_task(send(f"{number}")) for number in range(8)]
    async with disturbed(first[0], "frozen"):
        await asyncio.gather(*sending)
    journal = await asyncio.to_thread(gateways.wait_equal)

    assert [journal.count(f'"by command {number}"'.encode()) for number in range(8)] == [1] * 8
