"""What is on its way to the gateway: order, limits, repetition, answers."""

import asyncio
import json
from typing import Any

import pytest

from csp.client import outbox as outbox_module
from csp.client.incoming_frames import CallAnswer
from csp.client.outbox import Outbox, to_frame
from csp.errors import BadInput, Refused, TooLarge, Unreachable
from csp.protocol.enums import MAX_BODY_BYTES
from csp.protocol.requests import WorkingBody


def ask(outbox: Outbox, note: str = "", subject: str = "") -> "asyncio.Task[CallAnswer]":
    return asyncio.create_task(outbox.ask("working", WorkingBody(note=note), subject))


async def turn() -> None:
    """Let every task run as far as it can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def sent(outbox: Outbox, count: int) -> list[int]:
    """Send so many operations; return their numbers."""
    return [(await outbox.next()).ref for _ in range(count)]


async def test_operations_leave_in_the_order_of_their_calls() -> None:
    outbox = Outbox()
    asking = [ask(outbox, note) for note in ("one", "two", "three")]
    await turn()
    bodies = [json.loads((await outbox.next()).body)["note"] for _ in asking]
    for ref in (3, 1, 2):
        outbox.settle(ref, CallAnswer(seq=ref))

    assert bodies == ["one", "two", "three"]
    assert [(await one).seq for one in asking] == [1, 2, 3]
    assert outbox.settled == 3


@pytest.mark.parametrize(("limit", "value"), [("MAX_OPS", 2), ("MAX_BYTES", 60)])
async def test_who_asks_too_much_waits_until_something_is_answered(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(outbox_module, limit, value)
    outbox = Outbox()
    asking = [ask(outbox, "x" * 30) for _ in range(3)]
    await turn()
    before = await sent(outbox, 2)
    assert not outbox._unsent
    outbox.settle(1, CallAnswer())
    await turn()

    assert (before, await sent(outbox, 1)) == ([1, 2], [3])
    for one in asking:
        one.cancel()


async def test_what_was_unanswered_is_sent_again_in_order_on_the_next_connection() -> None:
    outbox = Outbox()
    asking = [ask(outbox, str(number)) for number in range(4)]
    await turn()
    await sent(outbox, 3)
    outbox.settle(2, CallAnswer())
    asking[2].cancel()
    await turn()
    outbox.rewind()
    left = list(outbox._pending)
    again = [await outbox.next(), await outbox.next()]

    assert left == [1, 4]
    assert [(one.ref, one.is_repeated) for one in again] == [(1, True), (4, False)]
    for one in asking:
        one.cancel()


async def test_a_report_that_a_later_one_has_overtaken_is_not_refused() -> None:
    outbox = Outbox()
    first, second = ask(outbox, subject=":m-1"), ask(outbox, subject=":m-1")
    await turn()
    await sent(outbox, 2)
    outbox.rewind()
    refusal = CallAnswer(error="cannot go from submitted to typed", status=Refused.status)
    outbox.settle(1, refusal)
    outbox.settle(2, refusal)

    assert (await first).error == refusal.error
    with pytest.raises(Refused):
        await second


@pytest.mark.parametrize(
    ("subjects", "is_repeated", "status"),
    [
        ((":m-1", ":m-2"), True, 409),
        (("", ""), True, 409),
        ((":m-1", ":m-1"), False, 409),
        ((":m-1", ":m-1"), True, 404),
    ],
    ids=["of another message", "of no message", "sent once", "another error"],
)
async def test_any_other_refusal_is_the_callers(
    subjects: tuple[str, str], is_repeated: bool, status: int
) -> None:
    outbox = Outbox()
    first, second = [ask(outbox, subject=subject) for subject in subjects]
    await turn()
    await sent(outbox, 2)
    if is_repeated:
        outbox.rewind()
    outbox.settle(1, CallAnswer(error="no", status=status))
    await turn()

    assert first.done() and type(first.exception()).__name__ in ("Refused", "NotFound")
    second.cancel()


async def test_an_answer_to_nothing_is_passed_over() -> None:
    outbox = Outbox()
    outbox.settle(7, CallAnswer())

    assert outbox.settled == 0


async def test_all_is_answered_once_the_last_one_is() -> None:
    outbox = Outbox()
    asking = [ask(outbox), ask(outbox)]
    await turn()
    flushed = asyncio.create_task(outbox.flushed())
    outbox.settle(1, CallAnswer())
    await turn()
    is_early = flushed.done()
    outbox.settle(2, CallAnswer())
    await turn()

    assert (is_early, flushed.done()) == (False, True)
    await asyncio.gather(*asking)


async def test_a_closed_outbox_fails_what_is_pending_and_refuses_what_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox_module, "MAX_OPS", 1)
    outbox = Outbox()
    pending, waiting = ask(outbox), ask(outbox)
    await turn()
    outbox.close(Refused("closed"), Unreachable("unanswered"))
    outbox.close(Refused("closed again"))
    results = await asyncio.gather(pending, waiting, return_exceptions=True)

    assert [str(one) for one in results] == ["unanswered", "closed"]
    with pytest.raises(Refused, match=r"^closed$"):
        await outbox.ask("working", WorkingBody())
    assert not outbox._unsent and not outbox._pending and outbox._bytes == 0


async def test_an_operation_may_be_as_large_as_the_gateway_takes() -> None:
    outbox = Outbox()
    largest = MAX_BODY_BYTES - 200 - len(b'{"note":""}')
    asking = ask(outbox, "x" * largest)
    await turn()
    with pytest.raises(TooLarge):
        await outbox.ask("working", WorkingBody(note="x" * (largest + 1)))

    sent = await outbox.next()
    assert len(to_frame(sent.name, sent.ref, sent.body)) <= MAX_BODY_BYTES
    asking.cancel()


@pytest.mark.parametrize("body", [b"{}", b'{"note":"x"}'])
def test_a_frame_is_the_operation_with_its_body(body: bytes) -> None:
    frame: dict[str, Any] = json.loads(to_frame("working", 7, body))

    assert frame == {"op": "working", "ref": 7} | json.loads(body)


async def test_a_caller_that_leaves_before_its_operation_was_sent_takes_it_back() -> None:
    outbox = Outbox()
    first, second = ask(outbox, "one"), ask(outbox, "two")
    await turn()
    first.cancel()
    await turn()
    left = (list(outbox._pending), outbox._bytes)

    assert left == ([2], len(b'{"note":"two"}'))
    assert await sent(outbox, 1) == [2]
    second.cancel()


async def test_an_answer_that_nobody_waits_for_any_more_still_counts() -> None:
    outbox = Outbox()
    asking = ask(outbox)
    await turn()
    await sent(outbox, 1)
    asking.cancel()
    await turn()
    outbox.settle(1, CallAnswer(error="no", status=Refused.status))

    assert (outbox.settled, outbox._pending) == (1, {})


async def test_half_a_character_cannot_be_sent() -> None:
    with pytest.raises(BadInput, match="text cannot be sent"):
        await Outbox().ask("working", WorkingBody(note="\ud800"))


async def test_everybody_who_is_refused_gets_an_exception_of_its_own() -> None:
    outbox = Outbox()
    asking = [ask(outbox), ask(outbox)]
    await turn()
    outbox.close(Refused("closed"))
    results = await asyncio.gather(*asking, return_exceptions=True)

    assert results[0] is not results[1]
    assert [type(one) for one in results] == [Refused, Refused]
