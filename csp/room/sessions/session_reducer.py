"""Apply events to sessions, and keep a room's running and recently ended sessions.

`step` is the only way to change a session. The rules apply it to the events of a batch, and `Sessions.apply`
applies it to those in the journal, so the two cannot diverge.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Final, assert_never

import msgspec
from msgspec.structs import replace

from csp.protocol import events
from csp.protocol.enums import ROUTER, AgentId, MessageId, SessionId, TurnId
from csp.protocol.requests import Usage
from csp.protocol.session_parts import (
    Change,
    Limits,
    OnHardLimit,
    PhaseKind,
    Setup,
    Stage,
    Status,
)
from csp.room.sessions import session_state as state
from csp.room.sessions.session_state import Session, cut, tokens_in
from csp.room.sessions.turn_reducer import asked, heard_from, moved

# fmt: off
#: Events that may belong to a session; `step` ignores all others.
SessionEvent = (
    events.HumanMessage | events.AgentCall | events.AgentResponse | events.Activity | events.KeptPrivate
    | events.SystemReply | events.TurnSignal | events.LateReply | events.NoticePosted | events.ModeChanged
    | events.TurnMoved | events.UsageSeen | events.Voted | events.NoteAdded | events.BoardChanged
    | events.RunEvent
)
# fmt: on

#: How much of a long session is remembered: messages, outputs per agent, speakers and finished turns.
KEPT_ITEMS: Final = 24
KEPT_OUTPUTS: Final = 20
KEPT_CHARS: Final = 20_000


def step(session: Session, event: SessionEvent) -> Session:
    """Return the session after `event`, which belongs to it."""
    after = _step(session, event)
    if after is session or after.is_idle == session.is_idle:
        return after
    if after.is_idle:
        return replace(after, idle_since=event.ts)
    # A session that was paused by an older version only has the time of its pause.
    since = next(time for time in (session.idle_since, session.paused_at, event.ts) if time is not None)
    return replace(after, idle_since=None, idle_s=after.idle_s + event.ts - since)


def _step(session: Session, event: SessionEvent) -> Session:  # noqa: C901  # one case for each event
    match event:
        case events.ModeChanged():
            return _changed(session, event)
        case events.TurnSignal():
            return asked(session, event)
        case events.TurnMoved():
            return moved(session, event)
        case events.AgentResponse():
            return _answered(session, event)
        case events.Activity() if event.usage is not None:
            # For example, a malformed first reply, which used tokens.
            return _spent(session, event, 0)
        case events.UsageSeen():
            usage = state.priced(event.usage, session.setup.prices.get(event.sender))
            seen = session.under_way | {event.turn: state.RunningUsage(event.sender, usage)}
            return replace(session, under_way=seen)
        case events.LateReply() if event.usage is not None and event.turn in session.under_way:
            return _spent(session, event, 0)
        case events.AgentCall() | events.HumanMessage():
            return _noted(heard_from(session, event.sender), event)
        case events.Voted():
            return replace(
                session, votes=session.votes | {event.sender: state.BallotVote(event.label, event.reason)}
            )
        case events.Activity() | events.LateReply() | events.KeptPrivate() | events.SystemReply():
            return session
        case events.NoticePosted() | events.NoteAdded() | events.BoardChanged() | events.RunEvent():
            return session
        case _:
            assert_never(event)


# --- the session as a whole ----------------------------------------------------------------------


def _changed(session: Session, event: events.ModeChanged) -> Session:  # noqa: C901  # one case for each change
    match event.change:
        case Change.PHASE if event.stage is not None:
            return _next_stage(session, event, event.stage)
        case Change.PAUSED:
            return replace(session, status=Status.PAUSED, paused_at=event.ts, held=event.reason)
        case Change.RESUMED:
            return _resumed(session, event.ts)
        case Change.EXTENDED:
            return _extended(session, event)
        case Change.CONTINUED if event.setup is not None:
            return _continued(session, event, event.setup)
        case Change.KICKED:
            agents = tuple(agent for agent in session.agents if agent != event.agent)
            return replace(session, agents=agents)
        case Change.WARNED if event.reason is not None:
            warned = (*session.warned, event.reason)
            return replace(session, warned=warned, warned_at=event.ts, is_settled=False)
        case Change.SETTLED:
            return replace(session, is_settled=True, chosen=event.agent)
        case Change.REMINDED:
            return replace(session, reminders=event.rounds or session.reminders)
        case Change.SLEPT:
            return _slept(session, event.ts, (event.minutes or 0.0) * 60)
        case Change.ENDED:
            ended = replace(_unsealed(session), status=Status.ENDED, reason=event.reason)
            return replace(ended, ended_at=event.ts, is_settled=False)
        case Change.STARTED | Change.PHASE | Change.CONTINUED | Change.WARNED:
            return session
        case _:
            assert_never(event.change)


def _next_stage(session: Session, event: events.ModeChanged, stage: Stage) -> Session:
    return replace(
        _unsealed(session),
        stage=stage,
        winding=event.reason or session.winding,
        votes={} if stage.candidates else session.votes,
        first_ballot=session.first_ballot or (stage.number if stage.kind is PhaseKind.BALLOT else 0),
        done=(),
        # A person has dealt with an agent that was silent in a run; otherwise the run would not continue.
        strikes={} if stage.kind is PhaseKind.REVIEW else session.strikes,
        asked_here=0,
        fails=0,
    )


def _unsealed(session: Session) -> Session:
    return replace(session, counted=session.stage.candidates or session.counted)


def _resumed(session: Session, now: float) -> Session:
    """Resume the clocks from their values at the time of the pause."""
    paused_at = session.paused_at or now

    def later(then: float) -> float:
        return now - max(paused_at - then, 0.0)

    turns = {}
    for agent, turn in session.turns.items():
        delivered_at = None if turn.delivered_at is None else later(turn.delivered_at)
        asked_at, since = later(turn.asked_at), later(turn.since)
        turns[agent] = replace(turn, asked_at=asked_at, since=since, delivered_at=delivered_at)
    return replace(session, status=Status.RUNNING, paused_at=None, held=None, turns=turns)


def _slept(session: Session, now: float, seconds: float) -> Session:
    """Move the clocks of a running session past the time in which the machine slept."""

    def later(then: float) -> float:
        return min(then + seconds, now)

    turns = {
        agent: replace(
            turn,
            asked_at=later(turn.asked_at),
            since=later(turn.since),
            delivered_at=None if turn.delivered_at is None else later(turn.delivered_at),
        )
        for agent, turn in session.turns.items()
    }
    return replace(session, turns=turns, idle_s=session.idle_s + (0.0 if session.is_idle else seconds))


def _continued(session: Session, event: events.ModeChanged, setup: Setup) -> Session:
    """Continue a session, even a finished one, keeping its messages, spending and counters."""
    if session.paused_at is not None:
        session = _resumed(session, event.ts)
    rested_s = 0.0 if session.ended_at is None else event.ts - session.ended_at
    return replace(
        session,
        setup=setup,
        agents=setup.agents,
        status=Status.RUNNING,
        reason=None,
        ended_at=None,
        winding=None,
        idle_s=session.idle_s + rested_s,
        # An agent that failed before may succeed now.
        fails=0,
        stalls=0,
        strikes={},
        warned=(),
        is_settled=False,
        chosen=None,
    )


def _extended(session: Session, event: events.ModeChanged) -> Session:
    setup = session.setup
    if event.rounds is not None and setup.rounds is not None:
        setup = replace(setup, rounds=setup.rounds + event.rounds)
    if event.minutes is not None and setup.limits.minutes is not None:
        setup = replace(setup, limits=replace(setup.limits, minutes=setup.limits.minutes + event.minutes))
    if event.limits is not None:
        setup = replace(setup, limits=event.limits)
    now, turns = event.ts, {}
    for agent, turn in session.turns.items():
        delivered_at = None if turn.delivered_at is None else now
        turns[agent] = replace(turn, asked_at=now, since=now, delivered_at=delivered_at, warned=False)
    return replace(session, setup=setup, turns=turns)


# --- messages ------------------------------------------------------------------------------------


def _answered(session: Session, event: events.AgentResponse) -> Session:
    session = _noted(heard_from(session, event.sender), event)
    if event.out_of_turn or event.late:
        return session if event.usage is None else _spent(session, event, 0)
    turn = session.turns.get(event.sender)
    round = event.round or session.stage.round
    output = state.TurnOutput(event.id, round, cut(event.text, KEPT_CHARS), session.stage.number)
    outputs = (*session.outputs.get(event.sender, ()), output)[-KEPT_OUTPUTS:]
    to = AgentId(event.handoff.to) if event.handoff else None
    is_final = event.final and session.setup.lead in (None, event.sender)
    is_last_word = is_final or session.stage.kind is PhaseKind.SOLO
    text = "".join(event.text.casefold().split())
    mark = sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    before, count = session.echoes.get(event.sender, ("", 0))
    echo = (mark, count + 1 if mark == before else 0)
    return replace(
        _spent(session, event, turn.prompt_tokens if turn else 0),
        outputs=session.outputs | {event.sender: outputs},
        result=output if is_last_word else session.result,
        has_final=session.has_final or is_final,
        last=state.TurnReply(TurnId(event.turn or ""), event.sender, to, event.final, event.malformed),
        echoes=session.echoes | {event.sender: echo},
    )


def _spent(
    session: Session,
    event: events.AgentResponse | events.Activity | events.LateReply,
    prompt_tokens: int,
) -> Session:
    seen = session.under_way.get(TurnId(event.turn or ""))
    guess = Usage(input=prompt_tokens, output=tokens_in(event.text), estimated=True)
    told = event.usage or (seen.usage if seen else guess)
    usage = state.priced(told, session.setup.prices.get(event.sender))
    models = session.models if usage.model is None else session.models | {event.sender: usage.model}
    before = session.gauges.get(event.sender, state.UsageGauge())
    over = usage.input - prompt_tokens if prompt_tokens else 0
    gauge = state.UsageGauge(
        max(before.output, usage.output), max(before.over, over), max(before.cost_usd, usage.cost_usd or 0.0)
    )
    return replace(
        session,
        models=models,
        tokens=session.tokens + usage.tokens,
        cached=session.cached + usage.cached,
        cost_usd=session.cost_usd + (usage.cost_usd or 0.0),
        spent=state.spend(session.spent, event.sender, usage),
        gauges=session.gauges | {event.sender: gauge},
        unsettled={turn: cost for turn, cost in session.unsettled.items() if turn != event.turn},
        under_way=state.without(session.under_way, event.turn),
    )


def _noted(session: Session, event: events.MessageEvent) -> Session:
    """Add a message, and the task of its handoff, to the items."""
    items = [*session.items]
    if event.repeats is None:
        # The message that it sent by tool earlier has the same text and is already an item.
        text = cut(event.text, KEPT_CHARS)
        item = state.WindowItem(event.id, event.sender, event.target, text, event.sealed, event.seals)
        items.append(item)
    if event.handoff is not None:
        task = MessageId(f"{event.id}.task")
        to = AgentId(event.handoff.to)
        items.append(state.WindowItem(task, ROUTER, to, event.handoff.task, event.sealed, event.seals))
    # Keep the last task, even if it is too old, if its agent has not spoken since.
    tasks = [(at, item) for at, item in enumerate(items[:-KEPT_ITEMS]) if item.sender == ROUTER]
    unread = [item for at, item in tasks if all(one.sender != item.target for one in items[at:])]
    return replace(session, items=(*unread[-1:], *items[-KEPT_ITEMS:]))


# --- removing texts ------------------------------------------------------------------------------


def without_message(session: Session, event: events.Redacted) -> Session:
    """Return the session without the text of one message."""
    items = tuple(item for item in session.items if item.id.removesuffix(".task") != event.message)
    outputs = {
        agent: tuple(replace(one, text="") if one.message == event.message else one for one in outputs)
        for agent, outputs in session.outputs.items()
    }
    result = session.result
    if result is not None and result.message == event.message:
        result = None
    return replace(session, items=items, outputs=outputs, result=result)


def without_texts(session: Session) -> Session:
    """Return the session without its agents' texts; a running session keeps its topic."""
    outputs = {
        agent: tuple(replace(one, text="") for one in outputs) for agent, outputs in session.outputs.items()
    }
    votes = {agent: state.BallotVote(vote.label) for agent, vote in session.votes.items()}
    setup = replace(session.setup, topic="") if session.is_over else session.setup
    return replace(session, items=(), outputs=outputs, result=None, votes=votes, setup=setup)


