"""The turns of a session: their requests, cost estimates and states until the reply."""

from typing import Final, NamedTuple

from csp.protocol.enums import (
    HUMAN,
    SYSTEM,
    AgentId,
    DeliveryState,
    MessageId,
    ParticipantKind,
    TurnId,
)
from csp.protocol.events import DeliveryMoved, TurnSignal, Voted
from csp.protocol.notices import NoticeCode
from csp.protocol.session_parts import (
    EndReason,
    OnHardLimit,
    OnLimit,
    PhaseKind,
    TurnState,
    Wait,
    WaitKind,
)
from csp.room.board_state import hits_as_items
from csp.room.room_draft import SessionDraft
from csp.room.runs.run_state import run_values
from csp.room.sessions.modes import NextSpeaker, row_of
from csp.room.sessions.session_end import end, votes_counted
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
from csp.room.sessions.waits import (
    WAITS_FOR_PERSON,
    duration,
    is_api,
    is_limited,
    new_wait,
    note_obstacle,
    reset_wait,
    wait_for,
)

# --- cost estimates -------------------------------------------------------------------------------
#
# An estimate is made before each call.
#
# The input is the prompt at 3 bytes per token plus 500 tokens for the rules of the room, or our own count
# plus the largest excess that the model has ever reported. The output is 1.5 times its longest reply so far,
# or 1,000 tokens for the first. A call costs at least as much as the agent's most expensive call so far.
# Without a known price, a call costs 1.5 times the agent's most expensive one so far; its first costs as much
# as the most expensive call of other agents without a price; only one first call is made at a time, because
# its cost is unknown. Calls in progress count at the maximum that they may cost, and their output is
# limited to that.


BYTES_PER_TOKEN: Final = 3
#: Tokens for the room's rules and the reply format, which accompany the prompt.
OVERHEAD: Final = 500
FIRST_OUTPUT: Final = 1000
LEAST_OUTPUT: Final = 200
MARGIN: Final = 1.5
_MILLION: Final = 1_000_000


class CostEstimate(NamedTuple):
    """The estimated cost of a call and its upper bound; its output is limited to `max_output`."""

    cost_usd: float = 0.0
    allowed_usd: float = 0.0
    max_output: int | None = None


class OverBudget(NamedTuple):
    """The reason why a call is not made."""

    why: str


def estimate_cost(
    session: Session, agent: AgentId, prompt: str, before: int = 0, own_usd: float = 0.0
) -> CostEstimate | OverBudget:
    """Estimate the cost of the call with this prompt; `before` is the number of tokens sent before it.

    It replaces its agent's current call, which may cost `own_usd`. Only collaborations can be refused a
    call: elsewhere a cost limit is for emergencies.
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
                f"the cost of a call of {agent} is unknown until the current call has been reported"
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
            "spent or in progress, it could pass the limit"
        )
    # Agents that are asked at the same time share the remaining budget.
    slots = max(session.width - len(session.turns), 1)
    allowed = max(cost, (limit - taken) / slots) if cost else 0.0
    return CostEstimate(cost, allowed, int((allowed - put_in) * _MILLION / rate) if rate else None)


def reserved(session: Session, but: AgentId | None = None) -> float:
    """Return the money spent, plus the possible cost of turns in progress and of calls that broke off."""
    seen = {turn: one.usage.cost_usd or 0.0 for turn, one in session.under_way.items()}
    allowed = {turn.id: turn.allowed_usd for turn in session.turns.values()}
    skipped = {turn.id for turn in session.turns.values() if turn.agent == but}
    turns = {*seen, *allowed, *session.unsettled} - skipped
    # A turn may have used more than it was allowed; count the excess only once.
    most = [
        max(seen.get(turn, 0.0), allowed.get(turn, 0.0), session.unsettled.get(turn, 0.0)) for turn in turns
    ]
    return session.cost_usd + sum(most)


# --- turn requests ----------------------------------------------------------------------------------


def ask(draft: SessionDraft, agent: AgentId) -> str:
    """Request a turn from `agent`, or record why the agent cannot take it now or at all.

    If the request exceeds the budget and the caller has to handle that, return the reason.
    """
    session, phase = draft.session, draft.phase
    turn = _unasked(draft, agent)
    reason = why_not(draft, agent)
    wait = None if reason else wait_before(draft, turn)
    if reason:
        _pass_over(draft, agent, reason)
    elif wait is not None:
        wait_for(draft, turn, wait)
    if reason or wait is not None or not draft.session.is_running:
        return ""
    round = _round(draft)
    items = window(session, agent, draft.rules.window, draft.room.sessions)
    text = _text(draft, agent, _template(draft, agent), round, items)
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
    """Ask again for a reply in the required form, unless that is over budget."""
    items = window(draft.session, turn.agent, draft.rules.window, draft.room.sessions)
    text = _text(draft, turn.agent, template, turn.round, items, problem)
    cost = estimate_cost(draft.session, turn.agent, text, turn.prompt_tokens)
    if isinstance(cost, OverBudget):
        fail(draft, turn, TurnState.FAILED, cost.why)
    else:
        _signal(draft, turn.agent, text, cost, turn.round, items, is_repair=True)


def ask_after_wait(draft: SessionDraft, turn: Turn, *, is_now: bool = False) -> None:
    """Ask for a turn whose wait is over, exactly once; if there is another obstacle, wait for that.

    `is_now` means that a person wants the agent to be asked although it is at its limit.
    """
    if not draft.session.is_running:
        wait_for(draft, turn, new_wait(draft, turn, WaitKind.RESUME))
        return
    wait = None if is_now else wait_before(draft, turn)
    if not draft.session.is_running:
        return
    if wait is not None:
        wait_for(draft, turn, wait)
        return
    items = window(draft.session, turn.agent, draft.rules.window, draft.room.sessions)
    text = _text(draft, turn.agent, _template(draft, turn.agent), turn.round, items)
    cost = estimate_cost(draft.session, turn.agent, text)
    if isinstance(cost, OverBudget):
        fail(draft, turn, TurnState.FAILED, cost.why)
        return
    _signal(draft, turn.agent, text, cost, turn.round, items, is_again=True)
    waited_s = draft.now - turn.wait.since if turn.wait is not None else 0.0
    draft.notice(NoticeCode.WAIT_OVER(agent=turn.agent, duration=duration(waited_s)))


def _template(draft: SessionDraft, agent: AgentId) -> str:
    """Return the name of the template of a turn's prompt."""
    is_led = draft.phase.speaker is NextSpeaker.LEAD and agent != draft.session.setup.lead
    return "assist" if is_led else draft.phase.prompt


