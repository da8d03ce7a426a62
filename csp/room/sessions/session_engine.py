"""The mode engine, which moves a session from turn to turn and from phase to phase until it ends."""

from collections.abc import Callable, Iterable
from typing import Final

from csp.protocol.enums import AgentId, DeliveryState
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.session_parts import (
    Candidate,
    Change,
    EndReason,
    OnHardLimit,
    PhaseKind,
    Stage,
    TurnState,
    Wait,
    WaitKind,
)
from csp.room.room_draft import SessionDraft
from csp.room.runs import run_protocol
from csp.room.sessions.modes import EMERGENCIES, NextSpeaker, repetitions, respects_final, row_of
from csp.room.sessions.session_end import end, release_held, votes_counted
from csp.room.sessions.session_limits import limit_hit, limit_reached
from csp.room.sessions.session_state import FAILED, Session
from csp.room.sessions.turn_prompt import agrees
from csp.room.sessions.turns import ask, cancel
from csp.room.sessions.votes import candidates, tally_of

#: Number of consecutive turns of the lead without a handoff after which it is asked to conclude.
STALLS: Final = 3


def begin(draft: SessionDraft) -> None:
    """Request a session's first turns."""
    _enter(draft, 0, 1)
    advance(draft)


def advance(draft: SessionDraft) -> None:
    """Advance until a turn is open or the session is over; a paused session waits."""
    session = draft.session
    reason = limit_hit(session, draft.clock)
    if session.is_running and reason is not None:
        _cut_short(draft, reason, limit_reached(session, reason))
        session = draft.session
    while session.is_running and not session.turns and not session.stage.is_waiting:
        _OVER[session.stage.kind](draft)
        session = draft.session


def _cut_short(draft: SessionDraft, reason: EndReason, words: NoticeWords) -> None:
    """Stop the current phase because of a limit; a synthesis may still be requested."""
    if draft.session.setup.on_hard_limit is OnHardLimit.ASK:
        _hold(draft, reason, words)
        return
    draft.notice(words)
    for turn in list(draft.session.turns.values()):
        if not cancel(draft, turn, reason):
            # An agent that kept working would waste money.
            draft.interrupt(turn)
    _phase_over(draft, reason)


def _hold(draft: SessionDraft, reason: EndReason, words: NoticeWords) -> None:
    """Pause at a limit until a person decides; the agents that are stopped are asked again after that."""
    for turn in list(draft.session.turns.values()):
        if turn.state is TurnState.WAITING:
            continue
        if not draft.withdraw(turn):
            draft.interrupt(turn)
        wait = Wait(kind=WaitKind.RESUME, since=draft.now)
        draft.move(turn, TurnState.WAITING, reason, wait=wait)
    draft.change(Change.PAUSED, f"paused: {reason}", reason=reason)
    draft.notice(words)
    draft.wake(f"it waits for a person: {reason}")


# --- phases --------------------------------------------------------------------------------------


def _phase_over(draft: SessionDraft, reason: EndReason) -> None:
    """Enter the next phase, or end the session if there is none."""
    session = draft.session
    final = session.winding or reason
    following = None if session.winding else _following(draft, reason)
    if following is None:
        end(draft, final)
        return
    row, cycle = following
    round_before = session.stage.round
    _enter(draft, row, cycle, reason=reason)
    if not row_of(session.setup).is_round_a_turn and draft.session.stage.round > round_before:
        draft.wake(f"round {round_before} is over")


def _following(draft: SessionDraft, reason: EndReason) -> tuple[int, int] | None:
    """Return the next row of the mode and its cycle number, or None if there is none."""
    session = draft.session
    setup, stage = session.setup, session.stage
    has_synth = bool(draft.synthesisers())
    phases = row_of(setup).phases
    runs = [repetitions(phase, setup, reason, has_synth=has_synth) for phase in phases]
    is_cut = reason in EMERGENCIES
    if not is_cut and stage.cycle < runs[stage.row]:
        outputs = (one for outputs in session.outputs.values() for one in outputs)
        here = [one for one in outputs if one.phase == stage.number]
        # Agents that agree need no further rounds.
        if not here or not all(agrees(one.text) for one in here):
            return stage.row, stage.cycle + 1
    later = range(stage.row + 1, len(phases))
    wanted = [at for at in later if runs[at] and (not is_cut or phases[at].kind is PhaseKind.SOLO)]
    return (wanted[0], 1) if wanted else None


