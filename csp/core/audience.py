"""Who may read an event.

The room's token reads everything. An agent reads what concerns it; this module says what does.
"""

from csp.events import (
    AnyEvent,
    Base,
    ControlSent,
    Delivered,
    Joined,
    Late,
    Left,
    Noticed,
    Pruned,
    Queried,
    Redacted,
    Said,
    StateChanged,
)
from csp.wire import ALL, AgentId


def concerns(event: AnyEvent, agent: AgentId) -> bool:
    """Tell whether `agent` may read `event`."""
    match event:
        case Said():
            return agent in (event.sender, event.target) or event.target == ALL or agent in event.recipients
        case Queried():
            return agent == event.sender
        case Delivered() | ControlSent():
            return agent in (event.sender, event.target)
        case Noticed():
            return event.target in (ALL, agent)
        case StateChanged():
            # What a tool is to be called with is between the agent and the people of the room.
            return event.dialog is None or agent == event.sender
        case Joined() | Left() | Redacted() | Pruned():
            return True
        case Late() | Base():
            return False
        case _:
            # An event of a newer CSP: nobody here knows whom it concerns, so only the room sees it.
            return False
