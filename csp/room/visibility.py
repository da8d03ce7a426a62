"""Who may read what at which time.

The room's token reads everything. An agent reads what concerns it, except what somebody else has said in a
sealed phase that goes on. Everything that shows something of the room asks here: history, search, boards,
screens, states, prompts, WebSocket, MCP, figures.

What an agent says in its turn belongs to the session of that turn. Whatever else it says belongs to every
sealed phase that it is in, and opens with the last of them: nobody can tell what it speaks of.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from csp.protocol import events
from csp.protocol.enums import ALL, AgentId, SessionId
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import Ledger, Session, WindowItem

#: Somebody who takes part in nothing: it reads what all may read. No participant can have this name.
ANYBODY: Final = AgentId("none")
NO_SESSIONS: Final = Sessions()


def is_visible_to(event: events.AnyEvent, agent: AgentId, sessions: Sessions) -> bool:  # noqa: C901  # a case for each
    """Tell whether `agent` may read `event` now; of a sealed phase it reads but its own words."""
    if is_hidden(seals_on(event), event.sender, agent, sessions):
        return False
    match event:
        case events.MessageEvent():
            return agent in (event.sender, event.target) or event.target == ALL or agent in event.recipients
        case events.LogRequested() | events.UsageSeen():
            return agent == event.sender
        case events.DeliveryMoved() | events.ControlSent():
            return agent in (event.sender, event.target)
        case events.NoteAdded():
            return event.target in (ALL, agent) or agent == event.sender
        case events.NoticePosted():
            return event.target in (ALL, agent)
        case events.StateChanged():
            # What a tool is to be called with is between the agent and the people of the room.
            return event.dialog is None or agent == event.sender
        case (
            events.Joined()
            | events.Left()
            | events.Redacted()
            | events.Pruned()
            | events.ModeChanged()
            | events.TurnMoved()
            | events.Voted()
            | events.RunEvent()
        ):
            return True
        case events.LateReply() | events.PrunedBase() | events.BoardChanged() | events.CallRecorded():
            return False
        case events.Unknown():
            # An event of a newer CSP: nobody here knows whom it concerns, so only the room sees it.
            return False
        case _:
            assert_never(event)


def seals_on(event: events.AnyEvent | events.MessageEvent) -> Mapping[SessionId, int]:
    """Return the sealed phases that an event was written in."""
    match event:
        case events.MessageEvent():
            own = {event.session_id: event.sealed} if event.session_id and event.sealed else {}
            return {**event.seals, **own}
        case events.Voted() | events.ModeChanged():
            return {event.session_id: event.sealed} if event.sealed else {}
        case events.NoteAdded() | events.StateChanged():
            return event.seals
        case _:
            return {}


def is_hidden(
    marks: Mapping[SessionId, int], author: AgentId, reader: AgentId | None, sessions: Sessions
) -> bool:
    """Tell whether `reader` may not know yet what `author` said in these phases; a person, None, may."""
    return bool(marks) and reader not in (None, author) and sessions.is_sealed(marks)


def may_watch(agent: AgentId, reader: AgentId | None) -> bool:
    """Tell whether `reader` may see the screen of an agent, or what is asked on it."""
    return reader in (None, agent)


def can_see_item(session: Session, item: WindowItem, agent: AgentId, sessions: Sessions) -> bool:
    """Tell whether `agent` may know of an item of a session now."""
    is_sealed = bool(item.sealed) and item.sealed == session.seal
    if agent != item.sender and (is_sealed or sessions.is_sealed(item.seals)):
        return False
    return agent == item.sender or item.target == ALL or agent in item.target.split(",")


def visible_spending(ledger: Ledger, reader: AgentId | None, sessions: Sessions) -> Ledger:
    """Return the rows of a ledger that `reader` may see: a row tells when an agent spoke, and as what."""
    return tuple(row for row in ledger if reader in (None, row.agent) or not sessions.seals_of(row.agent))
