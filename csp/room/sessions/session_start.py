"""Start a session: its agents and its terms.

A collaboration is a session that works on an objective for a caller waiting in another thread.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import asdict, replace

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL, DEFAULT_THREAD, HUMAN, AgentId, JoinRole, Mode, ParticipantKind, SessionId
from csp.protocol.events import AgentCall, HumanMessage, ModeChanged, RunStarted
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.review_messages import MAILBOX, RunTerms, is_run_id
from csp.protocol.session_parts import (
    Change,
    Collaboration,
    EndReason,
    Limits,
    OnHardLimit,
    OnLimit,
    PhaseKind,
    Price,
    Setup,
)
from csp.room.agent_names import nearest
from csp.room.commands import Collaborate, RoomRules, SetMode
from csp.room.room_draft import RoomDraft, SessionDraft
from csp.room.room_state import Room
from csp.room.sessions.modes import MODES, ModeRow, NextSpeaker
from csp.room.sessions.session_end import end
from csp.room.sessions.session_engine import advance, begin
from csp.room.sessions.session_state import Session
from csp.room.sessions.turns import cancel


def set_mode(draft: RoomDraft, command: SetMode) -> None:
    """Start a session, replacing the one running in its thread."""
    mode = known_mode(command.mode)
    thread = command.thread or f"s-{draft.next_seq}"
    before = draft.sessions.live_in(thread)
    if mode is Mode.FREEFORM:
        if before is not None:
            session_draft = SessionDraft(draft, before.id)
            end(session_draft, EndReason.CANCELED, by=command.sender)
            session_draft.notice(NoticeCode.MODE(mode=Mode.FREEFORM.upper()))
        return
    check_unsealed(draft, command.sender, before)
    setup = _setup(draft.room, command, mode, draft.rules)
    if mode is Mode.REVIEW and command.terms is not None:
        _check_run_id(draft, command.terms.run_id)
    check_free(draft, setup, before)
    if before is not None:
        end(SessionDraft(draft, before.id), EndReason.SUPERSEDED, by=command.sender)
    session_id = SessionId(f"s-{draft.next_seq}")
    header = draft.header(command.sender, ALL, f"{mode} started", thread=thread)
    draft.emit(ModeChanged(*header, session_id=session_id, change=Change.STARTED, setup=setup))
    session_draft = SessionDraft(draft, session_id)
    session_draft.notice(NoticeCode.MODE(mode=mode.upper()))
    if setup.topic:
        session_draft.notice(NoticeCode.TOPIC(topic=setup.topic))
    if mode is Mode.AUTOPILOT and command.rounds is not None:
        session_draft.notice(NoticeCode.AUTOPILOT_ROUNDS_IGNORED())
    if mode is Mode.REVIEW:
        # The builder waits until its worktree exists.
        terms = command.terms or RunTerms()
        builder, reviewer = setup.agents
        run_id = terms.run_id or f"run-{draft.next_seq}"
        draft.emit(
            RunStarted(
                *session_draft.header(command.sender, command.topic),
                run=run_id,
                builder=builder,
                reviewer=reviewer,
                max_revisions=(setup.rounds or 1) - 1,
                terms=terms,
            )
        )
        session_draft.notice(NoticeCode.RUN_STARTED(run=run_id, builder=builder, reviewer=reviewer))
    for words in command.notes:
        session_draft.notice(words)
    say_first(session_draft, command.sender, command.said)
    begin(session_draft)


def check_unsealed(draft: RoomDraft, sender: AgentId, before: Session | None = None) -> None:
    """Raise Refused if a participant in a sealed phase would put its text into others' prompts."""
    seals = [session for session in draft.sessions.seals_of(sender) if before is None or session != before.id]
    if seals:
        raise Refused(f"{sender} is in a sealed phase of {seals[0]}", "wait for its end, or stop it first")


def say_first(draft: SessionDraft, sender: AgentId, text: str) -> None:
    """Put a first message into all agents' windows before any of them is asked."""
    if text.strip():
        kind = HumanMessage if draft.room.is_person(sender) else AgentCall
        header = draft.room_draft.message_header(sender, ALL, text, thread=draft.session.thread)
        draft.room_draft.emit(kind(*header, recipients=(), session_id=draft.session.id))


