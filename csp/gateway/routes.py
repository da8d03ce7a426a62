"""The routes of the gateway, one row each.

A row says who may call it and which types go in and out; the HTTP shell, /openapi.json and the
tests all read this table.
"""

import time
from typing import Any, Final, NamedTuple

import msgspec

from csp import __version__, prices
from csp.core.board import boards_health
from csp.core.commands import Control, Join, Remove, Return
from csp.core.identity import allows
from csp.core.membership import known_participant
from csp.core.modeview import spent_view
from csp.core.queues import first_held, pending
from csp.core.room import Participant
from csp.errors import Forbidden, NotFound
from csp.events import HISTORY_TYPES, ControlSent, Joined
from csp.gateway import access, actions, board, collaborations, maintenance, messages, runs, sessions
from csp.gateway.auth import Caller
from csp.gateway.calls import Answer, Call, Handler, PlainText, RawJson
from csp.gateway.gateway import Gateway
from csp.gateway.throttle import wait_for_news
from csp.journal.query import HistoryQuery
from csp.wire import (
    AgentId,
    AgentState,
    AgentView,
    BoardBody,
    BoardHitsView,
    BoardParams,
    BoardView,
    CollaborateBody,
    CollaborationParams,
    CollaborationStartedView,
    CollaborationView,
    ControlBody,
    ControlVerb,
    ControlView,
    Deliver,
    DeliveryBody,
    Done,
    EnterBody,
    EnteredView,
    ExportParams,
    ExportView,
    HandoffBody,
    HealthView,
    HistoryParams,
    HistoryView,
    InboxParams,
    InboxView,
    LeaveBody,
    LinkView,
    MessageBody,
    MessageView,
    MeView,
    ModeBody,
    ModeSetView,
    ModeView,
    NoBody,
    NoQuery,
    NotedView,
    NoteView,
    OutputBody,
    OutputView,
    PruneBody,
    PrunedView,
    QueueView,
    RegisterBody,
    RegisteredView,
    Role,
    RunActionBody,
    RunBody,
    RunDetail,
    RunMessageBody,
    RunSaidView,
    RunStartedView,
    RunsView,
    ScreenAnswer,
    SearchParams,
    SentView,
    SessionActionBody,
    SessionDetailView,
    SessionDoneView,
    SessionStartedView,
    SessionsView,
    StartBody,
    StartedView,
    StateBody,
    StopBody,
    StopView,
    SummariseBody,
    SummaryAskedView,
    ThreadParams,
    TurnBody,
    TurnView,
    UsageView,
    VoteBody,
    WorkingBody,
    WorkingView,
    encode,
)

MAX_INBOX_ITEMS: Final = 500
_AT_REST: Final = (AgentState.IDLE, AgentState.BUSY)


class Route(NamedTuple):
    method: str
    path: str
    needs: Role
    handler: Handler
    summary: str
    answer: Any
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] = NoQuery
    status: int = 200
    #: Whether /openapi.json lists it; what can never succeed yet would only mislead.
    is_listed: bool = True
    #: Whether a page's token is enough, if its role is.
    page: bool = False


# --- participants --------------------------------------------------------------------------------


async def register(gateway: Gateway, call: Call) -> Answer:
    body: RegisterBody = call.body
    if call.caller.role is Role.ROOM:
        await gateway.note_silence()
        join = Join(name=body.agent_id, kind=body.kind, role=body.role, capabilities=body.capabilities)
        joined = next(event for event in await gateway.submit(join) if isinstance(event, Joined))
        agent, epoch = joined.sender, joined.epoch
    else:
        agent, epoch = call.caller.id, call.caller.epoch
        await gateway.submit(Return(agent=agent, capabilities=body.capabilities))
    gateway.presence.touch(agent)
    token = gateway.tokens.issue(agent, epoch)
    return RegisteredView(success=True, agent_id=agent, token=token, seq=gateway.writer.safe_seq)


async def start(gateway: Gateway, call: Call) -> Answer:
    body: StartBody = call.body
    if call.caller.page and (body.base_url or body.key_env):
        # Together they would send any variable of the gateway to any address.
        hint = "leave them out, or add the model in a terminal: csp add NAME --provider P --base-url URL"
        raise Forbidden("only the room's token may name an address or a variable", hint)
    return await gateway.starting.start(body)


async def remove(gateway: Gateway, call: Call) -> Answer:
    await gateway.submit(Remove(agent=AgentId(call.path["id"])))
    return Done()


