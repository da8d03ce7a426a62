"""What the CLI wrote comes to the room: in order, each piece once, whatever the room says."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from csp.client import Client
from csp.errors import BadInput, StorageFull, TooMany, Unreachable
from csp.protocol.enums import MAX_TEXT_BYTES, Ending
from csp.protocol.requests import Usage
from csp.sidecar.capture.reply_poster import RETRY_S, WORKING_S, ReplyPoster
from csp.sidecar.inject.message_progress import MessageProgress, SentPrompt
from csp.terminal.reply_tracker import CapturedActivity, CapturedReply
from tests.sidecar.virtual import FakeClient, FakeRoom, on_virtual_time, until

USAGE = Usage(input=1, output=2)


class Posting:
    def __init__(
        self, poster: ReplyPoster, room: FakeRoom, posted: list[int], task: "asyncio.Task[None]"
    ) -> None:
        self.poster, self.room, self.posted, self.task = poster, room, posted, task

    async def post(self, *pieces: CapturedActivity | CapturedReply) -> list[dict[str, Any]]:
        for piece in pieces:
            self.poster.post(piece)
        await until(lambda: self.poster.is_idle)
        return self.room.outputs


@asynccontextmanager
async def posting() -> AsyncIterator[Posting]:
    room, posted = FakeRoom(), list[int]()
    tags = MessageProgress({"7": SentPrompt("m7", None), "t-1": SentPrompt("m8", "t-1")})
    note: Callable[[], None] = lambda: posted.append(1)  # noqa: E731
    poster = ReplyPoster(cast(Client, FakeClient(room)), tags, "ada", note)
    task = asyncio.ensure_future(poster.run())
    yield Posting(poster, room, posted, task)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def reply(text: str = "yes", **fields: Any) -> CapturedReply:
    known: dict[str, Any] = {"id": "r1", "text": text, "tag": "7", "usage": USAGE, "how": Ending.DONE}
    return CapturedReply(**(known | fields))


@on_virtual_time
async def test_a_reply_goes_to_whom_asked_with_what_it_cost() -> None:
    async with posting() as scene:
        (sent,) = await scene.post(reply())

        assert {key: sent[key] for key in ("text", "reply_to", "turn", "local", "usage", "ending")} == {
            "text": "yes", "reply_to": "m7", "turn": None, "local": False,
            "usage": USAGE, "ending": Ending.DONE,
        }  # fmt: skip
        assert scene.posted == [1]


@on_virtual_time
async def test_a_reply_to_a_turn_names_it() -> None:
    async with posting() as scene:
        (sent,) = await scene.post(reply(tag="t-1"))

        assert (sent["reply_to"], sent["turn"]) == ("m8", "t-1")


@pytest.mark.parametrize("tag", [None, "99"])
@on_virtual_time
async def test_an_answer_to_what_a_person_typed_in_the_pane_is_local(tag: str | None) -> None:
    async with posting() as scene:
        (sent,) = await scene.post(reply(tag=tag))

        assert (sent["reply_to"], sent["local"]) == (None, True)


@on_virtual_time
async def test_one_answer_to_several_prompts_goes_to_each_and_is_counted_once() -> None:
    async with posting() as scene:
        first, second = await scene.post(reply(also=("t-1",)))

        assert (first["reply_to"], first["usage"]) == ("m8", Usage(cost_usd=0.0))
        assert (second["reply_to"], second["usage"]) == ("m7", USAGE)
        assert first["id"] != second["id"]


@on_virtual_time
async def test_the_same_piece_has_the_same_id_and_no_other_has() -> None:
    async with posting() as scene:
        sent = await scene.post(reply(), reply(), reply(id="r2"))

        ids = [one["id"] for one in sent]
        assert ids[0] == ids[1] != ids[2]
        assert ids[0].startswith("out.") and len(ids[0]) == 36


@pytest.mark.parametrize(
    ("how", "text", "reason", "expected"),
    [
        (Ending.DONE, " \n", "", "(no text)"),
        (Ending.FAILED, "", "it broke", "it broke"),
        (Ending.LIMITED, "", "no tokens", "no tokens"),
        (Ending.INTERRUPTED, "", "by a person", ""),
        (Ending.FAILED, "half", "it broke", "half"),
    ],
)
@on_virtual_time
async def test_an_answer_without_words_says_why_where_that_is_news(
    how: Ending, text: str, reason: str, expected: str
) -> None:
    async with posting() as scene:
        (sent,) = await scene.post(reply(text, how=how, reason=reason))

        assert (sent["text"], sent["ending"]) == (expected, how)


@on_virtual_time
async def test_a_text_that_is_too_long_is_cut_whole_characters_only() -> None:
    async with posting() as scene:
        fits, cut = await scene.post(reply("x" * MAX_TEXT_BYTES), reply("é" * MAX_TEXT_BYTES))

        assert fits["text"] == "x" * MAX_TEXT_BYTES
        assert cut["text"].endswith("é\n\n[truncated: the full text is in the pane]")
        assert len(cut["text"].encode()) <= MAX_TEXT_BYTES


@on_virtual_time
async def test_activity_is_posted_as_such_and_tools_are_told_now_and_then() -> None:
    async with posting() as scene:
        await asyncio.sleep(WORKING_S)
        piece = CapturedActivity(id="a1", text="I look.", tag="t-1", tool="run", arguments="x" * 300)
        (sent,) = await scene.post(piece)
        await scene.post(CapturedActivity(id="a2", text=" ", tag="t-1", tool="again", arguments=""))
        await asyncio.sleep(WORKING_S)
        await scene.post(CapturedActivity(id="a3", text="", tag="t-1", tool="later", arguments=""))

        assert (sent["activity"], sent["turn"], sent["reply_to"], sent["local"]) == (True, "t-1", "m8", False)
        assert len(scene.room.outputs) == 1
        assert scene.room.works == [("run " + "x" * 300)[:200], "later "]


@pytest.mark.parametrize("error", [StorageFull("full"), TooMany("slower")])
@on_virtual_time
async def test_what_the_room_cannot_take_now_is_posted_later_before_what_follows(
    error: StorageFull | TooMany,
) -> None:
    async with posting() as scene:
        scene.room.refusals["output"] = [error, error]
        began = asyncio.get_running_loop().time()
        sent = await scene.post(reply("one"), reply("two", id="r2"))

        assert [one["text"] for one in sent] == ["one", "two"]
        assert asyncio.get_running_loop().time() - began >= 2 * RETRY_S


@on_virtual_time
async def test_what_the_room_refuses_is_not_in_the_way_of_the_next() -> None:
    async with posting() as scene:
        scene.room.refusals["output"] = [BadInput("no")]
        sent = await scene.post(reply("one"), reply("two", id="r2"))

        assert [one["text"] for one in sent] == ["two"]
        assert scene.poster.is_idle and len(scene.posted) == 2


@on_virtual_time
async def test_without_a_room_the_piece_is_left_to_the_next_brain() -> None:
    async with posting() as scene:
        scene.room.refusals["output"] = [Unreachable("gone")]
        scene.poster.post(reply())
        with pytest.raises(Unreachable):
            await scene.task

        assert not scene.poster.is_idle
