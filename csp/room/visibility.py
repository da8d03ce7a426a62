"""Visibility: determine who may read which event and when.

The room's token reads everything. An agent reads what concerns it, except what others wrote in a sealed
phase that has not ended. Every interface that shows the room's content checks here: history, search, boards,
screens, states, prompts, WebSocket, MCP and metrics.

What an agent writes in its turn belongs to the session of that turn. Anything else it writes belongs to every
sealed phase that it is in, and becomes readable when the last of them ends, because its subject is unknown.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from csp.protocol import events
from csp.protocol.enums import ALL, AgentId, SessionId
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import Ledger, Session, WindowItem

#: A reader outside all sessions, who may read only public events. No participant can have this name.
ANYBODY: Final = AgentId("none")
NO_SESSIONS: Final = Sessions()


def is_visible_to(event: events.AnyEvent, agent: AgentId, sessions: Sessions) -> bool:  # noqa: C901  # a case for each
    """Return whether `agent` may read `event` now; in a sealed phase, it reads only its own messages."""
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
            # The arguments of a tool call are only for the agent and the people in the room.
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
            # An event from a newer CSP: it is unknown whom it concerns, so only the room may read it.
            return False
        case _:
            assert_never(event)


def seals_on(event: events.AnyEvent | events.MessageEvent) -> Mapping[SessionId, int]:
    """Return the sealed phases in which an event was written."""
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
    """Return whether these phases still hide the text of `author` from `reader`; None stands for a person."""
    return bool(marks) and reader not in (None, author) and sessions.is_sealed(marks)


def may_watch(agent: AgentId, reader: AgentId | None) -> bool:
    """Return whether `reader` may see an agent's screen and the dialogs on it."""
    return reader in (None, agent)


def can_see_item(session: Session, item: WindowItem, agent: AgentId, sessions: Sessions) -> bool:
    """Return whether `agent` may see a session's item now."""
    is_sealed = bool(item.sealed) and item.sealed == session.seal
    if agent != item.sender and (is_sealed or sessions.is_sealed(item.seals)):
        return False
    return agent == item.sender or item.target == ALL or agent in item.target.split(",")


def visible_spending(ledger: Ledger, reader: AgentId | None, sessions: Sessions) -> Ledger:
    """Return the rows of a ledger that `reader` may see: a row reveals when an agent spoke, and its model."""
    return tuple(row for row in ledger if reader in (None, row.agent) or not sessions.seals_of(row.agent))
