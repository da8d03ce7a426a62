"""The routes of the gateway, one row each.

A row says which types go in and out; the HTTP shell, /openapi.json and the tests all read this table. Who
may call it stands in the table of roles.
"""

import asyncio
import time
from typing import Any, Final, NamedTuple, get_args

import msgspec

from csp import __version__, price_list
from csp.errors import Forbidden, Refused
from csp.gateway import (
    board_routes,
    collaboration_routes,
    journal_maintenance,
    message_routes,
    operations,
    page_routes,
    run_routes,
    session_routes,
)
from csp.gateway.agent_throttle import wait_for_news
from csp.gateway.auth import Caller
from csp.gateway.gateway import Gateway
from csp.gateway.handlers import Answer, Call, Handler, PlainText, RawJson, answered
from csp.journal.history_query import HistoryQuery
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId, AgentState, ControlVerb, Role
from csp.protocol.events import HISTORY_TYPES, ControlSent, Joined
from csp.protocol.notes import (
    BoardBody,
    BoardHitsView,
    BoardParams,
    BoardView,
    ExportParams,
    ExportView,
    NotedView,
    NoteView,
    SearchParams,
    SummariseBody,
    SummaryAskedView,
)
from csp.protocol.requests import (
    CollaborateBody,
    CollaborationParams,
    ControlBody,
    DeliveryBody,
    EnterBody,
    HandoffBody,
    HistoryParams,
    InboxParams,
    LeaveBody,
    MessageActionBody,
    MessageBody,
    ModeBody,
    NoBody,
    NoQuery,
    OutputBody,
    PruneBody,
    RegisterBody,
    SessionActionBody,
    StartBody,
    StateBody,
    StopBody,
    ThreadParams,
    TurnBody,
    VoteBody,
    WorkingBody,
)
from csp.protocol.responses import (
    AgentView,
    CollaborationStartedView,
    CollaborationView,
    ControlView,
    Deliver,
    Done,
    EnteredView,
    HealthView,
    HistoryView,
    InboxView,
    LinkView,
    MessageView,
    MeView,
    ModeSetView,
    ModeView,
    OutputView,
    PrunedView,
    QueueView,
    RegisteredView,
    SentView,
    SessionDetailView,
    SessionDoneView,
    SessionStartedView,
    SessionsView,
    StartedView,
    StopView,
    TurnView,
    UsageView,
    WorkingView,
)
from csp.protocol.review_messages import (
    RunActionBody,
    RunBody,
    RunDetail,
    RunMessageBody,
    RunSaidView,
    RunStartedView,
    RunsView,
)
from csp.protocol.screen_frames import ScreenAnswer
from csp.room.board.board_state import boards_health
from csp.room.commands import ControlAgent, Join, RecordCall, Rejoin, Remove
from csp.room.membership import known_participant
from csp.room.messages.inbox import first_held, pending
from csp.room.roles import ROUTES as ROLES
from csp.room.roles import RoleRow, check_call, check_fields, check_row, row_of
from csp.room.room_state import Participant
from csp.room.sessions.session_views import spent_view
from csp.room.visibility import is_hidden, may_watch, visible_spending

MAX_INBOX_ITEMS: Final = 500
_AT_REST: Final = (AgentState.IDLE, AgentState.BUSY)


class Route(NamedTuple):
    """A route; who may call it stands in the table of roles."""

    method: str
    path: str
    handler: Handler
    summary: str
    answer: Any
    body: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] = NoQuery
    status: int = 200
    #: Whether /openapi.json lists it; what can never succeed yet would only mislead.
    is_listed: bool = True

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def row(self) -> RoleRow:
        return row_of(ROLES, self.name)

    @property
    def needs(self) -> Role:
        """The lowest role that may call it."""
        return self.row.needs


# --- participants --------------------------------------------------------------------------------


async def register(gateway: Gateway, call: Call) -> Answer:
    body: RegisterBody = call.body
    if call.caller.role is Role.ROOM:
        await gateway.note_silence()
        join = Join(
            name=body.agent_id,
            kind=body.kind,
            role=body.role,
            capabilities=body.capabilities,
            launch=body.launch,
        )
        joined = next(event for event in await gateway.submit(join) if isinstance(event, Joined))
        agent, epoch = joined.sender, joined.epoch
    else:
        agent = call.caller.id
        await gateway.submit(Rejoin(agent=agent, capabilities=body.capabilities, launch=body.launch))
        epoch = gateway.writer.room.participants[agent].epoch
    gateway.presence.touch(agent)
    token = gateway.tokens.issue(agent, epoch)
    return RegisteredView(success=True, agent_id=agent, token=token, seq=gateway.writer.safe_seq)


async def start(gateway: Gateway, call: Call) -> Answer:
    caller, key = call.caller.id, call.body.id
    if key is None:
        return await gateway.starting.start(call.body)
    if under_way := gateway.starting.find(caller, key):
        return await asyncio.shield(under_way)
    before = await answered(gateway, call)
    if before is None:
        note = lambda agent: gateway.submit(RecordCall(caller=caller, key=key, answer=agent))  # noqa: E731
        return await gateway.starting.start_once(caller, key, call.body, note)
    participant = gateway.writer.room.participants.get(AgentId(before))
    if participant is None:
        raise Refused(f"nobody knows whether {call.body.name} was started by that call", "see: csp agents")
    return StartedView(success=True, agent_id=before, state=_state_of(gateway, participant))


