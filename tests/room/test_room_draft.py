"""The tests of the draft of a room: its events are numbered, its room is the room after them."""

import pytest

from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    ControlVerb,
    DeliveryState,
    MessageId,
)
from csp.protocol.events import AgentCall, ControlSent, DeliveryMoved, HumanMessage, Left
from csp.protocol.notices import NoticeCode
from csp.room.commands import Join, Send
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Delivery, Message, Room, dump
from tests.room.live import CLAUDE, CODEX, LiveRoom

MESSAGE = Message(
    id=MessageId("m-3"),
    seq=3,
    sender=CODEX,
    target=CLAUDE,
    thread="parser",
    text="hi",
    deliveries={CLAUDE: Delivery(DeliveryState.QUEUED, 1.0)},
)


@pytest.fixture
def live() -> LiveRoom:
    live = LiveRoom()
    live.do(Join(name="claude"))
    live.do(Join(name="codex"))
    return live


def test_events_are_numbered_after_the_room() -> None:
    draft = RoomDraft(Room(seq=41), 1.0)
    draft.notice(HUMAN, NoticeCode.ROUND(round="one"))
    draft.notice(HUMAN, NoticeCode.ROUND(round="two"))

    assert [(event.seq, event.id) for event in draft.events] == [(42, "e-42"), (43, "e-43")]


def test_what_is_delivered_has_a_message_id() -> None:
    draft = RoomDraft(Room(seq=41), 1.0)
    draft.emit(HumanMessage(*draft.message_header(HUMAN, CLAUDE, "text"), recipients=(CLAUDE,)))
    header = draft.message_header(HUMAN, CLAUDE, "deny")
    draft.emit(ControlSent(*header, control=ControlVerb.DENY, expires=1.0))

    assert [event.id for event in draft.events] == ["m-42", "m-43"]


def test_own_id_stays() -> None:
    draft = RoomDraft(Room(seq=41), 1.0)
    header = draft.message_header(CLAUDE, CODEX, "text", id=MessageId("mine"))
    draft.emit(AgentCall(*header, recipients=()))

    assert (draft.events[0].id, draft.events[0].seq) == ("mine", 42)


def test_event_with_a_stale_header_is_refused() -> None:
    draft = RoomDraft(Room(seq=41), 1.0)
    stale = draft.header(CLAUDE, ALL, "claude left")
    draft.notice(HUMAN, NoticeCode.ROUND(round="one"))

    with pytest.raises(ValueError, match="event 42 was emitted as number 43"):
        draft.emit(Left(*stale, reason="closed"))


@pytest.mark.parametrize(("now", "expected"), [(2.0, 5.0), (5.0, 5.0), (6.5, 6.5)])
def test_time_never_falls(now: float, expected: float) -> None:
    draft = RoomDraft(Room(ts=5.0), now)
    draft.notice(HUMAN, NoticeCode.ROUND(round="one"))

    assert draft.now == draft.events[0].ts == expected


@pytest.mark.parametrize(("reason", "text"), [("", "failed"), ("gone", "failed: gone")])
def test_target_of_a_delivery_is_the_sender_of_the_message(reason: str, text: str) -> None:
    draft = RoomDraft(Room(seq=3), 1.0)
    draft.move_delivery(MESSAGE, CLAUDE, DeliveryState.FAILED, reason)

    assert draft.events == [
        DeliveryMoved(
            4,
            1.0,
            MessageId("e-4"),
            CLAUDE,
            CODEX,
            "parser",
            text,
            MessageId("m-3"),
            AgentId("claude"),
            DeliveryState.FAILED,
            reason,
        )
    ]


def test_room_of_a_new_draft_is_the_given_one(live: LiveRoom) -> None:
    assert RoomDraft(live.room, 1.0).room is live.room


def test_room_is_that_after_each_event(live: LiveRoom) -> None:
    draft = RoomDraft(live.room, 1.0)
    draft.emit(Left(*draft.header(CLAUDE, ALL, "claude left"), reason="closed"))
    first = draft.room.participants[CLAUDE].online
    draft.emit(Left(*draft.header(CLAUDE, ALL, "claude was removed"), reason="removed", removed=True))

    assert (first, CLAUDE in draft.room.participants) == (False, False)


def test_given_room_stays_as_it_is(live: LiveRoom) -> None:
    live.do(Send(sender=HUMAN, to="claude", text="hello"))
    before = dump(live.room)
    (message,) = live.room.messages.values()
    draft = RoomDraft(live.room, 1.0)
    draft.move_delivery(message, CLAUDE, DeliveryState.CONFIRMED)
    draft.emit(HumanMessage(*draft.message_header(HUMAN, CLAUDE, "more"), recipients=(CLAUDE,)))

    assert list(draft.room.participants[CLAUDE].queue) == [draft.events[1].id]
    assert draft.room.messages[message.id].deliveries[CLAUDE].state is DeliveryState.CONFIRMED
    assert dump(live.room) == before
