"""Screens over the client: shown by one, watched by another."""

import asyncio

import pytest

from csp.client import Client, Item, Live
from csp.client.client import Registered
from csp.errors import BadInput, Forbidden, NotFound
from csp.protocol.enums import Ending, ReportedAgentState
from csp.protocol.events import Activity, AgentResponse
from csp.protocol.requests import Choice, Dialog
from csp.protocol.screen_frames import LiveView, RunView, ScreenView, StyleView
from tests.client.proxy import Proxy
from tests.client.reading import read_until
from tests.rooms import Room

SCREEN = ScreenView(
    rows=((RunView("hello", StyleView(bold=True, fg="#afafaf")), RunView(" there")), ()),
    cols=80,
    cursor=(1, 0),
    title="claude",
    alternate=True,
)


async def join(room: Room) -> Registered:
    return await Client.register(room.url, room.token, "alice")


def lives(items: list[Item]) -> list[Live]:
    return [item for item in items if isinstance(item, Live)]


async def next_live(client: Client) -> Live:
    return lives(await read_until(client, lambda items: bool(lives(items))))[-1]


async def test_a_screen_is_shown_to_whoever_watches(room: Room) -> None:
    alice = await join(room)
    async with Client(room.url, alice.token) as sidecar, Client(room.url, room.token) as watcher:
        await sidecar.connected()
        await watcher.watch_screen("alice")
        told = await next_live(sidecar)
        shown = await sidecar.show(SCREEN)
        seen = (await next_live(watcher)).read()
        await watcher.unwatch_screen("alice")
        ended = await next_live(sidecar)

    assert (told.watch, shown, ended.watch) == (True, True, False)
    assert seen == LiveView(agent="alice", screen=SCREEN)


async def test_text_is_shown_as_it_is_written(room: Room) -> None:
    alice = await join(room)
    async with Client(room.url, alice.token) as agent, Client(room.url, room.token) as watcher:
        await agent.connected()
        await watcher.watch_screen("alice")
        await agent.show(text="Hel")

        assert (await next_live(watcher)).read() == LiveView(agent="alice", text="Hel")


async def test_watching_outlives_the_connection(room: Room, proxy: Proxy) -> None:
    alice = await join(room)
    async with Client(room.url, alice.token) as sidecar, Client(proxy.url, room.token) as watcher:
        await sidecar.connected()
        await watcher.watch_screen("alice")
        first = await next_live(sidecar)
        proxy.cut()
        lost, again = await next_live(sidecar), await next_live(sidecar)
        await sidecar.show(SCREEN)
        seen = await next_live(watcher)

    assert [live.watch for live in (first, lost, again)] == [True, False, True]
    assert seen.read().screen == SCREEN


async def test_an_agent_whose_connection_is_lost_is_not_watched(room: Room, proxy: Proxy) -> None:
    alice = await join(room)
    async with Client(proxy.url, alice.token) as sidecar, Client(room.url, room.token) as watcher:
        await sidecar.connected()
        await watcher.watch_screen("alice")
        seen = [await next_live(sidecar)]
        proxy.cut()
        seen += [await next_live(sidecar), await next_live(sidecar)]

    assert [live.watch for live in seen] == [True, False, True]
    assert seen[1].read() == LiveView(watch=False)


async def test_a_screen_that_may_not_be_seen_is_refused_for_good(room: Room) -> None:
    alice = await join(room)
    await Client.register(room.url, room.token, "bob")
    async with Client(room.url, alice.token) as client, Client(room.url, room.token) as human:
        with pytest.raises(Forbidden):
            await client.watch_screen("bob")
        with pytest.raises(NotFound):
            await human.watch_screen("nobody")

        assert client._connection.screens == human._connection.screens == {}


async def test_nothing_is_shown_before_the_start(room: Room) -> None:
    assert not await Client(room.url, room.token).show(SCREEN)


def test_a_live_frame_of_a_newer_version_is_not_understood() -> None:
    from csp.client.incoming_frames import read_frame

    live = read_frame(b'{"live": [1]}')

    assert isinstance(live, Live) and live.watch is None
    with pytest.raises(BadInput):
        live.read()


# --- what else an agent says of its turn ---------------------------------------------------------


async def test_activity_endings_and_what_stays_in_the_pane(room: Room) -> None:
    alice = await join(room)
    async with Client(room.url, alice.token) as client:
        activity = await client.output("I look", activity=True)
        broken = await client.output("", ending=Ending.INTERRUPTED)
        kept = await client.output("a secret", local=True)
        noop = await client.output("NOOP")
    events = {event.id: event for event in room.journal()}
    response = events[broken.id]

    assert [sent.posted for sent in (activity, broken, kept, noop)] == [True, True, False, False]
    assert isinstance(events[activity.id], Activity)
    assert isinstance(response, AgentResponse) and response.ending is Ending.INTERRUPTED
    assert kept.id not in events and noop.id not in events


async def test_a_dialog_is_told(room: Room) -> None:
    alice = await join(room)
    dialog = Dialog(tool="Bash", arguments="ls", choices=(Choice(number=1, label="Yes"),))
    async with Client(room.url, alice.token) as client:
        await client.state(ReportedAgentState.NEEDS_APPROVAL, "Bash", dialog=dialog)
    (view,) = await asyncio.to_thread(room.gateway.get, "/agents")

    assert view["dialog"] == {"tool": "Bash", "arguments": "ls", "choices": [{"number": 1, "label": "Yes"}]}
