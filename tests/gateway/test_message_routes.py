"""What a person can do with a message: cancel, resend, continue; what time does with it."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import NotFound, Refused
from csp.gateway import message_routes as messages_module
from csp.gateway.auth import Caller
from csp.gateway.route_table import Call
from csp.journal.rewrite import REDACTED
from csp.protocol.enums import ALL, HUMAN, AgentId, DeliveryState, MessageId, Role
from csp.protocol.events import HumanMessage
from csp.protocol.requests import MessageActionBody
from csp.protocol.responses import DeliveryView, MessageView, QueueView
from csp.room.commands import CancelMessage, ReleaseMessage, Send
from csp.room.messages import MAX_HOPS
from csp.room.room_state import Message, Room
from tests.gateway.asked import ROOM as ROOM_CALLER
from tests.gateway.asked import Recorder
from tests.gateway.served import Clock, Member, ServedRoom, served
from tests.waiting import wait_until

TTL_S = 60.0


@pytest.fixture
async def short_lived(tmp_path: Path, clock: Clock) -> AsyncIterator[ServedRoom]:
    """A room whose messages live for a minute of the test's clock."""
    async with served(tmp_path / "room", clock, message_ttl_s=TTL_S) as room:
        yield room


async def _act(room: ServedRoom, message: str, action: str) -> int:
    return (await room.call("POST", f"/messages/{message}/{action}")).status


# --- cancel --------------------------------------------------------------------------------------


async def test_a_cancelled_message_is_withdrawn(room: ServedRoom) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")

    said = await room.post(f"/messages/{message}/cancel")

    assert said == {"success": True, "id": message, "seq": 2, "recipients": ["claude"]}
    assert await room.states(message) == {"claude": "withdrawn"}
    assert await room.inbox(claude) == []
    report = {"id": message, "state": "confirmed"}
    assert (await room.call("POST", "/delivery", report, token=claude.token)).status == 409
    assert await _act(room, message, "cancel") == 409


@pytest.mark.parametrize("own_id", [None, "my-own-id"])
@pytest.mark.parametrize("name", ["2", "%232", "m-2"])
async def test_a_message_is_named_by_its_number_as_well(
    room: ServedRoom, name: str, own_id: str | None
) -> None:
    await room.join("claude")
    body = {"to": "claude", "content": "hello"} | ({"id": own_id} if own_id else {})
    message = (await room.post("/message", body))["id"]

    assert (await room.get(f"/messages/{name}"))["id"] == message
    assert (await room.post(f"/messages/{name}/cancel"))["id"] == message
    assert await room.states(message) == {"claude": "withdrawn"}
    assert await _act(room, "77", "cancel") == 404


async def test_a_message_to_all_is_withdrawn_where_it_has_not_arrived(room: ServedRoom) -> None:
    claude, codex = await room.join("claude"), await room.join("codex")
    message = await room.send("all", "hello")
    await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)

    assert await _act(room, message, "cancel") == 200
    assert await room.states(message) == {"claude": "confirmed", "codex": "withdrawn"}
    assert await room.inbox(codex) == []


async def test_a_removed_agents_messages_are_withdrawn(room: ServedRoom) -> None:
    claude = await room.join("claude")
    queued, typed = await room.send("claude", "one"), await room.send("claude", "two")
    await room.post("/delivery", {"id": typed, "state": "typed"}, claude.token)

    await room.call("DELETE", "/agents/claude")

    assert await room.states(queued) == {"claude": "withdrawn"}
    assert await room.states(typed) == {"claude": "failed(removed)"}


async def test_an_action_on_nothing_is_404(room: ServedRoom) -> None:
    message = await room.send("all", "hello")

    for action in ("cancel", "resend", "continue", "redact"):
        assert await _act(room, "nothing", action) == 404
    assert await _act(room, message, "dance") == 404


# --- resend --------------------------------------------------------------------------------------


async def test_a_message_is_sent_again_as_a_new_one(room: ServedRoom) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello", thread="aside")
    await room.post("/delivery", {"id": message, "state": "failed", "reason": "stuck"}, claude.token)

    said = await room.post(f"/messages/{message}/resend")
    (item,) = (await room.get("/inbox/claude", claude.token))["items"]

    assert said["id"] != message
    assert (item["id"], item["text"], item["thread"], item["from"]) == (said["id"], "hello", "aside", "human")
    assert await room.states(message) == {"claude": "failed(stuck)"}


