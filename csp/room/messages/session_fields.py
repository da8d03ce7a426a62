"""The marks of a session on what is said beside its turns."""

from typing import Any

from csp.protocol.enums import AgentId
from csp.room.room_draft import RoomDraft
from csp.room.sessions.session_state import Session


def agent_session_fields(
    batch: RoomDraft, sender: AgentId, thread: str, recipients: tuple[AgentId, ...]
) -> dict[str, Any]:
    """Return the fields that make what an agent says part of a session that concerns it.

    What a member says in a sealed phase is sealed with it, so nobody gets it before that ends; who is in two
    of them waits for both; outsiders know nothing that is sealed. Who takes part gets what agents say with
    its next turn: nobody is woken to be thanked.
    """
    session = _session_for(batch, sender, thread, recipients) if batch.has_sessions else None
    if session is None:
        return {}
    members = () if session.setup.soft_turns else session.agents
    seals = batch.sessions.seals_of(sender)
    waits = recipients if seals else tuple(one for one in recipients if one in members)
    return {"session_id": session.id, "sealed": seals.pop(session.id, 0), "seals": seals, "waits": waits}


def person_session_fields(batch: RoomDraft, thread: str) -> dict[str, Any]:
    """Return the fields that make what a person says part of the session of its thread."""
    session = batch.sessions.live_in(thread) if batch.has_sessions else None
    return {} if session is None else {"session_id": session.id}


def _session_for(
    batch: RoomDraft, sender: AgentId, thread: str, recipients: tuple[AgentId, ...]
) -> Session | None:
    """Return the sealed session that the sender is in, else that of the thread, else any with one of them."""
    them = {sender, *recipients}
    found = [one for one in batch.sessions.live() if one.binds(sender) or them & {*one.agents}]
    found.sort(key=lambda session: (not session.binds(sender), session.thread != thread))
    return found[0] if found else None
