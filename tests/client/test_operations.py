"""What a client asks of the room is answered for good, or raises what the room says."""

import asyncio

import pytest

from csp.client import Client
from csp.client import http_calls as http_module
from csp.client import outbox as outbox_module
from csp.client.client import owner_of
from csp.errors import BadInput, NotFound, Refused, TooLarge, Unreachable
from csp.protocol.enums import JoinRole, ParticipantKind, ReportedAgentState, ReportedState
from csp.protocol.events import AgentResponse, MessageEvent
from csp.protocol.responses import Deliver
from tests.client.proxy import Proxy
from tests.client.reading import read_until, texts
from tests.rooms import Room
from tests.waiting import wait_until


async def test_a_message_is_answered_with_its_place(room: Room) -> None:
    alice = await Client.register(
        room.url, room.token, "Alice", kind=ParticipantKind.API, capabilities=["read"]
    )
    async with Client(room.url, room.token) as client:
        sent = await client.send("alice", "hello", thread="side", urgent=True, id="my-id")

    assert (sent.id, sent.recipients) == ("my-id", ("alice",))
    assert sent.seq > alice.seq
    (event,) = [event for event in room.journal() if isinstance(event, MessageEvent)]
    assert (event.seq, event.text, event.thread, event.urgent) == (sent.seq, "hello", "side", True)


async def test_an_answer_goes_to_whoever_asked(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice", role=JoinRole.ORCHESTRATOR)
    async with (
        Client(room.url, alice.token) as client,
        Client(room.url, room.token) as human,
    ):
        await client.connected()
        await human.send(alice.agent, "question")
        question = (await read_until(client, lambda items: any(isinstance(i, Deliver) for i in items)))[-1]
        assert isinstance(question, Deliver)
        sent = await client.output("answer", reply_to=question.id)
    answer = next(event for event in room.journal() if isinstance(event, AgentResponse))

    assert (answer.id, answer.reply_to, answer.target) == (sent.id, question.id, "human")
    states = room.gateway.get(f"/messages/{question.id}")["recipients"]
    assert states[alice.agent]["state"] == "confirmed"


async def test_an_answer_to_a_closed_turn_is_late(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, alice.token) as client:
        sent = await client.output("too late", turn="t-17")

    assert sent.late


async def test_a_state_is_seen_by_others(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, alice.token) as client:
        await client.state(ReportedAgentState.LIMITED, "tokens used up", until=2e9)
        assert await client.working("still at it") is False
    (view,) = room.gateway.get("/agents")

    assert (view["state"], view["detail"], view["until"]) == ("limited", "tokens used up", 2e9)


async def test_a_control_is_answered(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, alice.token) as client:
        await client.connected()
        pressed = await asyncio.to_thread(room.gateway.post, "/agents/alice/interrupt")
        (*_, control) = await read_until(client, lambda items: any(isinstance(i, Deliver) for i in items))
        assert isinstance(control, Deliver) and control.id == pressed["id"]
        await client.control_done(control.id)
        states = await asyncio.to_thread(room.gateway.get, f"/messages/{control.id}")

    assert states["recipients"]["alice"]["state"] == "confirmed"


# --- refusals ------------------------------------------------------------------------------------


async def test_a_refusal_has_the_hint_of_the_room(room: Room) -> None:
    await Client.register(room.url, room.token, "alice")
    async with Client(room.url, room.token) as client:
        with pytest.raises(NotFound, match="unknown recipient 'alcie'") as refusal:
            await client.send("alcie", "hello")

        assert "alice" in refusal.value.hint
        assert (await client.send("alice", "hello")).recipients == ("alice",)


async def test_an_end_is_an_end(room: Room) -> None:
    await Client.register(room.url, room.token, "alice")
    async with Client(room.url, room.token) as client:
        sent = await client.send("alice", "hello")
        await client.report(sent.id, ReportedState.FAILED, "no way", agent="alice")
        with pytest.raises(Refused, match="cannot go from failed to typed"):
            await client.report(sent.id, ReportedState.TYPED, agent="alice")


@pytest.mark.parametrize("text", ["", "half \ud83d a character"])
async def test_a_text_nobody_could_read_is_refused(room: Room, text: str) -> None:
    async with Client(room.url, room.token) as client:
        with pytest.raises(BadInput):
            await client.send("all", text)

        assert (await client.send("all", "fine")).id


async def test_what_is_too_large_never_leaves(room: Room) -> None:
    async with Client(room.url, room.token) as client:
        with pytest.raises(TooLarge, match="text is over"):
            await client.send("all", "ü" * 200_000)
        with pytest.raises(TooLarge, match="operation is over"):
            await client.report("m-1", ReportedState.FAILED, "x" * 2_000_000)
        largest = "\x01" * (256 * 1024)

        assert (await client.send("all", largest)).id


@pytest.mark.parametrize("url", ["", "127.0.0.1:8765", "ftp://127.0.0.1", "http://"])
def test_a_url_must_be_one(url: str) -> None:
    with pytest.raises(BadInput, match="expected http://host:port"):
        Client(url, "token")


@pytest.mark.parametrize(
    ("token", "owner"),
    [("alice.1." + "0" * 40, "alice"), ("0" * 40, None), ("alice.1.secret", None), ("", None)],
)
def test_a_token_begins_with_its_owner(token: str, owner: str | None) -> None:
    assert owner_of(token) == owner


async def test_a_client_must_be_started() -> None:
    client = Client("http://127.0.0.1:1", "token")
    with pytest.raises(Refused, match="has not been started"):
        await client.connected()
    with pytest.raises(Refused, match="has not been started"):
        await client.send("all", "hello")
    await client.close()


# --- order, repetition ---------------------------------------------------------------------------


async def test_many_at_once_keep_the_order_of_their_calls(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "MAX_OPS", 7)
    words = [f"word {number}" for number in range(60)]
    async with Client(room.url, room.token) as client:
        await asyncio.gather(*(client.send("all", word) for word in words))

    assert room.journal_texts() == words


async def test_what_was_taken_but_not_answered_is_not_taken_again(room: Room, proxy: Proxy) -> None:
    async with Client(proxy.url, room.token) as client:
        await client.connected()
        proxy.hold(to_gateway=False)
        sending = [asyncio.create_task(client.send("all", word)) for word in ("one", "two", "three")]
        await wait_until(lambda: room.journal())
        proxy.cut()
        proxy.flow()
        sent = await asyncio.gather(*sending)

    assert [event.id for event in room.journal()] == [one.id for one in sent]
    assert room.journal_texts() == ["one", "two", "three"]


async def test_reports_in_a_row_survive_the_loss_of_their_answers(room: Room, proxy: Proxy) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, room.token) as human, Client(proxy.url, alice.token) as client:
        sent = await human.send("alice", "hello")
        await client.connected()
        proxy.hold(to_gateway=False)
        states = (ReportedState.TYPED, ReportedState.SUBMITTED)
        reports = [asyncio.create_task(client.report(sent.id, state)) for state in states]
        await wait_until(lambda: room.journal_texts()[-1] == "submitted")
        proxy.cut()
        proxy.flow()
        await asyncio.gather(*reports)

    assert room.journal_texts()[2:] == ["typed", "submitted"]


