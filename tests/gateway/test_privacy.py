"""What is not for an agent does not reach it by any way."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from csp.gateway.routes import ROUTES
from tests.gateway.served import Member, ServedRoom, served

SECRET = "marzipan"
FILTERS = [
    "",
    "limit=1000",
    "after=0",
    "after=0&limit=1",
    "before=10000",
    "agent=claude",
    "agent=human",
    "agent=codex",
    "agent=system",
    f"q={SECRET}",
    f"q={SECRET[:4]}",
    f"q={SECRET}&after=0",
    f"q={SECRET}&agent=claude",
    f"q={SECRET.upper()}",
    "q=%2C",
    "types=human_message,agent_call,agent_response",
    "types=late",
    "types=system",
    "types=delivery,control,state,joined,left,redacted,pruned,base",
    "types=late,system,human_message,agent_call,agent_response,vote,delivery,control",
    "session=s-1",
]


class Rooms:
    """A room in which a spy sits among others who talk in private."""

    def __init__(self, room: ServedRoom) -> None:
        self.room = room
        self.private: list[str] = []

    async def fill(self) -> None:
        room = self.room
        self.spy, self.claude, self.codex = [await room.join(name) for name in ("spy", "claude", "codex")]
        await room.send("all", "hello everybody")
        await self.whisper()

    async def whisper(self) -> None:
        """Say the secret in every way that is not for the spy."""
        room, claude, codex = self.room, self.claude, self.codex
        text = f"the {SECRET}, is here"
        asked = await room.send("claude", text)
        answer = await room.post("/agent-output", {"content": text, "replyTo": asked}, claude.token)
        call = await room.send("codex", text, claude.token, thread="aside")
        reply = await room.post("/agent-output", {"content": text, "replyTo": call}, codex.token)
        to_human = await room.send("human", text, codex.token)
        await room.post("/agent-output", {"content": text, "turn": "t-1"}, codex.token)
        failed = await room.send("codex", "this fails", claude.token)
        body = {"id": failed, "state": "failed", "reason": SECRET}
        await room.post("/delivery", body, codex.token)
        await room.post("/agents/codex/approve", {"choice": 2})
        self.private += [asked, answer["id"], call, reply["id"], to_human, failed]


@pytest.fixture
async def rooms(tmp_path: Path) -> AsyncIterator[Rooms]:
    # So small a memory that most answers come from the disk.
    async with served(tmp_path / "room", history_cap=3) as room:
        made = Rooms(room)
        await made.fill()
        yield made


async def _pages(room: ServedRoom, query: str, token: str) -> AsyncIterator[bytes]:
    """Yield the first pages of a history, going on from each `next`."""
    place = ""
    for _ in range(10):
        answer = await room.call("GET", f"/history?{query}{place}", token=token)
        assert answer.status == 200, answer.raw
        yield answer.raw
        if not answer.data["items"] or answer.data["next"] is None:
            return
        place = f"&{'after' if 'after' in query else 'before'}={answer.data['next']}"


@pytest.mark.parametrize("way", ["memory", "disk", "index"])
async def test_no_filter_search_or_page_of_the_history_shows_it(rooms: Rooms, way: str) -> None:
    room = rooms.room
    if way != "memory":
        await room.restart()
    if way == "index":
        room.gateway.index.catch_up()

    for query in FILTERS:
        async for page in _pages(room, query, rooms.spy.token):
            assert SECRET.encode() not in page, query


async def test_the_search_itself_works_for_those_it_concerns(rooms: Rooms) -> None:
    for member, count in ((rooms.claude, 4), (rooms.codex, 3)):
        found = await rooms.room.history(
            f"?q={SECRET}&types=human_message,agent_call,agent_response", member.token
        )

        assert len(found) == count


async def test_everybody_reads_what_was_said_to_all(rooms: Rooms) -> None:
    found = await rooms.room.history("?q=everybody", rooms.spy.token)

    assert [item["text"] for item in found] == ["hello everybody"]


async def test_the_states_of_others_messages_are_hidden(rooms: Rooms) -> None:
    for message in rooms.private:
        answer = await rooms.room.call("GET", f"/messages/{message}", token=rooms.spy.token)

        assert answer.status == 404


async def test_no_route_shows_it(rooms: Rooms) -> None:
    room = rooms.room
    names = ["spy", "claude", "codex", "human", "all", *rooms.private]

    for route in ROUTES:
        for name in names:
            path = (
                route.path.replace("{id}", quote(name))
                .replace("{verb}", "pause")
                .replace("{action}", "resend")
            )
            for body in (
                {},
                {"id": name, "to": "spy", "content": "hi", "replyTo": name, "state": "confirmed"},
            ):
                sent = None if route.method == "GET" else body
                answer = await room.call(route.method, path, sent, token=rooms.spy.token)
                assert SECRET.encode() not in answer.raw, (route.method, path)


async def test_an_answer_to_what_one_cannot_read_tells_nothing(rooms: Rooms) -> None:
    room, spy = rooms.room, rooms.spy

    for message in rooms.private:
        await room.post("/agent-output", {"content": "what was that?", "replyTo": message}, spy.token)
        await room.post("/message", {"to": "claude", "content": "and?", "replyTo": message}, spy.token)

    async for page in _pages(room, "after=0", spy.token):
        assert SECRET.encode() not in page
    assert SECRET.encode() not in (await room.call("GET", "/inbox/spy", token=spy.token)).raw


@pytest.mark.parametrize("how", ["after=0", "live", "watch"])
async def test_no_websocket_shows_it(rooms: Rooms, how: str) -> None:
    room = rooms.room
    socket = await room.connect(rooms.spy.token, 0 if how == "after=0" else None)
    if how == "watch":
        await socket.ask("watch", after=0)
    await rooms.whisper()
    seq = (await room.post("/message", {"to": "all", "content": "the end"}))["seq"]
    await socket.until_seq(seq)

    frames = [*socket.events, *socket.delivers, *socket.answers, *socket.others]
    assert SECRET not in json.dumps(frames)
    assert "the end" in [deliver["text"] for deliver in socket.delivers]


async def test_a_websocket_shows_an_agent_what_concerns_it(rooms: Rooms) -> None:
    socket = await rooms.room.connect(rooms.codex.token, 0)
    seq = (await rooms.room.post("/message", {"to": "all", "content": "the end"}))["seq"]
    await socket.until_seq(seq)

    said = [event for event in socket.events if SECRET in event["text"]]
    assert [(event["type"], event["sender"]) for event in said] == [
        ("agent_call", "claude"),
        ("agent_response", "codex"),
        ("agent_call", "codex"),
        ("delivery", "codex"),
    ]


async def test_the_rooms_websocket_shows_everything(rooms: Rooms) -> None:
    socket = await rooms.room.connect(after=0)
    last = rooms.room.gateway.writer.safe_seq
    await socket.until_seq(last)

    assert socket.seqs == list(range(1, last + 1))


async def test_a_late_answer_is_for_the_room_alone(rooms: Rooms) -> None:
    async def late(member: Member | None) -> int:
        return len(await rooms.room.history("?types=late", member.token if member else rooms.room.token))

    assert [await late(member) for member in (None, rooms.codex, rooms.spy)] == [1, 0, 0]