async def test_a_message_to_several_is_sent_again_to_those_it_missed(room: ServedRoom) -> None:
    claude, _ = await room.join("claude"), await room.join("codex")
    await room.join("gemini")
    message = await room.send("claude,codex", "hello")
    await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)
    await room.post(f"/messages/{message}/cancel")

    assert (await room.post(f"/messages/{message}/resend"))["recipients"] == ["codex"]


async def test_a_group_stands_for_its_members(tmp_path: Path, clock: Clock) -> None:
    groups = {"pair": ("claude", "codex")}
    async with served(tmp_path / "room", clock, groups=groups) as room:
        for name in ("claude", "codex", "gemini"):
            await room.join(name)

        sent = await room.post("/message", {"to": "pair", "content": "hi"})
        assert sent["recipients"] == ["claude", "codex"]
        sent = await room.post("/message", {"to": "gemini,pair,claude", "content": "hi"})
        assert sent["recipients"] == ["gemini", "claude", "codex"]
        await room.join("pair")
        assert (await room.post("/message", {"to": "pair", "content": "hi"}))["recipients"] == ["pair"]
        assert (await room.get("/catalogue"))["groups"] == {"pair": ["claude", "codex"]}
        assert await room.post("/line", {"line": "@pair"}) == {"kind": "target", "to": "pair"}


async def test_a_message_to_all_is_sent_again_to_those_it_missed(room: ServedRoom) -> None:
    members = [await room.join(name) for name in ("claude", "codex", "gemini")]
    message = await room.send("all", "hello")
    for member, state in zip(members, ("confirmed", "failed", "failed"), strict=True):
        await room.post("/delivery", {"id": message, "state": state}, member.token)

    said = await room.post(f"/messages/{message}/resend")

    assert said["recipients"] == ["codex", "gemini"]


async def test_an_old_message_is_sent_again_after_a_restart(room: ServedRoom) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "an old text")
    await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)
    await room.restart()

    said = await room.post(f"/messages/{message}/resend")

    assert await room.inbox(claude) == [said["id"]]
    assert [item["text"] for item in await room.history()] == ["an old text"] * 2


async def test_a_redacted_message_cannot_be_sent_again(room: ServedRoom) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "a secret")
    await room.post(f"/messages/{message}/redact")

    assert await _act(room, message, "resend") in (404, 409)
    assert await room.inbox(claude) == []


async def test_a_message_to_somebody_removed_cannot_be_sent_again(room: ServedRoom) -> None:
    await room.join("claude")
    message = await room.send("claude", "hello")
    await room.call("DELETE", "/agents/claude")

    assert await _act(room, message, "resend") == 404


# --- the loop guard ------------------------------------------------------------------------------


async def play_ping_pong(room: ServedRoom, players: tuple[Member, Member]) -> tuple[str, int]:
    """Let two agents answer each other until one answer is held; return it with their number."""
    message = await room.send(players[0].id, "ping")
    for number in range(1, 30):
        speaker, listener = players[(number + 1) % 2], players[number % 2]
        body = {"to": listener.id, "content": "pong", "replyTo": message}
        message = (await room.post("/message", body, speaker.token))["id"]
        if (await room.states(message))[listener.id].startswith("held"):
            return message, number
    raise AssertionError("nothing was held")


async def test_agents_that_answer_each_other_are_held_in_the_end(room: ServedRoom) -> None:
    players = await room.join("claude"), await room.join("codex")
    sockets = [await room.connect(player.token) for player in players]

    held, number = await play_ping_pong(room, players)

    (notice,) = await room.history("?types=system")
    listener = players[number % 2]
    assert number == MAX_HOPS + 1
    assert await room.states(held) == {listener.id: "held(loop)"}
    assert held not in await room.inbox(listener)
    assert notice["target"] == "human" and f"csp continue {held}" in notice["text"]

    assert await _act(room, held, "continue") == 200
    assert held in await room.inbox(listener)
    await wait_until(lambda: any(deliver["id"] == held for socket in sockets for deliver in socket.delivers))
    assert await _act(room, held, "continue") == 409


