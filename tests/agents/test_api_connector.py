"""What a connector makes of what the room tells it, in whichever order: no network, a room of our own."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import msgspec
import pytest

from csp.agents.api.connector import KEPT_THREADS, AgentConfig, Connector
from csp.agents.api.model_call import ModelCall
from csp.agents.api.model_pane import ModelPane
from csp.agents.api.providers import Model, Piece
from csp.agents.api.request import Exchange, ModelRequest
from csp.client import Client, Live
from csp.errors import CallFailed, Refused, Unreachable
from csp.prompt_files import load_prompts
from csp.protocol.enums import (
    AgentId,
    ControlVerb,
    DeliverKind,
    DeliveryState,
    MessageId,
    ReportedAgentState,
    ReportedState,
    TurnId,
)
from csp.protocol.events import DeliveryMoved, HumanMessage, Redacted, TurnMoved
from csp.protocol.requests import Usage
from csp.protocol.responses import Deliver
from csp.protocol.session_parts import TurnState
from csp.room.commands import WindowSize
from csp.room.sessions.session_reducer import KEPT_CHARS
from tests.waiting import wait_until

CLAUDE = AgentId("claude")


class Room:
    """Takes what a connector has to say."""

    def __init__(self) -> None:
        self.states: list[ReportedAgentState] = []
        self.told: list[tuple[object, ...]] = []
        self.reports: list[tuple[object, ...]] = []
        self.controls: list[tuple[object, ...]] = []
        self.shown: list[dict[str, object]] = []
        self.refuses = False
        self.outputs: list[dict[str, Any]] = []
        self.is_called = asyncio.Event()
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def report(self, *words: object) -> None:
        self.reports.append(words)
        if self.refuses:
            raise Refused("it was withdrawn")

    async def control_done(self, *words: object) -> None:
        self.controls.append(words)

    async def show(self, **shown: object) -> None:
        self.shown.append(shown)

    async def state(self, state: ReportedAgentState, *more: object) -> None:
        self.states.append(state)
        self.told.append((state, *more))

    async def output(self, text: str, **fields: Any) -> None:
        self.is_called.set()
        await self.is_open.wait()
        self.outputs.append({"text": text, **fields})


class Scene:
    """One connector whose model says a word, then nothing, unless it has an answer."""

    def __init__(self) -> None:
        self.room = Room()
        self.answers: list[str | Exception] = []
        self.asks: list[ModelRequest] = []
        self.shown: list[str] = []
        self.is_asked = asyncio.Event()
        voice = AgentConfig(
            agent=CLAUDE,
            model=Model(self._stream, self._close),
            model_name="m",
            system="be brief",
            prompts=load_prompts(),
            price=lambda usage: 0.5,
            prices="list of today",
            window=WindowSize(items=2),
        )
        self.connector = Connector(voice, cast(Client, self.room), ModelPane(self.shown.append))

    async def _stream(self, ask: ModelRequest) -> AsyncGenerator[Piece, None]:
        self.asks.append(ask)
        if self.answers:
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            yield answer
            return
        yield "begun "
        self.is_asked.set()
        await asyncio.sleep(60)

    async def _close(self) -> None:
        pass

    def ask(self) -> None:
        fields: dict[str, Any] = {"id": "m-9", "seq": 9, "kind": DeliverKind.TURN, "turn": "t-9"}
        self.connector.take(Deliver(**fields, sender="system", text="Round 1 of 2", urgent=False))

    def move(self, state: TurnState) -> None:
        head: dict[str, Any] = {"seq": 10, "ts": 1.0, "id": "e-10", "sender": "system", "target": "all"}
        moved: dict[str, Any] = {
            "agent": CLAUDE,
            "turn": TurnId("t-9"),
            "state": state,
            "session_id": "s-1",
            "round": 1,
        }
        self.connector.take(TurnMoved(**head, thread="default", text="", **moved))

    def press(self, verb: ControlVerb, turn: str | None = None) -> None:
        fields: dict[str, Any] = {"id": "c-1", "seq": 11, "kind": DeliverKind.CONTROL, "sender": "human"}
        self.connector.take(Deliver(**fields, text="", urgent=False, control=verb, turn=turn))

    def interrupt(self) -> None:
        self.press(ControlVerb.INTERRUPT)

    def say(self, number: int, text: str, thread: str = "default") -> None:
        """Deliver a message."""
        fields: dict[str, Any] = {"id": f"m-{number}", "seq": number, "kind": DeliverKind.MESSAGE}
        self.connector.take(Deliver(**fields, sender="human", text=text, urgent=False, thread=thread))

    def overhear(self, number: int, text: str, thread: str = "default") -> None:
        """Let something be said in the room that is not for us."""
        fields: dict[str, Any] = {"seq": number, "ts": 1.0, "id": f"m-{number}", "sender": "human"}
        self.connector.take(
            HumanMessage(**fields, target=AgentId("all"), thread=thread, text=text, recipients=())
        )

    def has_answered(self, times: int) -> bool:
        return len(self.room.outputs) == times

    async def rest(self) -> None:
        idle = ReportedAgentState.IDLE
        await wait_until(lambda: self.room.states[-1:] == [idle], what=f"peace, not {self.room.states}")


@pytest.fixture
async def scene() -> Scene:
    return Scene()


async def test_a_turn_that_is_over_before_it_was_begun_leaves_nobody_busy(scene: Scene) -> None:
    scene.ask()
    scene.move(TurnState.CANCELLED)
    await scene.rest()

    assert scene.room.outputs == []


END: dict[str, Callable[[Scene], None]] = {
    "stopped": lambda scene: scene.move(TurnState.CANCELLED),
    "timed out": lambda scene: scene.move(TurnState.TIMED_OUT),
    "interrupted": Scene.interrupt,
}


@pytest.mark.parametrize("end", END.values(), ids=END)
async def test_what_a_call_took_is_told_once_though_it_came_to_nothing(
    scene: Scene, end: Callable[[Scene], None]
) -> None:
    scene.ask()
    await asyncio.wait_for(scene.is_asked.wait(), 90)
    end(scene)
    scene.move(TurnState.FAILED)
    await scene.rest()
    (told,) = scene.room.outputs

    assert (told["text"], told["turn"], told["ending"]) == ("", "t-9", "interrupted")
    usage: Usage = told["usage"]
    assert usage.estimated and usage.output > 0 and usage.cost_usd == 0.5


async def test_who_is_stopped_twice_comes_to_rest_all_the_same(scene: Scene) -> None:
    scene.room.is_open.clear()
    scene.ask()
    await asyncio.wait_for(scene.is_asked.wait(), 90)
    scene.move(TurnState.CANCELLED)
    await asyncio.wait_for(scene.room.is_called.wait(), 90)
    scene.move(TurnState.CANCELLED)
    await asyncio.sleep(0)
    scene.room.is_open.set()
    await scene.rest()

    assert len(scene.room.outputs) == 1


async def test_who_leaves_gives_its_turn_back_with_the_reason(scene: Scene) -> None:
    scene.ask()
    await asyncio.wait_for(scene.is_asked.wait(), 90)
    await scene.connector.stop("it has left the room")
    (told,) = scene.room.outputs

    assert (told["ending"], told["reason"]) == ("failed", "it has left the room")


# --- answers ---------------------------------------------------------------------------------------


async def test_a_message_is_taken_up_answered_and_priced(scene: Scene) -> None:
    scene.answers = ["forty-two"]
    scene.say(5, "how many?")
    await wait_until(lambda: scene.room.outputs, what="the answer")
    await scene.rest()
    (told,) = scene.room.outputs

    assert scene.room.reports == [("m-5", ReportedState.TYPED)]
    assert (told["text"], told["reply_to"], "turn" in told) == ("forty-two", "m-5", False)
    assert (told["usage"].cost_usd, told["usage"].unpriced) == (0.5, False)
    assert scene.room.states == [ReportedAgentState.BUSY, ReportedAgentState.IDLE]
    shown = "".join(scene.shown)
    assert "> human: how many?" in shown and "forty-two\n" in shown and "$0.500000 (list of today)" in shown


async def test_a_turn_is_taken_up_so_that_its_clock_runs(scene: Scene) -> None:
    scene.answers = ['{"message": "done", "handoff": null}']
    scene.ask()
    await wait_until(lambda: scene.room.outputs, what="the answer")
    (told,) = scene.room.outputs

    assert scene.room.reports == [("m-9", ReportedState.SUBMITTED)]
    assert (told["text"], told["turn"], "reply_to" in told) == ('{"message": "done"}', "t-9", False)


async def test_what_was_withdrawn_is_not_asked(scene: Scene) -> None:
    scene.room.refuses = True
    scene.say(5, "how many?")
    await wait_until(lambda: scene.room.states, what="its end")

    assert (scene.asks, scene.room.outputs) == ([], [])


async def test_the_same_delivery_is_answered_once(scene: Scene) -> None:
    scene.answers = ["one", "two"]
    scene.say(5, "how many?")
    scene.say(5, "how many?")
    await wait_until(lambda: scene.room.outputs, what="the answer")
    await scene.rest()

    assert [told["text"] for told in scene.room.outputs] == ["one"]


async def test_a_failure_is_told_to_the_sender_and_in_the_state(scene: Scene) -> None:
    scene.answers = [CallFailed("400: no"), "better"]
    scene.say(5, "how many?")
    await wait_until(lambda: len(scene.room.reports) == 2, what="the failure")
    await scene.rest()

    assert scene.room.reports[1] == ("m-5", ReportedState.FAILED, "400: no")
    assert scene.room.told[-1] == (ReportedAgentState.IDLE, "its last call failed: 400: no", None)
    scene.say(6, "and now?")
    await wait_until(lambda: scene.room.outputs, what="the answer")
    await wait_until(lambda: scene.room.told[-1] == (ReportedAgentState.IDLE, "", None), what="no trouble")


@pytest.mark.parametrize("answer", ["", " \n", '{"message": " "}'])
async def test_an_answer_that_says_nothing_is_a_failure(scene: Scene, answer: str) -> None:
    scene.answers = [answer]
    scene.ask()
    await wait_until(lambda: scene.room.outputs, what="the failure")
    (told,) = scene.room.outputs

    assert (told["text"], told["ending"], told["reason"]) == ("", "failed", "its answer was empty")


async def test_a_call_that_is_tried_again_is_told_in_the_pane(scene: Scene) -> None:
    scene.answers = [CallFailed("529: overloaded", is_passing=True), "an answer"]
    scene.say(9, "hello")
    await wait_until(lambda: scene.has_answered(1), what="the answer")

    assert [line for line in scene.shown if line.startswith("  529: overloaded; trying again in ")]
    await scene.rest()


async def test_who_is_told_to_wait_is_limited_until_then(scene: Scene) -> None:
    scene.connector._voice = replace(scene.connector._voice, step_s=10.0)
    scene.answers = [CallFailed("429: slow down", is_passing=True, after_s=600.0)]
    scene.ask()
    before = time.time()
    await wait_until(lambda: scene.room.outputs, what="the failure")
    (told,) = scene.room.outputs
    limited = [one for one in scene.room.told if one[0] is ReportedAgentState.LIMITED]

    assert (told["ending"], told["reason"]) == ("limited", "429: slow down")
    assert 590 < cast(float, limited[0][2]) - before < 620
    await scene.connector.stop("over")


def redacted(message: str) -> Redacted:
    head: dict[str, Any] = {"seq": 5, "ts": 1.0, "id": "e-5", "sender": "system", "target": "all"}
    return Redacted(**head, thread="default", text="", message=MessageId(message))


async def test_a_message_is_asked_with_what_was_said_in_its_thread(scene: Scene) -> None:
    scene.answers = ["yes", "no"]
    for number, text in enumerate(("remark one", "remark two", "remark three"), 1):
        scene.overhear(number, text)
    scene.overhear(4, "elsewhere", thread="side")
    scene.connector.take(redacted("m-3"))
    scene.say(9, "well?")
    await wait_until(lambda: scene.room.outputs, what="the answer")
    (ask,) = scene.asks
    (only,) = ask.said

    assert ask.system == "be brief"
    assert "remark one" in only.text and "remark two" in only.text
    assert "remark three" not in only.text and "elsewhere" not in only.text


async def test_the_window_is_as_long_as_the_room_says(scene: Scene) -> None:
    scene.answers = ["yes"]
    for number, text in enumerate(("remark one", "remark two", "remark three"), 1):
        scene.overhear(number, text)
    scene.say(9, "well?")
    await wait_until(lambda: scene.room.outputs, what="the answer")

    assert "remark one" not in scene.asks[0].said[0].text
    assert "remark two" in scene.asks[0].said[0].text


async def test_only_so_many_threads_are_remembered_the_newest(scene: Scene) -> None:
    for number in range(70):
        scene.overhear(number, "x", thread=f"t{number}")
    scene.overhear(99, "again", thread="t6")
    scene.overhear(100, "new", thread="t70")

    assert len(scene.connector._heard) == KEPT_THREADS == 64
    assert "t6" in scene.connector._heard and "t7" not in scene.connector._heard


async def test_what_is_heard_twice_is_remembered_once(scene: Scene) -> None:
    scene.overhear(1, "one")
    scene.overhear(1, "one")

    assert [item.text for item in scene.connector._heard["default"]] == ["one"]


async def test_a_repair_shows_the_turn_before_it(scene: Scene) -> None:
    scene.answers = ["not json", "better"]
    scene.ask()
    await wait_until(lambda: scene.room.outputs, what="the answer")
    await scene.rest()
    fields: dict[str, Any] = {"id": "m-10", "seq": 10, "kind": DeliverKind.TURN, "turn": "t-10"}
    scene.connector.take(Deliver(**fields, sender="system", text="Again.", urgent=False, is_repair=True))
    await wait_until(lambda: len(scene.room.outputs) == 2, what="the second answer")

    assert [one.text for one in scene.asks[1].said] == ["Round 1 of 2", "not json", "Again."]


# --- what is no longer wanted, what is limited -----------------------------------------------------


def withdrawn(message: str, agent: str) -> DeliveryMoved:
    head: dict[str, Any] = {"seq": 8, "ts": 1.0, "id": "e-8", "sender": "system", "target": "all"}
    moved: dict[str, Any] = {"message": message, "agent": agent, "state": DeliveryState.WITHDRAWN}
    return DeliveryMoved(**head, thread="default", text="", **moved)


async def test_only_what_was_withdrawn_from_us_is_dropped(scene: Scene) -> None:
    scene.say(5, "how many?")
    await asyncio.wait_for(scene.is_asked.wait(), 90)
    scene.connector.take(withdrawn("m-5", "codex"))
    scene.connector.take(withdrawn("m-4", CLAUDE))
    assert all(work.is_wanted for work in scene.connector._works.values()) and scene.connector._works
    scene.connector.take(withdrawn("m-5", CLAUDE))
    await scene.rest()

    # The cost of a message is told with its answer alone.
    assert (scene.room.outputs, len(scene.room.reports)) == ([], 1)


async def test_a_turn_that_was_replied_to_is_not_broken_off(scene: Scene) -> None:
    scene.ask()
    await asyncio.wait_for(scene.is_asked.wait(), 90)
    scene.move(TurnState.REPLIED)
    (work,) = scene.connector._works.values()

    assert work.is_wanted
    await scene.connector.stop("over")


async def test_messages_of_a_thread_are_answered_one_after_the_other(scene: Scene) -> None:
    scene.say(5, "first")
    scene.say(6, "second")
    scene.say(7, "beside", thread="side")
    await wait_until(lambda: len(scene.asks) == 2, what="two calls")
    for _ in range(20):
        await asyncio.sleep(0)

    assert ["second" in ask.said[0].text for ask in scene.asks] == [False, False]
    await scene.connector.stop("over")


async def test_the_next_answer_is_shown_as_it_comes(scene: Scene) -> None:
    scene.answers = ["one", "two"]
    for number in (5, 6):
        scene.say(number, "x")
        await wait_until(partial(scene.has_answered, number - 4), what="the answer")
        await scene.rest()

        assert scene.connector._speaking is None


async def test_a_wait_ends_by_itself_or_with_the_next_answer(scene: Scene) -> None:
    for after_s in (0.01, 600.0):
        scene.connector._voice = replace(scene.connector._voice, step_s=0.001)
        scene.answers = [CallFailed("429: slow down", is_passing=True, after_s=after_s)]
        before = len(scene.room.told)
        scene.say(int(after_s), "x")
        await wait_until(
            lambda: ReportedAgentState.LIMITED in scene.room.states[before:],  # noqa: B023
            what="the limit",
        )
        if after_s < 1:
            await scene.rest()
    scene.connector._voice = replace(scene.connector._voice, step_s=60.0)
    scene.answers = ["better"]
    scene.say(7, "x")

    await scene.rest()


async def test_a_failure_that_does_not_pass_is_no_limit(scene: Scene) -> None:
    scene.answers = [CallFailed("400: no", after_s=600.0)]
    scene.ask()
    await wait_until(lambda: scene.room.outputs, what="the failure")

    assert scene.room.outputs[0]["ending"] == "failed"
    assert ReportedAgentState.LIMITED not in scene.room.states


async def test_a_state_is_told_once_until_it_is_another(scene: Scene) -> None:
    for _ in range(3):
        await scene.connector._tell_state()

    assert scene.room.states == [ReportedAgentState.IDLE]


async def test_a_cost_that_nobody_knows_is_told_as_such(scene: Scene) -> None:
    scene.connector._voice = replace(scene.connector._voice, price=lambda usage: None)
    scene.answers = ["one"]
    scene.say(5, "x")
    await wait_until(lambda: scene.room.outputs, what="the answer")
    usage: Usage = scene.room.outputs[0]["usage"]

    assert (usage.cost_usd, usage.unpriced) == (None, True)


async def test_an_answer_that_the_room_refuses_is_a_failure(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(text: str, **fields: Any) -> None:
        raise Refused("too long")

    monkeypatch.setattr(scene.room, "output", refuse)
    scene.answers = ["one"]
    scene.say(5, "x")
    await wait_until(lambda: len(scene.room.reports) == 2, what="the failure")

    assert scene.room.reports[1] == ("m-5", ReportedState.FAILED, "too long")


async def test_of_what_was_said_only_so_much_is_kept(scene: Scene) -> None:
    scene.overhear(1, "x" * 10 * KEPT_CHARS)
    for number in range(KEPT_THREADS + 2):
        scene.connector.remember(f"t{number}", Exchange(asked="x", answered="y"))

    assert len(scene.connector._heard["default"][0].text) <= KEPT_CHARS + 100
    assert (len(scene.connector._exchanges), "t1" in scene.connector._exchanges) == (KEPT_THREADS, False)


async def test_a_call_has_the_time_and_the_secret_of_its_voice(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []

    class Noted(ModelCall):
        def __init__(self, *words: Any) -> None:
            given.append(words[1:])
            super().__init__(*words)

    monkeypatch.setattr("csp.agents.api.connector.ModelCall", Noted)
    scene.connector._voice = replace(scene.connector._voice, secret="sk-1", step_s=7.5)
    scene.answers = ["one"]
    scene.say(5, "x")
    await wait_until(lambda: scene.room.outputs, what="the answer")

    assert given == [("m", "sk-1", 7.5)]


# --- controls, watchers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "problem"),
    [
        (ControlVerb.INTERRUPT, "nothing is running"),
        (ControlVerb.APPROVE, "an API model has no dialog"),
        (ControlVerb.DENY, "an API model has no dialog"),
        (ControlVerb.RESTART, "an API model has nothing to start again"),
    ],
)
async def test_a_button_that_does_nothing_says_why(scene: Scene, verb: ControlVerb, problem: str) -> None:
    scene.press(verb)
    await wait_until(lambda: scene.room.controls, what="the answer")

    assert scene.room.controls == [("c-1", ReportedState.FAILED, problem)]


async def test_an_interrupt_of_a_turn_that_has_ended_is_done_already(scene: Scene) -> None:
    scene.press(ControlVerb.INTERRUPT, turn="t-1")
    await wait_until(lambda: scene.room.controls, what="the answer")

    assert scene.room.controls == [("c-1", ReportedState.CONFIRMED, "")]


async def test_of_a_turn_that_the_room_has_ended_only_the_cost_is_told(scene: Scene) -> None:
    scene.ask()
    await asyncio.wait_for(scene.is_asked.wait(), 90)
    scene.press(ControlVerb.INTERRUPT, turn="t-9")
    await scene.rest()
    (told,) = scene.room.outputs

    assert told["usage"] and "reason" not in told


async def test_the_interrupt_of_one_turn_leaves_another_alone(scene: Scene) -> None:
    scene.ask()
    await asyncio.wait_for(scene.is_asked.wait(), 90)
    scene.press(ControlVerb.INTERRUPT, turn="t-1")
    await wait_until(lambda: scene.room.controls, what="the answer")

    assert scene.room.outputs == [] and len(scene.connector._works) == 1
    await scene.connector.stop("over")


async def test_watchers_hear_words_only_while_they_watch(scene: Scene) -> None:
    scene.answers = ["one", "two", "three"]
    for number, watch in enumerate((False, True, None), 1):
        scene.connector.take(Live(data=msgspec.Raw(b"{}"), watch=watch))
        scene.say(number, "x")
        await wait_until(partial(scene.has_answered, number), what="the answer")
    await wait_until(lambda: len(scene.room.shown) == 3, what="what is shown")

    assert [next(iter(shown)) for shown in scene.room.shown] == ["screen", "text", "text"]
    assert [shown.get("text") for shown in scene.room.shown[1:]] == ["two", "three"]


async def test_a_room_that_has_moved_is_told_over_the_new_client(scene: Scene) -> None:
    """What is refused by a client that was replaced meanwhile is said once more to its successor."""
    tried: list[object] = []

    async def act() -> None:
        tried.append(scene.connector.client)
        if len(tried) == 1:
            scene.connector.client = cast(Client, Room())
            raise Unreachable("gone")

    assert await scene.connector._refusal(act, "not taken") == ""
    assert len(tried) == 2

    async def fail() -> None:
        raise Unreachable("gone")

    assert await scene.connector._refusal(fail, "not taken") == "gone"
