"""Screens of agents for those who watch."""

import asyncio
from typing import Any

import pytest

from csp.errors import Refused
from csp.gateway import screen_watch as screens_module
from csp.gateway.screen_watch import LiveFeed, ScreenWatch
from csp.protocol.enums import AgentId
from csp.protocol.screen_frames import LiveBody, ScreenView
from tests.gateway.served import Member, ServedRoom
from tests.gateway.sockets import Socket
from tests.gateway.test_broadcast import FakePipe
from tests.waiting import wait_until

ON, OFF = {"live": {"watch": True}}, {"live": {"watch": False}}
CLAUDE = AgentId("claude")


def screen(text: str = "hello", **more: object) -> dict[str, Any]:
    return {"rows": [[[text, {"bold": True}], [" there", {}]], []], "cols": 80, "cursor": [0, 5], **more}


async def agent(room: ServedRoom) -> tuple[Member, Socket]:
    member = await room.join("claude")
    return member, await room.connect(member.token)


async def until_told(socket: Socket, count: int) -> None:
    await wait_until(lambda: len(socket.others) >= count, what=f"{count} live frames")


async def test_an_agent_is_told_of_the_first_watcher_and_of_the_last(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    first, second = await room.connect(), await room.connect()
    await first.ask("watch", screen="claude")
    await first.ask("watch", screen="claude")
    await second.ask("watch", screen="claude")
    await first.ask("unwatch", screen="claude")
    await first.ask("unwatch", screen="claude")
    quiet = list(sidecar.others)
    await second.ask("unwatch", screen="claude")
    await until_told(sidecar, 3)

    assert quiet == [ON, ON]
    assert sidecar.others == [ON, ON, OFF]


async def test_nobody_watches_so_nothing_is_told(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    watcher = await room.connect()
    await watcher.ask("unwatch", screen="claude")
    await sidecar.ask("live", screen=screen())
    await sidecar.ask("working")
    await watcher.ask("working")

    assert (sidecar.others, watcher.others) == ([], [])


async def test_a_screen_goes_to_those_who_watch_that_agent(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    codex = await room.connect((await room.join("codex")).token)
    watcher, other, idle = [await room.connect() for _ in range(3)]
    await watcher.ask("watch", screen="claude")
    await other.ask("watch", screen="codex")
    shown = screen(title="claude", alternate=True)
    await sidecar.ask("live", screen=shown)
    await codex.ask("live", screen=screen("codex"))
    await until_told(watcher, 1)
    await until_told(other, 1)
    await idle.ask("working")

    assert watcher.others == [{"live": {"agent": "claude", "screen": shown}}]
    assert [frame["live"]["agent"] for frame in other.others] == ["codex"]
    assert idle.others == []
    assert room.gateway.writer.safe_seq == 2


async def test_a_piece_of_text_goes_the_same_way(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    watcher = await room.connect()
    await watcher.ask("watch", screen="claude")
    await sidecar.ask("live", text="Hel")
    await until_told(watcher, 1)

    assert watcher.others == [{"live": {"agent": "claude", "text": "Hel"}}]


async def test_a_watcher_that_goes_away_is_the_last(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    watcher = await room.connect()
    await watcher.ask("watch", screen="claude")
    await watcher.close()
    await until_told(sidecar, 2)

    assert sidecar.others == [ON, OFF]


async def test_an_agent_that_comes_back_is_told_that_it_is_watched(room: ServedRoom) -> None:
    member, sidecar = await agent(room)
    watcher = await room.connect()
    await watcher.ask("watch", screen="claude")
    await sidecar.close()
    again = await room.connect(member.token)
    await until_told(again, 1)

    assert again.others == [ON]


async def test_watching_a_screen_leaves_the_events_alone(room: ServedRoom) -> None:
    await agent(room)
    watcher = await room.connect()
    await watcher.ask("watch", screen="claude")
    await watcher.ask("unwatch", screen="claude")
    await room.send("all", "hello")
    await wait_until(lambda: watcher.texts == ["hello"])


async def test_only_the_room_and_the_agent_itself_may_look(room: ServedRoom) -> None:
    member, sidecar = await agent(room)
    spy = await room.join("spy")
    peek = await (await room.connect(spy.token)).ask("watch", screen="claude")
    answers = [await room.call("GET", "/agents/claude/screen", token=spy.token)]
    own = await (await room.connect(member.token)).ask("watch", screen="claude")
    nobody = await (await room.connect()).ask("watch", screen="nobody")

    assert (peek["status"], answers[0].status, nobody["status"]) == (403, 403, 404)
    assert own["ok"] is True
    assert sidecar.others == [ON]


# --- one screen ----------------------------------------------------------------------------------


async def show_when_asked(sidecar: Socket, count: int = 1) -> None:
    await until_told(sidecar, count)
    await sidecar.ask("live", screen=screen("fresh"))


async def test_one_screen_is_asked_for_and_waited_for(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    answer, _ = await asyncio.gather(room.call("GET", "/agents/claude/screen"), show_when_asked(sidecar))
    await until_told(sidecar, 2)

    assert answer.status == 200
    assert answer.data == {"agent": "claude", "screen": screen("fresh")}
    assert sidecar.others == [ON, OFF]


async def test_one_screen_is_fresh_while_others_watch(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    watcher = await room.connect()
    await watcher.ask("watch", screen="claude")
    await sidecar.ask("live", screen=screen("old"))
    answer, _ = await asyncio.gather(room.call("GET", "/agents/claude/screen"), show_when_asked(sidecar, 2))
    await until_told(watcher, 2)

    assert answer.data["screen"]["rows"][0][0][0] == "fresh"
    assert sidecar.others == [ON, ON]


async def test_two_who_ask_at_once_both_get_it(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    path = "/agents/claude/screen"
    first, second, _ = await asyncio.gather(
        room.call("GET", path), room.call("GET", path), show_when_asked(sidecar, 2)
    )
    await wait_until(lambda: sidecar.others[-1] == OFF)

    assert (first.status, second.data) == (200, first.data)


async def test_no_screen_is_a_refusal_with_a_reason(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.gateway.screen_watch.FRESH_S", 0.05)
    await agent(room)
    polling = await room.join("polling")
    gone = await room.join("gone")
    await room.post("/state", {"state": "offline"}, gone.token)
    answers = {
        name: await room.call("GET", f"/agents/{name}/screen") for name in ("claude", "polling", "gone", "x")
    }

    assert polling.id == "polling"
    assert {name: answer.status for name, answer in answers.items()} == {
        "claude": 409,
        "polling": 409,
        "gone": 409,
        "x": 404,
    }
    assert all(answer.is_refusal for answer in answers.values())
    words = {"claude": "did not show", "polling": "has no screen", "gone": "offline", "x": "unknown"}
    assert all(words[name] in answer.data["error"] for name, answer in answers.items())


# --- limits --------------------------------------------------------------------------------------

BAD: dict[str, dict[str, Any]] = {
    "no columns": {"screen": {"rows": []}},
    "rows of text": {"screen": {"rows": ["hello"], "cols": 80}},
    "run without text": {"screen": {"rows": [[[]]], "cols": 80}},
    "run of numbers": {"screen": {"rows": [[[1]]], "cols": 80}},
    "too many rows": {"screen": {"rows": [[]] * 1001, "cols": 80}},
    "cursor of one": {"screen": {"rows": [], "cols": 80, "cursor": [1]}},
    "negative cursor": {"screen": {"rows": [], "cols": 80, "cursor": [-1, 0]}},
    "style of text": {"screen": {"rows": [[["x", "bold"]]], "cols": 80}},
    "no text": {"text": ""},
}


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD)
async def test_what_is_no_screen_is_refused(room: ServedRoom, fields: dict[str, Any]) -> None:
    _, sidecar = await agent(room)

    assert (await sidecar.ask("live", **fields))["status"] == 400


async def test_a_screen_over_the_limit_is_refused(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    refused = await sidecar.ask("live", screen=screen("x" * 524_288))
    taken = await sidecar.ask("live", screen=screen("x" * 524_000))

    assert (refused["status"], taken["ok"]) == (413, True)


async def test_the_human_has_no_screen(room: ServedRoom) -> None:
    assert (await (await room.connect()).ask("live", screen=screen()))["status"] == 400


async def test_a_slow_watcher_gets_the_newest_screen_when_it_reads_again(room: ServedRoom) -> None:
    _, sidecar = await agent(room)
    opened = await room.http.ws_connect(
        room.url + "/ws", headers={"X-Auth-Token": room.token}, max_msg_size=0
    )
    await opened.send_json({"op": "watch", "ref": 1, "screen": "claude"})
    await until_told(sidecar, 1)
    for number in range(200):
        await sidecar.ask("live", screen=screen(f"{number} " + "x" * 100_000))
    seen: list[str] = []
    while not seen or not seen[-1].startswith("199 "):
        frame = await opened.receive_json(timeout=60)
        if "live" in frame:
            seen.append(frame["live"]["screen"]["rows"][0][0][0][:4])
    await opened.close()

    numbers = [int(text.split()[0]) for text in seen]
    assert numbers == sorted(set(numbers))
    assert len(numbers) < 150


# --- by themselves -------------------------------------------------------------------------------


class Told:
    """An agent with so many connections; notes whether it is watched."""

    def __init__(self, connections: int = 1) -> None:
        self.connections = connections
        self.all: list[bool] = []
        self.screens = ScreenWatch(self.tell)

    def tell(self, agent: AgentId, frame: bytes) -> int:
        assert agent == CLAUDE
        self.all.append(b"true" in frame)
        return self.connections


async def test_who_leaves_watches_nobody_and_is_sent_nothing_more() -> None:
    told, closed = Told(), list[bool]()
    feed = LiveFeed(FakePipe())  # type: ignore[arg-type]  # it has what is used
    feed.close = lambda: closed.append(True)  # type: ignore[method-assign]  # for this test
    told.screens.watch(CLAUDE, feed)
    told.screens.leave(feed)
    told.screens.leave(feed)

    assert (told.all, closed) == ([True, False], [True, True])
    assert told.screens.greeting(CLAUDE) == b"" and not told.screens._feeds


async def test_a_screen_that_does_not_come_is_waited_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert screens_module.FRESH_S == 2.0
    monkeypatch.setattr(screens_module, "FRESH_S", 0.0)
    told = Told()
    with pytest.raises(Refused, match="claude did not show its screen in 0 s"):
        await told.screens.fresh(CLAUDE)

    assert (told.all, told.screens._fresh) == ([True, False], {})


async def test_who_has_no_connection_has_no_screen() -> None:
    told = Told(connections=0)
    with pytest.raises(Refused, match="claude has no screen to show"):
        await told.screens.fresh(CLAUDE)

    assert told.screens._fresh == {}


async def test_a_screen_for_one_is_told_to_be_watched_until_it_comes() -> None:
    told = Told()
    shown = ScreenView(rows=(), cols=80)
    asking = asyncio.ensure_future(told.screens.fresh(CLAUDE))
    await asyncio.sleep(0)
    greeting = told.screens.greeting(CLAUDE)
    told.screens.show(CLAUDE, LiveBody(text="not a screen"))
    await asyncio.sleep(0)
    was_early = asking.done()
    for _ in range(2):
        told.screens.show(CLAUDE, LiveBody(screen=shown))

    assert (b"true" in greeting, was_early, await asking) == (True, False, shown)
    assert told.all == [True, False]
