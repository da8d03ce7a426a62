"""Wake the orchestrator with a digest; tell the people of the room if it does not answer."""

from csp.protocol.enums import HUMAN, SYSTEM
from csp.protocol.events import NoticePosted, SystemReply
from csp.room.orchestrator.digest import digest
from csp.room.orchestrator.wake_state import ENOUGH, UnansweredWakeups
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.sessions.session_draft import SessionDraft


def wake(draft: RoomDraft) -> None:
    """Send one digest for each session that gave reason for it, however many reasons there are.

    Who takes turns in the session itself is not woken: it knows, and its turns are how it acts.
    """
    for session_id, reasons in draft.wake_reasons.items():
        session_draft = SessionDraft(draft, session_id)
        session, orchestrator = session_draft.session, session_draft.orchestrator()
        if orchestrator is None or orchestrator.id in (*session.agents, *session.turns):
            continue
        text = digest(draft.rules.prompts, session, reasons)
        header = draft.message_header(SYSTEM, orchestrator.id, text, thread=session.thread)
        draft.emit(SystemReply(*header, recipients=(orchestrator.id,), session_id=session_id))


def next_deadline(room: Room, rules: RoomRules) -> float | None:
    """Return when the silence of an orchestrator will next be worth a word."""
    times = [_due_at(silence, rules) for silence in room.wakeups.by_agent.values() if _is_news(silence)]
    return min(times, default=None)


def tick(draft: RoomDraft) -> None:
    """Tell the human once that an orchestrator leaves its wake-ups unanswered."""
    for agent, silence in list(draft.room.wakeups.by_agent.items()):
        if _is_news(silence) and _due_at(silence, draft.rules) <= draft.clock:
            participant = draft.room.participants.get(agent)
            state = f" It is {participant.shown_state.replace('_', ' ')}." if participant else ""
            text = f"{agent} has left {ENOUGH} wake-ups unanswered.{state} The modes go on without it."
            draft.emit(NoticePosted(*draft.header(SYSTEM, HUMAN, text), silent=agent))


def _is_news(silence: UnansweredWakeups) -> bool:
    return len(silence.since) == ENOUGH and not silence.is_told


def _due_at(silence: UnansweredWakeups, rules: RoomRules) -> float:
    """Return when the last of the wake-ups is unanswered for as long as a turn may take."""
    return silence.since[-1] + rules.timeout_s
