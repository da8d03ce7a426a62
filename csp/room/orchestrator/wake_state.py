"""Which wake-ups the orchestrators of a room have not answered."""

from typing import Final

import msgspec

from csp.protocol.enums import AgentId
from csp.protocol.events import AnyEvent, Late, Left, ModeChanged, Noticed, Said, Told

#: Wake-ups without an answer after which the people of the room are told.
ENOUGH: Final = 2


class Silence(msgspec.Struct, frozen=True, array_like=True):
    """When the first wake-ups were sent that an orchestrator has not answered; whether that was told."""

    since: tuple[float, ...] = ()
    is_told: bool = False


class Wakeups(msgspec.Struct, omit_defaults=True):
    by_agent: dict[AgentId, Silence] = msgspec.field(default_factory=dict)

    def take(self, event: AnyEvent) -> None:
        """Note a wake-up; whatever an orchestrator says or sets shows that it is awake."""
        match event:
            case Told() if event.session_id is not None:
                silence = self.by_agent.get(event.target, Silence())
                since = (*silence.since, event.ts)[:ENOUGH]
                self.by_agent[event.target] = Silence(since, silence.is_told)
            case Said() | ModeChanged() | Late() | Left() if self.by_agent:
                self.by_agent.pop(event.sender, None)
            case Noticed() if event.silent in self.by_agent:
                self.by_agent[event.silent] = Silence(self.by_agent[event.silent].since, is_told=True)
            case _:
                pass

    def is_owed_by(self, agent: AgentId) -> bool:
        """Tell whether an agent has been woken and has said nothing since."""
        return agent in self.by_agent
