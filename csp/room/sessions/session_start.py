"""The beginning of a session: who takes part, on which terms."""

from csp.errors import BadInput, Refused
from csp.protocol.enums import ALL, HUMAN, AgentId, JoinRole, Mode, ParticipantKind, SessionId
from csp.protocol.events import AgentCall, HumanMessage, ModeChanged, RunStarted
from csp.protocol.review_messages import MAILBOX, RunTerms, is_run_id
from csp.protocol.session_parts import Change, EndReason, Limits, Setup
from csp.room.commands import Collaborate, SetMode
from csp.room.identity import nearest
from csp.room.messages.send import is_person
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.sessions.modes import MODES, ModeRow, NextSpeaker
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_end import end
from csp.room.sessions.session_engine import begin
from csp.room.sessions.session_state import Session


def set_mode(draft: RoomDraft, command: SetMode) -> None:
    """Begin a session; what ran in its thread makes way for it."""
    mode = known_mode(command.mode)
    thread = command.thread or f"s-{draft.next_seq}"
    before = draft.sessions.live_in(thread)
    if mode is Mode.FREEFORM:
        _to_freeform(draft, before, command.sender)
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
    session_draft.notice(f"Mode: {mode.upper()}")
    if setup.topic:
        session_draft.notice(f"Topic: {setup.topic}")
    if mode is Mode.AUTOPILOT and command.rounds is not None:
        session_draft.notice("Autopilot has no rounds, so theirs are ignored. Say 'Allstop' to end.")
    if mode is Mode.REVIEW:
        _start_run(session_draft, command)
    for note in command.notes:
        session_draft.notice(note)
    say_first(session_draft, command.sender, command.said)
    begin(session_draft)


def check_unsealed(draft: RoomDraft, sender: AgentId, before: Session | None = None) -> None:
    """Refuse to put the words of one who is in a sealed phase into the prompts of others."""
    seals = [session for session in draft.sessions.seals_of(sender) if before is None or session != before.id]
    if seals:
        raise Refused(f"{sender} is in a sealed phase of {seals[0]}", "wait for its end, or stop it first")


def say_first(draft: SessionDraft, sender: AgentId, text: str) -> None:
    """Put what somebody says into the window of all, before anybody is asked."""
    if text.strip():
        kind = HumanMessage if is_person(draft.room, sender) else AgentCall
        header = draft.room_draft.message_header(sender, ALL, text, thread=draft.session.thread)
        draft.room_draft.emit(kind(*header, recipients=(), session_id=draft.session.id))


def _check_run_id(draft: RoomDraft, run_id: str | None) -> None:
    if run_id is None:
        return
    if not is_run_id(run_id):
        hint = "use small letters, digits, . _ - but neither two dots nor . or .lock at the end, 64 at most"
        raise BadInput(f"{run_id[:80]!r} cannot be the id of a run", hint)
    if run_id in draft.room.runs.by_id:
        raise Refused(f"there is a run {run_id!r} already", "choose another id, or leave it out")


def _start_run(draft: SessionDraft, command: SetMode) -> None:
    """Begin the run of a session; the builder waits until its worktree exists."""
    terms, session = command.terms or RunTerms(), draft.session
    builder, reviewer = session.setup.agents
    run_id = terms.run_id or f"run-{draft.room_draft.next_seq}"
    draft.room_draft.emit(
        RunStarted(
            *draft.header(command.sender, command.topic),
            run=run_id,
            builder=builder,
            reviewer=reviewer,
            max_revisions=(session.setup.rounds or 1) - 1,
            terms=terms,
        )
    )
    draft.notice(f"Run {run_id}: {builder} builds, {reviewer} reviews.")


def known_mode(mode: str) -> Mode:
    """Return the mode of that name, or say which there are."""
    if mode not in set(Mode):
        raise BadInput(f"unknown mode {mode!r}", f"expected one of: {', '.join(Mode)}")
    return Mode(mode)


def _to_freeform(draft: RoomDraft, before: Session | None, by: AgentId) -> None:
    if before is not None:
        session_draft = SessionDraft(draft, before.id)
        end(session_draft, EndReason.CANCELED, by=by)
        session_draft.notice(f"Mode: {Mode.FREEFORM.upper()}")


