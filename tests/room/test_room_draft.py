"""The tests of how the events of a command are numbered."""

import pytest

from csp.protocol.enums import (
    HUMAN,
    AgentId,
    ControlVerb,
    DeliveryState,
    JoinRole,
    MessageId,
    ParticipantKind,
)
from csp.protocol.events import (
    AgentCall,
    AgentResponse,
    ControlSent,
    DeliveryMoved,
    HumanMessage,
    Joined,
    KnownEvent,
    LateReply,
    Left,
    MessageEvent,
    NoticePosted,
    Pruned,
    Redacted,
    StateChanged,
)
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Delivery, Message, Room
from tests.room.live import CLAUDE, CODEX

OWN_FIELDS: dict[type[KnownEvent], dict[str, object]] = {
    HumanMessage: {"recipients": ()},
    AgentCall: {"recipients": ()},
    AgentResponse: {"recipients": ()},
    ControlSent: {"control": ControlVerb.DENY, "expires": 1.0},
    NoticePosted: {},
    Joined: {"name": "claude", "kind": ParticipantKind.CLI, "role": JoinRole.AGENT, "epoch": 1},
    Left: {"reason": "closed"},
    StateChanged: {},
    LateReply: {"turn": "t-1"},
    Redacted: {"message": "m-1"},
    Pruned: {"before": 1},
}


def test_events_are_numbered_after_the_room() -> None:
    batch = RoomDraft(Room(seq=41), 1.0)
    batch.notice(HUMAN, "one")
    batch.notice(HUMAN, "two")

    assert [(event.seq, event.id) for event in batch.events] == [(42, "e-42"), (43, "e-43")]


@pytest.mark.parametrize("kind", OWN_FIELDS, ids=lambda kind: kind.__name__)
def test_what_is_delivered_has_a_message_id(kind: type[KnownEvent]) -> None:
    batch = RoomDraft(Room(seq=41), 1.0)
    batch.add(kind, CLAUDE, CODEX, "text", OWN_FIELDS[kind])

    assert batch.events[0].id == ("m-42" if issubclass(kind, MessageEvent | ControlSent) else "e-42")


def test_own_id_stays() -> None:
    batch = RoomDraft(Room(seq=41), 1.0)
    batch.add(AgentCall, CLAUDE, CODEX, "text", {"recipients": ()}, id=MessageId("mine"))

    assert (batch.events[0].id, batch.events[0].seq) == ("mine", 42)


@pytest.mark.parametrize(("now", "expected"), [(2.0, 5.0), (5.0, 5.0), (6.5, 6.5)])
def test_time_never_falls(now: float, expected: float) -> None:
    batch = RoomDraft(Room(ts=5.0), now)
    batch.notice(HUMAN, "one")

    assert batch.now == batch.events[0].ts == expected


@pytest.mark.parametrize(("reason", "text"), [("", "failed"), ("gone", "failed: gone")])
def test_delivery_is_told_to_whoever_sent_the_message(reason: str, text: str) -> None:
    message = Message(
        MessageId("m-3"), 3, CODEX, CLAUDE, "parser", "hi", {CLAUDE: Delivery(DeliveryState.QUEUED, 1.0)}
    )
    batch = RoomDraft(Room(seq=3), 1.0)
    batch.deliver(message, CLAUDE, DeliveryState.FAILED, reason)

    assert batch.events == [
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
