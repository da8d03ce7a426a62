"""The turns of a session: who is asked what, and the states of a turn until its reply."""

from typing import Final

from csp.protocol.enums import (
    HUMAN,
    SYSTEM,
    AgentId,
    AgentState,
    DeliveryState,
    MessageId,
    ParticipantKind,
    TurnId,
)
from csp.protocol.events import DeliveryMoved, TurnSignal, Voted
from csp.protocol.notices import NoticeCode
from csp.protocol.session_parts import PhaseKind, TurnState
from csp.room.board.board_state import hits_as_items
from csp.room.room_state import Participant
from csp.room.runs.run_texts import run_values
from csp.room.sessions.cost_estimate import CostEstimate, OverBudget, estimate_cost
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_end import votes_counted
from csp.room.sessions.session_state import STRIKES, BallotVote, Turn, WindowItem
from csp.room.sessions.turn_prompt import max_rounds, prompt, prompt_values, render, visible_items, window

#: What an agent is in when it can do nothing by itself.
WAITS_FOR_PERSON: Final = frozenset({AgentState.NEEDS_APPROVAL, AgentState.NEEDS_HUMAN})


def ask(draft: SessionDraft, agent: AgentId) -> str:
    """Give the turn to `agent`; where it cannot take it, note why.

    Return why the ask is over the budget, where the caller has to act on that.
    """
    participant, session, phase = draft.participant(agent), draft.session, draft.phase
    reason = _why_not(draft, agent, participant)
    if reason:
        _pass_over(draft, agent, reason)
        return ""
    round = _round(draft)
    is_led = phase.speaker is NextSpeaker.LEAD and agent != session.setup.lead
    items = window(session, agent, draft.rules.window, draft.sessions)
    text = _text(draft, agent, "assist" if is_led else phase.prompt, round, items)
    cost = estimate_cost(session, agent, text)
    if isinstance(cost, OverBudget):
        if phase.kind is PhaseKind.RELAY:
            return cost.why
        _pass_over(draft, agent, cost.why)
        return ""
    _signal(draft, agent, text, cost, round, items)
    draft.notice(NoticeCode.YOUR_TURN(agent=agent))
    return ""


def ask_again(draft: SessionDraft, turn: Turn, template: str, problem: str = "") -> None:
    """Ask once more for an answer in the form that was asked for, unless that is over the budget."""
    items = window(draft.session, turn.agent, draft.rules.window, draft.sessions)
    text = _text(draft, turn.agent, template, turn.round, items, problem)
    cost = estimate_cost(draft.session, turn.agent, text, turn.prompt_tokens)
    if isinstance(cost, OverBudget):
        fail(draft, turn, TurnState.FAILED, cost.why)
    else:
        _signal(draft, turn.agent, text, cost, turn.round, items, is_repair=True)


def can_pay_again(draft: SessionDraft, turn: Turn) -> bool:
    """Tell whether the limit of money lets a turn be asked for once more."""
    cost = estimate_cost(draft.session, turn.agent, "", 2 * turn.prompt_tokens, turn.foreseen_usd)
    return not isinstance(cost, OverBudget)


def _why_not(draft: SessionDraft, agent: AgentId, participant: Participant | None) -> str:
    if participant is None:
        return "it has left the room"
    if participant.kind is ParticipantKind.API and not participant.online:
        # A model that nobody runs takes up nothing; a CLI may just be starting again.
        return "it is offline"
    is_past = participant.until is not None and participant.until <= draft.clock
    if participant.state is AgentState.LIMITED and not is_past:
        return "it has reached its limit"
    if draft.session.is_benched(agent):
        return "benched after two timeouts until it posts something"
    most = draft.session.setup.limits.turns
    is_spent = most is not None and draft.session.asked >= most
    return "no turns are left" if is_spent and draft.phase.kind is not PhaseKind.SOLO else ""


def _pass_over(draft: SessionDraft, agent: AgentId, reason: str) -> None:
    """Note a turn that is over before it was asked for; no message stands for it."""
    seq = draft.room_draft.next_seq
    never = Turn(
        id=TurnId(f"t-{seq}"),
        agent=agent,
        message=MessageId(""),
        round=_round(draft),
        state=TurnState.ASKED,
        asked_at=draft.now,
        since=draft.now,
    )
    draft.move(never, TurnState.FAILED, reason)
    draft.notice(NoticeCode.PASSED_OVER(agent=agent, reason=reason))


def _round(draft: SessionDraft) -> int:
    session = draft.session
    is_counted = row_of(session.setup).is_round_a_turn and draft.phase.speaker is not NextSpeaker.EACH
    return session.steps + 1 if is_counted else session.stage.round


def _text(
    draft: SessionDraft,
    agent: AgentId,
    template: str,
    round: int,
    items: list[WindowItem],
    problem: str = "",
) -> str:
    """Return the whole prompt of a turn with these items in its window."""
    session, size = draft.session, draft.rules.window
    kind = draft.room.participants[agent].kind
    values = prompt_values(session, agent, kind, round, size, draft.sessions, items)
    # What the whiteboard has beside the window; it takes no more space however much there is.
    found = draft.hits.get(session.id) or draft.hits.get("") or ()
    hits = hits_as_items(found, known=[item.id for item in items])
    values["board"] = ""
    if hits:
        values["board"] = render(draft.rules.prompts, "board", {"hits": visible_items(hits, size)})
    # In a second ballot, whose proposal is whose would show.
    is_counted = bool(session.counted) and not session.stage.candidates
    values["votes"] = votes_counted(session).text if is_counted else ""
    if draft.run is not None:
        values |= run_values(draft.run, agent)
    values["problem"] = problem
    return prompt(draft.rules.prompts, template, values)


