"""A client goes on where it was, whatever became of its connection."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from csp.client import Client, Deliver, Status, websocket_link
from csp.client import inbox as inbox_module
from csp.protocol.enums import ReportedState
from tests.client.proxy import Proxy
from tests.client.reading import READ_S, delivered, events, read_delivered, read_texts, read_until, texts
from tests.rooms import LiveRoom, Room
from tests.waiting import wait_until


async def say(client: Client, *words: str, to: str = "all") -> None:
    """Send the words one after the other."""
    for word in words:
        await client.send(to, word)


async def test_events_go_on_after_an_orderly_restart(room: Room) -> None:
    async with (
        Client(room.url, room.token, after=0) as reader,
        Client(room.url, room.token) as writer,
    ):
        await say(writer, "one", "two")
        before = await read_texts(reader, "two")
        await asyncio.to_thread(room.restart)
        await say(writer, "three", "four")
        after = await read_texts(reader, "four")

    assert before + after == ["one", "two", "three", "four"]


async def test_what_was_said_during_a_crash_is_read_after_it(tmp_path: Path) -> None:
    with LiveRoom(tmp_path / "room") as room:
        async with AsyncExitStack() as stack:
            pairs = []
            for _ in range(2):
                reader = Client(room.url, room.token, after=0)
                writer = Client(room.url, room.token)
                pairs.append(
                    (await stack.enter_async_context(reader), await stack.enter_async_context(writer))
                )
            for _, writer in pairs:
                await say(writer, "one")
            for reader, _ in pairs:
                await read_until(reader, lambda items: len(texts(items)) == 2)
            await asyncio.to_thread(room.kill9)
            sending = [asyncio.create_task(say(writer, "two")) for _, writer in pairs]
            await asyncio.to_thread(room.start)
            await asyncio.gather(*sending)

            for reader, _ in pairs:
                read = await read_until(reader, lambda items: len(texts(items)) == 2)
                assert texts(read) == ["two", "two"]


async def test_a_client_may_start_before_its_gateway(room: Room) -> None:
    await asyncio.to_thread(room.stop)
    async with Client(room.url, room.token) as client:
        sending = asyncio.create_task(client.send("all", "early"))
        await wait_until(lambda: "no gateway answers" in client.status.why)
        await asyncio.to_thread(room.start)
        sent = await sending

    assert [event.id for event in room.journal()] == [sent.id]


async def test_nothing_from_before_is_read_without_after(room: Room) -> None:
    async with Client(room.url, room.token) as writer:
        await say(writer, "old")
        async with Client(room.url, room.token) as reader:
            await reader.connected()
            await say(writer, "new")

            assert await read_texts(reader, "new") == ["new"]


async def test_the_first_event_after_joining_is_not_lost_with_the_connection(
    room: Room, proxy: Proxy
) -> None:
    async with (
        Client(room.url, room.token) as writer,
        Client(proxy.url, room.token) as reader,
    ):
        await reader.connected()
        proxy.is_open = False
        proxy.cut()
        await wait_until(lambda: not reader.status.is_connected)
        await say(writer, "while away")
        proxy.is_open = True

        assert await read_texts(reader, "while away") == ["while away"]


async def test_a_restored_journal_is_followed_from_where_it_ends(room: Room) -> None:
    journal = room.folder / "journal.jsonl"
    async with (
        Client(room.url, room.token, after=0) as reader,
        Client(room.url, room.token) as writer,
    ):
        await say(writer, "one")
        backup = journal.read_bytes()
        await say(writer, "two", "three")
        before = await read_texts(reader, "three")
        await asyncio.to_thread(room.stop)
        await wait_until(lambda: not reader.status.is_connected)
        journal.write_bytes(backup)
        await asyncio.to_thread(room.start)
        await wait_until(lambda: reader.status.is_connected)
        await say(writer, "four")
        after = await read_texts(reader, "four")

    assert (before, after) == (["one", "two", "three"], ["four"])


async def test_another_room_at_the_same_address_is_followed_from_where_it_is(
    room: Room, proxy: Proxy
) -> None:
    async with Client(proxy.url, room.token, after=0) as reader:
        async with Client(room.url, room.token) as writer:
            await say(writer, "one", "two")
        before = await read_texts(reader, "two")
        proxy.is_open = False
        proxy.cut()
        await wait_until(lambda: not reader.status.is_connected)
        await asyncio.to_thread(room.stop)
        (room.folder / "journal.jsonl").unlink()
        await asyncio.to_thread(room.start)
        async with Client(room.url, room.token) as writer:
            await say(writer, "other one", "other two", "other three")
            proxy.is_open = True
            await wait_until(lambda: reader.status.is_connected)
            await say(writer, "other four")
        after = await read_texts(reader, "other four")

    assert (before, after) == (["one", "two"], ["other four"])


async def test_a_delivery_comes_once_until_its_end(room: Room, proxy: Proxy) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with (
        Client(room.url, room.token) as writer,
        Client(proxy.url, alice.token) as reader,
    ):
        await say(writer, "one", "two", to="alice")
        before = await read_delivered(reader, "two")
        proxy.cut()
        await asyncio.to_thread(room.restart)
        await say(writer, "three", to="alice")
        after = await read_delivered(reader, "three")

    assert before + after == ["one", "two", "three"]


async def test_a_new_process_gets_again_what_has_not_ended(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, room.token) as writer:
        await say(writer, "done", "not done", to="alice")
    async with Client(room.url, alice.token) as first:
        items = await read_until(first, lambda items: len(delivered(items)) == 2)
        done = next(item for item in items if isinstance(item, Deliver))
        await first.report(done.id, ReportedState.CONFIRMED)

    async with Client(room.url, alice.token) as second:
        assert await read_delivered(second, "not done") == ["not done"]


async def test_seq_is_where_the_next_client_goes_on(room: Room) -> None:
    async with Client(room.url, room.token, after=0) as first:
        await say(first, "one", "two", "three")
        await read_texts(first, "two")
        place = first.seq
    async with Client(room.url, room.token, after=place) as second:
        assert await read_texts(second, "three") == ["three"]


@pytest.mark.parametrize("is_noticed", ["by a ping", "by a reset"])
async def test_a_network_that_carries_nothing_is_survived(
    room: Room, proxy: Proxy, is_noticed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_noticed == "by a ping":
        monkeypatch.setattr(websocket_link, "KEEPALIVE_S", 0.3)
    async with (
        Client(room.url, room.token) as writer,
        Client(proxy.url, room.token, after=0) as reader,
    ):
        await say(writer, "one")
        await read_texts(reader, "one")
        proxy.hold()
        await say(writer, "two")
        sending = asyncio.create_task(say(reader, "three"))
        if is_noticed == "by a ping":
            await wait_until(lambda: not reader.status.is_connected)
        else:
            proxy.cut()
        proxy.flow()
        await sending

        assert await read_texts(reader, "three") == ["two", "three"]


# --- a consumer that is slow ---------------------------------------------------------------------


async def test_a_slow_consumer_gets_everything_in_the_end(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox_module, "MAX_ITEMS", 200)
    words = [f"word {number}" for number in range(600)]
    async with (
        Client(room.url, room.token, after=0) as reader,
        Client(room.url, room.token) as writer,
    ):
        await reader.connected()
        await asyncio.gather(*(writer.send("all", word) for word in words))
        await reader.send("all", "the last of all")
        assert reader._inbox.taken <= 200

        assert await read_texts(reader, words[-1]) == words


async def test_a_consumer_that_answers_out_of_a_flood_does_not_wait_for_itself(room: Room) -> None:
    words = [f"word {number}" for number in range(2500)]
    async with (
        Client(room.url, room.token, after=0) as reader,
        Client(room.url, room.token) as writer,
    ):
        await reader.connected()
        await asyncio.gather(*(writer.send("all", word) for word in words))
        await read_texts(reader, "word 0")
        async with asyncio.timeout(READ_S):
            await reader.send("all", "answer")

        assert await read_texts(reader, "answer") == [*words[1:], "answer"]


async def test_a_reader_that_fell_behind_resumes(room: Room, proxy: Proxy) -> None:
    statuses: list[Status] = []
    words = [f"{number} " + "x" * 200_000 for number in range(120)]
    async with (
        Client(room.url, room.token) as writer,
        Client(proxy.url, room.token, after=0, on_status=statuses.append) as reader,
    ):
        await reader.connected()
        proxy.hold(to_gateway=False)
        await say(writer, *words)
        proxy.flow()
        read = await read_until(reader, lambda items: texts(items[-1:]) == words[-1:])

    assert any("fell behind" in status.why for status in statuses)
    assert texts(read) == words
    assert [event.seq for event in events(read)] == list(range(1, len(words) + 1))
