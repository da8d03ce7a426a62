"""The orchestrator: when to wake it, its digest, and when to notify people that it is silent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from csp.protocol.enums import HUMAN, SYSTEM, Mode
from csp.protocol.events import AnyEvent, SystemReply, Unknown
from csp.protocol.notices import NoticeCode
from csp.protocol.session_parts import Status
from csp.room.commands import RoomRules
from csp.room.room_draft import RoomDraft, SessionDraft
from csp.room.room_state import ENOUGH, Room, UnansweredWakeups
from csp.room.sessions.session_end import votes_counted
from csp.room.sessions.session_state import Session, cut
from csp.room.sessions.turn_prompt import last_outputs, render, round_label


def wake(draft: RoomDraft) -> None:
    """Send one digest per session with reasons to wake the orchestrator, however many reasons there are.

    An orchestrator that takes turns in the session is not woken, because it can act in its turns.
    """
    for session_id, reasons in draft.wake_reasons.items():
        session_draft = SessionDraft(draft, session_id)
        session, orchestrator = session_draft.session, draft.room.orchestrator
        if orchestrator is None or orchestrator.id in (*session.agents, *session.turns):
            continue
        text = digest(draft.rules.prompts, session, reasons)
        header = draft.message_header(SYSTEM, orchestrator.id, text, thread=session.thread)
        draft.emit(SystemReply(*header, recipients=(orchestrator.id,), session_id=session_id))


def next_deadline(room: Room, rules: RoomRules) -> float | None:
    """Return when the next notice about a silent orchestrator is due."""
    times = [_due_at(silence, rules) for silence in room.wakeups.by_agent.values() if _is_news(silence)]
    return min(times, default=None)


def tick(draft: RoomDraft) -> None:
    """Notify the human once if an orchestrator does not answer its wake-ups."""
    for agent, silence in list(draft.room.wakeups.by_agent.items()):
        if _is_news(silence) and _due_at(silence, draft.rules) <= draft.clock:
            participant = draft.room.participants.get(agent)
            state = f" It is {participant.shown_state.replace('_', ' ')}." if participant else ""
            draft.notice(
                HUMAN, NoticeCode.ORCHESTRATOR_SILENT(agent=agent, count=ENOUGH, state=state), silent=agent
            )


def _is_news(silence: UnansweredWakeups) -> bool:
    return len(silence.since) == ENOUGH and not silence.is_told


def _due_at(silence: UnansweredWakeups, rules: RoomRules) -> float:
    """Return when the last wake-up will have been unanswered for the length of a turn."""
    return silence.since[-1] + rules.timeout_s


# --- answers about the room -----------------------------------------------------------------------


MAX_ANSWER: Final = 2000
MAX_LINE: Final = 300
DEFAULT_COUNT: Final = 20
#: Character limits in a digest: all statements together, one statement, and a topic, vote or reason.
_SAID: Final = 900
_WORDS: Final = 160
_PART: Final = 250


def mode_text(session: Session | None) -> str:
    """Return a text that describes the mode of a thread and the current turn."""
    if session is None:
        return f"[CSP: the mode is {Mode.FREEFORM}; no session is running]"
    topic = f" on {session.setup.topic!r}" if session.setup.topic else ""
    waiting = ", ".join(session.waiting_for) or "nobody"
    text = (
        f"the mode is {session.setup.mode}{topic}; {session.id} is {session.status}, in {session.stage.name}"
    )
    return f"[CSP: {cut(text, MAX_LINE)}; it waits for {cut(waiting, MAX_LINE)}]"


def log_text(events: Iterable[AnyEvent]) -> str:
    """Return the texts of `events`, oldest first; if they do not all fit, only the newest ones."""
    lines: list[str] = []
    left = MAX_ANSWER - len(_whole(["#"]))
    for event in reversed([event for event in events if not isinstance(event, Unknown)]):
        line = f"#{event.seq} {event.sender} -> {event.target}: {' '.join(event.text[:MAX_LINE].split())}"
        if len(event.text) > MAX_LINE or len(line) > MAX_LINE:
            line = f"{line[: MAX_LINE - 1]}…"
        left -= len(line) + 1
        if left < 0:
            break
        lines.append(line)
    return _whole(lines[::-1]) if lines else "[CSP: there are no messages that concern you yet]"


def _whole(lines: list[str]) -> str:
    text = "\n".join(lines)
    return f"[CSP: the latest messages that concern you, oldest first\n{text}]"


# --- a session's digest --------------------------------------------------------------------------


def digest(prompts: Mapping[str, str], session: Session, reasons: Sequence[str]) -> str:
    """Return a session's digest: its events, statements and open turns, without sealed content."""
    why = cut("; ".join(reasons), _PART)
    waiting = cut(", ".join(session.waiting_for) or "nobody", _PART)
    paused = " (paused)" if session.status is Status.PAUSED else ""
    now = f"{session.stage.name}{paused}, waiting for {waiting}."
    if session.is_over:
        now = f"it has ended: {session.reason}."
    spoken = list(last_outputs(session))
    share = min(_WORDS, _SAID // max(len(spoken), 1))
    said = [f"- {agent}: {cut(_plain(output.text), share)}" for agent, output in spoken]
    if session.synthesis:
        said = [f"Synthesis: {cut(_plain(session.synthesis), _SAID)}"]
    # During a vote, it would reveal the authors of the proposals.
    is_counted = bool(session.counted) and (session.is_over or not session.stage.candidates)
    values = {
        "mode": session.setup.mode,
        "session": session.id,
        "label": round_label(session, session.stage.round),
        "goal": cut(_plain(session.setup.topic), _PART) or "(none)",
        "why": f"{why}.",
        "positions": "\n".join(said),
        "votes": cut(_plain(votes_counted(session).text), _PART) if is_counted else "",
        "now": now,
        "window": f"{why}. {now}",
        "proposals": "",
        "format": "",
    }
    return cut(render(prompts, "digest", values), MAX_ANSWER)


def _plain(text: str) -> str:
    return " ".join(text.split())
