"""The table of the gateway's routes, with one row per route.

A row names the types of a route. The HTTP server, /openapi.json and the tests read this table. The table of
roles defines who may call a route.
"""

import asyncio
import time
from typing import Any, Final, get_args

import msgspec

from csp import __version__, price_list
from csp.errors import Forbidden, Refused
from csp.gateway import (
    attention_routes,
    board_routes,
    journal_maintenance,
    line_routes,
    markdown_routes,
    message_routes,
    operations,
    page_routes,
    report_routes,
    run_routes,
    session_routes,
)
from csp.gateway.agent_throttle import wait_for_news
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.gateway.openapi import document
from csp.gateway.route_table import (
    Answer,
    AnyCall,
    Asked,
    PlainText,
    Posted,
    RawJson,
    Route,
    Unavailable,
    answered,
    fill,
    route,
)
from csp.journal.history_query import HistoryQuery
from csp.protocol import requests, responses
from csp.protocol.catalogue import Catalogue
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId, AgentState, ControlVerb, Role
from csp.protocol.events import HISTORY_TYPES, ControlSent, Joined
from csp.room.board_state import boards_health
from csp.room.commands import ControlAgent, Join, RecordCall, Rejoin, Remove
from csp.room.membership import known_participant
from csp.room.messages import first_held, pending
from csp.room.permissions import check_call, check_fields, check_row
from csp.room.room_state import Participant
from csp.room.sessions.modes import build_catalogue
from csp.room.sessions.session_views import spent_view
from csp.room.visibility import is_hidden, may_watch, visible_spending

MAX_INBOX_ITEMS: Final = 500
_AT_REST: Final = (AgentState.IDLE, AgentState.BUSY)


# --- participants --------------------------------------------------------------------------------


async def register(gateway: Gateway, call: Posted[requests.RegisterBody]) -> responses.RegisteredView:
    body = call.body
    if call.caller.role is Role.ROOM:
        await gateway.mark_silent_offline()
        events = await gateway.submit(fill(Join, body, name=body.agent_id))
        joined = next(event for event in events if isinstance(event, Joined))
        agent, epoch = joined.sender, joined.epoch
    else:
        agent = call.caller.id
        await gateway.submit(fill(Rejoin, body, agent=agent))
        epoch = gateway.writer.room.participants[agent].epoch
    gateway.presence.touch(agent)
    token = gateway.tokens.issue(agent, epoch)
    return responses.RegisteredView(success=True, agent_id=agent, token=token, seq=gateway.writer.safe_seq)


async def start(gateway: Gateway, call: Posted[requests.StartBody]) -> responses.StartedView:
    caller, key = call.caller.id, call.body.id
    if key is None:
        return await gateway.agent_launcher.start(call.body)
    if under_way := gateway.agent_launcher.find(caller, key):
        return await asyncio.shield(under_way)
    before = await answered(gateway, call)
    if before is None:
        note = lambda agent: gateway.submit(RecordCall(caller=caller, key=key, answer=agent))  # noqa: E731
        return await gateway.agent_launcher.start_once(caller, key, call.body, note)
    participant = gateway.writer.room.participants.get(AgentId(before))
    if participant is None:
        raise Refused(f"cannot tell whether {call.body.name} was started by that call", "see: csp agents")
    return responses.StartedView(success=True, agent_id=before, state=_state_of(gateway, participant))


async def remove(gateway: Gateway, call: AnyCall) -> responses.Done:
    await gateway.submit(Remove(agent=AgentId(call.path["id"])))
    return responses.Done()


async def list_agents(gateway: Gateway, call: AnyCall) -> RawJson:
    await gateway.mark_silent_offline()
    await gateway.writer.settle()
    agents = gateway.writer.room.participants
    return RawJson(encode([agent_view(gateway, agent, call.caller) for agent in agents]))