def _enter(
    draft: SessionDraft,
    row: int,
    cycle: int,
    *,
    reason: EndReason = EndReason.DONE,
    tied: tuple[Candidate, ...] = (),
) -> None:
    session = draft.session
    phase = row_of(session.setup).phases[row]
    number = session.stage.number + 1
    round = row + cycle
    if row_of(session.setup).is_round_a_turn:
        round = max(session.asked, 1)
    elif phase.kind in (PhaseKind.BALLOT, PhaseKind.SOLO):
        round = session.setup.rounds or 1
    is_ballot = phase.kind is PhaseKind.BALLOT
    standing = [agent for agent in session.agents if agent in session.outputs]
    stage = Stage(
        number=number,
        kind=phase.kind,
        name=phase.name,
        row=row,
        cycle=cycle,
        round=round,
        is_sealed=phase.is_sealed,
        is_again=bool(tied),
        is_waiting=phase.is_waiting,
        candidates=(tied or candidates(session.id, number, standing)) if is_ballot else (),
    )
    if session.seal:
        members = () if session.setup.soft_turns else session.agents
        release_held(draft, DeliveryState.QUEUED, but=members)
    draft.change(
        Change.PHASE,
        stage.name,
        stage=stage,
        reason=reason if stage.kind is PhaseKind.SOLO else None,
        # The authors of the proposals are hidden until all votes have been cast.
        sealed=stage.number if stage.candidates else 0,
    )
    if not row_of(session.setup).is_round_a_turn and stage.round > session.stage.round:
        draft.notice(NoticeCode.ROUND(round=stage.round))
    _ASKS[phase.kind](draft)


def _ask_each(draft: SessionDraft, agents: Iterable[AgentId]) -> None:
    for agent in agents:
        if draft.session.is_running:
            ask(draft, agent)


# --- the next turns when none is open ------------------------------------------------------------


def _relay_goes_on(draft: SessionDraft) -> None:
    """Request the next turns of the relay, up to the number of agents that may speak at once."""
    while (session := draft.session).is_running and len(session.turns) < session.width:
        following = _next_in_relay(session, draft.phase.speaker)
        why_not = following if isinstance(following, EndReason) else ask(draft, following)
        if why_not:
            if draft.session.turns:
                return
            if why_not is EndReason.ALL_FAILED:
                end(draft, EndReason.ALL_FAILED)
            elif isinstance(why_not, EndReason):
                _phase_over(draft, why_not)
            else:
                _cut_short(draft, EndReason.EMERGENCY_COST, NoticeCode.COST_LIMIT(why=why_not))
            return


def _next_in_relay(session: Session, speaker: NextSpeaker) -> AgentId | EndReason:
    """Return the next speaker, or the reason why there is none; the rules are in order of priority."""
    mode = row_of(session.setup)
    if session.fails >= max(2, len(session.agents)):
        return EndReason.ALL_FAILED
    if _is_final(session, speaker):
        return EndReason.FINAL
    following = _speaker(session, speaker)
    is_capped = mode.is_round_a_turn and session.setup.rounds is not None
    if isinstance(following, EndReason) or not is_capped:
        return following
    return mode.at_cap if session.steps >= (session.setup.rounds or 0) else following


def _is_final(session: Session, speaker: NextSpeaker) -> bool:
    last = session.last
    if session.width > 1:
        return session.has_final and not session.turns and respects_final(session.setup)
    if not _was_answered(session) or last is None or not last.final or not respects_final(session.setup):
        return False
    return speaker is not NextSpeaker.LEAD or last.agent == session.setup.lead


def _was_answered(session: Session) -> bool:
    return bool(session.done) and session.done[-1].state is TurnState.REPLIED


