"""Who may read an event.

The room's token reads everything. An agent reads what concerns it; this module says what does.
"""

from csp.core.sessions import Sessions
from csp.events import (
    AnyEvent,
    Base,
    BoardChanged,
    ControlSent,
    Delivered,
    Joined,
    Late,
    Left,
    ModeChanged,
    Noted,
    Noticed,
    Pruned,
    Queried,
    Redacted,
    RunEvent,
    Said,
    StateChanged,
    TurnMoved,
    UsageSeen,
    Voted,
)
from csp.wire import ALL, AgentId


def concerns(event: AnyEvent, agent: AgentId, sessions: Sessions) -> bool:
    """Tell whether `agent` may read `event` now; of a sealed phase it reads but its own words."""
    if agent != event.sender and _is_sealed(event, sessions):
        return False
    match event:
        case Said():
            return agent in (event.sender, event.target) or event.target == ALL or agent in event.recipients
        case Queried() | UsageSeen():
            return agent == event.sender
        case Delivered() | ControlSent():
            return agent in (event.sender, event.target)
        case Noted():
            return event.target in (ALL, agent) or agent == event.sender
        case Noticed():
            return event.target in (ALL, agent)
        case StateChanged():
            # What a tool is to be called with is between the agent and the people of the room.
            return event.dialog is None or agent == event.sender
        case Joined() | Left() | Redacted() | Pruned() | ModeChanged() | TurnMoved() | Voted() | RunEvent():
            return True
        case Late() | Base() | BoardChanged():
            return False
        case _:
            # An event of a newer CSP: nobody here knows whom it concerns, so only the room sees it.
            return False


def _is_sealed(event: AnyEvent, sessions: Sessions) -> bool:
    """Tell whether an event belongs to a sealed phase that goes on."""
    if not isinstance(event, Said | Voted | ModeChanged) or not event.sealed:
        return False
    session = sessions.get(event.session_id)
    return session is not None and session.seal == event.sealed