def agent_view(gateway: Gateway, agent: AgentId, caller: Caller) -> responses.AgentView:
    """Return the parts of an agent's state that are visible to the caller."""
    room = gateway.writer.room
    participant = room.participants[agent]
    is_sealed = is_hidden(participant.seals, agent, caller.reader, room.sessions)
    is_own = may_watch(agent, caller.reader)
    return fill(
        responses.AgentView,
        participant,
        state=_state_of(gateway, participant),
        queued=len(participant.queue),
        last_seen=gateway.presence.last_seen(agent, participant.seen),
        detail="" if is_sealed else participant.detail,
        work="" if is_sealed else participant.work,
        dialog=participant.dialog if is_own else None,
        context=participant.context if is_own else 0,
        window=participant.window if is_own else 0,
    )


def _state_of(gateway: Gateway, participant: Participant) -> AgentState:
    """Return the state to display; a benched agent is not shown as waiting for a turn."""
    shown = participant.shown_state
    sessions = gateway.writer.room.sessions.live_with(participant.id)
    is_benched = shown in _AT_REST and any(session.is_benched(participant.id) for session in sessions)
    return AgentState.BENCHED if is_benched else shown


async def control(gateway: Gateway, call: Posted[requests.ControlBody]) -> responses.ControlView:
    verb = call.choice("verb", ControlVerb, "control")
    before = await answered(gateway, call)
    if before is not None:
        return responses.ControlView(success=True, seq=gateway.writer.safe_seq, id=before or None)
    command = ControlAgent(agent=AgentId(call.path["id"]), verb=verb, choice=call.body.choice, **call.once)
    events = await gateway.submit(command)
    sent = [event.id for event in events if isinstance(event, ControlSent)]
    return responses.ControlView(success=True, seq=gateway.writer.safe_seq, id=sent[0] if sent else None)


# --- messages ------------------------------------------------------------------------------------


async def output(gateway: Gateway, call: Posted[requests.OutputBody]) -> responses.OutputView:
    await operations.read_ahead(call.body.content)
    return await operations.post_output(gateway, call)


async def inbox(gateway: Gateway, call: Asked[requests.InboxParams]) -> responses.InboxView:
    agent = AgentId(call.path["id"])
    if call.caller.role is not Role.ROOM and call.caller.id != agent:
        raise Forbidden(f"{call.caller.id} may not read the inbox of {agent}", "read your own")
    params = call.query
    deadline = time.monotonic() + params.wait
    with gateway.connected(call.caller):
        while True:
            gateway.recheck(call.caller)
            known_participant(gateway.writer.room, agent)
            due = pending(gateway.writer.room, agent, after=params.after, upto=gateway.writer.safe_seq)
            items = sorted(due, key=lambda item: item.seq)
            remaining = deadline - time.monotonic()
            if items or remaining <= 0 or gateway.broadcast.is_closed:
                break
            await wait_for_news(gateway.broadcast.next_news(agent), remaining)
    shown = tuple(items[:MAX_INBOX_ITEMS])
    following = shown[-1].seq if shown else params.after
    held = first_held(gateway.writer.room, agent, params.after) if shown else None
    if held is not None:
        # Never skip a held message, because it will be due later.
        following = min(following, held - 1)
    return responses.InboxView(items=shown, next=following)


# --- history -------------------------------------------------------------------------------------


async def history(gateway: Gateway, call: Asked[requests.HistoryParams]) -> RawJson:
    params = call.query
    query = HistoryQuery(
        limit=params.limit,
        after=params.after,
        before=params.before,
        agent=AgentId(params.agent) if params.agent else None,
        session=params.session,
        types=frozenset(params.types.split(",")) if params.types else HISTORY_TYPES,
        q=params.q or "",
        audience=call.caller.reader,
    )
    deadline = time.monotonic() + params.wait
    with gateway.connected(call.caller):
        while True:
            news = gateway.broadcast.next_news()
            page = await gateway.history.page(query)
            gateway.recheck(call.caller)
            remaining = deadline - time.monotonic()
            if page.lines or params.after is None or remaining <= 0 or gateway.broadcast.is_closed:
                break
            await wait_for_news(news, remaining)
    return RawJson(b'{"items":[%b],"next":%b}' % (b",".join(page.lines), encode(page.next)))


async def prune(gateway: Gateway, call: Posted[requests.PruneBody]) -> responses.PrunedView:
    seq = await journal_maintenance.prune(gateway, call.body.before)
    return responses.PrunedView(success=True, seq=seq)


