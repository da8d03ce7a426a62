"""Allstop: the word that ends a session at once."""

from csp.protocol.enums import ALL, DEFAULT_THREAD, HUMAN, AgentId, JoinRole
from csp.protocol.events import AgentCall, HumanMessage
from csp.room import human_input
from csp.room.commands import Send, Stop
from csp.room.messages.send import is_person, is_repeated
from csp.room.room_draft import RoomDraft
from csp.room.room_state import Room
from csp.room.sessions.steering import stop, threads_of


def is_allstop(room: Room, sender: AgentId, text: str) -> bool:
    """Return whether a person or the orchestrator says Allstop."""
    if not human_input.is_allstop(text):
        return False
    participant = room.participants.get(sender)
    is_lead = participant is not None and participant.role is JoinRole.ORCHESTRATOR
    return is_lead or is_person(room, sender)


def allstop(draft: RoomDraft, command: Send) -> None:
    """Stop the session of the thread, then record the word; it is delivered to nobody."""
    if command.id is not None and is_repeated(draft.room, command.sender, command.id):
        return
    thread = command.thread or DEFAULT_THREAD
    is_needed = any(thread in threads_of(session) for session in draft.sessions.live())
    stop(draft, Stop(sender=command.sender, thread=thread))
    kind = HumanMessage if is_person(draft.room, command.sender) else AgentCall
    header = draft.message_header(command.sender, ALL, command.text, thread=thread, id=command.id)
    draft.emit(kind(*header, recipients=(), seals=draft.sessions.seals_of(command.sender)))
    if not is_needed:
        draft.notice(HUMAN, f"Allstop: no session is running in thread {thread}.")
