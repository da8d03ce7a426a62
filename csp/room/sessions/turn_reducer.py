"""Apply the events of turns to their session."""

from typing import Final

from msgspec.structs import replace

from csp.protocol import events
from csp.protocol.enums import AgentId, MessageId, TurnId
from csp.protocol.session_parts import PhaseKind, TurnState, WaitKind
from csp.room.sessions import session_state as state
from csp.room.sessions.session_state import Session, Turn, cut, tokens_in

#: How much of a long session is remembered: speakers, finished turns and the reasons why turns failed.
KEPT_DONE: Final = 200
KEPT_COURSE: Final = 64
KEPT_REASON: Final = 300


def asked(session: Session, event: events.TurnSignal) -> Session:
    before = session.turns.get(event.target)
    turn = Turn(
        id=TurnId(event.turn or ""),
        agent=event.target,
        message=event.id,
        round=event.round or session.stage.round,
        state=TurnState.ASKED,
        asked_at=event.ts,
        since=event.ts,
        prompt_tokens=tokens_in(event.text),
        timeout_s=session.setup.collaboration.step_s if session.setup.collaboration else None,
        # An integer 0 would be restored from a snapshot as a float, so two dumps of one room would differ.
        foreseen_usd=event.foreseen_usd or 0.0,
        allowed_usd=event.allowed_usd or 0.0,
        max_output=event.max_output,
        is_repair=event.is_repair,
    )
    # A repeated request for the same turn does not count again.
    is_repeated = event.is_repair or event.is_again
    if before is not None and is_repeated:
        tries = before.tries + before.waits_for(WaitKind.RESET)
        turn = replace(turn, handoff=before.handoff, tries=tries)
    count = 0 if is_repeated else 1
    is_relay = session.stage.kind is PhaseKind.RELAY
    return replace(
        session,
        turns=session.turns | {event.target: turn},
        asked=session.asked + count,
        asked_here=session.asked_here + count,
        steps=session.steps + count * is_relay,
        cursor=event.target if is_relay else session.cursor,
        has_final=session.has_final and bool(session.turns),
    )


def moved(session: Session, event: events.TurnMoved) -> Session:
    turn = session.turns.get(event.agent)
    if event.state not in state.OPEN:
        return _closed(session, event, is_new=turn is None)
    if turn is None:
        return _waits_unasked(session, event) if event.state is TurnState.WAITING else session
    if event.handoff is not None:
        turn = replace(turn, handoff=event.handoff)
    elif event.warned:
        turn = replace(turn, warned=True)
    elif event.state is TurnState.WAITING:
        turn = replace(turn, state=event.state, since=event.ts, warned=False, wait=event.wait)
    elif event.state is TurnState.ASKED:
        turn = replace(turn, wait=event.wait)
        if event.wait is None:
            # Nothing is in its way any more, so it has the whole time again.
            turn = replace(turn, asked_at=event.ts, since=event.ts, warned=False)
    else:
        delivered_at = event.ts if turn.delivered_at is None else turn.delivered_at
        if turn.is_waiting and turn.delivered_at is not None:
            # The time of a wait is not part of the time that the agent may take.
            delivered_at = min(turn.delivered_at + event.ts - turn.since, event.ts)
        turn = replace(
            turn, state=event.state, since=event.ts, warned=False, delivered_at=delivered_at, wait=event.wait
        )
    return replace(session, turns=session.turns | {event.agent: turn})


def _waits_unasked(session: Session, event: events.TurnMoved) -> Session:
    """Add a turn whose agent cannot be asked yet; it counts like one that was asked."""
    turn = Turn(
        id=event.turn,
        agent=event.agent,
        message=MessageId(""),
        round=event.round,
        state=TurnState.WAITING,
        asked_at=event.ts,
        since=event.ts,
        timeout_s=session.setup.collaboration.step_s if session.setup.collaboration else None,
        wait=event.wait,
    )
    is_relay = session.stage.kind is PhaseKind.RELAY
    return replace(
        session,
        turns=session.turns | {event.agent: turn},
        asked=session.asked + 1,
        asked_here=session.asked_here + 1,
        steps=session.steps + is_relay,
        cursor=event.agent if is_relay else session.cursor,
        has_final=session.has_final and bool(session.turns),
    )


def _closed(session: Session, event: events.TurnMoved, *, is_new: bool) -> Session:
    """Remove a turn; a turn that could not be requested because its agent was unavailable also counts."""
    turn = session.turns.get(event.agent)
    turns = {agent: turn for agent, turn in session.turns.items() if agent != event.agent}
    # In a round in which each agent speaks once, all agents that have spoken must be recorded.
    kept = max(KEPT_DONE, len(session.setup.agents))
    done = (*session.done, state.FinishedTurn(event.agent, event.round, event.state))[-kept:]
    record = state.TurnRecord(
        event.agent, event.round, event.state, session.stage.name, cut(event.reason, KEPT_REASON)
    )
    failed = {agent: why for agent, why in session.failed.items() if agent != event.agent}
    if event.state in state.FAILED:
        failed[event.agent] = record.reason
    session = replace(
        session,
        course=(*session.course, record)[-KEPT_COURSE:],
        courses=session.courses + 1,
        failed=failed,
        turns=turns,
        done=done,
        asked=session.asked + is_new,
        asked_here=session.asked_here + is_new,
        # A collaboration is limited by its cost, and an agent that was not asked cost nothing.
        steps=session.steps + (is_new and session.setup.collaboration is None),
        cursor=event.agent if is_new and session.stage.kind is PhaseKind.RELAY else session.cursor,
        fails=session.fails + 1 if event.state in state.FAILED else 0,
    )
    # A model that fails immediately would fail in every round.
    is_struck = event.state is TurnState.FAILED and not is_new and session.setup.collaboration is not None
    if event.state is TurnState.TIMED_OUT and turn is not None and turn.foreseen_usd:
        session = replace(session, unsettled=session.unsettled | {turn.id: turn.foreseen_usd})
    if event.state is TurnState.TIMED_OUT or is_struck:
        return replace(
            session, strikes=session.strikes | {event.agent: session.strikes.get(event.agent, 0) + 1}
        )
    if event.state is not TurnState.REPLIED:
        return session
    last = session.last
    if last is None or last.turn != event.turn:
        # Its reply had no text.
        last = state.TurnReply(event.turn, event.agent)
    stalls = session.stalls
    if event.agent == session.setup.lead:
        _, repeats = session.echoes.get(event.agent, ("", 0))
        stalls = stalls + 1 if last.to is None or repeats else 0
    return replace(heard_from(session, event.agent), last=last, replies=session.replies + 1, stalls=stalls)


def heard_from(session: Session, agent: AgentId) -> Session:
    if agent not in session.strikes:
        return session
    strikes = {name: count for name, count in session.strikes.items() if name != agent}
    return replace(session, strikes=strikes)