def _check_run_id(draft: RoomDraft, run_id: str | None) -> None:
    if run_id is None:
        return
    if not is_run_id(run_id):
        hint = "use at most 64 of a-z, 0-9, '.', '_' and '-', without '..' and no '.' or '.lock' at the end"
        raise BadInput(f"{run_id[:80]!r} is not a valid run id", hint)
    if run_id in draft.room.runs.by_id:
        raise Refused(f"a run {run_id!r} already exists", "choose another id, or omit it")


def known_mode(mode: str) -> Mode:
    """Return the mode with this name; otherwise raise BadInput with the known modes."""
    if mode not in set(Mode):
        raise BadInput(f"unknown mode {mode!r}", f"expected one of: {', '.join(Mode)}")
    return Mode(mode)


def _setup(room: Room, command: SetMode, mode: Mode, rules: RoomRules) -> Setup:
    row = MODES[mode]
    agents = agents_of(room, command)
    lead = lead_of(room, row, agents, command)
    if lead is not None:
        agents = (lead, *(agent for agent in agents if agent != lead))
    if len(agents) < row.fewest:
        raise BadInput(f"{mode} needs at least {row.fewest} agents, got {len(agents)}", "see: csp agents")
    if row.most is not None and len(agents) > row.most:
        hint = "name the builder, then the reviewer"
        raise BadInput(f"{mode} needs {row.most} agents, got {len(agents)}", hint)
    first = _member(agents, command.first, "first")
    at = 0 if first is None else agents.index(first)
    limits = command.limits
    if row.is_limited:
        given = {name: value for name, value in asdict(limits).items() if value is not None}
        limits = replace(rules.limits, **given)
    given = {"rounds": command.rounds or command.steps, "steps": command.steps or command.rounds}
    rounds = given.get(row.unit) or row.rounds
    if command.max_revisions is not None:
        rounds = command.max_revisions + 1
    return Setup(
        mode=mode,
        agents=agents[at:] + agents[:at],
        topic=command.topic,
        rounds=rounds,
        lead=lead,
        synth=_member(tuple(room.participants), command.synth, "synth"),
        ballot=command.ballot,
        respect_final=command.respect_final,
        soft_turns=command.soft_turns,
        limits=limits,
        on_limit=_on_limit(command, row, rules),
        on_hard_limit=_on_hard_limit(command, rules),
        prices=dict(command.prices),
        collaboration=command.collaboration,
    )


def _on_limit(command: SetMode, row: ModeRow, rules: RoomRules) -> OnLimit:
    # The caller of a collaboration waits for its result.
    if command.collaboration is not None:
        return OnLimit.SKIP
    return command.on_limit or rules.on_limit or row.on_limit


def _on_hard_limit(command: SetMode, rules: RoomRules) -> OnHardLimit:
    if command.collaboration is not None:
        return OnHardLimit.STOP
    return command.on_hard_limit or rules.on_hard_limit


def agents_of(room: Room, command: SetMode | Collaborate) -> tuple[AgentId, ...]:
    """Return the named agents, or all online agents in the order they joined."""
    if command.agents is None:
        return tuple(
            one.id
            for one in room.participants.values()
            if one.online and one.kind is not ParticipantKind.HUMAN and one.role is not JoinRole.ORCHESTRATOR
        )
    named = tuple(AgentId(name.strip().lower()) for name in command.agents)
    if not named:
        raise BadInput("agents is empty", "name at least one agent, or omit agents to use all")
    for name in named:
        if name == MAILBOX and command.mode == Mode.REVIEW:
            continue
        known = room.participants.get(name)
        if name == HUMAN or (known is not None and known.kind is ParticipantKind.HUMAN):
            raise BadInput(f"{name!r} is a person; only agents can take turns", "name agents only")
        if known is None:
            raise BadInput(f"unknown agent {name!r}", nearest(name, list(room.participants)))
    if len(set(named) - {MAILBOX}) < len([name for name in named if name != MAILBOX]):
        raise BadInput("an agent is named twice", "name each agent once")
    return named


