"""A server that talks nonsense is survived."""

import pytest

from csp.client import Client, Live, Status
from csp.client import inbox as inbox_module
from csp.client import websocket_link as link_module
from csp.errors import Forbidden, StorageFull, Unauthenticated
from csp.protocol.codec import parse
from csp.protocol.enums import Struct
from csp.protocol.events import NoticePosted, Unknown
from csp.protocol.responses import Deliver
from tests.client.fake import Frame, fake_gateway, notice, sealed
from tests.client.reading import read_until
from tests.waiting import wait_until

NONSENSE: list[Frame] = [
    "",
    "{",
    "null",
    "[]",
    '"ref"',
    "{}",
    '{"deliver": 7}',
    '{"deliver": {"id": "m-1"}}',
    '{"live": }',
    '{"ref": {}, "ok": true}',
    '{"ref": 99, "ok": true}',
    '{"ref": null, "error": "what?", "hint": "", "status": 400}',
    '{"ref": "watch", "ok": true}',
    '{"v":1,"seq":1,"type":"system"}',
    sealed(b'{"v":1,"seq":"one","type":"system"'),
    sealed(b'{"v":1,"seq":1,,"type":"system"'),
    sealed(b'{"v":1,"seq":1,"ts":1.0,"type":7'),
    "[" * 100_000,
    "\x00\ud7ff",
    b"\xff\xfe\x00binary",
    b'{"ref": 1, "ok": true}',
]


async def test_nonsense_between_two_events_is_passed_over() -> None:
    async with fake_gateway(lambda number: [notice(1, "one"), *NONSENSE, notice(2, "two")]) as fake:
        async with Client(fake.url, "token", after=0) as client:
            items = await read_until(client, lambda items: len(items) == 2)

            assert [item.text for item in items if isinstance(item, NoticePosted)] == ["one", "two"]
            assert client.status.is_connected


async def test_an_event_that_comes_again_is_passed_over() -> None:
    frames: list[Frame] = [notice(seq, str(seq)) for seq in (1, 2, 1, 2, 3)]
    async with fake_gateway(lambda number: frames) as fake:
        async with Client(fake.url, "token", after=0) as client:
            items = await read_until(client, lambda items: len(items) == 3)

    assert [item.text for item in items if isinstance(item, NoticePosted)] == ["1", "2", "3"]


async def test_a_frame_that_is_too_large_costs_only_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "MAX_FRAME_BYTES", 10_000)
    statuses: list[Status] = []
    scripts: dict[int, list[Frame]] = {1: [notice(1, "one"), notice(2, "x" * 20_000)]}
    async with fake_gateway(lambda number: scripts.get(number, [notice(3, "three")])) as fake:
        async with Client(fake.url, "token", after=0, on_status=statuses.append) as client:
            items = await read_until(client, lambda items: len(items) == 2)

    assert [item.seq for item in items if isinstance(item, NoticePosted)] == [1, 3]
    assert len(statuses) >= 3


async def test_an_event_of_a_newer_gateway_comes_as_unknown() -> None:
    line = sealed(b'{"v":1,"type":"board.moved","seq":1,"ts":2.0,"id":"e-1","sender":"system","target":"all"')
    async with fake_gateway(lambda number: [line]) as fake:
        async with Client(fake.url, "token", after=0) as client:
            (event,) = await read_until(client, lambda items: len(items) == 1)

    assert isinstance(event, Unknown)
    assert (event.type, event.seq) == ("board.moved", 1)


async def test_a_live_frame_is_for_its_reader_to_parse() -> None:
    class Chunk(Struct, frozen=True):
        chunk: str

    async with fake_gateway(lambda number: ['{"live": {"chunk": "he"}}']) as fake:
        async with Client(fake.url, "token") as client:
            (live,) = await read_until(client, lambda items: len(items) == 1)

    assert isinstance(live, Live)
    assert parse(Chunk, bytes(live.data)) == Chunk(chunk="he")


async def test_a_delivery_may_have_fields_nobody_knows() -> None:
    frame = '{"deliver":{"id":"m-1","seq":1,"kind":"message","from":"a","text":"b","urgent":false,"new":1}}'
    async with fake_gateway(lambda number: [frame, frame]) as fake:
        async with Client(fake.url, "token") as client:
            (deliver,) = await read_until(client, lambda items: len(items) == 1)

    assert isinstance(deliver, Deliver)
    assert deliver.id == "m-1"


async def test_a_full_disk_is_told_to_the_caller() -> None:
    async with fake_gateway(lambda number: []) as fake:
        async with Client(fake.url, "token") as client:
            with pytest.raises(StorageFull, match="the disk is full") as error:
                await client.send("all", "hello")

    assert error.value.hint == "free some"


async def test_a_room_that_has_gone_back_is_followed_from_there() -> None:
    async with fake_gateway(lambda number: [notice(8, "eight")], seq=7) as fake:
        async with Client(fake.url, "token", after=5000) as client:
            (event,) = await read_until(client, lambda items: len(items) == 1)

    assert isinstance(event, NoticePosted)
    assert event.seq == 8


async def test_a_token_that_died_is_not_tried_again() -> None:
    async with fake_gateway(lambda number: [notice(1), 4001]) as fake:
        async with Client(fake.url, "token", after=0) as client:
            with pytest.raises(Unauthenticated, match="as the script says"):
                await read_until(client, lambda items: False)

    assert fake.connections == 1


async def test_events_are_asked_for_again_only_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "MAX_ITEMS", 10)
    async with fake_gateway(lambda number: [notice(seq) for seq in range(1, 100)]) as fake:
        async with Client(fake.url, "token", after=0) as client:
            await wait_until(lambda: fake.asked)
            with pytest.raises(StorageFull):
                await client.send("all", "hello")
            asked = [op["op"] for op in fake.asked]
            await read_until(client, lambda items: len(items) == 10)
            await wait_until(lambda: len(fake.asked) > 2)

    assert asked == ["unwatch", "message"]
    assert fake.asked[2] == {"op": "watch", "ref": "watch", "after": 10}


async def test_a_gateway_that_forbids_it_is_not_tried_again() -> None:
    async with fake_gateway(lambda number: []) as fake:
        fake.refusals.append((403, '{"error": "host is not this gateway", "hint": "call it by localhost"}'))
        async with Client(fake.url, "token") as client:
            with pytest.raises(Forbidden, match="host is not this gateway") as error:
                await client.connected()

    assert error.value.hint == "call it by localhost"


@pytest.mark.parametrize(
    "refusal", [(429, '{"error": "there are 4096 connections", "hint": "wait"}'), (403, "<h1>proxy</h1>")]
)
async def test_a_handshake_is_tried_again_after_a_refusal_that_may_pass(refusal: tuple[int, str]) -> None:
    statuses: list[Status] = []
    async with fake_gateway(lambda number: [notice(1)]) as fake:
        fake.refusals.append(refusal)
        async with Client(fake.url, "token", after=0, on_status=statuses.append) as client:
            await read_until(client, lambda items: len(items) == 1)

    assert [status.is_connected for status in statuses] == [False, True]
    assert statuses[1].is_connected
