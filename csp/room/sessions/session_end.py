"""The end of a session: its limits, what it releases, what it came to, its ballots, and the last notices."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from csp.protocol.enums import ALL, SYSTEM, AgentId, DeliveryState, Mode, SessionId
from csp.protocol.events import RunEnded, RunSaid
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.review_messages import RunRole, SessionEnd
from csp.protocol.session_parts import Candidate, Change, EndReason, Limits, PhaseKind, TurnState
from csp.room.agent_text import Spoken, Vote
from csp.room.messages import newer
from csp.room.room_draft import SessionDraft
from csp.room.room_state import Message
from csp.room.runs.run_state import summary_of
from csp.room.sessions.modes import respects_final, row_of
from csp.room.sessions.session_reducer import Sessions
from csp.room.sessions.session_state import BallotVote, Session, cut
from csp.room.sessions.turn_prompt import last_outputs

#: Ends that a person asked for: agents are not notified, because that would wake them.
BY_HAND: Final = frozenset({EndReason.STOPPED_BY_USER, EndReason.CANCELED, EndReason.SUPERSEDED})


def end(draft: SessionDraft, reason: EndReason, *, by: AgentId = SYSTEM, note: str = "") -> None:
    """End the session: nothing is asked or posted in it any more; `note` says why a run is given up."""
    session = draft.session
    for turn in list(session.turns.values()):
        is_back = draft.withdraw(turn)
        if reason is EndReason.STOPPED_BY_USER and not is_back:
            draft.interrupt(turn)
        draft.move(turn, TurnState.CANCELLED, reason)
    # After a stop nobody wants what was held back for a turn that will not come.
    release_held(draft, DeliveryState.WITHDRAWN if reason in BY_HAND else DeliveryState.QUEUED)
    _end_run(draft, reason, note)
    draft.change(Change.ENDED, f"{session.setup.mode} ended: {reason}", by=by, reason=reason)
    closing = NoticeCode[f"ENDED_{reason.name}"](mode=session.setup.mode.upper())
    draft.notice(closing)
    draft.notice(summary(draft.session, reason, draft.now))
    terms = session.setup.collaboration
    if terms is not None:
        # Where somebody waits for the result; what a person stopped has none.
        told = NoticeCode.COLLABORATION_ENDED(session=session.id, closing=closing.text)
        if reason not in BY_HAND:
            result = outcome(draft.session, reason, draft.now)
            told = NoticeCode.COLLABORATION_RESULT(session=session.id, closing=closing.text, outcome=result)
        draft.room_draft.notice(ALL, told, session=session.id, thread=terms.thread)
    if reason not in BY_HAND:
        draft.wake(f"it has ended: {reason}")


def _end_run(draft: SessionDraft, reason: EndReason, note: str) -> None:
    """End the run of the session; what its builder did not say at the end is said for it."""
    run = draft.run
    if run is None or run.is_over:
        return
    if run.end is None:
        draft.room_draft.emit(
            RunSaid(
                *draft.run_header(f"session.end: {note or reason}", by=run.builder),
                role=RunRole.BUILDER,
                body=SessionEnd(status=reason, summary=note),
                origin="room",
            )
        )
    text = summary_of(draft.known_run, reason)
    draft.room_draft.emit(RunEnded(*draft.run_header(text), reason=reason))
    place = run.context.worktree if run.context else ""
    if place:
        draft.notice(NoticeCode.RUN_ENDED(run=run.id, reason=reason, place=place))


def release_held(draft: SessionDraft, state: DeliveryState, but: tuple[AgentId, ...] = ()) -> None:
    """End the wait of what the session holds back, for all `but` those who get it with their turn.

    What another sealed phase holds back as well waits for that one.
    """
    session, room = draft.session, draft.room
    held: list[tuple[Message, AgentId]] = []
    for agent, participant in room.participants.items():
        # A stop must not take long because queues are: what came before the session is not held by it.
        waiting = room.unfinished(newer(participant.queue, session.seq))
        held += [(one, agent) for one in waiting if one.deliveries[agent].is_held_for_turn]
    # What this command has posted itself comes last, in its own order.
    held.sort(key=lambda one: max(one[0].seq, draft.room_draft.before.seq))
    for message, agent in held:
        if session.id not in (message.session, *message.seals):
            continue
        is_ours = message.session == session.id
        if is_ours and state is DeliveryState.WITHDRAWN:
            is_free = True
        else:
            is_waiting = agent in but if is_ours else _comes_with_turn(room.sessions, message, agent)
            others = {other: phase for other, phase in message.seals.items() if other != session.id}
            is_free = not is_waiting and not room.sessions.is_sealed(others)
        if is_free:
            draft.room_draft.move_delivery(message, agent, state if is_ours else DeliveryState.QUEUED)


def _comes_with_turn(sessions: Sessions, message: Message, agent: AgentId) -> bool:
    """Tell whether a message waits for a turn in the session that it was said in."""
    session = sessions.get(message.session)
    if session is None or session.is_over or session.setup.soft_turns:
        return False
    return agent in session.agents


# --- notices while it runs ---------------------------------------------------------------------------


def remind(draft: SessionDraft, agent: AgentId) -> None:
    """Say after a reply of `agent` what a person may want to act on."""
    session = draft.session
    is_open = row_of(session.setup).is_limited and not respects_final(session.setup)
    if is_open and session.last is not None and session.last.final:
        draft.notice(NoticeCode.SUGGESTS_FINISH(agent=agent))
    _, repeats = session.echoes[agent]
    if repeats == 1:
        draft.notice(NoticeCode.SAID_THE_SAME(agent=agent))
        draft.wake(f"it stalls: {agent} repeated itself")
    warn_of_limits(draft)
    due = max(session.replies // draft.rules.soft_turns, session.used.new // draft.rules.soft_tokens)
    if session.setup.mode is Mode.AUTOPILOT and due > session.reminders:
        draft.change(Change.REMINDED, "reminded", rounds=due)
        draft.notice(NoticeCode.AUTOPILOT_RUNNING())


def warn_of_limits(draft: SessionDraft) -> None:
    """Say once of each limit that it is nearly used up."""
    for reason in limits_near(draft.session):
        if reason not in draft.session.warned:
            draft.change(Change.WARNED, "warned", reason=reason)
            draft.notice(limit_near(draft.session, reason))


# --- what it came to ---------------------------------------------------------------------------------


_LINE: Final = 200


def outcome(session: Session, reason: EndReason, now: float) -> str:
    """Return what a session has come to: its last word on the whole, else who said what."""
    return session.result.text if session.result is not None else summary(session, reason, now).text


def summary(session: Session, reason: EndReason, now: float) -> NoticeWords:
    """Say who said what, how the vote went, what it took, why it ended."""
    used = session.used
    # What each agent has cost, with its model where that is known.
    costs = ", ".join(
        f"{row.agent} "
        + ("at an unknown price" if row.known_cost is None else f"{row.cost_usd:.4f}")
        + (f" with {row.model}" if row.model else "")
        for row in session.spent_so_far
    )
    cost = [f"Cost: {used.cost_usd:.4f} USD ({costs})."] if used.cost_usd else []
    outputs = last_outputs(session, is_over=True)
    said = [f"- {agent}: {_short(output.text)}" for agent, output in outputs]
    votes = [votes_counted(session).text] if session.counted or session.stage.candidates else []
    synthesis = [f"Synthesis: {_short(session.synthesis)}"] if session.synthesis else []
    return NoticeCode.SESSION_SUMMARY(
        session=session.id,
        mode=session.setup.mode,
        reason=reason,
        replies=session.replies,
        about="about " if used.estimated else "",
        tokens=used.new,
        output=used.output,
        cached=used.cached,
        seconds=max(now - session.started_at - session.idle_s, 0.0),
        details="".join(f"\n{line}" for line in (*cost, *said, *votes, *synthesis)),
    )


def _short(text: str) -> str:
    return cut(" ".join(text.split()), _LINE)


def votes_counted(session: Session) -> NoticeWords:
    """Say how many votes each got, who won, who voted for what with which reason."""
    named = {one.label: one.agent for one in (session.stage.candidates or session.counted)}
    result = tally_of(session)
    counts = ", ".join(f"{label} ({named[label]}) {count}" for label, count in result.counts.items())
    lines = []
    if result.winner is not None:
        dissent = [agent for agent, vote in session.votes.items() if vote.label != result.winner.label]
        lines.append(f"Winner: {result.winner.label} ({result.winner.agent}).")
        lines.append(f"Dissent: {', '.join(dissent) or 'none'}.")
    for agent, vote in session.votes.items():
        itself = " (its own)" if named.get(vote.label) == agent else ""
        reason = f": {_short(vote.reason)}" if vote.reason else ""
        lines.append(f"- {agent} voted {vote.label}{itself}{reason}")
    models = {session.models.get(agent) for agent in session.votes}
    if len(session.votes) > 1 and len(models) == 1 and None not in models:
        lines.append(f"All voters run the same model, {models.pop()}.")
    return NoticeCode.VOTES_COUNTED(counts=counts or "none", details="".join(f"\n{line}" for line in lines))


# --- ballots --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What a ballot came to: votes by label, most first; `leaders` has more than one name in a tie."""

    counts: dict[str, int]
    leaders: tuple[Candidate, ...]
    is_quorate: bool

    @property
    def winner(self) -> Candidate | None:
        """The one that was chosen, if one was."""
        return self.leaders[0] if self.is_quorate and len(self.leaders) == 1 else None