def _signal(
    draft: SessionDraft,
    agent: AgentId,
    text: str,
    cost: CostEstimate,
    round: int,
    items: list[WindowItem],
    *,
    is_repair: bool = False,
) -> None:
    """Ask an agent for its turn; what was held for the turn stands in its window."""
    session, room_draft = draft.session, draft.room_draft
    turn = TurnId(f"t-{room_draft.next_seq}")
    room_draft.emit(
        TurnSignal(
            *room_draft.message_header(SYSTEM, agent, text, thread=session.thread),
            recipients=(agent,),
            turn=turn,
            call_id=turn,
            session_id=session.id,
            round=round,
            max_rounds=max_rounds(session),
            is_repair=is_repair,
            foreseen_usd=cost.cost_usd,
            allowed_usd=cost.allowed_usd,
            max_output=cost.max_output,
            current_agent=agent,
            waiting_for=tuple(dict.fromkeys((*session.waiting_for, agent))),
        )
    )
    # The end of a sealed phase, a moment ago, may have released some of it.
    released = {
        event.message
        for event in room_draft.events
        if isinstance(event, DeliveryMoved) and (event.agent, event.state) == (agent, DeliveryState.QUEUED)
    }
    for message in filter(None, [draft.room.message(item.id) for item in items]):
        delivery = message.deliveries.get(agent)
        if delivery is not None and (
            delivery.is_held_for_turn or (delivery.state is DeliveryState.QUEUED and message.id in released)
        ):
            room_draft.move_delivery(message, agent, DeliveryState.WITHDRAWN, f"it came with {turn}")


# --- on the way to a reply -----------------------------------------------------------------------


def delivered(draft: SessionDraft, turn: Turn) -> None:
    """Start the clock of a turn whose prompt has arrived."""
    if turn.state is TurnState.ASKED:
        draft.move(turn, TurnState.DELIVERED)


def working(draft: SessionDraft, turn: Turn, note: str = "") -> None:
    """Start the clock of a turn again; in a sealed phase the note is nobody else's business."""
    draft.move(turn, TurnState.WORKING, "" if draft.session.seal else note)


def keep_open(draft: SessionDraft, turn: Turn, note: str = "") -> None:
    """Start the clock of a turn again, for as long as a turn may be kept open."""
    began = draft.now if turn.delivered_at is None else turn.delivered_at
    is_spent = draft.now - began >= draft.rules.longest_s
    participant = draft.participant(turn.agent)
    waits_for_person = participant is not None and participant.state in WAITS_FOR_PERSON
    if not is_spent and (turn.state is not TurnState.BLOCKED or not waits_for_person):
        working(draft, turn, note)


def cast(draft: SessionDraft, turn: Turn, vote: BallotVote, reply: MessageId | None = None) -> None:
    """Note the vote of a turn's agent; the same one again, by tool or in words, is no second vote."""
    session = draft.session
    if session.votes.get(turn.agent) == vote:
        return
    text = f"VOTE: [{vote.label}]" + (f" REASON: {vote.reason}" if vote.reason else "")
    header = draft.header(turn.agent, text)
    draft.room_draft.emit(
        Voted(*header, turn=turn.id, label=vote.label, reason=vote.reason, sealed=session.seal, message=reply)
    )


def blocked(draft: SessionDraft, turn: Turn, detail: str) -> None:
    """Stop the clock of a turn: it waits for a person."""
    if turn.state in (TurnState.DELIVERED, TurnState.WORKING):
        draft.move(turn, TurnState.BLOCKED)
        # What it wants to do is between the agent and the people of the room.
        words = NoticeCode.NEEDS_PERSON(agent=turn.agent)
        if detail:
            words = NoticeCode.NEEDS_PERSON_FOR(agent=turn.agent, detail=detail)
        draft.notice(words, HUMAN)
        draft.wake(f"{turn.agent} is blocked: it waits for a person")


def fail(draft: SessionDraft, turn: Turn, state: TurnState, reason: str) -> None:
    """End a turn that nobody answers."""
    draft.withdraw(turn)
    draft.move(turn, state, reason)
    words = NoticeCode.TURN_FAILED(agent=turn.agent, reason=reason)
    if state is TurnState.TIMED_OUT:
        words = NoticeCode.TURN_TIMED_OUT(agent=turn.agent, reason=reason)
    draft.notice(words)
    if draft.session.strikes.get(turn.agent) == STRIKES:
        draft.notice(NoticeCode.BENCHED(agent=turn.agent))


def cancel(draft: SessionDraft, turn: Turn, reason: str) -> bool:
    """End a turn because somebody said so; tell whether nobody has begun with it."""
    is_back = draft.withdraw(turn)
    draft.move(turn, TurnState.CANCELLED, reason)
    return is_back


def is_api(draft: SessionDraft, agent: AgentId) -> bool:
    """Tell whether an agent has to answer in an envelope."""
    participant = draft.participant(agent)
    return participant is not None and participant.kind is ParticipantKind.API
