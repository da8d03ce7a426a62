"""The human in the room: what is shown of events, what becomes of what is typed; without a gateway."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest
from prompt_toolkit.keys import Keys

from csp.client import Status
from csp.errors import NotFound, Unreachable
from csp.human import chat as chat_module
from csp.human.chat import Chat, ChatOrder
from csp.human.chat_pane import ChatPane
from csp.human.saved_state import SavedState
from csp.human.theme import UNICODE, Theme
from csp.protocol.enums import DeliveryState
from csp.protocol.events import AgentResponse, DeliveryMoved, HumanMessage, NoticePosted, Voted
from csp.room.human_input import MessageLine
from csp.room_registry import Address
from tests.waiting import wait_until

HEAD: dict[str, Any] = {
    "seq": 7,
    "ts": 0.0,
    "id": "m-1",
    "sender": "ada",
    "target": "human",
    "thread": "main",
    "text": "hi",
}


class Out:
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.talked: list[str] = []
        self.bells = 0
        self.has_left = False

    def put(self, text: str) -> None:
        self.lines.append(text)

    async def page(self, title: str, lines: list[str]) -> None:
        self.lines += lines

    def talk(self, text: str) -> None:
        self.talked.append(text)

    def bell(self) -> None:
        self.bells += 1

    def refresh(self) -> None:
        pass

    def leave(self) -> None:
        self.has_left = True


class Room(Chat):
    """A chat whose gateway answers what a test says."""

    def __init__(self, folder: Path, *, is_person: bool = True) -> None:
        self.shown = Out()
        self.asked: list[tuple[str, str, Any]] = []
        self.answers: dict[str, Any] = {"/agents": [{"id": "ada", "state": "idle"}], "/mode": {}}
        order = ChatOrder(
            address=Address(url="http://127.0.0.1:9", token="t", room="default"),
            memory=SavedState(folder / "human"),
            env={},
            cwd=folder,
            is_person=is_person,
        )
        super().__init__(order, self.shown, Theme(UNICODE, has_colour=False))

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        self.asked.append((method, path, body))
        answer = self.answers.get(path, {})
        if isinstance(answer, list) and answer and isinstance(answer[0], Exception):
            raise answer.pop(0)
        return answer


def need(since: float) -> dict[str, Any]:
    answers = [{"key": "y", "label": "Approve", "line": "/approve ada 1"}]
    return {
        "id": "approval:ada", "kind": "approval", "title": "ada asks to run a command", "since": since,
        "answers": answers, "level": "action", "agent": "ada", "session": "", "run": "", "detail": "rm x",
    }  # fmt: skip


@pytest.fixture
async def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


async def test_what_needs_the_person_rings_once_until_it_is_over(room: Room) -> None:
    room.answers["/attention"] = {"items": [need(1.0)], "seq": 1}
    await room.needs.look()
    await room.needs.look()
    assert (room.shown.bells, len(room.shown.lines)) == (1, 1)

    room.answers["/attention"] = {"items": [need(2.0)], "seq": 2}
    await room.needs.look()
    assert room.shown.bells == 2

    room.answers["/attention"] = {"items": [], "seq": 3}
    await room.needs.look()
    room.answers["/attention"] = {"items": [need(2.0)], "seq": 4}
    await room.needs.look()
    assert room.shown.bells == 3


async def test_what_is_only_worth_knowing_does_not_ring(room: Room) -> None:
    room.answers["/attention"] = {"items": [need(1.0) | {"level": "info"}], "seq": 1}
    await room.needs.look()

    assert (room.shown.bells, room.shown.lines) == (0, [])


async def test_own_messages_are_ticks_and_others_are_lines(room: Room) -> None:
    room.ticks.expect("mine", 0.0)
    room._mine["mine"] = asyncio.ensure_future(asyncio.sleep(0))
    room._take(HumanMessage(**HEAD | {"id": "mine", "sender": "human", "recipients": ("ada",)}))
    room._take(DeliveryMoved(**HEAD | {"message": "mine", "agent": "ada", "state": DeliveryState.CONFIRMED}))
    assert room.shown.lines == []
    assert [line.strip() for line in room.ticks.due(1e12)] == ["#7 ✓ ada"]
    room._take(HumanMessage(**HEAD | {"id": "other", "sender": "human"}, recipients=()))

    assert room.shown.lines[0].endswith("human → human: hi")


async def test_a_notice_that_a_tick_tells_too_is_not_shown(room: Room) -> None:
    room.ticks.expect("b-1", 0.0, label="approve")
    for code, message in (("control_expired", "b-1"), ("delivery_failed", "b-1"), ("loop_held", "b-1")):
        room._take(NoticePosted(**HEAD | {"text": code, "code": code, "params": {"message": message}}))
    room._take(NoticePosted(**HEAD | {"text": "b-1 to ada failed: written by an old version"}))

    assert [line.rpartition("· ")[2] for line in room.shown.lines] == [
        "loop_held",
        "b-1 to ada failed: written by an old version",
    ]


async def test_a_vote_that_stands_in_the_words_is_not_shown_again(room: Room) -> None:
    fields = HEAD | {"text": "A", "session_id": "s", "turn": "t", "label": "A"}
    room._take(Voted(**fields))
    before = len(room.shown.lines)
    room._take(AgentResponse(**HEAD | {"text": "VOTE: [A]"}, recipients=()))
    room._take(Voted(**fields | {"message": "m-7"}))

    assert len(room.shown.lines) == before + 1
    assert await room.last_words("ada") == "VOTE: [A]"


async def test_a_stop_is_tried_again_until_the_gateway_is_back(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_module, "TICK_S", 0.001)
    room.answers["/stop"] = [Unreachable("away"), Unreachable("away")]
    monkeypatch.setattr("csp.human.command_actions.stop", stop_of(room))
    await room._stop()

    assert [path for _, path, _ in room.asked] == ["/stop"] * 3


def stop_of(room: Room) -> Any:
    async def stop(chat: Chat, words: list[str]) -> None:
        await room.ask("POST", "/stop", {})

    return stop


@pytest.mark.parametrize("is_person", [True, False])
async def test_a_stop_is_given_up_at_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_person: bool
) -> None:
    room = Room(tmp_path, is_person=is_person)
    monkeypatch.setattr(chat_module, "TICK_S", 0.001)
    monkeypatch.setattr(chat_module, "_STOP_S", 0.05 if is_person else 60.0)
    room.answers["/stop"] = [Unreachable("away") for _ in range(10_000)]
    with pytest.raises(Unreachable):
        await room._stop()

    assert (len(room.asked) > 1) == is_person


async def test_a_stop_does_not_wait_for_what_was_typed_before(room: Room) -> None:
    room.answers["/stop"] = {"stopped": []}
    # Nobody works on the lane: what is typed stays there.
    room.enter("/agents")
    room.enter("Allstop")
    assert (room._lane.qsize(), len(room._unfinished)) == (1, 1)
    await wait_until(lambda: ("POST", "/stop", {}) in room.asked)

    await asyncio.gather(*room._unfinished)


async def test_plain_text_goes_to_the_target_which_an_address_moves(room: Room) -> None:
    await room.roster.look()
    sent: list[tuple[str, str, bool]] = []

    def say(to: str, text: str, *, urgent: bool = False) -> None:
        sent.append((to, text, urgent))

    room.say = say  # type: ignore[method-assign]  # what is sent is all that matters here
    room._last_words["ada"] = "tabs"
    await room._say(MessageLine(text="one"))
    await room._say(MessageLine(to="ADA", text="so {ada.last}?", urgent=True))
    await room._say(MessageLine(text="{{eve.last}} {x}"))

    assert sent == [("all", "one", False), ("ada", "so tabs?", True), ("ada", "{eve.last} {x}", False)]
    assert room.target == "ada"
    with pytest.raises(NotFound, match=r"unknown agent in '\{eve.last\}'"):
        await room._say(MessageLine(text="see {eve.last}"))


async def test_several_and_groups_are_named_and_an_unknown_name_is_refused(room: Room) -> None:
    room.answers["/agents"] = [{"id": "ada", "state": "idle"}, {"id": "bob", "state": "idle"}]
    room.answers["/catalogue"] = {"groups": {"reviewers": ["ada", "bob"]}}
    await room.roster.look()
    await room.roster.learn_groups()

    assert room.roster.addressees("ada,Bob,ada") == "ada,bob"
    assert room.roster.addressees("reviewers") == "reviewers"
    assert room.roster.names() == ["ada", "bob", "reviewers"]
    with pytest.raises(NotFound) as error:
        room.roster.addressees("ada,reviewer")
    assert (error.value.message, error.value.hint) == (
        "no agent or group 'reviewer' is here",
        "did you mean 'reviewers'?",
    )


async def test_what_was_hardly_meant_for_agents_is_sent_after_a_yes(room: Room) -> None:
    sent: list[tuple[str, str]] = []

    def say(to: str, text: str, *, urgent: bool = False) -> None:
        sent.append((to, text))

    room.say = say  # type: ignore[method-assign]
    room._is_ready.set()
    room._start(room._work_lane())
    room.enter("quit")
    assert (room.shown.lines, room.prompt) == (["? Send 'quit' to all? (type /quit) y/N"], "send it y/N")
    room.enter("n")
    assert (room.shown.talked, room.prompt) == (["not done"], "all")
    room.enter("quit")
    room.enter("y")
    await room.finish(0.0)

    assert sent == [("all", "quit")]
    for task in room._tasks:
        task.cancel()


async def test_a_command_takes_a_question_back(room: Room) -> None:
    room.enter("help")
    room.enter("/agents")

    assert room.question is None and room.shown.talked == []
    assert room._lane.qsize() == 1


async def test_a_script_is_not_asked(tmp_path: Path) -> None:
    room = Room(tmp_path, is_person=False)
    room.enter("help")

    assert (room.shown.lines, room._lane.qsize()) == ([], 1)


def notice(code: str, text: str, **params: Any) -> NoticePosted:
    return NoticePosted(**HEAD | {"text": text, "code": code, "params": params})


async def test_on_a_screen_turns_and_what_needs_the_person_are_said_elsewhere(room: Room) -> None:
    turns = [
        notice("your_turn", "@bob - Your turn.", agent="bob"),
        notice("round", "Round 2", round=2),
        notice("run_needs_person", "run-4 needs you: a plan. Answer with: csp review go run-4", run="run-4"),
    ]
    for one in turns:
        room._take(one)
    assert len(room.shown.lines) == 3
    room.look.columns = lambda: 80
    for one in turns:
        room._take(one)

    assert len(room.shown.lines) == 3


async def test_on_a_screen_a_stop_names_its_mode_and_a_result_is_shown_once(room: Room) -> None:
    room.look.columns = lambda: 80
    result = "Collaboration s-1: finished\n"
    room._take(notice("mode", "Mode: DEBATE", mode="DEBATE"))
    room._take(notice("ended_stopped_by_user", "Collaboration stopped by user (Allstop)."))
    room._take(AgentResponse(**HEAD | {"text": "the plan"}, recipients=()))
    room._take(notice("collaboration_result", f"{result}the plan", outcome="the plan"))
    room._take(notice("collaboration_result", f"{result}another one", outcome="another one"))
    shown = [line.partition("· ")[2] or line for line in room.shown.lines]

    assert shown[1] == "Debate stopped (Allstop)."
    assert shown[3] == "Collaboration s-1: finished"
    assert shown[4] == "Collaboration s-1: finished\n  another one"


async def test_names_are_checked_only_where_the_room_is_known(room: Room) -> None:
    assert room.known("@Eve") == "eve"
    await room.roster.look()
    with pytest.raises(NotFound) as error:
        room.known("eve")
    assert error.value.hint == "here are: ada"
    assert (room.known("ADA"), room.known("all")) == ("ada", "all")
    room.answers["/agents"] = []
    await room.roster.look()
    with pytest.raises(NotFound) as error:
        room.known("eve")
    assert error.value.hint == "nobody has joined yet"


async def test_a_lost_gateway_is_said_once_and_its_return_too(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_module, "_AWAY_S", 0.0)
    for _ in range(2):
        room._on_status(Status(why="refused"))
    await wait_until(lambda: not room._tasks)
    room._on_status(Status(is_connected=True))
    room._on_status(Status(is_connected=True))

    assert room.shown.talked == [
        "the gateway is unreachable; what you type is sent when it is back: refused",
        "the gateway is back",
    ]
    assert room.away == ""


async def test_what_was_seen_is_remembered_for_a_person_alone(tmp_path: Path) -> None:
    for is_person, expected in ((False, None), (True, 12)):
        room = Room(tmp_path, is_person=is_person)
        room._client = SimpleNamespace(seq=12)  # type: ignore[assignment]
        room._has_greeted = True
        room._save_seen()

        assert room.order.memory.last_seen() == expected


class Sending:
    """A client that sends what it is given, or does not."""

    def __init__(self, recipients: tuple[str, ...] = ("ada",), problem: Exception | None = None) -> None:
        self.seq, self.status = 12, Status(is_connected=True)
        self.sent: list[tuple[str, str, bool, str]] = []
        self.may_go_on = asyncio.Event()
        self.has_closed = False
        self._recipients, self._problem = recipients, problem

    async def send(self, to: str, text: str, *, urgent: bool, id: str) -> Any:
        await self.may_go_on.wait()
        self.sent.append((to, text, urgent, id))
        if self._problem:
            raise self._problem
        return SimpleNamespace(seq=9, recipients=self._recipients)

    async def close(self) -> None:
        self.has_closed = True


def sending(room: Room, client: Sending) -> Sending:
    room._client = client  # type: ignore[assignment]
    return client


async def test_what_is_sent_is_followed_and_can_be_named(room: Room) -> None:
    client = sending(room, Sending())
    room.say("ada", "hi", urgent=True)
    named = asyncio.ensure_future(room.last_own())
    await asyncio.sleep(0)
    # It goes out another way than what is asked next.
    assert not named.done() and len(room._unfinished) == 1
    client.may_go_on.set()
    message = await named
    await wait_until(lambda: not room._unfinished)

    assert client.sent == [("ada", "hi", True, message)]
    assert (room.ticks.waiting, room.ticks.is_own(message), room.shown.talked) == (1, True, [])


async def test_what_reaches_nobody_is_said(room: Room) -> None:
    sending(room, Sending(recipients=())).may_go_on.set()
    room.say("all", "hi")
    await wait_until(lambda: not room._unfinished)

    assert room.shown.talked == ["#9 reached nobody: no agent is online"]


async def test_what_was_not_sent_is_followed_no_more(room: Room) -> None:
    sending(room, Sending(problem=Unreachable("away"))).may_go_on.set()
    room.say("ada", "hi")
    await wait_until(lambda: not room._unfinished)

    assert (room.ticks.waiting, room.failures) == (0, 1)
    assert room.shown.talked == ["✗ not sent to ada: away"]


async def test_only_so_many_own_messages_are_remembered_the_newest(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_module, "_MINE_KEPT", 2)
    client = sending(room, Sending())
    client.may_go_on.set()
    for text in ("one", "two", "three"):
        room.say("ada", text)
    await wait_until(lambda: not room._unfinished)

    assert list(room._mine) == [id for _, _, _, id in client.sent[1:]]


async def test_how_far_everything_was_shown_is_kept_meanwhile_and_at_the_end(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_module, "TICK_S", 0.0)
    closed: list[str] = []

    async def close() -> None:
        closed.append("borders")

    room.borders = SimpleNamespace(close=close)  # type: ignore[assignment]
    client = sending(room, Sending())
    room._has_greeted = True
    room._start(room._tell_ticks())
    await wait_until(lambda: room.order.memory.last_seen() == 12)
    for task in room._tasks:
        task.cancel()
    client.seq = 13
    await room.__aexit__(None, None, None)

    assert (room.order.memory.last_seen(), client.has_closed, closed) == (13, True, ["borders"])


async def test_what_is_typed_ahead_waits_until_it_is_known_who_is_here(room: Room) -> None:
    room.answers["/agents"] = []
    room.enter("/agents")
    room._start(room._work_lane())
    for _ in range(20):
        await asyncio.sleep(0)
    early = list(room.shown.lines)
    room._is_ready.set()
    await room.finish(0.0)

    assert early == []
    assert room.shown.lines[0].startswith("no agents yet")
    for task in room._tasks:
        task.cancel()


async def test_what_is_typed_ahead_is_done_at_last_without_a_gateway(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_module, "_TYPED_AHEAD_S", 0.01)
    room.answers["/agents"] = []
    room.enter("/agents")
    room._start(room._work_lane())
    await room.finish(0.0)

    assert room.shown.lines[0].startswith("no agents yet")
    for task in room._tasks:
        task.cancel()


async def test_the_end_waits_for_what_was_typed_then_tells_how_it_stands(room: Room) -> None:
    sending(room, Sending())
    room._is_ready.set()
    room.answers["/agents"] = []
    room.enter("/agents")
    ending = asyncio.ensure_future(room.finish(0.0))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not ending.done()
    room.ticks.expect("m", asyncio.get_running_loop().time())
    room.ticks.accept("m", 3, ("ada",), asyncio.get_running_loop().time())
    room.ticks.move("m", "ada", DeliveryState.HELD, "paused", asyncio.get_running_loop().time())
    room._start(room._work_lane())
    await ending

    assert room.shown.lines[0].startswith("no agents yet")
    assert room.shown.lines[1:] == ["  #3 held for ada: paused; /resume ada"]
    for task in room._tasks:
        task.cancel()


async def test_a_gateway_that_is_back_is_looked_at_again(room: Room) -> None:
    room._on_status(Status(is_connected=True))

    assert room.roster._stale.is_set()


@pytest.mark.parametrize(("is_person", "give_up_s"), [(True, None), (False, 10.0)])
async def test_only_a_script_gives_up_a_gateway_that_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_person: bool, give_up_s: float | None
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(chat_module, "Client", lambda *_, **options: given.append(options["give_up_s"]))
    Room(tmp_path, is_person=is_person)

    assert given == [give_up_s]


class Arriving:
    """A client that learns the place of the room before it is connected, and has nothing to hand out."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.seq: int | None = None
        self._meanwhile = meanwhile

    async def connected(self) -> None:
        self.seq = 12
        self._meanwhile()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> None:
        raise StopAsyncIteration