def label_of(number: int) -> str:
    """Return the label of the `number`-th candidate, from 0 on: A to Z, then AA, AB."""
    high, low = divmod(number, 26)
    return (chr(ord("A") + high - 1) if high else "") + chr(ord("A") + low)


def candidates(session: SessionId, number: int, agents: Sequence[AgentId]) -> tuple[Candidate, ...]:
    """Label the agents of a ballot in an order that tells nothing about who is who."""

    def rank(agent: AgentId) -> str:
        return sha256(f"{session}:{number}:{agent}".encode()).hexdigest()

    ordered = sorted(agents, key=rank)
    return tuple(Candidate(label=label_of(at), agent=agent) for at, agent in enumerate(ordered))


def read_vote(commands: Sequence[Spoken], labels: Sequence[str]) -> BallotVote | None:
    """Return the last vote for one of the labels."""
    votes = [spoken for spoken in commands if isinstance(spoken, Vote) and spoken.label in labels]
    return BallotVote(votes[-1].label, votes[-1].reason) if votes else None


def tally(votes: Mapping[AgentId, BallotVote], named: Sequence[Candidate], voters: int) -> Tally:
    """Count the votes; those for oneself count only if there are no others."""
    owner = {candidate.label: candidate.agent for candidate in named}
    cast = {agent: vote for agent, vote in votes.items() if vote.label in owner}
    others = {agent: vote for agent, vote in cast.items() if owner[vote.label] != agent}
    found = Counter(vote.label for vote in (others or cast).values())
    counts = {label: found[label] for label in sorted(found, key=lambda label: (-found[label], label))}
    most = max(counts.values(), default=0)
    leaders = tuple(candidate for candidate in named if most and counts.get(candidate.label) == most)
    return Tally(counts=counts, leaders=leaders, is_quorate=bool(cast) and 2 * len(cast) >= voters)


