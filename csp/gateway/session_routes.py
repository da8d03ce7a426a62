"""Routes for sessions and collaborations: start, show, steer, and stop."""

import asyncio
import logging
import time
from collections.abc import Iterator

from csp.errors import NotFound
from csp.gateway.agent_throttle import wait_for_news
from csp.gateway.gateway import Gateway
from csp.gateway.route_table import AnyCall, Asked, Posted, answered, fill
from csp.price_list import price_of
from csp.protocol import requests, responses
from csp.protocol.codec import check_text
from csp.protocol.enums import DEFAULT_THREAD, AgentId, ParticipantKind, SessionAction
from csp.protocol.events import KnownEvent, ModeChanged
from csp.protocol.session_parts import Change, Collaboration, Price
from csp.room.agent_names import nearest
from csp.room.commands import CastVote, Collaborate, HandOffTurn, NextTurn, SetMode, Steer, Stop
from csp.room.sessions.session_state import Session
from csp.room.sessions.session_views import collaboration_view, mode_view, session_view, turn_view
from csp.room.visibility import visible_spending

log = logging.getLogger(__name__)
_BEGUN = (Change.STARTED, Change.CONTINUED)
_DEMO_PROFILE = "demo"
_FREE = Price(input=0.0, output=0.0)


async def get_mode(gateway: Gateway, call: Asked[requests.ThreadParams]) -> responses.ModeView:
    await gateway.writer.settle()
    return _view(gateway, gateway.writer.room.sessions.newest_in(call.query.thread))


async def set_mode(gateway: Gateway, call: Posted[requests.ModeBody]) -> responses.ModeSetView:
    thread = call.body.thread or DEFAULT_THREAD
    before = await answered(gateway, call)
    if before is None:
        await gateway.submit(_command(call, thread))
    sessions = gateway.writer.room.sessions
    return responses.ModeSetView(
        success=True, orchestration=_view(gateway, sessions.get(before) or sessions.newest_in(thread))
    )


async def next_turn(gateway: Gateway, call: Posted[requests.TurnBody]) -> responses.TurnView:
    thread = call.body.thread or DEFAULT_THREAD
    await gateway.submit(NextTurn(thread=thread, **call.once))
    return turn_view(gateway.writer.room.sessions.newest_in(thread))


async def stop(gateway: Gateway, call: Posted[requests.StopBody]) -> responses.StopView:
    """Stop all running work in a thread, or everywhere."""
    thread = None if call.body.all else call.body.thread or DEFAULT_THREAD
    before = await answered(gateway, call)
    if before is not None:
        return responses.StopView(success=True, stopped=tuple(filter(None, before.split(","))))
    events = await gateway.submit(Stop(sender=call.caller.id, thread=thread, **call.once))
    stopped = tuple(_changed(events, Change.ENDED))
    if not stopped:
        log.info("stop was a no-op, nothing is running", extra={"of_thread": thread or "all"})
    return responses.StopView(success=True, stopped=stopped)


async def vote(gateway: Gateway, call: Posted[requests.VoteBody]) -> responses.Done:
    await gateway.submit(fill(CastVote, call.body, agent=call.caller.id))
    return responses.Done()


async def hand_over(gateway: Gateway, call: Posted[requests.HandoffBody]) -> responses.Done:
    await gateway.submit(fill(HandOffTurn, call.body, agent=call.caller.id))
    return responses.Done()


async def list_sessions(gateway: Gateway, call: AnyCall) -> responses.SessionsView:
    await gateway.writer.settle()
    sessions = gateway.writer.room.sessions.by_id.values()
    return responses.SessionsView(items=tuple(_short(gateway, session, call) for session in sessions))


async def start_session(gateway: Gateway, call: Posted[requests.ModeBody]) -> responses.SessionStartedView:
    before = await answered(gateway, call)
    events = [] if before is not None else await gateway.submit(_command(call, call.body.thread))
    session = _known(gateway, before or next(_changed(events, Change.STARTED), ""))
    view = _view(gateway, session)
    return responses.SessionStartedView(
        success=True, id=session.id, thread=session.thread, orchestration=view
    )


async def get_session(gateway: Gateway, call: AnyCall) -> responses.SessionDetailView:
    await gateway.writer.settle()
    session = _known(gateway, call.path["id"])
    return responses.SessionDetailView(
        session=_short(gateway, session, call), orchestration=_view(gateway, session)
    )


async def act_on_session(
    gateway: Gateway, call: Posted[requests.SessionActionBody]
) -> responses.SessionDoneView:
    action = call.choice("change", SessionAction)
    sender, session = call.caller.id, call.path["id"]
    await gateway.submit(fill(Steer, call.body, sender=sender, session=session, action=action, **call.once))
    return responses.SessionDoneView(
        success=True, session=_short(gateway, _known(gateway, call.path["id"]), call)
    )