async def remove(gateway: Gateway, call: Call) -> Answer:
    await gateway.submit(Remove(agent=AgentId(call.path["id"])))
    return Done()


async def list_agents(gateway: Gateway, call: Call) -> Answer:
    await gateway.note_silence()
    await gateway.writer.settle()
    views = [_agent_view(gateway, agent, call.caller) for agent in gateway.writer.room.participants]
    return RawJson(encode(views))


def _agent_view(gateway: Gateway, agent: AgentId, caller: Caller) -> AgentView:
    room = gateway.writer.room
    participant = room.participants[agent]
    is_sealed = is_hidden(participant.seals, agent, caller.reader, room.sessions)
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
        detail="" if is_sealed else participant.detail,
        until=participant.until,
        dialog=participant.dialog if may_watch(agent, caller.reader) else None,
    )


def _state_of(gateway: Gateway, participant: Participant) -> AgentState:
    """Return what a person should see; one that is benched does not wait for its turn."""
    shown = participant.shown_state
    session_routes = gateway.writer.room.sessions.live_with(participant.id)
    is_benched = shown in _AT_REST and any(session.is_benched(participant.id) for session in session_routes)
    return AgentState.BENCHED if is_benched else shown


async def control(gateway: Gateway, call: Call) -> Answer:
    verb = call.chosen("verb", ControlVerb, "control")
    before = await answered(gateway, call)
    if before is not None:
        return ControlView(success=True, seq=gateway.writer.safe_seq, id=before or None)
    command = ControlAgent(agent=AgentId(call.path["id"]), verb=verb, choice=call.body.choice, **call.once)
    events = await gateway.submit(command)
    sent = [event.id for event in events if isinstance(event, ControlSent)]
    return ControlView(success=True, seq=gateway.writer.safe_seq, id=sent[0] if sent else None)


async def screen(gateway: Gateway, call: Call) -> Answer:
    return await operations.fresh_screen(gateway, call.caller, call.path["id"])


async def state(gateway: Gateway, call: Call) -> Answer:
    return await operations.report_state(gateway, call.caller, call.body)


# --- messages ------------------------------------------------------------------------------------


async def message(gateway: Gateway, call: Call) -> Answer:
    return await operations.send_message(gateway, call.caller, call.body)


async def output(gateway: Gateway, call: Call) -> Answer:
    return await operations.post_output(gateway, call.caller, call.body)


async def delivery(gateway: Gateway, call: Call) -> Answer:
    return await operations.report_delivery(gateway, call.caller, call.body)


async def working(gateway: Gateway, call: Call) -> Answer:
    return await operations.report_working(gateway, call.caller, call.body)


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
        audience=call.caller.reader,
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
    seq = await journal_maintenance.prune(gateway, call.body.before)
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
    room = gateway.writer.room
    seen = visible_spending(room.spent_so_far, call.caller.reader, room.sessions)
    return UsageView(items=spent_view(seen), prices=price_list.source())


async def openapi(gateway: Gateway, call: Call) -> Answer:
    from csp.gateway.openapi import document

    return RawJson(document(ROUTES))