async def test_a_released_message_starts_the_count_again(room: ServedRoom) -> None:
    players = await room.join("claude"), await room.join("codex")
    held, number = await play_ping_pong(room, players)
    await room.post(f"/messages/{held}/continue")
    speaker, listener = players[number % 2], players[(number + 1) % 2]

    body = {"to": listener.id, "content": "pong", "replyTo": held}
    answer = await room.post("/message", body, speaker.token)

    assert await room.states(answer["id"]) == {listener.id: "queued"}


async def test_the_recipient_cannot_lift_the_loop_guard(room: ServedRoom) -> None:
    players = await room.join("claude"), await room.join("codex")
    held, number = await play_ping_pong(room, players)
    listener = players[number % 2]

    for state in ("typed", "confirmed", "failed"):
        answer = await room.call("POST", "/delivery", {"id": held, "state": state}, token=listener.token)
        assert answer.status == 409
    assert await room.states(held) == {listener.id: "held(loop)"}


# --- time ----------------------------------------------------------------------------------------


async def test_a_message_nobody_could_take_expires(short_lived: ServedRoom, clock: Clock) -> None:
    room = short_lived
    claude, codex = await room.join("claude"), await room.join("codex")
    message = await room.send("claude", "hello", codex.token)
    typed = await room.send("claude", "being typed", codex.token)
    await room.post("/delivery", {"id": typed, "state": "typed"}, claude.token)
    clock.now += TTL_S
    room.gateway.set_alarm()

    (notice,) = await room.history("?types=system&after=0&wait=10", codex.token)

    assert message in notice["text"] and notice["target"] == "codex"
    assert await room.states(message) == {"claude": "expired"}
    assert await room.states(typed) == {"claude": "typed"}
    assert await room.inbox(claude) == [typed]


async def test_a_message_expires_while_the_room_is_down(short_lived: ServedRoom, clock: Clock) -> None:
    room = short_lived
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    await room.stop()
    clock.now += TTL_S + 1
    await room.start()
    room.gateway.set_alarm()

    await room.history("?types=system&after=0&wait=10")

    assert await room.states(message) == {"claude": "expired"}
    assert await room.inbox(claude) == []


async def test_the_alarm_rings_by_itself(tmp_path: Path) -> None:
    async with served(tmp_path / "room", message_ttl_s=0.05) as room:
        await room.join("claude")
        messages = [await room.send("claude", "hello") for _ in range(3)]

        async def are_expired() -> bool:
            return [await room.states(message) for message in messages] == [{"claude": "expired"}] * 3

        await room.until(are_expired)


async def test_time_never_runs_backwards_in_the_journal(still_room: ServedRoom, clock: Clock) -> None:
    await still_room.send("all", "one")
    clock.now -= 500
    await still_room.send("all", "two")

    one, two = await still_room.history()
    assert one["ts"] <= two["ts"]


async def test_the_queue_lists_the_oldest_thousand_in_the_order_of_the_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = DeliveryView(state=DeliveryState.HELD, at=7.0, reason="offline")
    viewed: list[int] = []

    def delivery_view(room: Any, message: Any, agent: str) -> DeliveryView:
        viewed.append(message.seq)
        return held

    monkeypatch.setattr(messages_module, "delivery_view", delivery_view)

    def message(seq: int) -> Message:
        return Message(MessageId(f"m-{seq}"), seq, HUMAN, ALL, "default", "x" * 300, {})

    async def settle() -> None:
        pass

    def queue(*seqs: int) -> dict[str, int]:
        return {f"m-{seq}": seq for seq in seqs}

    claude = SimpleNamespace(controls=queue(1001, 1002), queue=queue(*range(2, 501), 1003, 1004))
    codex = SimpleNamespace(controls={}, queue=queue(1, *range(501, 1001), *range(2000, 9000)))
    room = SimpleNamespace(
        participants={"claude": claude, "codex": codex},
        unfinished=lambda found: (message(int(key.removeprefix("m-"))) for key in found),
    )
    gateway: Any = SimpleNamespace(writer=SimpleNamespace(settle=settle, room=room))
    view = await messages_module.queue(gateway, None)  # type: ignore[arg-type]  # nothing of the call is used

    assert isinstance(view, QueueView)
    # What is not shown is not looked at: under a flood the queues hold some 100,000 messages.
    assert [item.seq for item in view.items] == viewed == list(range(1, 1001))
    first = view.items[0]
    assert (first.id, first.agent, first.state, first.at, first.reason) == (
        *("m-1", "codex", "held", 7.0, "offline"),
    )
    assert (first.sender, first.target, first.text) == ("human", "all", "x" * 200)


