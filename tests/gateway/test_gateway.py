"""The gateway by itself: what a commit sets in motion, its clock, its background work, its end."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from csp.config import Settings
from csp.errors import Broken, StorageFull, Unauthenticated
from csp.gateway import gateway as gateway_module
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.protocol.enums import (
    HUMAN,
    AgentId,
    ControlVerb,
    DeliveryState,
    JoinRole,
    MessageId,
    ParticipantKind,
    Role,
    SessionId,
)
from csp.protocol.events import (
    AnyEvent,
    ControlSent,
    DeliveryMoved,
    HumanMessage,
    Joined,
    Left,
    LogRequested,
    ModeChanged,
    NoticePosted,
    StateChanged,
    encode_event,
)
from csp.protocol.session_parts import Change
from csp.room.commands import Join, Leave, Rejoin, Remove, Tick
from tests.gateway.served import Clock

CLAUDE = AgentId("claude")
ROOM = Caller(HUMAN, Role.ROOM)
COMMON = (9, 1.0, MessageId("e-9"), CLAUDE, CLAUDE, "default", "")


@pytest.fixture
async def gateway(tmp_path: Path, clock: Clock) -> AsyncIterator[Gateway]:
    found = Gateway(Settings(durability="flush"), tmp_path / "room", clock)
    yield found
    await found.close()


async def join(gateway: Gateway) -> Caller:
    """Have claude join; return it as a caller."""
    events = await gateway.submit(Join(name="claude", kind=ParticipantKind.CLI, role=JoinRole.AGENT))
    joined = next(event for event in events if isinstance(event, Joined))
    return Caller(CLAUDE, Role.AGENT, joined.epoch)


class Calls:
    """What was called, in its order."""

    def __init__(self) -> None:
        self.all: list[Any] = []

    def note(self, name: str, result: Any = None) -> Any:
        def call(*given: Any) -> Any:
            self.all.append((name, *given))
            return result

        return call


class FakeOutbox:
    def __init__(self) -> None:
        self.done: list[object] = []

    def push(self) -> None:
        self.done.append("push")

    def rewind(self) -> None:
        self.done.append("rewind")

    def tell(self, frame: bytes) -> None:
        self.done.append(frame)

    def close(self) -> None:
        self.done.append("close")


async def turn() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# --- callers -------------------------------------------------------------------------------------


async def test_a_call_is_a_sign_of_life_and_brings_its_agent_back(gateway: Gateway, clock: Clock) -> None:
    caller = await join(gateway)
    await gateway.submit(Leave(agent=CLAUDE, reason="gone"))
    clock.now += 30
    await gateway.arrive(caller)

    assert gateway.writer.room.participants[CLAUDE].online
    assert gateway.presence.last_seen(CLAUDE, 0.0) == clock.now


async def test_a_full_disk_does_not_keep_an_agent_from_reading(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await join(gateway)
    await gateway.submit(Leave(agent=CLAUDE, reason="gone"))
    asked: list[object] = []

    async def submit(command: object) -> None:
        asked.append(command)
        raise StorageFull("full")

    monkeypatch.setattr(gateway, "submit", submit)
    await gateway.arrive(caller)
    await gateway.arrive(ROOM)

    assert asked == [Rejoin(agent=CLAUDE)]


async def test_a_token_that_has_died_is_noticed(gateway: Gateway) -> None:
    caller = await join(gateway)
    old, page = Caller(CLAUDE, Role.AGENT, caller.epoch - 1), Caller(HUMAN, Role.ROOM, page="left")
    gateway.recheck(caller)
    gateway.recheck(ROOM)
    for dead in (old, page):
        with pytest.raises(Unauthenticated):
            gateway.recheck(dead)
    await gateway.submit(Remove(agent=CLAUDE))

    with pytest.raises(Unauthenticated):
        gateway.recheck(caller)


async def test_who_waits_for_an_answer_is_here_until_it_has_one(gateway: Gateway) -> None:
    caller = await join(gateway)
    counts = []

    def fail() -> None:
        with gateway.connected(caller):
            counts.append(gateway.presence._sockets[CLAUDE])
            raise ValueError("gone in the midst")

    with pytest.raises(ValueError, match="gone in the midst"):
        fail()
    with gateway.connected(ROOM):
        counts.append(gateway.presence._sockets[HUMAN])

    assert (counts, gateway.presence._sockets[CLAUDE]) == ([1, 0], 0)


# --- what a commit sets in motion ----------------------------------------------------------------


async def test_everybody_hears_of_what_was_committed(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Calls()
    monkeypatch.setattr(gateway.history, "remember", calls.note("remember"))
    monkeypatch.setattr(gateway.broadcast, "publish", calls.note("publish"))
    monkeypatch.setattr(gateway.metrics, "count", calls.note("count"))
    heard: dict[str, list[AnyEvent]] = {}
    for name in ("run_worker", "board_summaries", "remote_boards"):
        heard[name] = []
        monkeypatch.setattr(getattr(gateway, name), "observe", heard[name].extend)
    alarms: list[bool] = []
    monkeypatch.setattr(gateway, "set_alarm", lambda: alarms.append(True))
    event = NoticePosted(*COMMON)
    committed: list[tuple[AnyEvent, bytes]] = [(event, encode_event(event))]
    gateway.last_commit = 0.0
    gateway._publish(committed)
    changed = ModeChanged(*COMMON, session_id=SessionId("s-1"), change=Change.PAUSED)
    was_set = list(alarms)
    gateway._publish([(changed, encode_event(changed))])

    assert calls.all[:3] == [
        ("remember", committed[0][1], event),
        ("publish", committed),
        ("count", committed),
    ]
    assert list(heard.values()) == [[event, changed]] * 3
    assert time.monotonic() - gateway.last_commit < 3600
    assert (was_set, alarms) == ([], [True])


def said(expires: float | None) -> HumanMessage:
    return HumanMessage(*COMMON, recipients=(CLAUDE,), expires=expires)


@pytest.mark.parametrize(
    ("event", "done", "has_alarm"),
    [
        (said(None), ["push"], False),
        (said(50.0), ["push"], True),
        (ControlSent(*COMMON, control=ControlVerb.PAUSE, expires=5.0), ["push"], True),
        (StateChanged(*COMMON, paused=False), ["rewind"], False),
        (StateChanged(*COMMON, paused=True), [], False),
        (
            DeliveryMoved(*COMMON, message=MessageId("m-1"), agent=CLAUDE, state=DeliveryState.QUEUED),
            ["rewind"],
            False,
        ),
        (DeliveryMoved(*COMMON, message=MessageId("m-1"), agent=CLAUDE, state=DeliveryState.HELD), [], False),
        (NoticePosted(*COMMON), [], False),
    ],
)
async def test_what_becomes_due_is_pushed(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, event: AnyEvent, done: list[str], has_alarm: bool
) -> None:
    alarms: list[bool] = []
    monkeypatch.setattr(gateway, "set_alarm", lambda: alarms.append(True))
    monkeypatch.setattr(gateway_module, "DeliveryPush", FakeOutbox)
    outbox: Any = FakeOutbox()
    gateway._pushes[CLAUDE] = {outbox}
    news = gateway.broadcast.next_news(CLAUDE)
    gateway._push(event)

    assert outbox.done == done
    # A poll of the inbox waits for the same.
    assert (news.done(), bool(alarms)) == (bool(done), has_alarm)


async def test_a_message_does_not_set_an_alarm_that_is_set(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    alarms: list[bool] = []
    monkeypatch.setattr(gateway, "set_alarm", lambda: alarms.append(True))
    gateway._alarm = asyncio.get_running_loop().call_later(3600, lambda: None)
    gateway._push(said(50.0))

    assert alarms == []


async def test_a_question_to_the_room_is_answered(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    answered: list[bool] = []

    async def answer() -> None:
        answered.append(True)

    monkeypatch.setattr(gateway, "answer_queries", answer)
    question = LogRequested(*COMMON, count=3)
    gateway._publish([(question, encode_event(question))])
    await turn()

    assert answered == [True]


@pytest.mark.parametrize(
    ("event", "is_forgotten"),
    [(Left(*COMMON, reason="", removed=True), True), (Left(*COMMON, reason=""), False)],
)
async def test_who_was_removed_is_forgotten_and_its_connections_are_looked_at(
    gateway: Gateway, event: Left, is_forgotten: bool
) -> None:
    looked: list[bool] = []

    class Socket:
        def drop(self, code: int, reason: str) -> None: ...

        def drop_if_stale(self) -> None:
            looked.append(True)

    gateway.sockets.add(Socket())
    gateway.presence.touch(CLAUDE)
    news = gateway.broadcast.next_news(CLAUDE)
    gateway._publish([(event, encode_event(event))])
    gateway.sockets.clear()

    assert (CLAUDE not in gateway.presence._last_call, news.done()) == (is_forgotten, is_forgotten)
    assert looked == [True]


async def test_a_connection_gets_what_is_due_from_its_first_moment_to_its_last(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox: Any = FakeOutbox()
    monkeypatch.setattr(gateway.screen_watch, "greeting", lambda agent: b"watched")
    gateway.attach(CLAUDE, outbox)
    told = gateway._send_live(CLAUDE, b"live"), gateway._send_live(AgentId("codex"), b"live")
    gateway.detach(CLAUDE, outbox)

    assert outbox.done == [b"watched", "push", b"live", "close"]
    assert (told, gateway._send_live(CLAUDE, b"live")) == ((1, 0), 0)


# --- the clock -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deadline_s", "delay_s"), [(None, None), (5.0, 5.0), (0.0, 0.01), (-60.0, 0.01), (9000.0, 3600.0)]
)
async def test_the_room_wakes_up_at_its_next_deadline(
    gateway: Gateway,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    deadline_s: float | None,
    delay_s: float | None,
) -> None:
    loop = asyncio.get_running_loop()
    before = gateway._alarm = loop.call_later(3600, lambda: None)
    deadline = None if deadline_s is None else clock.now + deadline_s
    monkeypatch.setattr(gateway_module, "next_deadline", lambda room, rules: deadline)
    now = loop.time()
    gateway.set_alarm()

    assert before.cancelled()
    if delay_s is None:
        assert gateway._alarm is None
    else:
        assert gateway._alarm is not None
        assert delay_s <= gateway._alarm.when() - now < delay_s + 60


@pytest.mark.parametrize("error", [None, Broken("no disk")])
async def test_a_tick_is_followed_by_the_next_alarm(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, error: Broken | None
) -> None:
    done: list[object] = []

    async def submit(command: Tick) -> None:
        done.append(command)
        if error is not None:
            raise error

    async def hits() -> dict[str, tuple[()]]:
        return {"s-1": ()}

    async def sleep(delay_s: float) -> None:
        done.append(delay_s)

    monkeypatch.setattr(gateway, "submit", submit)
    monkeypatch.setattr(gateway.board_hits, "for_all", hits)
    monkeypatch.setattr(gateway, "set_alarm", lambda: done.append("alarm"))
    with monkeypatch.context() as patch:
        patch.setattr("csp.gateway.gateway.asyncio.sleep", sleep)
        await gateway._tick()

    pause = [] if error is None else [1]
    assert done == [Tick(hits={"s-1": ()}), *pause, "alarm"]


@pytest.mark.parametrize(("offline_after_s", "pause_s"), [(60.0, 5.0), (4.0, 1.0), (0.001, 0.02)])
async def test_silence_and_dead_tokens_are_looked_for_again_and_again(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, offline_after_s: float, pause_s: float
) -> None:
    gateway = Gateway(Settings(offline_after_s=offline_after_s), tmp_path / "room", clock)
    done: list[object] = []

    async def mark_silent_offline() -> None:
        done.append("silence")

    async def sleep(delay_s: float) -> None:
        done.append(delay_s)
        if len(done) > 6:
            raise asyncio.CancelledError

    monkeypatch.setattr(gateway, "mark_silent_offline", mark_silent_offline)
    monkeypatch.setattr(gateway, "drop_stale_sockets", lambda: done.append("tokens"))
    with monkeypatch.context() as patch:
        patch.setattr("csp.gateway.gateway.asyncio.sleep", sleep)
        with pytest.raises(asyncio.CancelledError):
            await gateway.watch_presence()
    await gateway.close()

    assert done == [pause_s, "silence", "tokens"] * 2 + [pause_s]


async def test_who_was_silent_for_long_is_offline(gateway: Gateway, clock: Clock) -> None:
    await join(gateway)
    gateway.presence.touch(CLAUDE)
    clock.now += 60
    await gateway.mark_silent_offline()
    early = gateway.writer.room.participants[CLAUDE].online
    clock.now += 1
    await gateway.mark_silent_offline()

    assert (early, gateway.writer.room.participants[CLAUDE].online) == (True, False)


async def test_silence_that_cannot_be_noted_is_passed_over(
    gateway: Gateway, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await join(gateway)
    clock.now += 100

    async def submit(command: object) -> None:
        raise Broken("no disk")

    monkeypatch.setattr(gateway, "submit", submit)
    await gateway.mark_silent_offline()


# --- background work -----------------------------------------------------------------------------


async def test_work_that_fails_is_logged_and_forgotten(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise ValueError("odd")

    async def do_nothing() -> None:
        return

    for work in (fail(), do_nothing()):
        gateway.spawn(work)
    await turn()

    assert caplog.messages == ["background work failed"]
    assert gateway._tasks == set()


async def test_an_end_stops_everything_and_closes_every_file(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = Gateway(Settings(), tmp_path / "room", clock)
    done: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            done.append("work")

    gateway.spawn(work())
    await turn()
    alarm = gateway._alarm = asyncio.get_running_loop().call_later(3600, lambda: None)
    for name in ("index", "board"):
        part = getattr(gateway, name)

        def close(name: str = name, close: Callable[[], None] = part.close) -> None:
            done.append(name)
            close()

        monkeypatch.setattr(part, "close", close)
    await gateway.close()

    assert (done, alarm.cancelled()) == (["work", "index", "board"], True)
    # The lock of the journal is free again.
    await Gateway(Settings(), tmp_path / "room", clock).close()


async def test_a_printed_token_of_the_room_does_not_stand_on_its_board(gateway: Gateway) -> None:
    assert gateway.rules.secrets == gateway.board._secrets == (gateway.tokens.room_token,)