# --- a room's sessions ----------------------------------------------------------------------------


KEPT_ENDED: Final = 16
KEPT_COLLABORATIONS: Final = 32


def changes_sessions(event: events.AnyEvent) -> bool:
    """Return whether an event may change a session."""
    return getattr(event, "session_id", None) is not None or isinstance(event, events.Redacted)


class Sessions(msgspec.Struct, omit_defaults=True):
    by_id: dict[SessionId, Session] = msgspec.field(default_factory=dict)
    #: The newest session of each thread, running or ended.
    threads: dict[str, SessionId] = msgspec.field(default_factory=dict)

    def copy(self) -> "Sessions":
        """Return a copy that can be changed independently."""
        return Sessions(dict(self.by_id), dict(self.threads))

    def get(self, session_id: str | None) -> Session | None:
        """Return the session if it is still remembered."""
        return None if session_id is None else self.by_id.get(SessionId(session_id))

    def find(self, name: str) -> Session | None:
        """Return a session by its id or by the name of its thread."""
        return self.get(name) or self.newest_in(name)

    def newest_in(self, thread: str) -> Session | None:
        """Return the session of a thread, running or finished."""
        return self.get(self.threads.get(thread))

    def live_in(self, thread: str) -> Session | None:
        """Return the running session of a thread."""
        newest = self.newest_in(thread)
        return None if newest is None or newest.is_over else newest

    def live(self) -> Iterator[Session]:
        """Yield the running sessions."""
        return (session for session in self.by_id.values() if not session.is_over)

    def live_with(self, agent: AgentId) -> list[Session]:
        """Return the running sessions in which `agent` takes part."""
        return [session for session in self.live() if agent in session.agents or agent in session.turns]

    def is_sealed(self, marks: Mapping[SessionId, int]) -> bool:
        """Return whether one of these phases is still running and sealed."""
        found = ((self.get(session_id), phase) for session_id, phase in marks.items())
        return any(session is not None and session.seal == phase for session, phase in found)

    def seals_of(self, agent: AgentId) -> dict[SessionId, int]:
        """Return an agent's sealed phases; everything it writes belongs to all of them."""
        return {session.id: session.seal for session in self.live() if session.binds(agent)}

    def apply(self, event: events.AnyEvent) -> None:
        """Update the session that an event is about."""
        if isinstance(event, events.Redacted):
            self.by_id = {key: without_message(session, event) for key, session in self.by_id.items()}
            return
        # Most events of a room belong to no session, and the second check is slow.
        session_id: SessionId | None = getattr(event, "session_id", None)
        if session_id is None or not isinstance(event, SessionEvent):
            return
        if (
            isinstance(event, events.ModeChanged)
            and event.change is Change.STARTED
            and event.setup is not None
        ):
            setup = event.setup
            is_extended = setup.on_hard_limit is OnHardLimit.ASK
            self.by_id[session_id] = Session(
                session_id,
                event.seq,
                event.thread,
                setup,
                event.ts,
                setup.agents,
                amounts=setup.limits if is_extended else Limits(),
            )
            self.threads[event.thread] = session_id
        elif session_id in self.by_id:
            self.by_id[session_id] = step(self.by_id[session_id], event)
            if isinstance(event, events.ModeChanged) and event.change is Change.CONTINUED:
                self.threads[event.thread] = session_id
            if isinstance(event, events.ModeChanged) and event.change is Change.ENDED:
                # Sorted by end, so that a session that outlived many others is not forgotten first.
                self.by_id[session_id] = self.by_id.pop(session_id)
                # Sessions that can be continued are kept longer.
                ended = [session for session in self.by_id.values() if session.is_over]
                plain = [session.id for session in ended if session.setup.collaboration is None]
                others = [session.id for session in ended if session.setup.collaboration is not None]
                for old in (*plain[:-KEPT_ENDED], *others[:-KEPT_COLLABORATIONS]):
                    thread = self.by_id.pop(old).thread
                    if self.threads.get(thread) == old:
                        del self.threads[thread]

    def drop_texts(self) -> None:
        """Remove the texts of all messages."""
        self.by_id = {key: without_texts(session) for key, session in self.by_id.items()}