def tally_of(session: Session) -> Tally:
    """Count the last ballot of a session."""
    named = session.stage.candidates or session.counted
    return tally(session.votes, named, len(session.agents))


# --- limits, for emergencies ----------------------------------------------------------------------


_Used = Callable[[Session, float], float]
_Limit = Callable[[Limits], float | None]


def minutes_used(session: Session, now: float) -> float:
    """Return how long a session has been running, without its pauses."""
    return (now - session.started_at - session.idle_s) / 60


#: For each limit how much of it is used up, how much there is, in which unit.
_GUARDS: Final[dict[EndReason, tuple[_Used, _Limit, str]]] = {
    EndReason.EMERGENCY_TURNS: (lambda session, _: session.asked, lambda limits: limits.turns, "turns"),
    EndReason.EMERGENCY_TOKENS: (
        lambda session, _: session.used.new,
        lambda limits: limits.tokens,
        "new tokens",
    ),
    EndReason.EMERGENCY_MINUTES: (minutes_used, lambda limits: limits.minutes, "minutes"),
    EndReason.EMERGENCY_COST: (
        lambda session, _: session.used.cost_usd or 0.0,
        lambda limits: limits.cost,
        "US dollars",
    ),
}


#: Of these people are told before it is too late.
_WARNED_OF: Final = (EndReason.EMERGENCY_TOKENS, EndReason.EMERGENCY_COST)
NEAR: Final = 0.8


def limit_hit(session: Session, now: float) -> EndReason | None:
    """Return which limit a session has reached; the turns do so only once the last of them is over."""
    if session.stage.kind is PhaseKind.SOLO:
        # This is the turn that a limit leaves.
        return None
    for reason, (used, limit, _) in _GUARDS.items():
        most = limit(session.setup.limits)
        is_open = reason is EndReason.EMERGENCY_TURNS and bool(session.turns)
        if most is not None and used(session, now) >= most and not is_open:
            return reason
    return None


def limits_near(session: Session) -> list[EndReason]:
    """Return the limits on what costs money that are nearly used up."""
    found = []
    for reason in _WARNED_OF:
        used, limit, _ = _GUARDS[reason]
        most = limit(session.setup.limits)
        if most is not None and NEAR * most <= used(session, 0.0) < most:
            found.append(reason)
    return found


def limit_near(session: Session, reason: EndReason) -> NoticeWords:
    """Say how much of a limit is used up."""
    used, limit, unit = _GUARDS[reason]
    most = limit(session.setup.limits) or 0.0
    return NoticeCode.LIMIT_NEAR(used=_figure(used(session, 0.0)), most=_figure(most), unit=unit)


def limit_reached(session: Session, reason: EndReason) -> NoticeWords:
    """Say which limit was reached."""
    _, limit, unit = _GUARDS[reason]
    return NoticeCode.LIMIT_REACHED(most=_figure(limit(session.setup.limits) or 0.0), unit=unit)


def _figure(value: float) -> str:
    """Return a number as people write it: whole where it is large."""
    return f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:.6g}"


def minutes_over_at(session: Session) -> float | None:
    """Return when the time of a session will be over."""
    minutes = session.setup.limits.minutes
    if minutes is None or session.stage.kind is PhaseKind.SOLO:
        return None
    return session.started_at + session.idle_s + minutes * 60