def _setup(room: Room, command: SetMode, mode: Mode, rules: RoomRules) -> Setup:
    row = MODES[mode]
    agents = agents_of(room, command)
    lead = lead_of(room, row, agents, command)
    if lead is not None:
        agents = (lead, *(agent for agent in agents if agent != lead))
    if len(agents) < row.fewest:
        raise BadInput(f"{mode} takes at least {row.fewest} agents, got {len(agents)}", "see: csp agents")
    if row.most is not None and len(agents) > row.most:
        hint = "name the builder, then the reviewer"
        raise BadInput(f"{mode} takes {row.most} agents, got {len(agents)}", hint)
    return Setup(
        mode=mode,
        agents=_rotated(agents, _member(agents, command.first, "first")),
        topic=command.topic,
        rounds=_rounds(row, command),
        lead=lead,
        synth=_member(tuple(room.participants), command.synth, "synth"),
        ballot=command.ballot,
        respect_final=command.respect_final,
        soft_turns=command.soft_turns,
        limits=_limits(command.limits, rules.limits) if row.is_limited else command.limits,
        prices=dict(command.prices),
        collaboration=command.collaboration,
    )


def agents_of(room: Room, command: SetMode | Collaborate) -> tuple[AgentId, ...]:
    """Return who was named, or all agents that are here in the order of their coming."""
    if command.agents is None:
        return tuple(
            one.id
            for one in room.participants.values()
            if one.online and one.kind is not ParticipantKind.HUMAN and one.role is not JoinRole.ORCHESTRATOR
        )
    named = tuple(AgentId(name.strip().lower()) for name in command.agents)
    if not named:
        raise BadInput("agents is empty", "name at least one agent, or leave agents out to take all")
    for name in named:
        if name == MAILBOX and command.mode == Mode.REVIEW:
            continue
        known = room.participants.get(name)
        if name == HUMAN or (known is not None and known.kind is ParticipantKind.HUMAN):
            raise BadInput(f"{name!r} is a person, who takes no turns", "name agents alone")
        if known is None:
            raise BadInput(f"unknown agent {name!r}", nearest(name, list(room.participants)))
    if len(set(named) - {MAILBOX}) < len([name for name in named if name != MAILBOX]):
        raise BadInput("an agent is named twice", "name each agent once")
    return named


def lead_of(
    room: Room, row: ModeRow, agents: tuple[AgentId, ...], command: SetMode | Collaborate
) -> AgentId | None:
    """Return who leads where the mode has a lead: the orchestrator, else who goes first.

    In a collaboration the first leads: the orchestrator may be who waits for its result.
    """
    if row.phases[0].speaker is not NextSpeaker.LEAD:
        return None
    if isinstance(command, Collaborate) or command.collaboration is not None:
        return next(iter(agents))
    leads = (one.id for one in room.participants.values() if one.role is JoinRole.ORCHESTRATOR and one.online)
    return next(leads, _member(agents, command.first, "first") or next(iter(agents), None))


def _member(agents: tuple[AgentId, ...], name: str | None, field: str) -> AgentId | None:
    wanted = None if name is None else AgentId(name.strip().lower())
    if wanted is not None and wanted not in agents:
        raise BadInput(f"{field} {name!r} is not among the agents", nearest(wanted, list(agents)))
    return wanted


def _rotated(agents: tuple[AgentId, ...], first: AgentId | None) -> tuple[AgentId, ...]:
    at = 0 if first is None else agents.index(first)
    return agents[at:] + agents[:at]


def _rounds(row: ModeRow, command: SetMode) -> int | None:
    if command.max_revisions is not None:
        return command.max_revisions + 1
    given = {"rounds": command.rounds or command.steps, "steps": command.steps or command.rounds}
    return given.get(row.unit) or row.rounds


def _limits(wanted: Limits, house: Limits) -> Limits:
    return Limits(
        turns=house.turns if wanted.turns is None else wanted.turns,
        tokens=house.tokens if wanted.tokens is None else wanted.tokens,
        minutes=house.minutes if wanted.minutes is None else wanted.minutes,
        cost=house.cost if wanted.cost is None else wanted.cost,
    )


def check_free(draft: RoomDraft, setup: Setup, before: Session | None) -> None:
    """Refuse an agent that is in another session; only a model behind an API can be in two."""
    for agent in (*setup.agents, *([setup.synth] if setup.synth else [])):
        if agent == MAILBOX or draft.room.participants[agent].kind is ParticipantKind.API:
            continue
        others = [session for session in draft.sessions.live_with(agent) if session is not before]
        if others:
            hint = f"end that one first with: csp stop, or choose others than {agent}"
            raise Refused(f"{agent} is in session {others[0].id} ({others[0].setup.mode})", hint)
