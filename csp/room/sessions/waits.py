"""The waits of turns: for a usage limit, a person, an agent that is offline, or the end of a pause."""

from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from csp.protocol.catalogue import why_held
from csp.protocol.enums import AgentId, AgentState, HeldReason, ParticipantKind
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.session_parts import OnLimit, TurnState, Wait, WaitKind
from csp.room.messages import delivery_view
from csp.room.room_draft import SessionDraft
from csp.room.sessions.session_state import Turn

#: States in which an agent cannot continue on its own.
WAITS_FOR_PERSON: Final = frozenset({AgentState.NEEDS_APPROVAL, AgentState.NEEDS_HUMAN})
#: The reasons why a prompt cannot be typed until a person acts.
FOR_PERSON: Final = frozenset(
    {
        HeldReason.DRAFT,
        HeldReason.DIALOG,
        HeldReason.COVERED,
        HeldReason.PAUSED,
        HeldReason.STUCK,
        HeldReason.TYPING,
    }
)
#: An agent is asked again a little after the reset, and not by all sessions at once: after a tenth of the
#: time that the limit lasted, within these bounds, of which the agent and the time choose between a half and
#: all.
LEAST_SPREAD_S: Final = 2.0
MOST_SPREAD_S: Final = 60.0
#: The pause after a limit that returned at once; it doubles each time.
PAUSE_S: Final = 60.0
MOST_PAUSE_S: Final = 3600.0


def is_limited(draft: SessionDraft, agent: AgentId) -> bool:
    """Return whether an agent is at a usage limit whose reset has not passed."""
    one = draft.participant(agent)
    is_past = one is not None and one.until is not None and one.until <= draft.clock
    return one is not None and one.state is AgentState.LIMITED and not is_past


def reset_wait(draft: SessionDraft, turn: Turn) -> Wait:
    """Return the wait for the reset of an agent's limit; without a known time only a person can end it."""
    participant, now = draft.participant(turn.agent), draft.now
    is_reported = participant is not None and participant.state is AgentState.LIMITED
    until = participant.until if participant is not None and is_reported else None
    wait = new_wait(draft, turn, WaitKind.RESET)
    # A limit that the CLI has not reported yet, only its reply, is looked at again after a pause.
    if until is None and is_reported:
        return wait
    reset = max(until or now, now)
    pause_s = min(PAUSE_S * 2 ** min(turn.tries, 10), MOST_PAUSE_S)
    least_s = 0.0 if turn.tries == 0 and until is not None else pause_s
    spread_s = min(max((reset - now) / 10, LEAST_SPREAD_S), MOST_SPREAD_S)
    mark = sha256(f"{draft.session.id} {turn.agent} {now!r}".encode()).digest()
    share = 0.5 + int.from_bytes(mark[:4]) / 2**33
    return replace(wait, until=until, at=max(reset + spread_s * share, now + least_s))


def new_wait(draft: SessionDraft, turn: Turn, kind: WaitKind, detail: str = "") -> Wait:
    """Return a new wait of a turn; if the turn already has one of this kind, keep its start."""
    is_same = turn.wait is not None and turn.wait.kind is kind
    since = turn.wait.since if turn.wait is not None and is_same else draft.now
    return Wait(kind=kind, since=since, detail=detail)


def wait_for(draft: SessionDraft, turn: Turn, wait: Wait) -> None:
    """Let a turn wait; if it was asked, its agent will be asked again."""
    is_news = turn.state is not TurnState.WAITING or turn.wait is None or turn.wait.kind is not wait.kind
    draft.withdraw(turn)
    draft.move(turn, TurnState.WAITING, wait.detail or wait.kind, wait=wait)
    is_later = turn.wait is not None and (turn.wait.until, turn.wait.at) != (wait.until, wait.at)
    if wait.kind is WaitKind.OFFLINE and is_news:
        draft.notice(NoticeCode.WAITS_OFFLINE(agent=turn.agent))
        draft.wake(f"{turn.agent} is offline")
    elif wait.kind is WaitKind.RESET and (is_news or is_later):
        draft.notice(_reset_words(draft, turn.agent, wait))
        if is_news:
            draft.wake(f"{turn.agent} has reached its usage limit")


def _reset_words(draft: SessionDraft, agent: AgentId, wait: Wait) -> NoticeWords:
    if wait.at is None:
        return NoticeCode.WAITS_UNKNOWN(agent=agent, session=draft.session.id)
    if wait.until is None:
        return NoticeCode.WAITS_LIMITED(agent=agent)
    return NoticeCode.WAITS_FOR_RESET(agent=agent, duration=duration(wait.until - draft.now))


def obstacle(draft: SessionDraft, turn: Turn) -> Wait | None:
    """Return what keeps a turn's prompt from being typed until a person acts or its agent is back."""
    # An agent that is removed loses its turns.
    participant = draft.room.participants[turn.agent]
    if not participant.online:
        is_waiting = draft.session.setup.on_limit is OnLimit.WAIT
        return new_wait(draft, turn, WaitKind.OFFLINE) if is_waiting else None
    if participant.state in WAITS_FOR_PERSON:
        return new_wait(draft, turn, WaitKind.PERSON, participant.asks or participant.state)
    message = draft.room.message(turn.message)
    reason = delivery_view(draft.room, message, turn.agent).reason if message is not None else None
    return new_wait(draft, turn, WaitKind.PERSON, reason) if reason in FOR_PERSON else None


_OBSTACLES: Final = {"login": "it asks for a login", "trust": "it asks whether to trust its folder"}


def obstacle_words(wait: Wait) -> str:
    """Return the obstacle of a turn, as words for people."""
    if wait.kind is WaitKind.OFFLINE:
        return "it is offline"
    held = why_held(wait.detail)
    return held.text if held is not None else _OBSTACLES.get(wait.detail, "it waits for a person")


def note_obstacle(draft: SessionDraft, turn: Turn) -> None:
    """Record that something is in the way of a turn's prompt, or no longer is."""
    wait = obstacle(draft, turn) if turn.state is TurnState.ASKED else None
    if turn.state is TurnState.ASKED and wait != turn.wait:
        draft.move(turn, TurnState.ASKED, wait.detail or wait.kind if wait is not None else "", wait=wait)


def can_wait(draft: SessionDraft, turn: Turn) -> bool:
    """Return whether a turn's prompt can be withdrawn or has arrived, and is not being typed."""
    if turn.state is not TurnState.ASKED:
        return True
    message = draft.room.message(turn.message)
    return message is not None and message.deliveries[turn.agent].is_untouched


def wait_for_agent(draft: SessionDraft, turn: Turn) -> None:
    """Let a turn wait for its agent, which is offline."""
    wait_for(draft, turn, new_wait(draft, turn, WaitKind.OFFLINE))


def is_lost_with_process(draft: SessionDraft, turn: Turn) -> bool:
    """Return whether a turn was in the hands of a process that was replaced, and the session waits for it."""
    is_waiting = draft.session.setup.on_limit is OnLimit.WAIT
    return is_waiting and turn.state not in (TurnState.ASKED, TurnState.WAITING)


def duration(seconds: float) -> str:
    """Return a duration as text for people: "2 h 5 min", "3 min" or "20 s"."""
    if seconds < 100:
        return f"{max(seconds, 0.0):.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def is_api(draft: SessionDraft, agent: AgentId) -> bool:
    """Return whether an agent is an API model, which must reply in an envelope."""
    participant = draft.participant(agent)
    return participant is not None and participant.kind is ParticipantKind.API