async def test_what_was_missed_is_not_seen_before_it_is_shown(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int | None]] = []

    async def missed(gateway: Any, look: Theme, seq: int, seen: int | None) -> list[str]:
        room._save_seen()
        asked.append((seq, seen))
        return ["--- missed ---"]

    monkeypatch.setattr(chat_module, "missed_lines", missed)
    room.order.memory.save_seen(5)
    room._client = Arriving(room._save_seen)  # type: ignore[assignment]
    await room.serve()
    assert (asked, room.order.memory.last_seen()) == ([(12, 5)], 5)
    room._save_seen()

    assert room.shown.lines == ["room default: ada idle", "--- missed ---"]
    assert room.order.memory.last_seen() == 12


async def test_a_failure_counts_and_speaks_of_commands_as_they_are_typed_here(room: Room) -> None:
    room.fail(NotFound("no\nsuch thing", "see: csp agents"), "about it: ")

    assert room.failures == 1
    assert room.shown.talked == ["about it: no such thing (see: /agents)"]


async def test_a_silent_message_is_asked_about(room: Room) -> None:
    room.ticks.expect("m", 0.0)
    room.ticks.accept("m", 3, ("ada",), 0.0)
    room.answers["/messages/m"] = {"recipients": {"ada": {"state": "held", "reason": "paused"}}}
    await room._ask_about("m")

    assert room.ticks.due(1e12) == ["  #3 held for ada: paused; /resume ada"]
    room.answers["/messages/m"] = {"recipients": {"ada": {"state": "of another version"}}}
    await room._ask_about("m")