def lead_of(
    room: Room, row: ModeRow, agents: tuple[AgentId, ...], command: SetMode | Collaborate
) -> AgentId | None:
    """Return the lead, if the mode has one: the orchestrator, else the first speaker.

    In a collaboration, the first speaker leads, because the orchestrator may be the one waiting for its
    result.
    """
    if row.phases[0].speaker is not NextSpeaker.LEAD:
        return None
    if isinstance(command, Collaborate) or command.collaboration is not None:
        return next(iter(agents))
    if room.orchestrator is not None:
        return room.orchestrator.id
    return _member(agents, command.first, "first") or next(iter(agents), None)


def _member(agents: tuple[AgentId, ...], name: str | None, field: str) -> AgentId | None:
    wanted = None if name is None else AgentId(name.strip().lower())
    if wanted is not None and wanted not in agents:
        raise BadInput(f"{field} {name!r} is not among the agents", nearest(wanted, list(agents)))
    return wanted


def check_free(draft: RoomDraft, setup: Setup, before: Session | None) -> None:
    """Raise Refused if an agent is in another session; only API models can be in two."""
    for agent in (*setup.agents, *([setup.synth] if setup.synth else [])):
        if agent == MAILBOX or draft.room.participants[agent].kind is ParticipantKind.API:
            continue
        others = [session for session in draft.sessions.live_with(agent) if session is not before]
        if others:
            hint = f"end that session first with: csp stop, or choose agents other than {agent}"
            raise Refused(f"{agent} is in session {others[0].id} ({others[0].setup.mode})", hint)


# --- collaborations -------------------------------------------------------------------------------


#: The modes of a collaboration; both consist of turns followed by a synthesis.
STYLES: Final = (Mode.ROUND_ROBIN, Mode.ORCHESTRATOR)
STEPS: Final = 10
_SESSION_ID: Final = re.compile(r"s-\d+\Z")


def collaborate(draft: RoomDraft, command: Collaborate) -> None:
    """Start a collaboration, or continue one that is running or has ended."""
    # An agent in a collaboration could otherwise start collaborations endlessly.
    for session in draft.sessions.live_with(command.sender):
        if session.setup.collaboration is not None:
            hint = "finish your turn there; its caller can start another one"
            raise Refused(f"{command.sender} takes part in collaboration {session.id}", hint)
    check_unsealed(draft, command.sender)
    name = command.session or ""
    before = draft.sessions.find(name)
    if before is not None and before.setup.collaboration is None:
        raise Refused(f"{before.id} is not a collaboration", "omit session_id to start one")
    if before is None and _SESSION_ID.match(name):
        known = [str(one.id) for one in draft.sessions.by_id.values() if one.setup.collaboration]
        hint = nearest(name, known) if known else "omit session_id to start one"
        raise NotFound(f"unknown collaboration {name!r}, or it ended too long ago", hint)
    if name == DEFAULT_THREAD:
        raise BadInput(f"{name!r} is not a valid collaboration name", "choose another one")
    if before is None:
        _begin(draft, command)
    else:
        _go_on(SessionDraft(draft, before.id), command)


# --- starting one ----------------------------------------------------------------------------------


def _begin(draft: RoomDraft, command: Collaborate) -> None:
    mode = _style(command.mode or Mode.ROUND_ROBIN)
    if not command.objective.strip():
        raise BadInput("objective is empty", "describe what they should work on")
    if command.agents is None:
        known = ", ".join(draft.room.participants) or "nobody yet"
        raise BadInput("no models were named", f"name the participants; in the room are: {known}")
    agents = agents_of(draft.room, command)
    limits = _collaboration_limits(command, agents, Limits(), draft.rules)
    terms = _terms(command, Collaboration(thread=command.thread))
    wanted = SetMode(
        sender=command.sender,
        mode=mode,
        topic=command.objective,
        agents=agents,
        steps=command.steps or STEPS,
        synth=agents[0],
        limits=limits,
        collaboration=terms,
        notes=_notes(mode, agents, terms, limits, command.prices),
        said=command.said,
        prices=command.prices,
        thread=command.session,
    )
    set_mode(draft, wanted)


