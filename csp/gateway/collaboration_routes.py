"""Collaboration routes: start, follow and stop one."""

import asyncio
import time

from csp.errors import NotFound
from csp.gateway.agent_throttle import wait_for_news
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call, answered
from csp.price_list import price_of
from csp.protocol.codec import check_text
from csp.protocol.enums import DEFAULT_THREAD, AgentId, ParticipantKind
from csp.protocol.events import ModeChanged
from csp.protocol.requests import CollaborateBody, CollaborationParams
from csp.protocol.responses import CollaborationStartedView, CollaborationView
from csp.protocol.session_parts import Change, Collaboration, Price
from csp.room.commands import Collaborate, Stop
from csp.room.identity import nearest
from csp.room.sessions.session_state import Session
from csp.room.sessions.session_views import collaboration_view
from csp.room.visibility import visible_spending

_BEGUN = (Change.STARTED, Change.CONTINUED)
_DEMO_PROFILE = "demo"
_FREE = Price(input=0.0, output=0.0)


async def begin(gateway: Gateway, call: Call) -> Answer:
    body: CollaborateBody = call.body
    check_text(body.objective)
    check_text(body.user_input)
    before = await answered(gateway, call)
    if before is not None:
        session, _ = _known(gateway, before)
        return CollaborationStartedView(
            success=True, handle=session.id, session=session.id, thread=session.thread
        )
    command = Collaborate(
        **call.once,
        sender=call.caller.id,
        objective=body.objective,
        agents=body.models,
        session=body.session_id,
        said=body.user_input,
        mode=body.mode,
        steps=body.max_steps,
        parallel=body.parallel,
        step_s=body.timeout_per_step,
        cost=body.cost_limit_usd,
        summarise_at=body.summarization_threshold,
        prices=await known_prices(gateway),
        hits=await gateway.board_hits.for_start(body.session_id, body.objective, body.user_input),
        thread=body.thread or DEFAULT_THREAD,
    )
    events = await gateway.submit(command)
    changes = [event for event in events if isinstance(event, ModeChanged) and event.change in _BEGUN]
    begun = changes[0]
    return CollaborationStartedView(
        success=True, handle=begun.session_id, session=begun.session_id, thread=begun.thread
    )


async def known_prices(gateway: Gateway) -> dict[AgentId, Price]:
    """Return the known prices of the room's models; demo agents are free."""
    found: dict[AgentId, Price | None] = {}
    for participant in list(gateway.writer.room.participants.values()):
        told = participant.capabilities
        if isinstance(told, dict) and participant.kind is ParticipantKind.API:
            model, provider = str(told.get("model") or ""), str(told.get("provider") or "")
            # In a thread, because the price list takes a while to load.
            found[participant.id] = await asyncio.to_thread(price_of, model, provider)
        elif told == [_DEMO_PROFILE]:
            found[participant.id] = _FREE
    return {agent: price for agent, price in found.items() if price is not None}


async def show(gateway: Gateway, call: Call) -> Answer:
    params: CollaborationParams = call.query
    deadline = time.monotonic() + params.wait
    with gateway.connected(call.caller):
        while True:
            news = gateway.broadcast.next_news()
            await gateway.writer.settle()
            gateway.recheck(call.caller)
            view = _view(gateway, call, call.path["id"], params.after)
            remaining = deadline - time.monotonic()
            is_news = params.after is not None and view.lines > params.after
            if view.reason or is_news or remaining <= 0 or gateway.broadcast.is_closed:
                return view
            await wait_for_news(news, remaining)


async def stop(gateway: Gateway, call: Call) -> Answer:
    await gateway.writer.settle()
    session, _ = _known(gateway, call.path["id"])
    await gateway.submit(Stop(sender=call.caller.id, thread=session.thread))
    return _view(gateway, call, session.id, None)


def _view(gateway: Gateway, call: Call, handle: str, after: int | None) -> CollaborationView:
    session, terms = _known(gateway, handle)
    seen = visible_spending(session.spent_so_far, call.caller.reader, gateway.writer.room.sessions)
    return collaboration_view(session, terms, after, seen)


def _known(gateway: Gateway, handle: str) -> tuple[Session, Collaboration]:
    """Return a collaboration by its id or its name."""
    sessions = gateway.writer.room.sessions
    found = sessions.find(handle)
    if found is None or found.setup.collaboration is None:
        known = [str(one.id) for one in sessions.by_id.values() if one.setup.collaboration]
        hint = nearest(handle, known) if known else "start one: csp collaborate 'a plan' --models a,b"
        raise NotFound(f"unknown collaboration {handle[:80]!r}", hint)
    return found, found.setup.collaboration