async def test_the_borders_are_told_what_the_roster_knows(room: Room) -> None:
    told: list[Any] = []

    class Borders:
        def set_states(self, words: Any) -> None:
            told.append(words)

        def set_mode(self, text: str, until: float | None) -> None:
            told.append((text, until))

    room.borders = Borders()  # type: ignore[assignment]
    room.answers["/mode"] = {
        "mode": "debate",
        "round": 0,
        "maxRounds": 2,
        "turnOrder": ["ada"],
        "waitingFor": ["ada"],
        "currentTurn": "ada",
        "deadline": 99.0,
    }
    await room.roster.look()

    assert told == [{"ada": "YOUR TURN"}, ("Debate 1/2 · ada", 99.0)]


def test_f12_stops_whatever_is_being_typed() -> None:
    done: list[str] = []
    chat = SimpleNamespace(stop=lambda: done.append("stopped"), quit=lambda: done.append("left"))
    here: Any = SimpleNamespace(
        chat=chat, _enter=None, clear_or_explain=None, complete=None, suspend=None, refresh=lambda: None
    )
    (binding,) = [one for one in ChatPane._keys(here).bindings if one.keys == (Keys.F12,)]
    binding.handler(cast(Any, None))

    assert done == ["stopped"]
    assert binding.filter()
