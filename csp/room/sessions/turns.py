"""The turns of a session: who is asked what, what that may cost, and the states of a turn until its reply."""

from typing import Final, NamedTuple

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
from csp.room.board_state import hits_as_items
from csp.room.room_draft import SessionDraft
from csp.room.room_state import Participant
from csp.room.runs.run_state import run_values
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_end import votes_counted
from csp.room.sessions.session_state import (
    STRIKES,
    BallotVote,
    Session,
    Turn,
    UsageGauge,
    WindowItem,
    tokens_in,
)
from csp.room.sessions.turn_prompt import prompt, prompt_values, render, visible_items, window

# --- what a call will cost ------------------------------------------------------------------------
#
# As far as that can be known before it is made.
#
# The rule: its input is the prompt at 3 bytes a token with 500 tokens for the rules of the room, or as much
# more than our own count as the model has ever told; its output is half as much again as its longest reply so
# far, for the first one 1,000 tokens; it costs no less than its dearest call so far. Without a known price, a
# call costs half as much again as the agent's dearest so far, its first one as much as the dearest of others
# without a price; the very first is made alone, since nobody can tell. Calls under way count with all that
# they may take, and the output of each is kept to that.


BYTES_PER_TOKEN: Final = 3
#: What the room's rules and the form of a reply take beside the prompt.
OVERHEAD: Final = 500
FIRST_OUTPUT: Final = 1000
LEAST_OUTPUT: Final = 200
MARGIN: Final = 1.5
_MILLION: Final = 1_000_000


class CostEstimate(NamedTuple):
    """What a call may cost: as far as one can tell, at the very most; its output is kept to `max_output`."""

    cost_usd: float = 0.0
    allowed_usd: float = 0.0
    max_output: int | None = None


class OverBudget(NamedTuple):
    """Why a call is not made."""

    why: str


def estimate_cost(
    session: Session, agent: AgentId, prompt: str, before: int = 0, own_usd: float = 0.0
) -> CostEstimate | OverBudget:
    """Return what the call with this prompt may cost; `before` are tokens that come with it.

    It takes the place of a call that its agent has under way, which may cost `own_usd`.
    Only collaborations are kept from a call: elsewhere a limit of money is there for emergencies.
    """
    limit = session.setup.limits.cost
    if limit is None or session.setup.collaboration is None:
        return CostEstimate()
    price, gauge = session.setup.prices.get(agent), session.gauges.get(agent, UsageGauge())
    if price is None:
        told = [one.cost_usd for who, one in session.gauges.items() if who not in session.setup.prices]
        dark = [turn for turn in session.turns.values() if turn.agent not in (agent, *session.setup.prices)]
        if dark and not told:
            return OverBudget(
                f"nobody knows what a call of {agent} may cost until the one under way has told"
            )
        put_in, rate = 0.0, 0.0
        cost = gauge.cost_usd * MARGIN if agent in session.gauges else max(told, default=0.0)
    else:
        by_bytes = len(prompt.encode(errors="replace")) // BYTES_PER_TOKEN + OVERHEAD
        put_in = (max(by_bytes, tokens_in(prompt) + gauge.over) + before) * price.input / _MILLION
        output = max(gauge.output * MARGIN, LEAST_OUTPUT) if gauge.output else FIRST_OUTPUT
        rate = price.output
        cost = max(put_in + output * rate / _MILLION, gauge.cost_usd)
    taken = reserved(session, but=agent) + own_usd
    if cost > limit - taken:
        return OverBudget(
            f"the call of {agent} may cost {cost:.4f} USD; with {taken:.4f} of {limit:g} USD "
            "spent or under way it could pass the limit"
        )
    # Those who are asked at once share what is left.
    slots = max(session.width - len(session.turns), 1)
    allowed = max(cost, (limit - taken) / slots) if cost else 0.0
    return CostEstimate(cost, allowed, int((allowed - put_in) * _MILLION / rate) if rate else None)


def reserved(session: Session, but: AgentId | None = None) -> float:
    """Return what is spent, with all that is under way, with what calls may have cost that broke off."""
    seen = {turn: one.usage.cost_usd or 0.0 for turn, one in session.under_way.items()}
    allowed = {turn.id: turn.allowed_usd for turn in session.turns.values()}
    skipped = {turn.id for turn in session.turns.values() if turn.agent == but}
    turns = {*seen, *allowed, *session.unsettled} - skipped
    # A turn may have used more than it was allowed; it counts once.
    most = [
        max(seen.get(turn, 0.0), allowed.get(turn, 0.0), session.unsettled.get(turn, 0.0)) for turn in turns
    ]
    return session.cost_usd + sum(most)


# --- who is asked -----------------------------------------------------------------------------------


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
    items = window(session, agent, draft.rules.window, draft.room.sessions)
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
    items = window(draft.session, turn.agent, draft.rules.window, draft.room.sessions)
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
    values = prompt_values(session, agent, kind, round, size, draft.room.sessions, items)
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
            max_rounds=session.setup.rounds,
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
    room = draft.room
    for message in filter(None, [room.message(item.id) for item in items]):
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
