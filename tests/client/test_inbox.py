"""The inbox by itself: what is taken once, what is dropped, where a reader goes on."""

import asyncio

import msgspec
import pytest

from csp.client import inbox as inbox_module
from csp.client.http_calls import RoomPlace
from csp.client.inbox import Inbox
from csp.client.incoming_frames import Live
from csp.errors import CspError, Refused, Unauthenticated
from csp.protocol.enums import HUMAN, AgentId, DeliveryState, MessageId
from csp.protocol.events import DeliveryMoved
from tests.client.test_parts import ALICE, deliver, notice


def live(watch: bool | None) -> Live:
    return Live(data=msgspec.Raw(b"{}"), watch=watch)


def delivered(seq: int, agent: AgentId, state: DeliveryState) -> DeliveryMoved:
    fields = (MessageId("m-1"), agent, state)
    return DeliveryMoved(seq, 1.0, MessageId(f"e-{seq}"), agent, HUMAN, "default", "", *fields)


# --- the place -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "place", "handed"), [(None, 50, 50), (7, 7, 7), (50, 50, 50), (90, 50, 90)]
)
@pytest.mark.parametrize("room_id", ["", "r-1"])
def test_a_reader_begins_where_the_room_is_or_goes_on_where_it_was(
    after: int | None, place: int, handed: int, room_id: str
) -> None:
    inbox = Inbox(after, ALICE)

    assert inbox.find_place(RoomPlace(seq=50, room_id=room_id)) == place
    # A room that has gone back is read from its end; what was handed out was handed out.
    assert (inbox.last_seq, inbox.handed_seq) == (place, handed)


def test_a_room_that_has_gone_back_may_give_out_its_ids_again() -> None:
    inbox = Inbox(0, ALICE)
    for seq in (4, 8, 9):
        inbox.add_delivery(deliver(seq), 1)
        inbox.add_event(notice(seq), 1)
    inbox.end(deliver(4).id)
    inbox.end(deliver(8).id)
    inbox.find_place(RoomPlace(seq=6))
    before = inbox.taken
    for seq in (4, 8, 9):
        inbox.add_delivery(deliver(seq), 1)

    # Of the three only the first is from before the place that the room has gone back to.
    assert inbox.taken == before + 2


@pytest.mark.parametrize(
    ("second", "place"),
    [
        # The same room, also one that does not say its id, goes on.
        (RoomPlace(seq=50, room_id="r-1"), 40),
        (RoomPlace(seq=50), 40),
        # It was restored from a backup.
        (RoomPlace(seq=30, room_id="r-1"), 30),
        (RoomPlace(seq=30), 30),
        # A gateway that follows another one has not caught up yet.
        (RoomPlace(seq=30, room_id="r-1", replica=True), 40),
        # Another room is read from its end, however long it is.
        (RoomPlace(seq=50, room_id="r-2"), 50),
        (RoomPlace(seq=30, room_id="r-2", replica=True), 30),
    ],
)
def test_a_room_is_known_by_its_id(second: RoomPlace, place: int) -> None:
    inbox = Inbox(40, ALICE)
    inbox.find_place(RoomPlace(seq=40, room_id="r-1"))

    assert inbox.find_place(second) == place


def test_an_id_is_remembered_over_a_gateway_that_says_none() -> None:
    inbox = Inbox(40, ALICE)
    for known in (RoomPlace(seq=40, room_id="r-1"), RoomPlace(seq=40)):
        inbox.find_place(known)

    assert inbox.find_place(RoomPlace(seq=50, room_id="r-2")) == 50


def test_another_room_is_read_whole_if_nothing_was_read_before() -> None:
    inbox = Inbox(0, ALICE)
    inbox.find_place(RoomPlace(seq=0, room_id="r-1"))

    assert inbox.find_place(RoomPlace(seq=5, room_id="r-2")) == 0


def test_another_room_gives_out_the_same_ids_for_other_messages() -> None:
    inbox = Inbox(0, ALICE)
    inbox.find_place(RoomPlace(seq=9, room_id="r-1"))
    inbox.add_delivery(deliver(4), 1)
    inbox.add_delivery(deliver(8), 1)
    inbox.end(deliver(4).id)
    inbox.find_place(RoomPlace(seq=9, room_id="r-2"))
    before = inbox.taken
    inbox.add_delivery(deliver(4), 1)
    inbox.add_delivery(deliver(8), 1)

    assert inbox.taken == before + 2


async def test_only_events_move_what_was_handed_out() -> None:
    inbox = Inbox(0, ALICE)
    inbox.add_event(notice(4), 1)
    inbox.add_delivery(deliver(9), 1)
    inbox.add_live(live(None), 1)
    handed = []
    for _ in range(3):
        await inbox.get()
        handed.append(inbox.handed_seq)

    assert handed == [4, 4, 4]


# --- deliveries ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "state", "is_ended"),
    [
        (ALICE, DeliveryState.CONFIRMED, True),
        (ALICE, DeliveryState.TYPED, False),
        (AgentId("bob"), DeliveryState.CONFIRMED, False),
    ],
)
def test_a_delivery_ends_with_the_last_word_about_its_own_recipient(
    agent: AgentId, state: DeliveryState, is_ended: bool
) -> None:
    inbox = Inbox(0, ALICE)
    inbox.add_delivery(deliver(1), 1)
    inbox.add_event(delivered(2, agent, state), 1)

    assert ("m-1" in inbox._ended, "m-1" in inbox._open) == (is_ended, not is_ended)


def test_the_end_of_a_delivery_that_never_came_is_not_remembered() -> None:
    inbox = Inbox(0, ALICE)
    inbox.end("m-1")
    inbox.add_delivery(deliver(1), 1)

    assert inbox.taken == 1


# --- the bounds ----------------------------------------------------------------------------------


def test_a_full_inbox_drops_what_matters_only_now_but_for_whether_anybody_watches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox_module, "MAX_ITEMS", 1)
    inbox = Inbox(0, ALICE)
    taken = []
    for item in (live(None), live(None), live(True), live(False)):
        inbox.add_live(item, 1)
        taken.append(inbox.taken)

    assert taken == [1, 1, 2, 3]


async def test_an_inbox_has_room_again_when_half_of_its_bytes_are_taken_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inbox_module, "MAX_BYTES", 100)
    inbox = Inbox(0, ALICE)
    for seq, size in ((1, 10), (2, 50), (3, 50)):
        inbox.add_event(notice(seq), size)
    waiting = asyncio.ensure_future(inbox.drained())
    seen = []
    for _ in range(2):
        await inbox.get()
        for _ in range(3):
            await asyncio.sleep(0)
        seen.append((inbox.is_full, waiting.done()))

    assert seen == [(True, False), (False, True)]


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize("errors", [[None], [Unauthenticated("dead"), Refused("closed")]])
async def test_what_is_here_is_handed_out_before_the_end(errors: list[CspError | None]) -> None:
    inbox = Inbox(0, ALICE)
    inbox.add_event(notice(1), 1)
    await inbox.get()
    waiting = asyncio.ensure_future(inbox.get())
    await asyncio.sleep(0)
    for error in errors:
        inbox.close(error)
    if errors[0] is None:
        assert await waiting is None
        return
    raised = []
    for again in (waiting, inbox.get()):
        with pytest.raises(Unauthenticated, match="dead") as caught:
            await again
        raised.append(caught.value)

    # Each reader gets an exception of its own: they carry who raised them.
    assert raised[0] is not raised[1] and errors[0] not in raised
