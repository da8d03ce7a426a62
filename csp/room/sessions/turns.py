"""The turns of a session: who is asked, with what, how a turn goes on until its reply."""

from typing import Any, Final

from csp.protocol.enums import (
    ALL,
    HUMAN,
    SYSTEM,
    AgentId,
    AgentState,
    DeliveryState,
    HeldReason,
    MessageId,
    ParticipantKind,
    TurnId,
)
from csp.protocol.events import MessageEvent, TurnSignal, Voted
from csp.protocol.session_parts import PhaseKind, TurnState
from csp.room.board.board_state import hits_as_items
from csp.room.messages.delivery import may_move
from csp.room.room_state import Participant
from csp.room.runs.run_prompts import run_values
from csp.room.sessions.cost_estimate import CostEstimate, OverBudget, estimate_cost
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_state import STRIKES, BallotVote, Turn
from csp.room.sessions.session_summary import tally_text
from csp.room.sessions.turn_prompt import max_rounds, prompt, prompt_values, render, visible_items, window

#: What an agent is in when it can do nothing by itself.
WAITS_FOR_PERSON: Final = frozenset({AgentState.NEEDS_APPROVAL, AgentState.NEEDS_HUMAN})


def ask(desk: SessionDraft, agent: AgentId) -> str:
    """Give the turn to `agent`; where it cannot take it, note why.

    Return why it is too dear to be asked, where something else has to become of that.
    """
    participant = desk.participant(agent)
    reason = _why_not(desk, agent, participant)
    if reason:
        _pass_over(desk, agent, reason)
        return ""
    text = _text(desk, agent, _template(desk, agent), _round(desk))
    cost = estimate_cost(desk.session, agent, text)
    if isinstance(cost, OverBudget):
        if desk.phase.kind is PhaseKind.RELAY:
            return cost.why
        _pass_over(desk, agent, cost.why)
        return ""
    _signal(desk, agent, text, cost, _round(desk))
    desk.notice(f"@{agent} - Your turn.")
    return ""


def ask_again(desk: SessionDraft, turn: Turn, template: str, problem: str = "") -> None:
    """Ask once more for an answer in the form that was asked for, unless that is too dear."""
    text = _text(desk, turn.agent, template, turn.round, problem)
    cost = estimate_cost(desk.session, turn.agent, text, turn.prompt_tokens)
    if isinstance(cost, OverBudget):
        fail(desk, turn, TurnState.FAILED, cost.why)
    else:
        _signal(desk, turn.agent, text, cost, turn.round, is_repair=True)


def can_pay_again(desk: SessionDraft, turn: Turn) -> bool:
    """Tell whether the limit of money lets a turn be asked for once more."""
    cost = estimate_cost(desk.session, turn.agent, "", 2 * turn.prompt_tokens, turn.foreseen_usd)
    return not isinstance(cost, OverBudget)


def _why_not(desk: SessionDraft, agent: AgentId, participant: Participant | None) -> str:
    if participant is None:
        return "it has left the room"
    if participant.kind is ParticipantKind.API and not participant.online:
        # A model that nobody runs takes up nothing; a CLI may just be starting again.
        return "it is offline"
    if participant.state is AgentState.LIMITED and not _is_past(participant.until, desk.batch.clock):
        return "it has reached its limit"
    if desk.session.is_benched(agent):
        return "it is benched until it speaks"
    most = desk.session.setup.limits.turns
    is_spent = most is not None and desk.session.asked >= most
    return "no turns are left" if is_spent and desk.phase.kind is not PhaseKind.SOLO else ""


def _is_past(until: float | None, now: float) -> bool:
    return until is not None and until <= now


def _pass_over(desk: SessionDraft, agent: AgentId, reason: str) -> None:
    seq = desk.batch.next_seq
    never = Turn(
        id=TurnId(f"t-{seq}"),
        agent=agent,
        message=MessageId(f"m-{seq}"),
        round=_round(desk),
        state=TurnState.ASKED,
        asked_at=desk.batch.now,
        since=desk.batch.now,
    )
    desk.move(never, TurnState.FAILED, reason)
    desk.notice(f"{agent} is passed over: {reason}.")


