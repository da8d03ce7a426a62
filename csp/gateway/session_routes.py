"""The routes of the modes: begin a session, see it, steer it, stop it."""

import logging
from collections.abc import Iterator

from csp.errors import NotFound
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call, answered
from csp.protocol.codec import check_text
from csp.protocol.enums import DEFAULT_THREAD, SessionAction
from csp.protocol.events import KnownEvent, ModeChanged
from csp.protocol.requests import HandoffBody, ModeBody, SessionActionBody, StopBody, VoteBody
from csp.protocol.responses import (
    Done,
    ModeSetView,
    ModeView,
    SessionDetailView,
    SessionDoneView,
    SessionStartedView,
    SessionsView,
    SessionView,
    StopView,
)
from csp.protocol.session_parts import Change
from csp.room.commands import CastVote, HandOffTurn, NextTurn, SetMode, Steer, Stop
from csp.room.identity import nearest
from csp.room.sessions.session_state import Session
from csp.room.sessions.session_views import mode_view, session_view, turn_view
from csp.room.visibility import visible_spending

log = logging.getLogger(__name__)


async def get_mode(gateway: Gateway, call: Call) -> Answer:
    await gateway.writer.settle()
    return _view(gateway, gateway.writer.room.sessions.newest_in(call.query.thread))


async def set_mode(gateway: Gateway, call: Call) -> Answer:
    thread = call.body.thread or DEFAULT_THREAD
    before = await answered(gateway, call)
    if before is None:
        await gateway.submit(_command(call, thread))
    sessions = gateway.writer.room.sessions
    return ModeSetView(
        success=True, orchestration=_view(gateway, sessions.get(before) or sessions.newest_in(thread))
    )


async def next_turn(gateway: Gateway, call: Call) -> Answer:
    thread = call.body.thread or DEFAULT_THREAD
    await gateway.submit(NextTurn(thread=thread, **call.once))
    return turn_view(gateway.writer.room.sessions.newest_in(thread))


async def stop(gateway: Gateway, call: Call) -> Answer:
    return await stop_at_once(gateway, call.caller, call.body)


async def stop_at_once(gateway: Gateway, caller: Caller, body: StopBody) -> StopView:
    """Stop what runs in a thread, or everywhere."""
    call = Call(caller, {}, None, body)
    thread = None if body.all else body.thread or DEFAULT_THREAD
    before = await answered(gateway, call)
    if before is not None:
        return StopView(success=True, stopped=tuple(filter(None, before.split(","))))
    events = await gateway.submit(Stop(sender=caller.id, thread=thread, **call.once))
    stopped = tuple(_changed(events, Change.ENDED))
    if not stopped:
        log.info("stop was a no-op, nothing is running", extra={"of_thread": thread or "all"})
    return StopView(success=True, stopped=stopped)


async def vote(gateway: Gateway, call: Call) -> Answer:
    body: VoteBody = call.body
    command = CastVote(agent=call.caller.id, label=body.label, reason=body.reason, session=body.session)
    await gateway.submit(command)
    return Done()


async def hand_over(gateway: Gateway, call: Call) -> Answer:
    body: HandoffBody = call.body
    await gateway.submit(HandOffTurn(agent=call.caller.id, to=body.to, task=body.task, session=body.session))
    return Done()


async def list_sessions(gateway: Gateway, call: Call) -> Answer:
    await gateway.writer.settle()
    sessions = gateway.writer.room.sessions.by_id.values()
    return SessionsView(items=tuple(_short(gateway, session, call) for session in sessions))


async def start_session(gateway: Gateway, call: Call) -> Answer:
    before = await answered(gateway, call)
    events = [] if before is not None else await gateway.submit(_command(call, call.body.thread))
    session = _known(gateway, before or next(_changed(events, Change.STARTED), ""))
    view = _view(gateway, session)
    return SessionStartedView(success=True, id=session.id, thread=session.thread, orchestration=view)


async def get_session(gateway: Gateway, call: Call) -> Answer:
    await gateway.writer.settle()
    session = _known(gateway, call.path["id"])
    return SessionDetailView(session=_short(gateway, session, call), orchestration=_view(gateway, session))


async def act_on_session(gateway: Gateway, call: Call) -> Answer:
    action = call.chosen("change", SessionAction)
    body: SessionActionBody = call.body
    command = Steer(
        sender=call.caller.id,
        session=call.path["id"],
        action=action,
        agent=body.agent,
        rounds=body.rounds,
        minutes=body.minutes,
        **call.once,
    )
    await gateway.submit(command)
    return SessionDoneView(success=True, session=_short(gateway, _known(gateway, call.path["id"]), call))


def _short(gateway: Gateway, session: Session, call: Call) -> SessionView:
    """Return a session as the caller may see it."""
    seen = visible_spending(session.spent_so_far, call.caller.reader, gateway.writer.room.sessions)
    return session_view(session, seen)


def _command(call: Call, thread: str | None) -> SetMode:
    body: ModeBody = call.body
    check_text(body.topic or "")
    return SetMode(
        **call.once,
        sender=call.caller.id,
        mode=body.mode,
        topic=body.topic or "",
        agents=body.agents,
        rounds=body.rounds,
        steps=body.steps,
        first=body.first,
        synth=body.synth,
        ballot=body.ballot,
        respect_final=body.respect_final,
        soft_turns=body.soft_turns,
        limits=body.limits,
        thread=thread,
    )


def _changed(events: list[KnownEvent], change: Change) -> Iterator[str]:
    return (event.session_id for event in events if isinstance(event, ModeChanged) and event.change is change)


def _known(gateway: Gateway, session_id: str) -> Session:
    sessions = gateway.writer.room.sessions
    found = sessions.get(session_id)
    if found is None:
        known = [str(key) for key in sessions.by_id]
        hint = nearest(session_id, known) if known else "see: csp mode show"
        raise NotFound(f"unknown session {session_id!r}", hint)
    return found


def _view(gateway: Gateway, session: Session | None) -> ModeView:
    return mode_view(gateway.writer.room, session, gateway.rules)