# --- the room ------------------------------------------------------------------------------------


async def health(gateway: Gateway, call: AnyCall) -> responses.HealthView | Unavailable:
    view = _health_view(gateway)
    return Unavailable(view) if gateway.has_lost_log else view


def _health_view(gateway: Gateway) -> responses.HealthView:
    room = gateway.writer.room
    scrub = msgspec.structs.replace(gateway.journal_health, writable=gateway.writer.is_writable)
    status = "ok" if scrub.writable and not scrub.damaged else "damaged" if scrub.writable else "read-only"
    status = "degraded" if gateway.has_lost_log else status
    return responses.HealthView(
        status=status,
        room=gateway.settings.room,
        room_id=gateway.writer.journal.room_id,
        replica=not gateway.writer.is_leading,
        version=__version__,
        seq=gateway.writer.safe_seq,
        uptime_s=round(gateway.clock() - gateway.started, 3),
        agents=sum(participant.online for participant in room.participants.values()),
        watchers=len(gateway.sockets),
        journal=scrub,
        boards=boards_health(room.boards, gateway.rules.board_max_bytes),
    )


async def metrics(gateway: Gateway, call: AnyCall) -> PlainText:
    journal_bytes = gateway.writer.journal.view.end
    return PlainText(gateway.metrics.render(gateway.writer.room, len(gateway.sockets), journal_bytes))


async def usage(gateway: Gateway, call: AnyCall) -> responses.UsageView:
    await gateway.writer.settle()
    room = gateway.writer.room
    seen = visible_spending(room.spent_so_far, call.caller.reader, room.sessions)
    return responses.UsageView(items=spent_view(seen), prices=price_list.source(), seq=room.seq)


async def catalogue(gateway: Gateway, call: AnyCall) -> Catalogue:
    return build_catalogue(gateway.settings.groups)


async def openapi(gateway: Gateway, call: AnyCall) -> RawJson:
    return RawJson(document(ROUTES))