def _round(desk: SessionDraft) -> int:
    session = desk.session
    is_counted = row_of(session.setup).is_round_a_turn and desk.phase.speaker is not NextSpeaker.EACH
    return session.steps + 1 if is_counted else session.stage.round


def _template(desk: SessionDraft, agent: AgentId) -> str:
    is_led = desk.phase.speaker is NextSpeaker.LEAD and agent != desk.session.setup.lead
    return "assist" if is_led else desk.phase.prompt


def _text(desk: SessionDraft, agent: AgentId, template: str, round: int, problem: str = "") -> str:
    session = desk.session
    participant = desk.room.participants[agent]
    values = prompt_values(session, agent, participant.kind, round, desk.rules.window, desk.batch.sessions)
    values["board"] = _from_board(desk, agent)
    # In a second ballot, whose proposal is whose would show.
    is_counted = bool(session.counted) and not session.stage.candidates
    values["votes"] = tally_text(session) if is_counted else ""
    if desk.run is not None:
        values |= run_values(desk.run, agent)
    values["problem"] = problem
    return prompt(desk.rules.prompts, template, values)


def _from_board(desk: SessionDraft, agent: AgentId) -> str:
    """Return what the whiteboard has beside the window; it takes no more room however much there is."""
    session, size = desk.session, desk.rules.window
    found = desk.batch.hits.get(session.id) or desk.batch.hits.get("") or ()
    known = [item.id for item in window(session, agent, size, desk.batch.sessions)] if found else []
    items = hits_as_items(found, known=known)
    return render(desk.rules.prompts, "board", {"hits": visible_items(items, size)}) if items else ""


def _signal(
    desk: SessionDraft, agent: AgentId, text: str, cost: CostEstimate, round: int, *, is_repair: bool = False
) -> None:
    session = desk.session
    turn = TurnId(f"t-{desk.batch.next_seq}")
    fields: dict[str, Any] = {
        "recipients": (agent,),
        "turn": turn,
        "call_id": turn,
        "session_id": session.id,
        "round": round,
        "max_rounds": max_rounds(session),
        "is_repair": is_repair,
        "foreseen_usd": cost.cost_usd,
        "allowed_usd": cost.allowed_usd,
        "max_output": cost.max_output,
        "current_agent": agent,
        "waiting_for": tuple(dict.fromkeys((*session.waiting_for, agent))),
    }
    read = [item.id for item in window(session, agent, desk.rules.window, desk.batch.sessions)]
    desk.batch.add(TurnSignal, SYSTEM, agent, text, fields, thread=session.thread)
    _take_in(desk, agent, read, turn)


def _take_in(desk: SessionDraft, agent: AgentId, read: list[MessageId], turn: TurnId) -> None:
    """End the deliveries of messages that were held for the turn: they stand in its window."""
    reason = f"it came with {turn}"
    known = [message for message in map(desk.room.message, read) if message is not None]
    for message in known:
        delivery = message.deliveries.get(agent)
        is_held = delivery and (delivery.state, delivery.reason) == (DeliveryState.HELD, HeldReason.TURN)
        if is_held and _may_withdraw(desk, message.id, agent):
            desk.batch.deliver(message, agent, DeliveryState.WITHDRAWN, reason)
    if len(known) < len(read):
        _take_in_new(desk, agent, read, reason)


def _take_in_new(desk: SessionDraft, agent: AgentId, read: list[MessageId], reason: str) -> None:
    """Do the same for messages of this batch, which the room does not know yet."""
    new = [event for event in desk.batch.events if isinstance(event, MessageEvent) and agent in event.waits]
    for event in new:
        if event.id in read and not event.held and _may_withdraw(desk, event.id, agent):
            desk.batch.step(event.id, event.sender, event.thread, agent, DeliveryState.WITHDRAWN, reason)


