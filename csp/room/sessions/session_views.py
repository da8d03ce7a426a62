"""The API views of a session."""

from csp.protocol.enums import Mode
from csp.protocol.responses import CollaborationView, ModeView, SessionView, SpentView, TurnView, WaitView
from csp.protocol.session_parts import Collaboration, TurnState, Wait
from csp.room.commands import RoomRules
from csp.room.room_state import Room
from csp.room.sessions.modes import RELAY_NAME
from csp.room.sessions.session_end import BY_HAND, outcome
from csp.room.sessions.session_state import Ledger, Session, TurnRecord
from csp.room.sessions.steering import ends
from csp.room.sessions.turn_prompt import proposal_of

_COMPLETED = frozenset({TurnState.REPLIED, TurnState.CANCELLED})


def mode_view(room: Room, session: Session | None, rules: RoomRules) -> ModeView:
    """Return a session with the field names of the wire protocol, without sealed content for any reader."""
    if session is None:
        return ModeView()
    setup, current = session.setup, session.current
    # The authors of proposals remain hidden until the ballot ends.
    is_ballot_open = bool(session.stage.candidates) and bool(session.seal)
    outputs: dict[str, dict[str, str]] = {}
    for agent, texts in session.outputs.items():
        for one in texts:
            if one.phase != session.seal:
                # A vote or a synthesis does not have its own round.
                outputs.setdefault(agent, {}).setdefault(f"round{one.round - 1}", one.text)
    return ModeView(
        mode=Mode.FREEFORM if session.is_over else setup.mode,
        topic=setup.topic or None,
        round=_round(session),
        max_rounds=setup.rounds or 0,
        turn_order=setup.agents,
        current_turn_index=setup.agents.index(current) if current in setup.agents else 0,
        completed_turns=tuple(
            f"{done.agent}_round{done.round - 1}" for done in session.done if done.state in _COMPLETED
        ),
        round_outputs=outputs,
        proposals={
            one.label: {
                "agent": "" if is_ballot_open else one.agent,
                "text": proposal_of(session, one.agent),
            }
            for one in session.stage.candidates or session.counted
        },
        votes={
            agent: {"label": vote.label, "reason": vote.reason}
            for agent, vote in session.votes.items()
            if not is_ballot_open
        },
        current_turn=current,
        waiting_for=session.waiting_for,
        turn=session.turns[current].id if current else None,
        turns={agent: turn.id for agent, turn in session.turns.items()},
        phase=session.stage.name,
        session_id=session.id,
        status=session.status,
        reason=session.reason,
        started_at=session.started_at,
        deadline=min(ends(room, session, rules), default=None),
        waits=tuple(_wait_view(turn.agent, turn.wait) for turn in session.turns.values() if turn.wait),
        held=session.held,
    )


def _wait_view(agent: str, wait: Wait) -> WaitView:
    return WaitView(
        agent=agent, kind=wait.kind, since=wait.since, until=wait.until, at=wait.at, detail=wait.detail
    )


def _round(session: Session) -> int:
    """Return the round of the open turn or else of the last turn, counted from 0."""
    if session.current:
        return session.turns[session.current].round - 1
    return (session.done[-1].round if session.done else session.stage.round) - 1


def turn_view(session: Session | None) -> TurnView:
    """Return the current turn."""
    if session is None or session.is_over:
        return TurnView(complete=True)
    return TurnView(success=True, current_turn=session.current, round=_round(session))


def session_view(session: Session, spent: Ledger | None = None) -> SessionView:
    """Return a summary of a session; `spent` is the spending that the reader may see (all by default)."""
    used = session.used
    return SessionView(
        id=session.id,
        thread=session.thread,
        mode=session.setup.mode,
        topic=session.setup.topic,
        status=session.status,
        reason=session.reason,
        agents=session.agents,
        round=_round(session),
        max_rounds=session.setup.rounds or 0,
        turns=session.asked,
        tokens=used.tokens,
        cost_usd=round(used.cost_usd or 0.0, 6),
        started_at=session.started_at,
        ended_at=session.ended_at,
        spent=spent_view(session.spent_so_far if spent is None else spent),
        new=used.new,
        cached=used.cached,
        output=used.output,
    )


def collaboration_view(
    session: Session, terms: Collaboration, after: int | None, spent: Ledger | None = None
) -> CollaborationView:
    """Return a collaboration's progress, with the progress lines after the first `after` ones."""
    first = session.courses - len(session.course)
    known = max((after or 0) - first, 0)
    used = session.used
    result = session.result.text if session.result else None
    if session.reason is None:
        result = None
    elif session.reason not in BY_HAND:
        # A collaboration that a person stopped may have no result.
        result = outcome(session, session.reason, session.ended_at or 0.0)
    return CollaborationView(
        handle=session.id,
        session=session.id,
        thread=session.thread,
        status=session.status,
        reason=session.reason,
        objective=session.setup.topic,
        mode=session.setup.mode,
        models=session.agents,
        step=session.steps,
        max_steps=session.setup.rounds or 0,
        parallel=terms.parallel,
        speakers=tuple(agent for agent in session.setup.agents if agent in session.outputs),
        waiting=session.waiting_for,
        failed=tuple(session.failed),
        cost_usd=round(used.cost_usd or 0.0, 6),
        cost_limit_usd=session.setup.limits.cost,
        tokens=used.tokens,
        spent=spent_view(session.spent_so_far if spent is None else spent),
        result=result,
        progress=tuple(_progress(session, step) for step in session.course[known:]),
        lines=session.courses,
        new=used.new,
        cached=used.cached,
        output=used.output,
    )


def _progress(session: Session, step: TurnRecord) -> str:
    words = str(step.state).replace("_", " ") + (f": {step.reason}" if step.reason else "")
    is_counted = step.phase == RELAY_NAME
    where = f"step {step.round} of {session.setup.rounds}" if is_counted else step.phase
    return f"{where}: {step.agent} {words}"


def spent_view(ledger: Ledger) -> tuple[SpentView, ...]:
    """Return a ledger in the format of the API."""
    return tuple(
        SpentView(
            agent=row.agent,
            model=row.model or None,
            replies=row.replies,
            input=row.input,
            output=row.output,
            cost_usd=None if row.known_cost is None else round(row.cost_usd, 6),
            unpriced=row.unpriced,
            estimated=row.estimated,
            cached=row.cached,
            new=row.new,
        )
        for row in ledger
    )
