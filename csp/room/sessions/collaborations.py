"""Collaborations: sessions that work on an objective for somebody who waits in another thread."""

import re
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import DEFAULT_THREAD, AgentId, Mode
from csp.protocol.session_parts import Change, Collaboration, Limits, PhaseKind, Price, Setup
from csp.room.commands import Collaborate, SetMode
from csp.room.identity import nearest
from csp.room.room_draft import RoomDraft
from csp.room.room_rules import RoomRules
from csp.room.room_state import Room
from csp.room.sessions.modes import MODES
from csp.room.sessions.session_draft import SessionDraft
from csp.room.sessions.session_engine import advance, begin
from csp.room.sessions.session_start import (
    agents_of,
    check_free,
    check_unsealed,
    known_mode,
    lead_of,
    say_first,
    set_mode,
)
from csp.room.sessions.session_state import Session
from csp.room.sessions.turns import cancel

#: The modes that a collaboration can have; both are turns with a synthesis at their end.
STYLES: Final = (Mode.ROUND_ROBIN, Mode.ORCHESTRATOR)
STEPS: Final = 10
_SESSION_ID: Final = re.compile(r"s-\d+\Z")


def collaborate(draft: RoomDraft, command: Collaborate) -> None:
    """Begin a collaboration, or go on with one that runs or is over."""
    _check_caller(draft, command)
    check_unsealed(draft, command.sender)
    before = _known(draft, command.session)
    if before is None:
        _begin(draft, command)
    else:
        _go_on(SessionDraft(draft, before.id), command)


def _check_caller(draft: RoomDraft, command: Collaborate) -> None:
    """Refuse one that takes part in a collaboration: it would wait for others of its kind without end."""
    for session in draft.sessions.live_with(command.sender):
        if session.setup.collaboration is not None:
            hint = "finish your turn there; its caller can begin another one"
            raise Refused(f"{command.sender} takes part in collaboration {session.id}", hint)


def _known(draft: RoomDraft, name: str | None) -> Session | None:
    """Return the collaboration that is meant; None where there is to be a new one."""
    if name is None:
        return None
    found = draft.sessions.find(name)
    if found is not None and found.setup.collaboration is None:
        raise Refused(f"{found.id} is no collaboration", "leave session_id out to begin one")
    if found is None and _SESSION_ID.match(name):
        known = [str(one.id) for one in draft.sessions.by_id.values() if one.setup.collaboration]
        hint = nearest(name, known) if known else "leave session_id out to begin one"
        raise NotFound(f"unknown collaboration {name!r}, or it ended too long ago", hint)
    if name == DEFAULT_THREAD:
        raise BadInput(f"{name!r} cannot be the name of a collaboration", "choose another one")
    return found


# --- a new one -------------------------------------------------------------------------------------


def _begin(draft: RoomDraft, command: Collaborate) -> None:
    mode = _style(command.mode or Mode.ROUND_ROBIN)
    if not command.objective.strip():
        raise BadInput("objective is empty", "say what they should work on")
    agents = _named(draft.room, command)
    limits = _limits(command, agents, Limits(), draft.rules)
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


def _named(room: Room, command: Collaborate) -> tuple[AgentId, ...]:
    if command.agents is None:
        known = ", ".join(room.participants) or "nobody yet"
        raise BadInput("no models are named", f"name who should take part; in the room are: {known}")
    return agents_of(room, command)


def _terms(command: Collaborate, before: Collaboration) -> Collaboration:
    return replace(
        before,
        parallel=before.parallel if command.parallel is None else command.parallel,
        step_s=before.step_s if command.step_s is None else command.step_s,
        summarise_at=before.summarise_at if command.summarise_at is None else command.summarise_at,
    )


def _limits(command: Collaborate, agents: tuple[AgentId, ...], before: Limits, rules: RoomRules) -> Limits:
    """Return what it may take at most; where a price is unknown, the tokens are limited instead."""
    cost = command.cost or before.cost or rules.limits.cost
    is_dark = cost is not None and any(agent not in command.prices for agent in agents)
    return replace(before, cost=cost, tokens=before.tokens or (rules.limits.tokens if is_dark else None))


def _notes(
    mode: Mode,
    agents: tuple[AgentId, ...],
    terms: Collaboration,
    limits: Limits,
    prices: Mapping[AgentId, Price],
) -> tuple[str, ...]:
    """Return what people should know of a collaboration before it goes on."""
    notes = []
    if mode is Mode.ORCHESTRATOR and terms.parallel > 1:
        notes.append(f"{agents[0]} names one at a time, so `parallel` is ignored.")
    dark = [agent for agent in agents if agent not in prices]
    if limits.cost is not None and dark:
        tokens = f" The limit of {limits.tokens:,} new tokens holds." if limits.tokens else ""
        notes.append(
            f"No price is known for {', '.join(dark)}: what a call of theirs costs counts once it is told."
            + tokens
        )
    return tuple(notes)


# --- one that goes on ------------------------------------------------------------------------------


def _go_on(draft: SessionDraft, command: Collaborate) -> None:
    """Give a collaboration more steps; its thread, its turn order, what was said and spent go on."""
    before = draft.session
    setup = _more(draft, command)
    other = draft.sessions.live_in(before.thread)
    if other is not None and other.id != before.id:
        raise Refused(f"{other.id} runs in thread {before.thread}", f"end it first, or go on with {other.id}")
    check_free(draft.room_draft, setup, before)
    text = f"goes on for {(setup.rounds or 0) - before.steps} steps at most"
    draft.change(Change.CONTINUED, text, by=command.sender, setup=setup)
    draft.notice(f"{setup.mode.upper()} {text}.")
    for note in _notes(setup.mode, setup.agents, draft.terms, setup.limits, setup.prices):
        draft.notice(note)
    say_first(draft, command.sender, command.said)
    is_at_rest = before.is_over or before.stage.kind is PhaseKind.SOLO
    for turn in list(draft.session.turns.values()):
        if is_at_rest or turn.agent not in setup.agents:
            cancel(draft, turn, "it goes on without this turn")
    if is_at_rest:
        begin(draft)
    else:
        advance(draft)


def _more(draft: SessionDraft, command: Collaborate) -> Setup:
    """Return what a collaboration goes on with."""
    session, setup = draft.session, draft.session.setup
    mode = _style(command.mode or setup.mode)
    named = (
        agents_of(draft.room, command)
        if command.agents is not None
        else tuple(agent for agent in session.agents if agent in draft.room.participants)
    )
    if len(named) < MODES[mode].fewest:
        raise BadInput(f"{mode} takes at least {MODES[mode].fewest} agents, got {len(named)}", "name models")
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
        limits=_limits(command, named, setup.limits, draft.rules),
        prices={**setup.prices, **command.prices},
        collaboration=_terms(command, draft.terms),
    )