async def list_agents(gateway: Gateway, call: Call) -> Answer:
    await gateway.note_silence()
    await gateway.writer.settle()
    views = [_agent_view(gateway, agent, call.caller) for agent in gateway.writer.room.participants]
    return RawJson(encode(views))


def _agent_view(gateway: Gateway, agent: AgentId, caller: Caller) -> AgentView:
    participant = gateway.writer.room.participants[agent]
    return AgentView(
        id=agent,
        name=participant.name,
        kind=participant.kind,
        role=participant.role,
        capabilities=participant.capabilities,
        online=participant.online,
        state=_state_of(gateway, participant),
        queued=len(participant.queue),
        last_seen=gateway.presence.last_seen(agent, participant.seen),
        share=participant.share,
        detail=participant.detail,
        until=participant.until,
        dialog=participant.dialog if caller.role is Role.ROOM or caller.id == agent else None,
    )


def _state_of(gateway: Gateway, participant: Participant) -> AgentState:
    """Return what a person should see; one that is benched does not wait for its turn."""
    shown = participant.shown_state
    sessions = gateway.writer.room.sessions.live_with(participant.id)
    is_benched = shown in _AT_REST and any(session.is_benched(participant.id) for session in sessions)
    return AgentState.BENCHED if is_benched else shown


async def control(gateway: Gateway, call: Call) -> Answer:
    try:
        verb = ControlVerb(call.path["verb"])
    except ValueError as exc:
        verbs = ", ".join(ControlVerb)
        raise NotFound(f"unknown control {call.path['verb']!r}", f"expected one of: {verbs}") from exc
    command = Control(agent=AgentId(call.path["id"]), verb=verb, choice=call.body.choice)
    events = await gateway.submit(command)
    sent = [event.id for event in events if isinstance(event, ControlSent)]
    return ControlView(success=True, seq=gateway.writer.safe_seq, id=sent[0] if sent else None)


async def screen(gateway: Gateway, call: Call) -> Answer:
    return await actions.fresh_screen(gateway, call.caller, call.path["id"])


async def state(gateway: Gateway, call: Call) -> Answer:
    return await actions.report_state(gateway, call.caller, call.body)


# --- messages ------------------------------------------------------------------------------------


async def message(gateway: Gateway, call: Call) -> Answer:
    return await actions.send_message(gateway, call.caller, call.body)


async def output(gateway: Gateway, call: Call) -> Answer:
    return await actions.post_output(gateway, call.caller, call.body)


async def delivery(gateway: Gateway, call: Call) -> Answer:
    return await actions.report_delivery(gateway, call.caller, call.body)


async def working(gateway: Gateway, call: Call) -> Answer:
    return await actions.report_working(gateway, call.caller, call.body)


async def inbox(gateway: Gateway, call: Call) -> Answer:
    agent = AgentId(call.path["id"])
    if call.caller.role is not Role.ROOM and call.caller.id != agent:
        raise Forbidden(f"{call.caller.id} may not read the inbox of {agent}", "read your own")
    params: InboxParams = call.query
    deadline = time.monotonic() + params.wait
    with gateway.present(call.caller):
        while True:
            gateway.recheck(call.caller)
            known_participant(gateway.writer.room, agent)
            due = pending(gateway.writer.room, agent, after=params.after, upto=gateway.writer.safe_seq)
            items = sorted(due, key=lambda item: item.seq)
            remaining = deadline - time.monotonic()
            if items or remaining <= 0 or gateway.hub.is_closed:
                break
            await wait_for_news(gateway.hub.next_news(agent), remaining)
    shown = tuple(items[:MAX_INBOX_ITEMS])
    return InboxView(items=shown, next=_next_place(gateway, agent, params.after, shown))


def _next_place(gateway: Gateway, agent: AgentId, after: int, shown: tuple[Deliver, ...]) -> int:
    """Return where to read on: never past a message that is held back now and will be due later."""
    if not shown:
        return after
    held = first_held(gateway.writer.room, agent, after)
    return shown[-1].seq if held is None else min(shown[-1].seq, held - 1)


# --- history -------------------------------------------------------------------------------------