def can_pay_again(draft: SessionDraft, turn: Turn) -> bool:
    """Return whether the cost limit permits another request for the same turn."""
    cost = estimate_cost(draft.session, turn.agent, "", 2 * turn.prompt_tokens, turn.foreseen_usd)
    return not isinstance(cost, OverBudget)


def why_not(draft: SessionDraft, agent: AgentId) -> str:
    """Return why an agent gets no turn at all, or an empty string."""
    participant = draft.participant(agent)
    if participant is None:
        return "it has left the room"
    is_waiting = draft.session.setup.on_limit is OnLimit.WAIT
    if participant.kind is ParticipantKind.API and not participant.online and not is_waiting:
        # A model that is not running cannot take a turn, but an offline CLI may just be restarting.
        return "it is offline"
    if is_limited(draft, agent) and draft.session.setup.on_limit is OnLimit.SKIP:
        return "it has reached its limit"
    if draft.session.is_benched(agent):
        return "benched after two timeouts until it posts something"
    is_asking = draft.session.setup.on_hard_limit is OnHardLimit.ASK
    return "no turns left" if _has_no_turns(draft) and not is_asking else ""


def _has_no_turns(draft: SessionDraft) -> bool:
    most = draft.session.setup.limits.turns
    is_spent = most is not None and draft.session.asked >= most
    return is_spent and draft.phase.kind is not PhaseKind.SOLO


def _unasked(draft: SessionDraft, agent: AgentId) -> Turn:
    """Return a turn that nobody has been asked for yet; no message exists for it."""
    return Turn(
        id=TurnId(f"t-{draft.room_draft.next_seq}"),
        agent=agent,
        message=MessageId(""),
        round=_round(draft),
        state=TurnState.ASKED,
        asked_at=draft.now,
        since=draft.now,
    )


def _pass_over(draft: SessionDraft, agent: AgentId, reason: str) -> None:
    """Record a turn that ended before it was requested."""
    draft.move(_unasked(draft, agent), TurnState.FAILED, reason)
    draft.notice(NoticeCode.PASSED_OVER(agent=agent, reason=reason))


# --- usage limits ---------------------------------------------------------------------------------


def wait_before(draft: SessionDraft, turn: Turn) -> Wait | None:
    """Return what a turn has to wait for before its agent can be asked; the session may end instead."""
    on_limit = draft.session.setup.on_limit
    if is_limited(draft, turn.agent) and on_limit is not OnLimit.SKIP:
        if on_limit is OnLimit.STOP:
            end_at_usage_limit(draft, turn.agent)
            return None
        return reset_wait(draft, turn)
    participant = draft.participant(turn.agent)
    if on_limit is OnLimit.WAIT and is_api(draft, turn.agent) and participant and not participant.online:
        return new_wait(draft, turn, WaitKind.OFFLINE)
    # A turn that waits has been counted already.
    if turn.wait is None and _has_no_turns(draft):
        return new_wait(draft, turn, WaitKind.RESUME)
    return None


def at_usage_limit(draft: SessionDraft, turn: Turn) -> None:
    """Handle that the agent of an open turn has reached a usage limit."""
    match draft.session.setup.on_limit:
        case OnLimit.STOP:
            end_at_usage_limit(draft, turn.agent)
        case OnLimit.SKIP:
            fail(draft, turn, TurnState.FAILED, "it has reached its limit")
        case _:
            wait_for(draft, turn, reset_wait(draft, turn))