def _style(mode: str) -> Mode:
    if mode not in STYLES:
        known = known_mode(mode)
        raise BadInput(f"a collaboration cannot be a {known}", f"expected one of: {', '.join(STYLES)}")
    return Mode(mode)


def _terms(command: Collaborate, before: Collaboration) -> Collaboration:
    wanted = {name: getattr(command, name) for name in ("parallel", "step_s", "summarise_at")}
    return replace(before, **{name: value for name, value in wanted.items() if value is not None})


def _collaboration_limits(
    command: Collaborate, agents: tuple[AgentId, ...], before: Limits, rules: RoomRules
) -> Limits:
    """Return a collaboration's limits; if a price is unknown, tokens are limited instead of cost."""
    cost = command.cost or before.cost or rules.limits.cost
    is_dark = cost is not None and any(agent not in command.prices for agent in agents)
    return replace(before, cost=cost, tokens=before.tokens or (rules.limits.tokens if is_dark else None))


def _notes(
    mode: Mode,
    agents: tuple[AgentId, ...],
    terms: Collaboration,
    limits: Limits,
    prices: Mapping[AgentId, Price],
) -> tuple[NoticeWords, ...]:
    """Return notices for people about a collaboration that starts or continues."""
    notes: list[NoticeWords] = []
    if mode is Mode.ORCHESTRATOR and terms.parallel > 1:
        notes.append(NoticeCode.PARALLEL_IGNORED(agent=agents[0]))
    dark = ", ".join(agent for agent in agents if agent not in prices)
    if limits.cost is not None and dark and limits.tokens:
        notes.append(NoticeCode.PRICE_UNKNOWN_CAPPED(agents=dark, tokens=limits.tokens))
    elif limits.cost is not None and dark:
        notes.append(NoticeCode.PRICE_UNKNOWN(agents=dark))
    return tuple(notes)


# --- continuing one --------------------------------------------------------------------------------


def _go_on(draft: SessionDraft, command: Collaborate) -> None:
    """Give a collaboration more steps, keeping its thread, turn order, messages and spending."""
    before = draft.session
    setup = _more(draft, command)
    other = draft.room.sessions.live_in(before.thread)
    if other is not None and other.id != before.id:
        raise Refused(
            f"{other.id} runs in thread {before.thread}", f"end it first, or continue with {other.id}"
        )
    check_free(draft.room_draft, setup, before)
    steps = (setup.rounds or 0) - before.steps
    text = f"continues for at most {steps} steps"
    draft.change(Change.CONTINUED, text, by=command.sender, setup=setup)
    draft.notice(NoticeCode.SESSION_CONTINUED(mode=setup.mode.upper(), steps=steps))
    for words in _notes(setup.mode, setup.agents, draft.terms, setup.limits, setup.prices):
        draft.notice(words)
    say_first(draft, command.sender, command.said)
    is_at_rest = before.is_over or before.stage.kind is PhaseKind.SOLO
    for turn in list(draft.session.turns.values()):
        if is_at_rest or turn.agent not in setup.agents:
            cancel(draft, turn, "it continues without this turn")
    if is_at_rest:
        begin(draft)
    else:
        advance(draft)


def _more(draft: SessionDraft, command: Collaborate) -> Setup:
    """Return the setup with which a collaboration continues."""
    session, setup = draft.session, draft.session.setup
    mode = _style(command.mode or setup.mode)
    named = (
        agents_of(draft.room, command)
        if command.agents is not None
        else tuple(agent for agent in session.agents if agent in draft.room.participants)
    )
    if len(named) < MODES[mode].fewest:
        raise BadInput(f"{mode} needs at least {MODES[mode].fewest} agents, got {len(named)}", "name models")
    lead = lead_of(draft.room, MODES[mode], named, command)
    done = session.steps if session.is_over else setup.rounds or session.steps
    return replace(
        setup,
        mode=mode,
        agents=named,
        topic=command.objective.strip() or setup.topic,
        rounds=done + (command.steps or STEPS),
        lead=lead,
        synth=setup.synth if setup.synth in named else named[0],
        limits=_collaboration_limits(command, named, setup.limits, draft.rules),
        prices={**setup.prices, **command.prices},
        collaboration=_terms(command, draft.terms),
    )