def _in_order(session: Session) -> AgentId | EndReason:
    """Return the agent after the last speaker, initially the first one; no agent has two turns at once."""
    order = session.setup.agents
    at = order.index(session.cursor) + 1 if session.cursor in order else 0
    others = (agent for agent in (*order[at:], *order[:at]) if agent in session.agents)
    return next((agent for agent in others if agent not in session.turns), EndReason.DONE)


def _by_handoff(session: Session) -> AgentId | EndReason:
    last = session.last
    if not _was_answered(session) or last is None:
        return _in_order(session)
    if last.to in session.agents:
        return last.to
    return EndReason.MALFORMED if last.malformed else row_of(session.setup).without_handoff


def _speaker(session: Session, rule: NextSpeaker) -> AgentId | EndReason:
    match rule:
        case NextSpeaker.EACH:
            heard = {done.agent for done in session.done}
            return next((agent for agent in session.agents if agent not in heard), EndReason.DONE)
        case NextSpeaker.NEXT:
            return _in_order(session)
        case NextSpeaker.LEAD:
            lead = session.setup.lead or session.agents[0]
            if session.stalls >= STALLS:
                return EndReason.NO_HANDOFF
            is_lead_heard = _was_answered(session) and session.done[-1].agent == lead
            following = _by_handoff(session) if is_lead_heard else lead
            return lead if isinstance(following, EndReason) else following
        case _:
            following = _by_handoff(session)
            is_open = isinstance(following, EndReason) and rule is NextSpeaker.HANDOFF_OR_NEXT
            return _in_order(session) if is_open else following


def _gather_over(draft: SessionDraft) -> None:
    states = {done.state for done in draft.session.done}
    if TurnState.REPLIED not in states and states & FAILED:
        end(draft, EndReason.ALL_FAILED)
    else:
        _phase_over(draft, EndReason.DONE)


def _ballot_over(draft: SessionDraft) -> None:
    session = draft.session
    result = tally_of(session)
    is_tie = result.is_quorate and len(result.leaders) > 1
    is_open = is_tie and not session.stage.is_again
    tied = ", ".join(one.label for one in result.leaders)
    # The authors remain hidden as long as their proposals can be voted on.
    draft.notice(NoticeCode.BALLOT_TIED(labels=tied) if is_open else votes_counted(session))
    if is_open:
        _enter(draft, session.stage.row, session.stage.cycle, tied=result.leaders)
    elif not row_of(session.setup).is_decided_by_vote or result.winner is not None:
        _phase_over(draft, EndReason.DONE)
    elif is_tie:
        draft.notice(NoticeCode.VOTE_TIED())
        _phase_over(draft, EndReason.TIE)
    else:
        end(draft, EndReason.NO_QUORUM)


def _solo_over(draft: SessionDraft) -> None:
    session = draft.session
    if session.setup.collaboration is not None and not session.synthesis:
        stands = "the last one remains valid" if session.result else "a summary replaces it"
        draft.notice(NoticeCode.NO_SYNTHESIS(instead=stands))
    end(draft, draft.session.winding or EndReason.DONE)


_ASKS: Final[dict[PhaseKind, Callable[[SessionDraft], None]]] = {
    PhaseKind.RELAY: _relay_goes_on,
    PhaseKind.GATHER: lambda draft: _ask_each(draft, draft.session.agents),
    PhaseKind.BALLOT: lambda draft: _ask_each(draft, draft.session.agents),
    PhaseKind.SOLO: lambda draft: _ask_each(draft, draft.synthesisers()),
    PhaseKind.REVIEW: run_protocol.ask_next,
}
_OVER: Final[dict[PhaseKind, Callable[[SessionDraft], None]]] = {
    PhaseKind.RELAY: _relay_goes_on,
    PhaseKind.GATHER: _gather_over,
    PhaseKind.BALLOT: _ballot_over,
    PhaseKind.SOLO: _solo_over,
    PhaseKind.REVIEW: run_protocol.ask_next,
}
