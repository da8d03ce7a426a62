"""The events of one command, numbered as they will stand in the journal."""

from typing import Any, Final

from csp.core.room import Message, Room
from csp.events import ControlSent, Delivered, KnownEvent, Noticed, Said
from csp.wire import DEFAULT_THREAD, SYSTEM, AgentId, DeliveryState, MessageId

_MESSAGES: Final = (Said, ControlSent)


class Batch:
    """Collect events; ids come from the journal's own counter."""

    def __init__(self, room: Room, now: float) -> None:
        self.events: list[KnownEvent] = []
        self._seq = room.seq
        #: What the clock says, for deadlines; what the journal says, whose times never fall.
        self.clock = now
        self.now = max(now, room.ts)

    def add(
        self,
        kind: type[KnownEvent],
        sender: AgentId,
        target: AgentId,
        text: str,
        fields: dict[str, Any],
        *,
        thread: str = DEFAULT_THREAD,
        id: MessageId | None = None,
    ) -> None:
        """Append an event; `fields` are those of its own kind."""
        self._seq += 1
        own = f"m-{self._seq}" if issubclass(kind, _MESSAGES) else f"e-{self._seq}"
        event = kind(self._seq, self.now, id or MessageId(own), sender, target, thread, text, **fields)
        self.events.append(event)

    def notice(self, target: AgentId, text: str) -> None:
        """Append a notice of the room."""
        self.add(Noticed, SYSTEM, target, text, {})

    def deliver(self, message: Message, agent: AgentId, state: DeliveryState, reason: str = "") -> None:
        """Append a step of `message` on its way to `agent`; whoever sent it is the one to be told."""
        text = f"{state}: {reason}" if reason else str(state)
        fields = {"message": message.id, "agent": agent, "state": state, "reason": reason}
        self.add(Delivered, agent, message.sender, text, fields, thread=message.thread)