async def history(gateway: Gateway, call: Call) -> Answer:
    params: HistoryParams = call.query
    query = HistoryQuery(
        limit=params.limit,
        after=params.after,
        before=params.before,
        agent=AgentId(params.agent) if params.agent else None,
        session=params.session,
        types=frozenset(params.types.split(",")) if params.types else HISTORY_TYPES,
        q=params.q or "",
        audience=None if call.caller.role is Role.ROOM else call.caller.id,
    )
    deadline = time.monotonic() + params.wait
    with gateway.present(call.caller):
        while True:
            news = gateway.hub.next_news()
            page = await gateway.history.page(query)
            gateway.recheck(call.caller)
            remaining = deadline - time.monotonic()
            if page.lines or params.after is None or remaining <= 0 or gateway.hub.is_closed:
                break
            await wait_for_news(news, remaining)
    return RawJson(b'{"items":[%b],"next":%b}' % (b",".join(page.lines), encode(page.next)))


async def prune(gateway: Gateway, call: Call) -> Answer:
    seq = await maintenance.prune(gateway, call.body.before)
    return PrunedView(success=True, seq=seq)


# --- the room ------------------------------------------------------------------------------------


async def health(gateway: Gateway, call: Call) -> Answer:
    room = gateway.writer.room
    scrub = msgspec.structs.replace(gateway.scrub, writable=gateway.writer.is_writable)
    status = "ok" if scrub.writable and not scrub.damaged else "damaged" if scrub.writable else "read-only"
    return HealthView(
        status=status,
        room=gateway.settings.room,
        version=__version__,
        seq=gateway.writer.safe_seq,
        uptime_s=round(gateway.clock() - gateway.started, 3),
        agents=sum(participant.online for participant in room.participants.values()),
        watchers=len(gateway.sockets),
        journal=scrub,
        boards=boards_health(room.boards, gateway.rules.board_max_bytes),
    )


async def metrics(gateway: Gateway, call: Call) -> Answer:
    journal_bytes = gateway.writer.journal.committed
    return PlainText(gateway.metrics.render(gateway.writer.room, len(gateway.sockets), journal_bytes))


async def usage(gateway: Gateway, call: Call) -> Answer:
    await gateway.writer.settle()
    return UsageView(items=spent_view(gateway.writer.room.spent), prices=prices.source())


async def openapi(gateway: Gateway, call: Call) -> Answer:
    from csp.gateway.openapi import document

    return RawJson(document(ROUTES))


A, O, R, N = Role.AGENT, Role.ORCHESTRATOR, Role.ROOM, Role.NONE  # noqa: E741

