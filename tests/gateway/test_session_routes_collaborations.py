"""The routes of collaborations by themselves: every word reaches the room, prices are known, polls end."""

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import NotFound, Unauthenticated
from csp.gateway import session_routes
from csp.gateway.auth import Caller
from csp.gateway.broadcast import Broadcast
from csp.gateway.route_table import Call
from csp.protocol.enums import ParticipantKind
from csp.protocol.requests import CollaborateBody, CollaborationParams
from csp.protocol.session_parts import Price
from csp.room.commands import Collaborate
from tests.gateway.asked import AGENT, CLAUDE, Recorder
from tests.waiting import wait_until


async def test_every_word_of_a_beginning_reaches_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    async def prices(gateway: object) -> dict[str, Price]:
        return {"claude": Price(input=1.0, output=2.0)}

    async def hits(*given: object) -> dict[str, tuple[()]]:
        asked.append(given)
        return {"": ()}

    monkeypatch.setattr(session_routes, "known_prices", prices)
    told: dict[str, Any] = {"objective": "a plan", "mode": "debate", "parallel": 2}
    body = CollaborateBody(
        **told,
        models=("claude", "codex"),
        session_id="plan",
        user_input="mind the budget",
        max_steps=7,
        timeout_per_step=30.0,
        cost_limit_usd=1.5,
        summarization_threshold=9,
        thread="side",
    )
    gateway = Recorder(board_hits=SimpleNamespace(for_start=hits))
    command = await gateway.command(session_routes.begin_collaboration, AGENT, body)
    plain = await gateway.command(
        session_routes.begin_collaboration, AGENT, CollaborateBody(objective="a plan")
    )

    assert command == Collaborate(
        sender=CLAUDE,
        agents=("claude", "codex"),
        session="plan",
        said="mind the budget",
        steps=7,
        step_s=30.0,
        cost=1.5,
        summarise_at=9,
        prices={CLAUDE: Price(input=1.0, output=2.0)},
        hits={"": ()},
        thread="side",
        **told,
    )
    assert asked[0] == ("plan", "a plan", "mind the budget")
    assert (plain.thread, plain.cost) == ("default", None)


async def test_prices_are_known_of_models_and_demo_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    def price_of(model: str, provider: str) -> Price | None:
        return Price(input=3.0, output=4.0) if (model, provider) == ("opus", "anthropic") else None

    monkeypatch.setattr(session_routes, "price_of", price_of)
    opus = {"model": "opus", "provider": "anthropic"}
    people = [
        SimpleNamespace(id="a", kind=ParticipantKind.API, capabilities=opus),
        SimpleNamespace(id="b", kind=ParticipantKind.API, capabilities={"model": None}),
        SimpleNamespace(id="c", kind=ParticipantKind.CLI, capabilities=opus),
        SimpleNamespace(id="d", kind=ParticipantKind.CLI, capabilities=["demo"]),
        SimpleNamespace(id="e", kind=ParticipantKind.CLI, capabilities=["other"]),
        SimpleNamespace(id="g", kind=ParticipantKind.CLI, capabilities={"profile": "demo", "duty": "critic"}),
        SimpleNamespace(id="f", kind=ParticipantKind.API, capabilities=None),
    ]
    room = SimpleNamespace(participants={one.id: one for one in people})
    gateway: Any = SimpleNamespace(writer=SimpleNamespace(room=room))

    assert await session_routes.known_prices(gateway) == {
        "a": Price(input=3.0, output=4.0),
        "d": Price(input=0.0, output=0.0),
        "g": Price(input=0.0, output=0.0),
    }


# --- following one -------------------------------------------------------------------------------


class Followed:
    """A collaboration whose view the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broadcast = Broadcast(lambda event, agent: True)
        self.view = SimpleNamespace(reason=None, lines=3)
        self.is_dead = False
        self.settled = 0
        self.writer = SimpleNamespace(settle=self.settle)
        monkeypatch.setattr(session_routes, "_progress", lambda gateway, call, handle, after: self.view)

    async def settle(self) -> None:
        self.settled += 1

    def recheck(self, caller: Caller) -> None:
        if self.is_dead:
            raise Unauthenticated("dead")

    @contextlib.contextmanager
    def connected(self, caller: Caller) -> Any:
        yield

    async def show(self, **params: Any) -> Any:
        gateway: Any = self
        return await session_routes.show_collaboration(
            gateway, Call(AGENT, {"id": "plan"}, CollaborationParams(**params), None)
        )

    async def poll(self, **params: Any) -> "asyncio.Task[Any]":
        """Return a poll that waits for news."""
        poll = asyncio.create_task(self.show(wait=60, **params))
        await wait_until(lambda: None in self.broadcast._news, what="the poll")
        await asyncio.sleep(0)
        return poll


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Followed:
    return Followed(monkeypatch)


async def test_what_is_over_or_new_is_told_at_once(followed: Followed) -> None:
    await followed.show()
    await followed.show(wait=60, after=2)
    followed.view.reason = "done"
    await followed.show(wait=60)
    await followed.show(wait=60, after=3)

    assert followed.settled == 4


async def test_a_poll_waits_for_the_next_line_or_for_the_end(followed: Followed) -> None:
    for after in (3, None):
        poll = await followed.poll(after=after)
        followed.broadcast.wake(None)
        await wait_until(lambda: None in followed.broadcast._news, what="the next wait")
        was_early = poll.done()
        if after is None:
            followed.view.reason = "done"
        else:
            followed.view.lines = 4
        followed.broadcast.wake(None)

        assert (was_early, await poll) == (False, followed.view)


@pytest.mark.parametrize("is_dead", [True, False])
async def test_a_poll_ends_with_its_token_or_the_hub(followed: Followed, is_dead: bool) -> None:
    poll = await followed.poll()
    followed.is_dead = is_dead
    followed.broadcast.close()
    if is_dead:
        with pytest.raises(Unauthenticated):
            await poll
    else:
        assert await poll is followed.view


def test_only_a_collaboration_is_found_by_its_handle() -> None:
    terms = object()
    known = {
        "plan": SimpleNamespace(id="s-1", setup=SimpleNamespace(collaboration=terms)),
        "s-2": SimpleNamespace(id="s-2", setup=SimpleNamespace(collaboration=None)),
    }
    room = SimpleNamespace(sessions=SimpleNamespace(find=known.get, by_id=known))
    gateway: Any = SimpleNamespace(writer=SimpleNamespace(room=room))

    found: Any = session_routes._known_collaboration(gateway, "plan")

    assert found == (known["plan"], terms)
    for handle in ("s-2", "s-3"):
        with pytest.raises(NotFound, match=f"unknown collaboration '{handle}'"):
            session_routes._known_collaboration(gateway, handle)