# fmt: off
ROUTES: Final = (
    route("POST", "/register", register, "Join the room, or rejoin with an agent's token", status=201),
    route("GET", "/me", operations.who_am_i, "Show the owner of the token"),
    route("GET", "/agents", list_agents, "List the participants", list[responses.AgentView]),
    route("POST", "/agents", start, "Start an API model as an agent", status=201),
    route("DELETE", "/agents/{id}", remove, "Remove a participant"),
    route("GET", "/agents/{id}/screen", operations.fresh_screen, "Show the current screen of an agent"),
    route("POST", "/agents/{id}/{verb}", control, "Send a control to an agent"),
    route("POST", "/state", operations.report_state, "Report the state of an agent"),
    route("POST", "/message", operations.send_message, "Send a message to one participant or to all"),
    route("POST", "/line", line_routes.line, "Execute a line typed by a person"),
    route("GET", "/messages/{id}", message_routes.message_states, "Show the delivery states of a message"),
    route("POST", "/messages/{id}/{action}", message_routes.act_on_message,
          "Cancel, resend, release or redact a message"),
    route("GET", "/inbox/{id}", inbox, "List pending messages; reading acknowledges nothing"),
    route("POST", "/delivery", operations.report_delivery, "Report the delivery state of a message"),
    route("POST", "/agent-output", output, "Post the output of an agent"),
    route("GET", "/queue", message_routes.queue, "List all waiting messages with their reasons"),
    route("GET", "/attention", attention_routes.list_items, "List items that need a person, with answers"),
    route("GET", "/report", report_routes.get_report, "Report what happened since a time or in a session"),
    route("GET", "/rules", attention_routes.list_rules, "List the approval rules"),
    route("POST", "/rules", attention_routes.add_rule, "Add a rule that approves a command", status=201),
    route("DELETE", "/rules/{number}", attention_routes.remove_rule, "Remove an approval rule"),
    route("GET", "/history", history, "Page through or search the history", responses.HistoryView),
    route("POST", "/history/prune", prune, "Remove old history permanently"),
    route("GET", "/markdown", markdown_routes.markdown, "Parse messages and notes as markdown"),
    route("GET", "/mode", session_routes.get_mode, "Show the mode of a thread"),
    route("POST", "/mode", session_routes.set_mode, "Set the mode of a thread"),
    route("POST", "/turn/next", session_routes.next_turn, "Pass the turn on"),
    route("POST", "/turn/working", operations.report_working, "Request more time"),
    route("POST", "/turn/vote", session_routes.vote, "Vote in the open ballot"),
    route("POST", "/turn/handoff", session_routes.hand_over, "Name the next agent"),
    route("POST", "/stop", session_routes.stop, "Stop all running work at once"),
    route("GET", "/sessions", session_routes.list_sessions, "List the sessions"),
    route("POST", "/sessions", session_routes.start_session, "Start a session in its own thread", status=201),
    route("GET", "/sessions/{id}", session_routes.get_session, "Show a session"),
    route("POST", "/sessions/{id}/{change}", session_routes.act_on_session,
          "Pause, resume, extend or stop a session; skip or kick an agent of it"),
    route("POST", "/collaborations", session_routes.begin_collaboration,
          "Start or continue a collaboration", status=202),
    route("GET", "/collaborations/{id}", session_routes.show_collaboration,
          "Show the progress of a collaboration"),
    route("POST", "/collaborations/{id}/stop", session_routes.stop_collaboration,
          "Stop a collaboration at once"),
    route("GET", "/runs", run_routes.list_runs, "List the review runs"),
    route("POST", "/runs", run_routes.start_run, "Start a review run", status=201),
    route("GET", "/runs/{id}", run_routes.get_run, "Show a run"),
    route("POST", "/runs/{id}/message", run_routes.say_in_run, "Post a message as builder or reviewer"),
    route("POST", "/runs/{id}/{act}", run_routes.act_on_run,
          "Act on a run: go, decide, halt, resume, abort, finding, defect"),
    route("GET", "/board", board_routes.list_notes, "Page through the notes of a whiteboard"),
    route("POST", "/board", board_routes.write, "Write a note on a whiteboard"),
    route("GET", "/board/search", board_routes.search, "Find notes by name, word or meaning"),
    route("GET", "/board/export", board_routes.export, "List the notes as files"),
    route("POST", "/board/summarise", board_routes.summarise, "Ask an agent for a summary of the new notes"),
    route("GET", "/board/{id}", board_routes.get_note, "Show a note"),
    route("GET", "/catalogue", catalogue, "Describe the modes, states, reasons and user commands"),
    route("GET", "/usage", usage, "Show the tokens and the cost of each agent"),
    route("POST", "/page/link", page_routes.link, "Create a login link for one page"),
    route("POST", "/page/enter", page_routes.enter, "Exchange the code of a link for a page token"),
    route("POST", "/page/leave", page_routes.leave, "Revoke a page token, or those of all pages"),
    route("GET", "/health", health, "Show the health of the room, and its identity (`roomId`)",
          responses.HealthView),
    route("GET", "/metrics", metrics, "Metrics for Prometheus", str),
    route("GET", "/openapi.json", openapi, "This description", dict[str, Any]),
)
# fmt: on


def field_names(kind: type[msgspec.Struct] | None) -> set[str]:
    """Return the names of all fields of a body, including nested ones."""
    found: set[str] = set()
    for field in msgspec.structs.fields(kind) if kind else ():
        found |= {field.name, field.encode_name}
        for inner in (field.type, *get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                found |= field_names(inner)
    return found


for _route in ROUTES:
    # Fail at the start if the table of roles has a mistake.
    check_row(_route.name, _route.row, field_names(_route.body) | field_names(_route.query))


def check_role(caller: Caller, route: Route) -> None:
    """Raise Forbidden unless the table of roles allows the caller to call the route."""
    check_call(route.row, caller.party, route.name)


async def answer(gateway: Gateway, route: Route, call: AnyCall) -> Answer:
    """Call a route after checking that the caller may use it with these fields."""
    check_role(call.caller, route)
    given = [f"{name}={value}" for name, value in call.path.items()]
    if route.body is not None:
        given += [name for name in route.body.__struct_fields__ if getattr(call.body, name)]
    check_fields(route.row, call.caller.party, given)
    return await gateway.at_latest(lambda: route.handler(gateway, call))