def end_at_usage_limit(draft: SessionDraft, agent: AgentId) -> None:
    """End a session because an agent has reached a usage limit."""
    draft.notice(NoticeCode.AGENT_LIMITED(agent=agent))
    end(draft, EndReason.AGENT_LIMITED)


# --- the parts of a request -------------------------------------------------------------------------


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
    """Return the complete prompt for a turn with these items in its window."""
    session, size = draft.session, draft.rules.window
    kind = draft.room.participants[agent].kind
    values = prompt_values(session, agent, kind, round, size, draft.room.sessions, items)
    # Whiteboard hits in addition to the window; their space is limited.
    found = draft.hits.get(session.id) or draft.hits.get("") or ()
    hits = hits_as_items(found, known=[item.id for item in items])
    values["board"] = ""
    if hits:
        values["board"] = render(draft.rules.prompts, "board", {"hits": visible_items(hits, size)})
    # In a second ballot, they would reveal the authors of the proposals.
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
    is_again: bool = False,
) -> None:
    """Send an agent the request for its turn; messages held for the turn become part of its window."""
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
            is_again=is_again,
            foreseen_usd=cost.cost_usd,
            allowed_usd=cost.allowed_usd,
            max_output=cost.max_output,
            current_agent=agent,
            waiting_for=tuple(dict.fromkeys((*session.waiting_for, agent))),
        )
    )
    # The end of a sealed phase may have just released some of them.
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
            room_draft.move_delivery(message, agent, DeliveryState.WITHDRAWN, f"it was delivered with {turn}")
    note_obstacle(draft, draft.session.turns[agent])


# --- states of a turn ----------------------------------------------------------------------------


def delivered(draft: SessionDraft, turn: Turn) -> None:
    """Start the clock of a turn whose prompt has arrived."""
    if turn.state is TurnState.ASKED:
        draft.move(turn, TurnState.DELIVERED)


def working(draft: SessionDraft, turn: Turn, note: str = "") -> None:
    """Restart a turn's clock; in a sealed phase, the note is not recorded."""
    draft.move(turn, TurnState.WORKING, "" if draft.session.seal else note)


def keep_open(draft: SessionDraft, turn: Turn, note: str = "") -> None:
    """Restart a turn's clock, up to a turn's maximum time."""
    if turn.state is TurnState.WAITING:
        # Text during a wait does not end it: the agent was interrupted, or explains why it cannot continue.
        return
    began = draft.now if turn.delivered_at is None else turn.delivered_at
    is_spent = draft.now - began >= draft.rules.longest_s
    participant = draft.participant(turn.agent)
    waits_for_person = participant is not None and participant.state in WAITS_FOR_PERSON
    if not is_spent and (turn.state is not TurnState.BLOCKED or not waits_for_person):
        working(draft, turn, note)


def cast(draft: SessionDraft, turn: Turn, vote: BallotVote, reply: MessageId | None = None) -> None:
    """Record a vote; the same vote is not counted twice, whether by tool or in text."""
    session = draft.session
    if session.votes.get(turn.agent) == vote:
        return
    text = f"VOTE: [{vote.label}]" + (f" REASON: {vote.reason}" if vote.reason else "")
    header = draft.header(turn.agent, text)
    draft.room_draft.emit(
        Voted(*header, turn=turn.id, label=vote.label, reason=vote.reason, sealed=session.seal, message=reply)
    )


def blocked(draft: SessionDraft, turn: Turn, detail: str) -> None:
    """Stop the clock of a turn that is waiting for a person."""
    if turn.state in (TurnState.DELIVERED, TurnState.WORKING):
        participant = draft.participant(turn.agent)
        asks = participant.asks if participant is not None else ""
        draft.move(turn, TurnState.BLOCKED, wait=new_wait(draft, turn, WaitKind.PERSON, asks))
        # The dialog's content is only for the agent and the people in the room.
        words = NoticeCode.NEEDS_PERSON(agent=turn.agent)
        if detail:
            words = NoticeCode.NEEDS_PERSON_FOR(agent=turn.agent, detail=detail)
        draft.notice(words, HUMAN)
        draft.wake(f"{turn.agent} is blocked: it waits for a person")


def fail(draft: SessionDraft, turn: Turn, state: TurnState, reason: str) -> None:
    """End a turn that was not answered."""
    draft.withdraw(turn)
    draft.move(turn, state, reason)
    words = NoticeCode.TURN_FAILED(agent=turn.agent, reason=reason)
    if state is TurnState.TIMED_OUT:
        words = NoticeCode.TURN_TIMED_OUT(agent=turn.agent, reason=reason)
    draft.notice(words)
    if draft.session.strikes.get(turn.agent) == STRIKES:
        draft.notice(NoticeCode.BENCHED(agent=turn.agent))


def cancel(draft: SessionDraft, turn: Turn, reason: str) -> bool:
    """Cancel a turn; return whether its prompt was withdrawn before the agent started."""
    is_back = draft.withdraw(turn)
    draft.move(turn, TurnState.CANCELLED, reason)
    return is_back
