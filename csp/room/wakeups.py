"""Which wake-ups the orchestrators of a room have not answered."""

from typing import Final

import msgspec

from csp.protocol.enums import AgentId
from csp.protocol.events import (
    AnyEvent,
    LateReply,
    Left,
    MessageEvent,
    ModeChanged,
    NoticePosted,
    SystemReply,
)

#: Wake-ups without an answer after which the people of the room are told.
ENOUGH: Final = 2


class UnansweredWakeups(msgspec.Struct, frozen=True, array_like=True):
    """When the first wake-ups were sent that an orchestrator has not answered; whether that was told."""

    since: tuple[float, ...] = ()
    is_told: bool = False


class Wakeups(msgspec.Struct, omit_defaults=True):
    by_agent: dict[AgentId, UnansweredWakeups] = msgspec.field(default_factory=dict)

    def copy(self) -> "Wakeups":
        """Return wake-ups that can be changed by themselves."""
        return Wakeups(dict(self.by_agent))

    def apply(self, event: AnyEvent) -> None:
        """Note a wake-up; whatever an orchestrator says or sets shows that it is awake."""
        match event:
            case SystemReply() if event.session_id is not None:
                silence = self.by_agent.get(event.target, UnansweredWakeups())
                since = (*silence.since, event.ts)[:ENOUGH]
                self.by_agent[event.target] = UnansweredWakeups(since, silence.is_told)
            case MessageEvent() | ModeChanged() | LateReply() | Left() if self.by_agent:
                self.by_agent.pop(event.sender, None)
            case NoticePosted() if event.silent in self.by_agent:
                self.by_agent[event.silent] = UnansweredWakeups(
                    self.by_agent[event.silent].since, is_told=True
                )
            case _:
                pass

    def is_owed_by(self, agent: AgentId) -> bool:
        """Tell whether an agent has been woken and has said nothing since."""
        return agent in self.by_agent