# --- by themselves -------------------------------------------------------------------------------


def resending(monkeypatch: pytest.MonkeyPatch, text: str | None, **states: DeliveryState) -> Recorder:
    """Return a gateway whose history has m-1 with this text, and where its deliveries stand."""

    async def message_view(gateway: object, message_id: str) -> tuple[MessageView, dict[str, int]]:
        views = {agent: DeliveryView(state=state, at=1.0) for agent, state in states.items()}
        return MessageView(id="m-1", seq=4, sender="codex", recipients=views), {}

    async def find(message_id: str) -> SimpleNamespace | None:
        if text is None:
            return None
        common = (4, 1.0, MessageId("m-1"), AgentId("codex"), ALL, "side", text)
        return SimpleNamespace(event=HumanMessage(*common, recipients=()))

    monkeypatch.setattr(messages_module, "_message_view", message_view)
    return Recorder(
        settings=SimpleNamespace(message_ttl_s=7.0),
        history=SimpleNamespace(find=find),
        writer=SimpleNamespace(room=Room()),
    )


@pytest.mark.parametrize(
    ("states", "to", "only"),
    [
        ({"a": DeliveryState.CONFIRMED, "b": DeliveryState.FAILED}, "b", ("b",)),
        ({"a": DeliveryState.EXPIRED, "b": DeliveryState.WITHDRAWN}, "all", ("a", "b")),
        ({"a": DeliveryState.CONFIRMED, "b": DeliveryState.CONFIRMED}, "all", ("a", "b")),
        ({"a": DeliveryState.CONFIRMED}, "a", ("a",)),
    ],
)
async def test_a_message_is_sent_again_to_those_it_has_not_reached(
    monkeypatch: pytest.MonkeyPatch, states: dict[str, DeliveryState], to: str, only: tuple[AgentId, ...]
) -> None:
    gateway = resending(monkeypatch, "hello", **states)
    command = await gateway.command(
        messages_module.act_on_message, ROOM_CALLER, MessageActionBody(id="k-1"), id="own", action="resend"
    )

    assert command == Send(
        sender=HUMAN, to=to, text="hello", thread="side", ttl_s=7.0, only=only, id=MessageId("k-1")
    )


@pytest.mark.parametrize(("text", "error"), [(None, NotFound), (REDACTED, Refused)])
async def test_a_message_whose_words_are_gone_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch, text: str | None, error: type[Exception]
) -> None:
    gateway: Any = resending(monkeypatch, text, a=DeliveryState.FAILED)
    with pytest.raises(error):
        await messages_module.resend(gateway, "m-1", None)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("cancel", CancelMessage(message="own", once="k-1")),
        ("continue", ReleaseMessage(message="own", once="k-1")),
    ],
)
async def test_an_action_reaches_the_room(action: str, expected: CancelMessage | ReleaseMessage) -> None:
    command = await Recorder().command(
        messages_module.act_on_message, ROOM_CALLER, MessageActionBody(id="k-1"), id="own", action=action
    )

    assert command == expected


@pytest.mark.parametrize(
    ("caller", "is_shown"),
    [
        (Caller(HUMAN, Role.ROOM), True),
        (Caller(AgentId("codex"), Role.AGENT), True),
        (Caller(AgentId("a"), Role.AGENT), True),
        (Caller(AgentId("b"), Role.ORCHESTRATOR), False),
    ],
)
async def test_how_far_a_message_has_come_is_for_its_sender_and_recipients(
    monkeypatch: pytest.MonkeyPatch, caller: Caller, is_shown: bool
) -> None:
    async def settle() -> None:
        return

    gateway: Any = resending(monkeypatch, "hello", a=DeliveryState.TYPED)
    gateway.writer = SimpleNamespace(settle=settle, room=Room())
    call = Call(caller, {"id": "own"}, None, None)
    if is_shown:
        view = await messages_module.message_states(gateway, call)
        assert isinstance(view, MessageView) and view.recipients["a"].state is DeliveryState.TYPED
        return
    with pytest.raises(NotFound, match="unknown message 'm-1'"):
        await messages_module.message_states(gateway, call)
