"""Fan-out by itself: who gets what, in which order, and what is kept meanwhile."""

import asyncio
from typing import Any

import pytest

from csp.gateway import broadcast as frames_module
from csp.gateway.broadcast import (
    GOING_S,
    MAX_UNSENT_BYTES,
    STEP,
    Broadcast,
    EventWatcher,
    Pipe,
    close_frame,
    text_frame,
)
from csp.gateway.presence import Presence
from csp.gateway.screen_watch import MAX_UNREAD_BYTES, LiveFeed
from csp.protocol.enums import ALL, SYSTEM, AgentId, MessageId
from csp.protocol.events import AnyEvent, NoticePosted, encode_event
from tests.gateway.served import Clock
from tests.gateway.watchers import frames
from tests.waiting import wait_until

CLAUDE, CODEX = AgentId("claude"), AgentId("codex")


class FakePipe:
    """Keeps what was written; `is_open` says whether it takes more."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.is_open = True
        self.unsent_bytes = 0
        self.drains = asyncio.Event()

    def write(self, data: bytes) -> bool:
        if self.is_open:
            self.written.append(data)
        return self.is_open

    async def drain(self) -> bool:
        await self.drains.wait()
        return self.is_open


def watcher(agent: AgentId | None = None) -> tuple[EventWatcher, FakePipe]:
    pipe = FakePipe()
    return EventWatcher(pipe, agent), pipe  # type: ignore[arg-type]  # it has what is used


def event(seq: int, target: str = ALL) -> tuple[AnyEvent, bytes]:
    found = NoticePosted(seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, AgentId(target), "default", str(seq))
    return found, encode_event(found)


def texts(pipe: FakePipe) -> list[bytes]:
    return [payload for _, payload in frames(b"".join(pipe.written))]


def concerns(found: AnyEvent, agent: AgentId) -> bool:
    return getattr(found, "target", "") in (ALL, agent)


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_person_is_served_before_a_crowd_of_agents() -> None:
    hub = Broadcast(concerns)
    for number in range(3 * STEP):
        hub.add(watcher(AgentId(f"agent-{number}"))[0])
    person, pipe = watcher()
    hub.add(person)
    one = event(1)
    hub.publish([one])

    assert texts(pipe) == [one[1]]
    await settle()


async def test_each_watcher_gets_what_concerns_it_from_when_it_came() -> None:
    hub = Broadcast(concerns)
    (all_of_it, first), (claude, second), (late, third) = watcher(), watcher(CLAUDE), watcher()
    hub.add(all_of_it)
    hub.add(claude)
    one, two, three = event(1), event(2, CODEX), event(3, CLAUDE)
    hub.publish([one, two])
    await settle()
    hub.add(late)
    hub.publish([three])
    await settle()

    assert texts(first) == [one[1], two[1], three[1]]
    assert texts(second) == [one[1], three[1]]
    assert texts(third) == [three[1]]


async def test_many_watchers_are_served_in_steps_and_miss_nothing_between() -> None:
    hub = Broadcast(concerns)
    pipes = []
    for _ in range(2 * STEP + 1):
        one, pipe = watcher()
        hub.add(one)
        pipes.append(pipe)
    hub.publish([event(1)])
    served = [len(pipe.written) for pipe in pipes]
    hub.publish([event(2)])
    again = [len(pipe.written) for pipe in pipes]
    await settle()

    # What comes meanwhile waits for the next pass; else the last watchers of a busy room would get nothing.
    assert (STEP, served, again) == (16, [1] * STEP + [0] * (STEP + 1), served)
    assert all(texts(pipe) == [event(1)[1], event(2)[1]] for pipe in pipes)
    assert not hub._tail


async def test_a_watcher_that_was_removed_or_dropped_gets_nothing_more() -> None:
    hub = Broadcast(concerns)
    (gone, first), (broken, second), (stays, third) = watcher(), watcher(), watcher()
    for one in (gone, broken, stays):
        hub.add(one)
    second.is_open = False
    hub.publish([event(1)])
    hub.remove(gone)
    hub.publish([event(2)])
    await settle()

    assert list(hub.watchers) == [stays]
    assert (len(texts(first)), len(texts(third))) == (1, 2)
    assert not hub._tail and hub._first == 2


async def test_who_comes_or_goes_during_a_pass_gets_what_came_while_it_was_there() -> None:
    hub = Broadcast(concerns)
    early = [watcher() for _ in range(STEP + 2)]
    for one, _ in early:
        hub.add(one)
    hub.publish([event(1)])
    (all_of_it, first), (claude, second) = watcher(), watcher(CLAUDE)
    hub.add(all_of_it)
    hub.add(claude)
    hub.remove(early[-1][0])
    hub.publish([event(2)])
    await settle()

    assert texts(early[-2][1]) == [event(1)[1], event(2)[1]]
    assert texts(first) == texts(second) == [event(2)[1]]
    assert texts(early[-1][1]) == []


async def test_nothing_is_kept_for_watchers_that_are_all_gone() -> None:
    hub = Broadcast(concerns)
    watchers = [watcher()[0] for _ in range(STEP + 1)]
    for one in watchers:
        hub.add(one)
    hub.publish([event(1)])
    for one in watchers:
        hub.remove(one)
    await settle()

    assert not hub._tail and not hub._pass


async def test_news_wakes_those_who_wait_for_it() -> None:
    hub = Broadcast(concerns)
    anything, of_claude = hub.next_news(), hub.next_news(CLAUDE)
    same = hub.next_news()
    hub.publish([event(1)])
    before = (anything.done(), of_claude.done())
    hub.wake(CLAUDE)

    assert same is anything
    assert (before, of_claude.done()) == ((True, False), True)
    assert not hub.next_news().done()


async def test_a_closed_hub_lets_go_of_everybody_who_waits() -> None:
    hub = Broadcast(concerns)
    waiting = [hub.next_news(), hub.next_news(CLAUDE)]
    was_closed = hub.is_closed
    hub.close()

    assert (was_closed, hub.is_closed) == (False, True)
    assert all(one.done() for one in waiting)


# --- frames and pipes ----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 70000])
def test_a_frame_says_how_long_it_is(size: int) -> None:
    payload = b"x" * size

    assert list(frames(text_frame(payload) + text_frame(b"next"))) == [(1, payload), (1, b"next")]


def test_the_reason_of_a_close_fits_into_its_frame() -> None:
    ((opcode, payload),) = frames(close_frame(1013, "r" * 200))

    assert (opcode, payload[:2], len(payload)) == (8, (1013).to_bytes(2, "big"), 125)


class FakeTransport:
    def __init__(self) -> None:
        self.buffered = 0
        self.written: list[bytes] = []
        self.closed = self.aborted = False

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


def pipe_of(transport: FakeTransport) -> Pipe:
    request: Any = type("Request", (), {"transport": transport})()
    return Pipe(request)


async def test_a_reader_that_left_too_much_is_told_so_and_dropped() -> None:
    transport = FakeTransport()
    pipe = pipe_of(transport)
    transport.buffered = MAX_UNSENT_BYTES
    first = pipe.write(b"one")
    transport.buffered += 1
    second, third = pipe.write(b"two"), pipe.write(b"three")
    ((_, payload),) = frames(b"".join(transport.written[1:]))

    assert (first, second, third) == (True, False, False)
    assert transport.written[0] == b"one"
    assert payload[:2] == (1013).to_bytes(2, "big") and b"reconnect with after=" in payload
    assert transport.closed and not pipe.is_open


@pytest.mark.parametrize("left", [0, 1])
async def test_who_does_not_read_the_close_is_cut_off(monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    assert GOING_S == 10.0
    monkeypatch.setattr(frames_module, "GOING_S", 0.0)
    transport = FakeTransport()
    pipe = pipe_of(transport)
    transport.buffered = left
    pipe.drop(1000, "bye")
    pipe.drop(1001, "again")
    await asyncio.sleep(0.01)

    assert pipe.closed_reason == "bye" and len(transport.written) == 1
    assert transport.aborted is bool(left)


async def test_draining_waits_until_most_was_read() -> None:
    transport = FakeTransport()
    pipe = pipe_of(transport)
    transport.buffered = MAX_UNSENT_BYTES // 8 + 1
    draining = asyncio.create_task(pipe.drain())
    await asyncio.sleep(0.03)
    is_early = draining.done()
    transport.buffered -= 1

    assert await draining is True
    assert is_early is False
    transport.close()
    assert await pipe.drain() is False


# --- screens -------------------------------------------------------------------------------------


async def test_a_slow_watcher_gets_the_newest_screen_when_it_has_caught_up() -> None:
    pipe = FakePipe()
    feed = LiveFeed(pipe)  # type: ignore[arg-type]  # it has what is used
    feed.take(CLAUDE, b"first", is_screen=True)
    pipe.unsent_bytes = MAX_UNREAD_BYTES
    feed.take(CLAUDE, b"text", is_screen=False)
    feed.take(CLAUDE, b"old", is_screen=True)
    feed.take(CODEX, b"of codex", is_screen=True)
    feed.take(CLAUDE, b"newest", is_screen=True)
    pipe.unsent_bytes = 0
    feed.take(CODEX, b"text", is_screen=False)
    before = list(pipe.written)
    pipe.drains.set()
    await settle()
    feed.take(CLAUDE, b"live again", is_screen=False)

    assert before == [b"first"]
    assert pipe.written == [b"first", b"newest", b"of codex", b"live again"]


async def test_a_screen_nobody_wants_any_more_is_not_sent_late() -> None:
    pipe = FakePipe()
    feed = LiveFeed(pipe)  # type: ignore[arg-type]  # it has what is used
    pipe.unsent_bytes = MAX_UNREAD_BYTES
    feed.take(CLAUDE, b"one", is_screen=True)
    feed.take(CODEX, b"two", is_screen=True)
    feed.forget(CLAUDE)
    pipe.drains.set()
    await settle()

    assert pipe.written == [b"two"]


async def test_a_feed_that_is_closed_sends_nothing_more() -> None:
    pipe = FakePipe()
    feed = LiveFeed(pipe)  # type: ignore[arg-type]  # it has what is used
    pipe.unsent_bytes = MAX_UNREAD_BYTES
    feed.take(CLAUDE, b"one", is_screen=True)
    feed.close()
    pipe.drains.set()
    await wait_until(lambda: feed._draining is not None and feed._draining.done())

    assert pipe.written == []


# --- presence ------------------------------------------------------------------------------------


def test_silence_counts_from_the_last_sign_of_life(clock: Clock) -> None:
    presence = Presence(clock, 60.0)
    agents = [CLAUDE, CODEX, AgentId("gemini"), AgentId("gpt")]
    clock.now += 10
    presence.touch(CLAUDE)
    presence.connect(CODEX)
    presence.connect(AgentId("gpt"))
    clock.now += 50
    at_the_limit = presence.silent(agents)
    clock.now += 1
    presence.disconnect(AgentId("gpt"))
    after_the_start = presence.silent(agents)
    clock.now += 9.5

    assert at_the_limit == []
    assert after_the_start == ["gemini"]
    assert presence.silent(agents) == ["claude", "gemini"]
    assert presence.last_seen(CODEX, 0.0) == clock.now
    assert presence.last_seen(CLAUDE, 0.0) == clock.now - 60.5
    assert presence.last_seen(AgentId("gpt"), 0.0) == clock.now - 9.5
    assert presence.last_seen(AgentId("gemini"), 7.0) == 7.0
    presence.forget(CLAUDE)
    assert presence.last_seen(CLAUDE, 7.0) == 7.0


def test_one_of_two_connections_is_enough_to_be_here(clock: Clock) -> None:
    presence = Presence(clock, 60.0)
    presence.connect(CLAUDE)
    presence.connect(CLAUDE)
    presence.disconnect(CLAUDE)
    clock.now += 1000

    assert presence.silent([CLAUDE]) == []
    presence.disconnect(CLAUDE)
    assert presence.silent([CLAUDE]) == []
    clock.now += 61
    assert presence.silent([CLAUDE]) == [CLAUDE]