async def test_a_report_of_what_was_withdrawn_meanwhile_is_refused(room: Room, proxy: Proxy) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, room.token) as human, Client(proxy.url, alice.token) as client:
        sent = await human.send("alice", "hello")
        await client.connected()
        proxy.hold()
        report = asyncio.create_task(client.report(sent.id, ReportedState.TYPED))
        await asyncio.to_thread(room.gateway.post, f"/messages/{sent.id}/cancel")
        proxy.cut()
        proxy.flow()
        with pytest.raises(Refused, match="cannot go from withdrawn to typed"):
            await report


async def test_a_caller_that_no_longer_waits_takes_back_what_has_not_left(room: Room) -> None:
    await asyncio.to_thread(room.stop)
    async with Client(room.url, room.token) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.send("all", "never mind"), 0.05)
        await asyncio.to_thread(room.start)
        await client.send("all", "this one")

    assert room.journal_texts() == ["this one"]


async def test_what_was_taken_back_keeps_nobody_waiting(room: Room) -> None:
    await asyncio.to_thread(room.stop)
    async with Client(room.url, room.token) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.send("all", "never mind"), 0.05)

        await asyncio.wait_for(client.close(timeout_s=3600), 120)


# --- the end -------------------------------------------------------------------------------------


async def test_closing_waits_for_what_is_on_its_way(room: Room) -> None:
    async with Client(room.url, room.token) as client:
        sending = [asyncio.create_task(client.send("all", str(number))) for number in range(50)]
        await asyncio.sleep(0)
        await client.close()
        sent = await asyncio.gather(*sending)

    assert [event.id for event in room.journal()] == [one.id for one in sent]


async def test_closing_does_not_wait_for_a_gateway_that_is_gone(room: Room) -> None:
    await asyncio.to_thread(room.stop)
    async with Client(room.url, room.token) as client:
        sending = asyncio.create_task(client.send("all", "hello"))
        await wait_until(lambda: "no gateway answers" in client.status.why)
        await asyncio.wait_for(client.close(leave=True, timeout_s=0.2), 120)
        with pytest.raises(Unreachable, match="closed before the gateway answered"):
            await sending
        with pytest.raises(Refused, match="the client is closed"):
            await client.send("all", "hello")


async def test_closing_does_not_wait_for_a_network_that_carries_nothing(
    room: Room, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "TIMEOUT_S", 3600.0)
    async with Client(proxy.url, room.token) as client:
        await client.connected()
        proxy.hold()
        sending = asyncio.create_task(client.send("all", "hello"))
        await asyncio.wait_for(client.close(leave=True, timeout_s=0.2), 120)
        with pytest.raises(Unreachable, match="closed before the gateway answered"):
            await sending


async def test_an_agent_that_leaves_is_offline_at_once(room: Room) -> None:
    alice = await Client.register(room.url, room.token, "alice")
    async with Client(room.url, alice.token) as client:
        await client.connected()
        sending = asyncio.create_task(client.send("human", "good-bye"))
        await asyncio.sleep(0)
        await client.close(leave=True)
        await sending
    (view,) = room.gateway.get("/agents")

    assert (view["online"], view["state"]) == (False, "offline")
    assert room.journal_texts()[-2:] == ["good-bye", "alice left: closed"]


async def test_a_closed_client_still_yields_what_had_come(room: Room) -> None:
    async with Client(room.url, room.token, after=0) as client:
        await client.send("all", "hello")
        await wait_until(lambda: client._inbox.taken == 1)
    items = [item async for item in client]

    assert texts(items) == ["hello"]