# fmt: off
ROUTES: Final = (
    Route("POST", "/register", register, "Join the room, or come back with the token of before",
          RegisteredView, RegisterBody, status=201),
    Route("GET", "/me", operations.who_am_i, "Say whose token this is", MeView),
    Route("GET", "/agents", list_agents, "List the participants", list[AgentView]),
    Route("POST", "/agents", start, "Start a model behind an API as an agent", StartedView, StartBody,
          status=201),
    Route("DELETE", "/agents/{id}", remove, "Remove a participant", Done),
    Route("GET", "/agents/{id}/screen", screen, "Show the screen of an agent as it is now",
          ScreenAnswer),
    Route("POST", "/agents/{id}/{verb}", control, "Press a button for an agent", ControlView, ControlBody),
    Route("POST", "/state", state, "Say what you are doing", Done, StateBody),
    Route("POST", "/message", message, "Send a message to one participant or to all",
          SentView, MessageBody),
    Route("GET", "/messages/{id}", message_routes.message_states, "Show how far a message has come",
          MessageView),
    Route("POST", "/messages/{id}/{action}", message_routes.act_on_message,
          "Cancel, resend, release or redact a message", SentView, MessageActionBody),
    Route("GET", "/inbox/{id}", inbox, "Read what waits for you; reading acknowledges nothing",
          InboxView, query=InboxParams),
    Route("POST", "/delivery", delivery, "Say how far a message has come", Done, DeliveryBody),
    Route("POST", "/agent-output", output, "Post what you wrote", OutputView, OutputBody),
    Route("GET", "/queue", message_routes.queue, "List every message that waits, with the reason", QueueView),
    Route("GET", "/history", history, "Page through or search what was said",
          HistoryView, query=HistoryParams),
    Route("POST", "/history/prune", prune, "Remove old history permanently", PrunedView, PruneBody),
    Route("GET", "/mode", session_routes.get_mode, "Show the mode of a thread", ModeView, query=ThreadParams),
    Route("POST", "/mode", session_routes.set_mode, "Set the mode of a thread", ModeSetView, ModeBody),
    Route("POST", "/turn/next", session_routes.next_turn, "Pass the turn on", TurnView, TurnBody),
    Route("POST", "/turn/working", working, "Ask for more time", WorkingView, WorkingBody),
    Route("POST", "/turn/vote", session_routes.vote, "Vote in the ballot that waits for you", Done, VoteBody),
    Route("POST", "/turn/handoff", session_routes.hand_over, "Name who continues after your turn", Done,
          HandoffBody),
    Route("POST", "/stop", session_routes.stop, "Stop what runs, at once", StopView, StopBody),
    Route("GET", "/sessions", session_routes.list_sessions, "List the sessions", SessionsView),
    Route("POST", "/sessions", session_routes.start_session, "Begin a session in a thread of its own",
          SessionStartedView, ModeBody, status=201),
    Route("GET", "/sessions/{id}", session_routes.get_session, "Show a session", SessionDetailView),
    Route("POST", "/sessions/{id}/{change}", session_routes.act_on_session,
          "Pause, resume, extend or stop a session; skip or kick an agent of it",
          SessionDoneView, SessionActionBody),
    Route("POST", "/collaborations", collaboration_routes.begin, "Have models work on an objective, or go on",
          CollaborationStartedView, CollaborateBody, status=202),
    Route("GET", "/collaborations/{id}", collaboration_routes.show, "Show how far a collaboration has come",
          CollaborationView, query=CollaborationParams),
    Route("POST", "/collaborations/{id}/stop", collaboration_routes.stop, "Stop a collaboration, at once",
          CollaborationView, NoBody),
    Route("GET", "/runs", run_routes.list_runs, "List the runs of builders with their reviewers", RunsView),
    Route("POST", "/runs", run_routes.start_run, "Begin a run", RunStartedView, RunBody, status=201),
    Route("GET", "/runs/{id}", run_routes.get_run, "Show a run", RunDetail),
    Route("POST", "/runs/{id}/message", run_routes.say_in_run, "Say a message as builder or reviewer",
          RunSaidView, RunMessageBody),
    Route("POST", "/runs/{id}/{act}", run_routes.act_on_run,
          "Act on a run: go, decide, halt, resume, abort, finding, defect", RunStartedView, RunActionBody),
    Route("GET", "/board", board_routes.list_notes, "Page through the notes of a whiteboard", BoardView,
          query=BoardParams),
    Route("POST", "/board", board_routes.write, "Write a note on a whiteboard", NotedView, BoardBody),
    Route("GET", "/board/search", board_routes.search, "Find notes by name, by word, by meaning",
          BoardHitsView, query=SearchParams),
    Route("GET", "/board/export", board_routes.export, "List the notes as files", ExportView,
          query=ExportParams),
    Route("POST", "/board/summarise", board_routes.summarise,
          "Have an agent sum up what is new on a whiteboard",
          SummaryAskedView, SummariseBody),
    Route("GET", "/board/{id}", board_routes.get_note, "Show a note", NoteView),
    Route("GET", "/usage", usage, "Show the tokens and the money of each agent", UsageView),
    Route("POST", "/page/link", page_routes.link, "Hand out a link that lets one page in", LinkView, NoBody),
    Route("POST", "/page/enter", page_routes.enter, "Change the code of a link for a page's token",
          EnteredView, EnterBody),
    Route("POST", "/page/leave", page_routes.leave, "Let a page's token die, or those of all pages",
          Done, LeaveBody),
    Route("GET", "/health", health, "Tell whether the room is well", HealthView),
    Route("GET", "/metrics", metrics, "Figures for Prometheus", str),
    Route("GET", "/openapi.json", openapi, "This description", dict[str, Any]),
)
# fmt: on


def field_names(kind: type[msgspec.Struct] | None) -> set[str]:
    """Return the names of all fields of a body, of those inside it as well."""
    found: set[str] = set()
    for field in msgspec.structs.fields(kind) if kind else ():
        found |= {field.name, field.encode_name}
        for inner in (field.type, *get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                found |= field_names(inner)
    return found


for _route in ROUTES:
    # Fails at the start, not when somebody finds the way in.
    check_row(_route.name, _route.row, field_names(_route.body) | field_names(_route.query))


def check_role(caller: Caller, route: Route) -> None:
    """Raise Forbidden unless the table of roles lets the caller call the route."""
    check_call(route.row, caller.party, route.name)


async def answer(gateway: Gateway, route: Route, call: Call) -> Answer:
    """Call a route after checking that the caller may use it with these fields."""
    check_role(call.caller, route)
    given = [f"{name}={value}" for name, value in call.path.items()]
    if route.body is not None:
        given += [name for name in route.body.__struct_fields__ if getattr(call.body, name)]
    check_fields(route.row, call.caller.party, given)
    return await route.handler(gateway, call)
