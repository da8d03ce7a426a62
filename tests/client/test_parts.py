"""The small parts of the client, each by itself."""

import asyncio
import subprocess
import sys

import pytest

from csp.client import inbox as inbox_module
from csp.client.background_tasks import in_thread, until_first
from csp.client.connection import FIRST_S, LAST_S, Backoff
from csp.client.inbox import Inbox
from csp.protocol.enums import ALL, HUMAN, SYSTEM, AgentId, DeliverKind, DeliveryState, MessageId
from csp.protocol.events import DeliveryMoved, NoticePosted
from csp.protocol.responses import Deliver
from tests.rooms import ROOT

ALICE = AgentId("alice")


def notice(seq: int) -> NoticePosted:
    return NoticePosted(seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, ALL, "default", "text")


def deliver(number: int) -> Deliver:
    return Deliver(id=f"m-{number}", seq=number, kind=DeliverKind.MESSAGE, sender="a", text="b", urgent=False)


def test_importing_the_client_loads_no_network_library() -> None:
    code = "import sys, csp.client; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)

    assert {"aiohttp", "websockets"} & set(run.stdout.split()) == set()


def test_waits_grow_up_to_a_limit_and_differ() -> None:
    backoff = Backoff()
    waits = [backoff.next_s() for _ in range(2000)]
    backoff.reset()

    assert all(FIRST_S * 2**n / 2 <= wait <= FIRST_S * 2**n for n, wait in enumerate(waits[:5]))
    assert all(LAST_S / 2 <= wait <= LAST_S for wait in waits[10:])
    assert len(set(waits)) > 1000
    assert backoff.next_s() <= FIRST_S


def test_a_full_inbox_still_takes_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "MAX_ITEMS", 2)
    inbox = Inbox(0, ALICE)
    inbox.add_event(notice(1), 1)
    inbox.add_event(notice(2), 1)
    assert inbox.is_full
    inbox.add_delivery(deliver(3), 1)

    assert inbox.taken == 3


def test_an_inbox_is_full_of_few_large_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "MAX_BYTES", 100)
    inbox = Inbox(0, ALICE)
    inbox.add_event(notice(1), 100)

    assert inbox.is_full


async def test_an_inbox_has_room_again_when_half_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "MAX_ITEMS", 4)
    inbox = Inbox(0, ALICE)
    for seq in range(1, 5):
        inbox.add_event(notice(seq), 1)
    waiting = asyncio.create_task(inbox.drained())
    await inbox.get()
    await asyncio.sleep(0)
    assert not waiting.done()
    await inbox.get()
    await waiting

    assert inbox.handed_seq == 2


def test_deliveries_that_ended_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "ENDED_KEPT", 10)
    inbox = Inbox(0, ALICE)
    for number in range(100):
        inbox.add_delivery(deliver(number), 1)
        inbox.end(f"m-{number}")
        inbox.add_delivery(deliver(number), 1)
    assert inbox.taken == 100
    inbox.add_delivery(deliver(0), 1)

    assert inbox.taken == 101


def test_a_delivery_the_room_has_ended_is_forgotten_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "ENDED_KEPT", 0)
    inbox = Inbox(0, ALICE)
    inbox.add_delivery(deliver(1), 1)
    fields = (MessageId("m-1"), ALICE, DeliveryState.WITHDRAWN)
    inbox.add_event(DeliveryMoved(2, 1.0, MessageId("e-2"), ALICE, HUMAN, "default", "withdrawn", *fields), 1)
    inbox.add_delivery(deliver(1), 1)

    assert inbox.taken == 3


async def test_the_first_to_end_ends_the_others() -> None:
    ended: list[str] = []

    async def wait_for_ever() -> str:
        try:
            return await asyncio.Future()
        finally:
            ended.append("cancelled")

    async def fail() -> str:
        await asyncio.sleep(0)
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        await until_first(wait_for_ever(), fail(), wait_for_ever())

    assert ended == ["cancelled", "cancelled"]


async def test_a_thread_hands_over_its_result_or_its_error() -> None:
    def fail() -> None:
        raise ValueError("in a thread")

    assert await in_thread(lambda: 7) == 7
    with pytest.raises(ValueError, match="in a thread"):
        await in_thread(fail)