# fmt: off
ROUTES: Final = (
    Route("POST", "/register", A, register, "Join the room, or come back with the token of before",
          RegisteredView, RegisterBody, status=201),
    Route("GET", "/me", A, actions.who_am_i, "Say whose token this is", MeView, page=True),
    Route("GET", "/agents", A, list_agents, "List the participants", list[AgentView], page=True),
    Route("POST", "/agents", R, start, "Start a model behind an API as an agent", StartedView, StartBody,
          status=201, page=True),
    Route("DELETE", "/agents/{id}", R, remove, "Remove a participant", Done),
    Route("GET", "/agents/{id}/screen", A, screen, "Show the screen of an agent as it is now",
          ScreenAnswer, page=True),
    Route("POST", "/agents/{id}/{verb}", R, control, "Press a button for an agent", ControlView, ControlBody,
          page=True),
    Route("POST", "/state", A, state, "Say what you are doing", Done, StateBody),
    Route("POST", "/message", A, message, "Send a message to one participant or to all",
          SentView, MessageBody, page=True),
    Route("GET", "/messages/{id}", A, messages.message_states, "Show how far a message has come", MessageView,
          page=True),
    Route("POST", "/messages/{id}/{action}", R, messages.act_on_message,
          "Cancel, resend, release or redact a message", SentView, NoBody, page=True),
    Route("GET", "/inbox/{id}", A, inbox, "Read what waits for you; reading acknowledges nothing",
          InboxView, query=InboxParams),
    Route("POST", "/delivery", A, delivery, "Say how far a message has come", Done, DeliveryBody),
    Route("POST", "/agent-output", A, output, "Post what you wrote", OutputView, OutputBody),
    Route("GET", "/queue", R, messages.queue, "List every message that waits, with the reason", QueueView,
          page=True),
    Route("GET", "/history", A, history, "Page through or search what was said",
          HistoryView, query=HistoryParams, page=True),
    Route("POST", "/history/prune", R, prune, "Remove old history for good", PrunedView, PruneBody),
    Route("GET", "/mode", A, sessions.get_mode, "Show the mode of a thread", ModeView, query=ThreadParams,
          page=True),
    Route("POST", "/mode", O, sessions.set_mode, "Set the mode of a thread", ModeSetView, ModeBody,
          page=True),
    Route("POST", "/turn/next", O, sessions.next_turn, "Pass the turn on", TurnView, TurnBody, page=True),
    Route("POST", "/turn/working", A, working, "Ask for more time", WorkingView, WorkingBody),
    Route("POST", "/turn/vote", A, sessions.vote, "Vote in the ballot that waits for you", Done, VoteBody),
    Route("POST", "/turn/handoff", A, sessions.hand_over, "Say who goes on after your turn", Done,
          HandoffBody),
    Route("POST", "/stop", O, sessions.stop, "Stop what runs, at once", StopView, StopBody, page=True),
    Route("GET", "/sessions", A, sessions.list_sessions, "List the sessions", SessionsView, page=True),
    Route("POST", "/sessions", O, sessions.start_session, "Begin a session in a thread of its own",
          SessionStartedView, ModeBody, status=201, page=True),
    Route("GET", "/sessions/{id}", A, sessions.get_session, "Show a session", SessionDetailView, page=True),
    Route("POST", "/sessions/{id}/{change}", O, sessions.act_on_session,
          "Pause, resume, extend or stop a session; skip or kick an agent of it",
          SessionDoneView, SessionActionBody, page=True),
    Route("POST", "/collaborations", O, collaborations.begin, "Have models work on an objective, or go on",
          CollaborationStartedView, CollaborateBody, status=202, page=True),
    Route("GET", "/collaborations/{id}", A, collaborations.show, "Show how far a collaboration has come",
          CollaborationView, query=CollaborationParams, page=True),
    Route("POST", "/collaborations/{id}/stop", O, collaborations.stop, "Stop a collaboration, at once",
          CollaborationView, NoBody, page=True),
    Route("GET", "/runs", A, runs.list_runs, "List the runs of builders with their reviewers", RunsView,
          page=True),
    Route("POST", "/runs", O, runs.start_run, "Begin a run", RunStartedView, RunBody, status=201, page=True),
    Route("GET", "/runs/{id}", A, runs.get_run, "Show a run", RunDetail, page=True),
    Route("POST", "/runs/{id}/message", A, runs.say_in_run, "Say a message as builder or reviewer",
          RunSaidView, RunMessageBody),
    Route("POST", "/runs/{id}/{act}", R, runs.act_on_run,
          "Act on a run: go, decide, halt, resume, abort, finding, defect", RunStartedView, RunActionBody,
          page=True),
    Route("GET", "/board", A, board.list_notes, "Page through the notes of a whiteboard", BoardView,
          query=BoardParams, page=True),
    Route("POST", "/board", A, board.write, "Write a note on a whiteboard", NotedView, BoardBody, page=True),
    Route("GET", "/board/search", A, board.search, "Find notes by name, by word, by meaning", BoardHitsView,
          query=SearchParams, page=True),
    Route("GET", "/board/export", A, board.export, "List the notes as files", ExportView, query=ExportParams,
          page=True),
    Route("POST", "/board/summarise", O, board.summarise, "Have an agent sum up what is new on a whiteboard",
          SummaryAskedView, SummariseBody, page=True),
    Route("GET", "/board/{id}", A, board.get_note, "Show a note", NoteView, page=True),
    Route("GET", "/usage", A, usage, "Show the tokens and the money of each agent", UsageView, page=True),
    Route("POST", "/page/link", R, access.link, "Hand out a link that lets one page in", LinkView, NoBody),
    Route("POST", "/page/enter", N, access.enter, "Change the code of a link for a page's token",
          EnteredView, EnterBody),
    Route("POST", "/page/leave", R, access.leave, "Let a page's token die, or those of all pages",
          Done, LeaveBody, page=True),
    Route("GET", "/health", N, health, "Tell whether the room is well", HealthView),
    Route("GET", "/metrics", R, metrics, "Figures for Prometheus", str),
    Route("GET", "/openapi.json", N, openapi, "This description", dict[str, Any]),
)
# fmt: on


def check_role(caller: Caller, route: Route) -> None:
    """Raise Forbidden unless the caller's role covers the route, and its page where it comes from one."""
    if caller.page and not route.page:
        raise Forbidden(f"a page may not {route.method} {route.path}", "do it in a terminal, see: csp --help")
    if not allows(caller.role, route.needs):
        raise Forbidden(
            f"{caller.role} may not {route.method} {route.path}", f"it takes the {route.needs} token"
        )
