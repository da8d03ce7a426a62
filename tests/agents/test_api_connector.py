"""What a connector makes of what the room tells it, in whichever order: no network, a room of our own."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest

from csp.agents.api.asking import Ask
from csp.agents.api.connector import Connector, Voice
from csp.agents.api.pane import Pane
from csp.agents.api.providers import Model, Piece
from csp.client import Client
from csp.events import TurnMoved
from csp.gateway.prompts import load_prompts
from csp.wire import AgentId, ControlVerb, Deliver, DeliverKind, ReportedAgentState, TurnId, TurnState, Usage
from tests.waiting import wait_until

CLAUDE = AgentId("claude")


class Room:
    """Takes what a connector has to say."""

    def __init__(self) -> None:
        self.states: list[ReportedAgentState] = []
        self.outputs: list[dict[str, Any]] = []

    async def report(self, *_: object) -> None:
        pass

    async def control_done(self, *_: object) -> None:
        pass

    async def state(self, state: ReportedAgentState, *_: object) -> None:
        self.states.append(state)

    async def output(self, text: str, **fields: Any) -> None:
        self.outputs.append({"text": text, **fields})


class Scene:
    """One connector whose model says a word, then nothing until it is cancelled."""

    def __init__(self) -> None:
        self.room = Room()
        self.is_asked = asyncio.Event()
        voice = Voice(
            agent=CLAUDE,
            model=Model(self._stream, self._close),
            model_name="m",
            system="be brief",
            prompts=load_prompts(),
            price=lambda usage: 0.5,
        )
        self.connector = Connector(voice, cast(Client, self.room), Pane(lambda _: None))

    async def _stream(self, ask: Ask) -> AsyncGenerator[Piece, None]:
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

    def interrupt(self) -> None:
        fields: dict[str, Any] = {"id": "c-1", "seq": 11, "kind": DeliverKind.CONTROL, "sender": "human"}
        self.connector.take(Deliver(**fields, text="", urgent=False, control=ControlVerb.INTERRUPT))

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
    await asyncio.wait_for(scene.is_asked.wait(), 10)
    end(scene)
    scene.move(TurnState.FAILED)
    await scene.rest()
    (told,) = scene.room.outputs

    assert (told["text"], told["turn"], told["ending"]) == ("", "t-9", "interrupted")
    usage: Usage = told["usage"]
    assert usage.estimated and usage.output > 0 and usage.cost_usd == 0.5


async def test_who_leaves_gives_its_turn_back_with_the_reason(scene: Scene) -> None:
    scene.ask()
    await asyncio.wait_for(scene.is_asked.wait(), 10)
    await scene.connector.stop("it has left the room")
    (told,) = scene.room.outputs

    assert (told["ending"], told["reason"]) == ("failed", "it has left the room")
