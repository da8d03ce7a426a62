"""A room played by hand: decide, apply, keep the journal."""

from typing import TypeVar

import pytest

from csp.errors import CspError
from csp.protocol.enums import AgentId, DeliveryState, MessageId
from csp.protocol.events import Event, KnownEvent, MessageEvent, decode_event, encode_event
from csp.room.commands import DEFAULT_RULES, AnyCommand, Join, PostReply, ReportDelivery, RoomRules, Send
from csp.room.decide import decide, draft_of
from csp.room.messages import delivery_view, pending
from csp.room.room_state import Participant, Room, dump

E = TypeVar("E", bound=Event)
X = TypeVar("X", bound=CspError)

CLAUDE = AgentId("claude")
CODEX = AgentId("codex")
GEMINI = AgentId("gemini")


class LiveRoom:
    """Hold a room, its journal and a clock that stands still until a test moves it."""

    def __init__(self, *names: str, rules: RoomRules = DEFAULT_RULES) -> None:
        self.room = Room()
        self.rules = rules
        self.journal: list[KnownEvent] = []
        self.now = 1000.0
        for name in names:
            self.do(Join(name=name))

    def do(self, command: AnyCommand) -> list[KnownEvent]:
        draft = draft_of(self.room, command, self.now, self.rules)
        for event in draft.events:
            # What cannot be read back is not there after the next start.
            assert decode_event(encode_event(event)) == event
        self.room = draft.take_over()
        self.journal += draft.events
        return draft.events

    def refuse(self, command: AnyCommand, kind: type[X]) -> X:
        """Return why the room refuses `command`; the room must be untouched, byte by byte."""
        before = dump(self.room)
        with pytest.raises(kind) as caught:
            decide(self.room, command, self.now, self.rules)

        assert dump(self.room) == before
        return caught.value

    def say(
        self,
        sender: AgentId,
        to: AgentId,
        text: str = "hello",
        *,
        reply_to: str | None = None,
        id: str | None = None,
        ttl_s: float | None = None,
        urgent: bool = False,
    ) -> MessageEvent:
        return one(
            self.do(
                Send(
                    sender=sender,
                    to=to,
                    text=text,
                    reply_to=None if reply_to is None else MessageId(reply_to),
                    id=None if id is None else MessageId(id),
                    ttl_s=ttl_s,
                    urgent=urgent,
                )
            ),
            MessageEvent,
        )

    def answer(self, sender: AgentId, reply_to: str, text: str = "an answer") -> MessageEvent:
        return one(self.do(PostReply(sender=sender, reply_to=MessageId(reply_to), text=text)), MessageEvent)

    def report(self, agent: AgentId, message: str, state: DeliveryState, reason: str = "") -> None:
        self.do(ReportDelivery(agent=agent, message=message, state=state, reason=reason))

    def agent(self, agent: AgentId) -> Participant:
        return self.room.participants[agent]

    def due(self, agent: AgentId) -> list[str]:
        """Return the ids of what `agent` should act on now."""
        return [deliver.id for deliver in pending(self.room, agent)]

    def shown(self, message: str, agent: AgentId) -> str:
        """Return the state of a delivery as a person sees it, such as held(offline)."""
        known = self.room.message(message)
        assert known is not None
        view = delivery_view(self.room, known, agent)
        return f"{view.state}({view.reason})" if view.reason else str(view.state)


def one(events: list[KnownEvent], kind: type[E]) -> E:
    """Return the only event of `kind`."""
    (found,) = (event for event in events if isinstance(event, kind))
    return found