def _may_withdraw(desk: SessionDraft, message: MessageId, agent: AgentId) -> bool:
    """Tell whether a delivery that was held has not ended in this batch; it may have been let go."""
    now = desk.batch.stepped.get((message, agent), DeliveryState.HELD)
    return may_move(now, DeliveryState.WITHDRAWN)


# --- on the way to a reply -----------------------------------------------------------------------


def delivered(desk: SessionDraft, turn: Turn) -> None:
    """Start the clock of a turn whose prompt has arrived."""
    if turn.state is TurnState.ASKED:
        desk.move(turn, TurnState.DELIVERED)


def working(desk: SessionDraft, turn: Turn, note: str = "") -> None:
    """Start the clock of a turn again; in a sealed phase the note is nobody else's business."""
    desk.move(turn, TurnState.WORKING, "" if desk.session.seal else note)


def keep_open(desk: SessionDraft, turn: Turn, note: str = "") -> None:
    """Start the clock of a turn again, for as long as a turn may be kept open."""
    began = desk.batch.now if turn.delivered_at is None else turn.delivered_at
    is_spent = desk.batch.now - began >= desk.rules.longest_s
    if not is_spent and (turn.state is not TurnState.BLOCKED or not _waits_for_person(desk, turn.agent)):
        working(desk, turn, note)


def _waits_for_person(desk: SessionDraft, agent: AgentId) -> bool:
    """Tell whether an agent can do nothing now, whatever is said of its work."""
    participant = desk.participant(agent)
    return participant is not None and participant.state in WAITS_FOR_PERSON


def cast(desk: SessionDraft, turn: Turn, vote: BallotVote) -> None:
    """Note the vote of a turn's agent; the same one again, by tool or in words, is no second vote."""
    session = desk.session
    if session.votes.get(turn.agent) == vote:
        return
    text = f"VOTE: [{vote.label}]" + (f" REASON: {vote.reason}" if vote.reason else "")
    fields: dict[str, Any] = {"label": vote.label, "reason": vote.reason, "turn": turn.id}
    fields |= {"session_id": session.id, "sealed": session.seal}
    desk.batch.add(Voted, turn.agent, ALL, text, fields, thread=session.thread)


def blocked(desk: SessionDraft, turn: Turn, detail: str) -> None:
    """Stop the clock of a turn: it waits for a person."""
    if turn.state in (TurnState.DELIVERED, TurnState.WORKING):
        desk.move(turn, TurnState.BLOCKED)
        # What it wants to do is between the agent and the people of the room.
        desk.notice(f"{turn.agent} waits for a person" + (f": {detail}" if detail else "."), HUMAN)
        desk.wake(f"{turn.agent} is blocked: it waits for a person")


def fail(desk: SessionDraft, turn: Turn, state: TurnState, reason: str) -> None:
    """End a turn that nobody answers."""
    desk.withdraw(turn)
    desk.move(turn, state, reason)
    desk.notice(f"{turn.agent}: {_said(state)}, {reason}. The turn passes on.")
    if desk.session.strikes.get(turn.agent) == STRIKES:
        desk.notice(f"{turn.agent} is benched: it is not asked again until it speaks.")


def cancel(desk: SessionDraft, turn: Turn, reason: str) -> bool:
    """End a turn because somebody said so; tell whether nobody has begun with it."""
    is_back = desk.withdraw(turn)
    desk.move(turn, TurnState.CANCELLED, reason)
    return is_back


def _said(state: TurnState) -> str:
    return "timed out" if state is TurnState.TIMED_OUT else "its turn failed"


def is_api(desk: SessionDraft, agent: AgentId) -> bool:
    """Tell whether an agent has to answer in an envelope."""
    participant = desk.participant(agent)
    return participant is not None and participant.kind is ParticipantKind.API
