"""What is due to a participant, as it is pushed over one connection."""

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from csp.gateway import broadcast as outbox_module
from csp.gateway.broadcast import MAX_UNSENT_BYTES, PUSHED_AT_ONCE, DeliveryPush, Pacer
from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver
from tests.gateway.test_broadcast import CLAUDE, FakePipe, settle, texts


class Due:
    """What is due, in place of a room."""

    def __init__(self) -> None:
        self.delivers: list[Deliver] = []
        self.writer = SimpleNamespace(room=SimpleNamespace(participants={CLAUDE: None}), safe_seq=100)

    def add(self, seq: int, text: str = "", kind: DeliverKind = DeliverKind.MESSAGE) -> None:
        new = Deliver(id=f"m-{seq}", seq=seq, kind=kind, sender="human", text=text, urgent=False)
        self.delivers.append(new)
        self.delivers.sort(key=lambda one: one.kind is not DeliverKind.CONTROL)

    def pending(self, room: object, agent: str, *, after: int, upto: int) -> Iterator[Deliver]:
        assert agent == CLAUDE
        return (one for one in self.delivers if after < one.seq <= upto)


@pytest.fixture
def due(monkeypatch: pytest.MonkeyPatch) -> Due:
    due = Due()
    monkeypatch.setattr(outbox_module, "pending", due.pending)
    return due


def outbox_of(due: Due) -> tuple[DeliveryPush, FakePipe]:
    pipe = FakePipe()
    return DeliveryPush(pipe, CLAUDE, due.writer), pipe  # type: ignore[arg-type]  # both have what is used


def ids(pipe: FakePipe) -> list[str]:
    return [json.loads(text)["deliver"]["id"] for text in texts(pipe)]


async def test_each_delivery_is_pushed_once_until_a_rewind(due: Due) -> None:
    outbox, pipe = outbox_of(due)
    due.add(3)
    due.add(7, kind=DeliverKind.CONTROL)
    outbox.push()
    outbox.push()
    due.add(101)
    outbox.push()
    due.writer.safe_seq = 101
    outbox.push()
    before = ids(pipe)
    outbox.rewind()

    assert before == ["m-7", "m-3", "m-101"]
    assert ids(pipe) == [*before, "m-7", "m-3", "m-101"]


async def test_nothing_due_up_to_the_safe_seq_is_looked_through_again(due: Due) -> None:
    outbox, pipe = outbox_of(due)
    outbox.push()
    due.add(99)
    outbox.push()

    assert (outbox._sent_seq, pipe.written) == (100, [])


async def test_a_reader_that_does_not_keep_up_gets_the_rest_when_it_has_read(due: Due) -> None:
    outbox, pipe = outbox_of(due)
    due.add(9, kind=DeliverKind.CONTROL)
    for seq in range(1, 4):
        due.add(seq, "x" * (MAX_UNSENT_BYTES // 8))
    outbox.push()
    outbox.push()
    early = ids(pipe)
    pipe.drains.set()
    await settle()

    assert early == ["m-9", "m-1", "m-2"]
    assert ids(pipe) == ["m-9", "m-1", "m-2", "m-3"]
    due.add(50)
    outbox._sent_seq = 49
    outbox.push()
    assert ids(pipe)[-1] == "m-50"


async def test_a_rewind_during_a_pause_begins_again_with_everything(due: Due) -> None:
    outbox, pipe = outbox_of(due)
    due.add(9, kind=DeliverKind.CONTROL)
    for seq in range(1, 4):
        due.add(seq, "x" * (MAX_UNSENT_BYTES // 8))
    outbox.push()
    outbox.rewind()
    pipe.drains.set()
    await settle()

    assert ids(pipe) == ["m-9", "m-1", "m-2", "m-9", "m-1", "m-2", "m-3"]


@pytest.mark.parametrize("is_closed", [True, False])
async def test_who_is_closed_or_gone_gets_nothing_after_its_pause(due: Due, is_closed: bool) -> None:
    outbox, pipe = outbox_of(due)
    due.add(1, "x" * (MAX_UNSENT_BYTES // 4))
    due.add(2)
    outbox.push()
    if is_closed:
        outbox.close()
    else:
        pipe.is_open = False
    pipe.drains.set()
    await settle()
    pipe.is_open = True
    await asyncio.sleep(0)

    assert ids(pipe) == ["m-1"]


async def test_who_comes_after_the_first_few_is_served_in_the_next_passes_of_the_loop(due: Due) -> None:
    pacer, pipes = Pacer(), [FakePipe() for _ in range(2 * PUSHED_AT_ONCE + 1)]
    outboxes = [DeliveryPush(pipe, CLAUDE, due.writer, pacer) for pipe in pipes]  # type: ignore[arg-type]  # as above
    due.add(1)
    pacer.add([(outbox, DeliveryPush.push) for outbox in outboxes])
    at_once = sum(ids(pipe) == ["m-1"] for pipe in pipes)
    outboxes[-1].close()
    was_busy = pacer.is_busy
    await settle()

    assert (at_once, was_busy, pacer.is_busy) == (PUSHED_AT_ONCE, True, False)
    assert [ids(pipe) for pipe in pipes] == [["m-1"]] * (2 * PUSHED_AT_ONCE) + [[]]


async def test_who_waits_to_begin_again_is_not_only_sent_what_is_new(due: Due) -> None:
    pacer, pipe = Pacer(), FakePipe()
    outbox = DeliveryPush(pipe, CLAUDE, due.writer, pacer)  # type: ignore[arg-type]  # as above
    others = [DeliveryPush(FakePipe(), CLAUDE, due.writer, pacer) for _ in range(PUSHED_AT_ONCE)]  # type: ignore[arg-type]  # as above
    due.add(1)
    outbox.push()
    due.add(101)
    due.writer.safe_seq = 101
    pacer.add([*((other, DeliveryPush.push) for other in others), (outbox, DeliveryPush.rewind)])
    pacer.add([(outbox, DeliveryPush.push)])
    await settle()

    assert ids(pipe) == ["m-1", "m-1", "m-101"]


async def test_who_was_removed_is_sent_nothing(due: Due) -> None:
    outbox, pipe = outbox_of(due)
    due.add(1)
    due.writer.room.participants.clear()
    outbox.push()

    assert pipe.written == []


async def test_a_live_frame_goes_out_as_it_is_unless_it_is_empty(due: Due) -> None:
    outbox, pipe = outbox_of(due)
    outbox.tell(b"")
    outbox.tell(b"live")

    assert pipe.written == [b"live"]