def _short(gateway: Gateway, session: Session, call: AnyCall) -> responses.SessionView:
    """Return the parts of a session that are visible to the caller."""
    seen = visible_spending(session.spent_so_far, call.caller.reader, gateway.writer.room.sessions)
    return session_view(session, seen)


def _command(call: Posted[requests.ModeBody], thread: str | None) -> SetMode:
    topic = call.body.topic or ""
    check_text(topic)
    return fill(SetMode, call.body, sender=call.caller.id, topic=topic, thread=thread, **call.once)


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


def _view(gateway: Gateway, session: Session | None) -> responses.ModeView:
    return mode_view(gateway.writer.room, session, gateway.rules)


async def begin_collaboration(
    gateway: Gateway, call: Posted[requests.CollaborateBody]
) -> responses.CollaborationStartedView:
    body = call.body
    check_text(body.objective)
    check_text(body.user_input)
    before = await answered(gateway, call)
    if before is not None:
        session, _ = _known_collaboration(gateway, before)
        return responses.CollaborationStartedView(
            success=True, handle=session.id, session=session.id, thread=session.thread
        )
    command = fill(
        Collaborate,
        body,
        **call.once,
        sender=call.caller.id,
        agents=body.models,
        session=body.session_id,
        said=body.user_input,
        steps=body.max_steps,
        step_s=body.timeout_per_step,
        cost=body.cost_limit_usd,
        summarise_at=body.summarization_threshold,
        prices=await known_prices(gateway),
        hits=await gateway.board_hits.for_start(body.session_id, body.objective, body.user_input),
        thread=body.thread or DEFAULT_THREAD,
    )
    events = await gateway.submit(command)
    begun = next((one for one in events if isinstance(one, ModeChanged) and one.change in _BEGUN), None)
    if begun is None:
        raise NotFound("the same call was carried out before", "repeat it to get its answer")
    return responses.CollaborationStartedView(
        success=True, handle=begun.session_id, session=begun.session_id, thread=begun.thread
    )


async def known_prices(gateway: Gateway) -> dict[AgentId, Price]:
    """Return the known prices of the room's models; demo agents are free."""
    found: dict[AgentId, Price | None] = {}
    for participant in list(gateway.writer.room.participants.values()):
        told = participant.capabilities
        if isinstance(told, dict) and participant.kind is ParticipantKind.API:
            model, provider = str(told.get("model") or ""), str(told.get("provider") or "")
            # In a thread, because loading the price list takes a while.
            found[participant.id] = await asyncio.to_thread(price_of, model, provider)
        elif told == [_DEMO_PROFILE] or (isinstance(told, dict) and told.get("profile") == _DEMO_PROFILE):
            found[participant.id] = _FREE
    return {agent: price for agent, price in found.items() if price is not None}


async def show_collaboration(
    gateway: Gateway, call: Asked[requests.CollaborationParams]
) -> responses.CollaborationView:
    params = call.query
    deadline = time.monotonic() + params.wait
    with gateway.connected(call.caller):
        while True:
            news = gateway.broadcast.next_news()
            await gateway.writer.settle()
            gateway.recheck(call.caller)
            view = _progress(gateway, call, call.path["id"], params.after)
            remaining = deadline - time.monotonic()
            is_news = params.after is not None and view.lines > params.after
            if view.reason or is_news or remaining <= 0 or gateway.broadcast.is_closed:
                return view
            await wait_for_news(news, remaining)


async def stop_collaboration(gateway: Gateway, call: Posted[requests.NoBody]) -> responses.CollaborationView:
    await gateway.writer.settle()
    session, _ = _known_collaboration(gateway, call.path["id"])
    await gateway.submit(Stop(sender=call.caller.id, thread=session.thread))
    return _progress(gateway, call, session.id, None)


def _progress(gateway: Gateway, call: AnyCall, handle: str, after: int | None) -> responses.CollaborationView:
    session, terms = _known_collaboration(gateway, handle)
    seen = visible_spending(session.spent_so_far, call.caller.reader, gateway.writer.room.sessions)
    return collaboration_view(session, terms, after, seen)


def _known_collaboration(gateway: Gateway, handle: str) -> tuple[Session, Collaboration]:
    """Return a collaboration by its id or name."""
    sessions = gateway.writer.room.sessions
    found = sessions.find(handle)
    if found is None or found.setup.collaboration is None:
        known = [str(one.id) for one in sessions.by_id.values() if one.setup.collaboration]
        hint = nearest(handle, known) if known else "start one: csp collaborate 'a plan' --models a,b"
        raise NotFound(f"unknown collaboration {handle[:80]!r}", hint)
    return found, found.setup.collaboration
