"""How often the room is asked who is there."""

import asyncio
from typing import Any

import pytest

from csp.errors import Unreachable
from csp.human.roster import _GATHER_S, _REST_S, Roster
from csp.protocol.enums import AgentState, JoinRole, ParticipantKind
from csp.protocol.events import HumanMessage, Joined, Left, NoticePosted, Redacted, StateChanged
from tests.waiting import wait_until


async def test_many_changes_are_one_look() -> None:
    asked: list[str] = []

    async def ask(method: str, path: str) -> Any:
        asked.append(path)
        return [] if path == "/agents" else {"mode": "debate", "deadline": 1.0, "currentTurn": "ada"}

    roster = Roster(ask, lambda: None)
    fresh = asyncio.ensure_future(roster.keep_fresh())
    for looks in (1, 2):
        for _ in range(100):
            roster.wake()
        await wait_until(lambda: asked == ["/agents", "/mode"] * looks)  # noqa: B023

    assert roster.session.current == "ada"
    fresh.cancel()


class Room:
    """A roster before a gateway that says what a test wants."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"/agents": [], "/mode": {}}
        self.changes = 0
        self.roster = Roster(self.ask, self.note)

    async def ask(self, method: str, path: str) -> Any:
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def note(self) -> None:
        self.changes += 1


HEAD: dict[str, Any] = {
    "seq": 1,
    "ts": 0.0,
    "id": "m",
    "sender": "ada",
    "target": "all",
    "thread": "main",
    "text": "",
}


async def test_agents_that_were_starting_are_reported_ready_once() -> None:
    room = Room()
    states = {"ada": "idle", "bob": "starting", "cy": "starting"}
    steps: list[tuple[dict[str, str], list[str]]] = [
        ({}, []),
        ({"bob": "busy"}, ["bob"]),
        ({"cy": "offline"}, []),
        ({"cy": "idle"}, ["cy"]),
        ({"bob": "starting"}, []),
        ({"bob": "idle"}, []),
    ]
    for number, (moved, ready) in enumerate(steps):
        states |= moved
        room.answers["/agents"] = [{"id": agent, "state": state} for agent, state in states.items()]
        await room.roster.look()
        if number == 0:
            room.roster.watch_starting()
        assert room.roster.take_ready() == ready, number


async def test_who_comes_can_be_named_at_once_and_who_is_removed_no_more() -> None:
    room = Room()
    joined = Joined(**HEAD, name="Ada", kind=ParticipantKind.CLI, role=JoinRole.AGENT, epoch=1)
    room.roster.note(joined)
    room.roster.note(joined)
    assert (room.roster.ids, room.roster.summary()) == (["ada"], "ada starting")
    room.roster.note(Left(**HEAD, reason="left"))
    assert room.roster.ids == ["ada"]
    room.roster.note(Left(**HEAD, reason="removed", removed=True))

    assert (room.roster.ids, room.roster.summary()) == ([], "no agents yet")


@pytest.mark.parametrize(
    ("event", "mode", "looks"),
    [
        (NoticePosted(**HEAD), "freeform", False),
        (NoticePosted(**HEAD), "debate", True),
        (Redacted(**HEAD | {"message": "m"}), "freeform", False),
        (HumanMessage(**HEAD, recipients=()), "debate", False),
        (HumanMessage(**HEAD | {"recipients": ("ada",)}), "freeform", True),
        (StateChanged(**HEAD, state=AgentState.BUSY), "freeform", True),
    ],
)
async def test_only_what_the_bottom_line_may_show_is_worth_a_look(event: Any, mode: str, looks: bool) -> None:
    room = Room()
    room.answers["/mode"] = {"mode": mode}
    await room.roster.look()
    room.roster.note(event)

    assert room.roster._stale.is_set() == looks


async def test_a_look_takes_all_and_a_gateway_without_modes_is_in_freeform() -> None:
    room = Room()
    room.answers["/agents"] = [
        {"id": "ada", "state": "needs_approval", "queued": 2, "detail": "d"},
        {"id": "bob", "state": "needs_human"},
        {"id": "cy", "state": "idle"},
    ]
    room.answers["/mode"] = {"mode": "debate"}
    assert not room.roster.is_known
    await room.roster.look()
    assert room.roster.is_known and room.roster.session.is_running
    room.answers["/mode"] = Unreachable("no such thing")
    await room.roster.look()

    assert (room.changes, room.roster.session.is_running) == (2, False)
    assert [seat.queued for seat in room.roster.seats] == [2, 0, 0]


async def test_a_look_that_fails_does_not_end_the_looking() -> None:
    room = Room()
    room.answers["/agents"] = Unreachable("away")
    fresh = asyncio.ensure_future(room.roster.keep_fresh())
    room.roster.wake()
    await asyncio.sleep(0)
    await wait_until(lambda: not room.roster._stale.is_set())
    room.answers["/agents"] = []
    room.roster.wake()
    await wait_until(lambda: room.changes == 1, 60.0)
    fresh.cancel()


async def test_changes_are_gathered_before_a_look_and_there_is_a_rest_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, steps = Room(), list[Any]()
    room.roster._changed = lambda: steps.append("look")
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        steps.append(seconds)
        await sleep(0)

    monkeypatch.setattr("csp.human.roster.asyncio.sleep", note)
    fresh = asyncio.ensure_future(room.roster.keep_fresh())
    for looks in (1, 2):
        room.roster.wake()
        for _ in range(20):
            await sleep(0)

        assert steps == [_GATHER_S, "look", _REST_S] * looks
    fresh.cancel()


async def test_an_agent_without_a_name_is_nobody() -> None:
    room = Room()
    room.answers["/agents"] = [{"id": "", "state": "idle"}, {"id": "ada", "state": "idle"}]
    await room.roster.look()

    assert room.roster.ids == ["ada"]
