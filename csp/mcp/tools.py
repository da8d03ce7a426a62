"""The MCP tools in one table of names, arguments and handlers."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

import msgspec

from csp.errors import BadInput
from csp.http_client import field, objects, segment
from csp.mcp import tool_arguments as args
from csp.mcp.room_client import RoomClient, me, reads_inbox
from csp.protocol.enums import ALL, Role
from csp.room import permissions
from csp.room.permissions import Party, RoleRow, check_call, check_row, row_of

Progress = Callable[[float, float, str], Awaitable[None]]
#: Messages from agents and people, excluding notices from the room.
_SPEECH: Final = "human_message,agent_call,agent_response"
_POLL_S: Final = 20.0
#: The fields of an event that a reader sees, some of them renamed.
_SHOWN: Final = ("seq", "id", "type", "sender", "target", "text", "replyTo", "session_id", "turn", "ts")
_OTHER_NAMES: Final = {"sender": "from", "target": "to", "replyTo": "reply_to", "session_id": "session"}


class ToolCall(NamedTuple):
    """One call, with its room client, a unique id and a progress callback."""

    door: RoomClient
    key: str
    progress: Progress


Handler = Callable[[ToolCall, Any], Awaitable[Any]]


class Tool(NamedTuple):
    """A tool; the table of roles defines who may call it."""

    name: str
    takes: type[args.Arguments]
    run: Handler
    #: Whether the tool changes nothing.
    is_reading: bool = False

    @property
    def row(self) -> RoleRow:
        return row_of(permissions.TOOLS, self.name)


def shown_to(role: Role) -> list[Tool]:
    """Return the tools to list for a role, without those that the gateway would refuse."""
    return [tool for tool in TOOLS if Party(role) in tool.row.parties]


async def check_tool(tool: Tool, door: RoomClient) -> None:
    """Raise Forbidden unless the table of roles allows the caller to use a tool."""
    if Party.AGENT not in tool.row.parties:
        check_call(tool.row, Party((await me(door)).role), f"call {tool.name!r}")


def read_arguments(tool: Tool, given: dict[str, Any]) -> args.Arguments:
    """Return a call's parsed arguments, or raise BadInput with the name of the invalid field."""
    try:
        return msgspec.convert(given, tool.takes)
    except msgspec.ValidationError as exc:
        known = ", ".join(schema_field.encode_name for schema_field in msgspec.structs.fields(tool.takes))
        problem = str(exc)
        hint = f"{tool.name} accepts: {known}" if known else f"{tool.name} accepts no arguments"
        raise BadInput(problem[:1].lower() + problem[1:], hint) from exc


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


# --- messages ------------------------------------------------------------------------------------


async def send_message(asked: ToolCall, call: args.SendMessage) -> Any:
    key = call.id or asked.key
    if call.turn is not None:
        return await asked.door.post("/agent-output", {"content": call.text, "turn": call.turn, "id": key})
    body = _given(to=call.to, content=call.text, replyTo=call.reply_to, thread=call.thread, id=key)
    return await asked.door.post("/message", body | ({"urgent": True} if call.urgent else {}))


async def broadcast(asked: ToolCall, call: args.Broadcast) -> Any:
    body = _given(to=ALL, content=call.text, thread=call.thread, id=call.id or asked.key)
    return await asked.door.post("/message", body)


async def read_messages(asked: ToolCall, call: args.ReadMessages) -> Any:
    """Read and confirm the messages in the caller's inbox; a caller with a pane only reads the history."""
    who = await me(asked.door)
    if not reads_inbox(who):
        page = await asked.door.get(
            "/history", limit=call.limit, after=call.after, types=_SPEECH, wait=call.wait
        )
        return _page(page)
    inbox = await asked.door.get(f"/inbox/{segment(who.id)}", after=call.after or 0, wait=call.wait)
    items = objects(field(inbox, "items", list))[: call.limit]
    for item in items:
        await asked.door.post("/delivery", {"id": item["id"], "state": "confirmed"})
    names = ("id", "seq", "kind", "from", "text", "turn", "urgent")
    return {"items": [{name: item[name] for name in names if item.get(name)} for item in items]}


async def query_log(asked: ToolCall, call: args.QueryLog) -> Any:
    query = {"agent": call.agent, "session": call.session, "after": call.after, "before": call.before}
    return _page(await asked.door.get("/history", limit=call.limit, q=call.search, **query))


def _page(page: Any) -> dict[str, Any]:
    items = objects(field(page, "items", list))
    shown = [{_OTHER_NAMES.get(key, key): item[key] for key in _SHOWN if item.get(key)} for item in items]
    return {"items": shown, "next": page.get("next")}


async def list_agents(asked: ToolCall, call: args.Nothing) -> Any:
    agents = objects(await asked.door.get("/agents"))
    names = ("id", "name", "kind", "role", "online", "state", "detail", "queued")
    who = await me(asked.door)
    return {"you": who.id, "agents": [{name: agent[name] for name in names} for agent in agents]}


async def set_status(asked: ToolCall, call: args.SetStatus) -> Any:
    return await asked.door.post("/state", {"state": call.state, "detail": call.detail})


# --- the turn ------------------------------------------------------------------------------------


async def working(asked: ToolCall, call: args.Working) -> Any:
    return await asked.door.post("/turn/working", {"note": call.note})


async def hand_over(asked: ToolCall, call: args.HandOver) -> Any:
    return await asked.door.post("/turn/handoff", _given(to=call.to, task=call.task, session=call.session))


async def vote(asked: ToolCall, call: args.Vote) -> Any:
    body = _given(label=call.label.upper(), reason=call.reason, session=call.session)
    return await asked.door.post("/turn/vote", body)


# --- the board -----------------------------------------------------------------------------------


async def board_add(asked: ToolCall, call: args.BoardAdd) -> Any:
    body = _given(text=call.text, session=call.session, tags=call.tags, id=call.id or asked.key)
    return await asked.door.post("/board", body)


async def board_search(asked: ToolCall, call: args.BoardSearch) -> Any:
    query = {"session": call.session, "author": call.author, "kind": call.kind}
    rerank = 1 if call.rerank else None
    return await asked.door.get("/board/search", q=call.query, limit=call.limit, rerank=rerank, **query)


# --- modes ---------------------------------------------------------------------------------------


async def start_mode(asked: ToolCall, call: args.StartMode) -> Any:
    fields = msgspec.structs.asdict(call)
    path = "/sessions" if fields.pop("own_thread") else "/mode"
    return await asked.door.post(path, _given(**fields, id=asked.key))


async def mode_status(asked: ToolCall, call: args.ModeStatus) -> Any:
    if call.session is not None:
        return await asked.door.get(f"/sessions/{segment(call.session)}")
    return await asked.door.get("/mode", thread=call.thread)


async def stop(asked: ToolCall, call: args.Stop) -> Any:
    body = _given(thread=call.thread, id=asked.key)
    return await asked.door.post("/stop", body | ({"all": True} if call.all else {}))


# --- collaborations ------------------------------------------------------------------------------


async def chatter_collaborate(asked: ToolCall, call: args.ChatterCollaborate) -> Any:
    """Start a collaboration; wait for it to end, or return its handle if that takes too long."""
    fields = msgspec.structs.asdict(call)
    wait_s = fields.pop("wait")
    begun = await asked.door.post("/collaborations", _given(**fields, id=asked.key))
    if wait_s == 0:
        return begun
    return await _until_ended(asked, field(begun, "handle", str), wait_s)


async def chatter_poll(asked: ToolCall, call: args.ChatterPoll) -> Any:
    if call.stop:
        await asked.door.post(f"/collaborations/{segment(call.handle)}/stop", {})
    return await _until_ended(asked, call.handle, call.wait)


async def _until_ended(asked: ToolCall, handle: str, wait_s: float) -> Any:
    """Wait until a collaboration ends or time runs out, and report each step."""
    deadline = time.monotonic() + wait_s
    told: list[Any] = []
    while True:
        left = max(0.0, deadline - time.monotonic())
        query = {"after": len(told), "wait": round(min(_POLL_S, left), 3)}
        seen = await asked.door.get(f"/collaborations/{segment(handle)}", **query)
        news = field(seen, "progress", list)
        told += news
        step, of = field(seen, "step", int), field(seen, "max_steps", int)
        await asked.progress(step, of, "; ".join(map(str, news)) or f"step {step} of {of}")
        if field(seen, "status", str) == "ended" or time.monotonic() >= deadline:
            return {**seen, "progress": told}


TOOLS: Final = (
    Tool("send_message", args.SendMessage, send_message),
    Tool("broadcast", args.Broadcast, broadcast),
    Tool("read_messages", args.ReadMessages, read_messages),
    Tool("list_agents", args.Nothing, list_agents, is_reading=True),
    Tool("set_status", args.SetStatus, set_status),
    Tool("working", args.Working, working),
    Tool("handoff", args.HandOver, hand_over),
    Tool("vote", args.Vote, vote),
    Tool("board_add", args.BoardAdd, board_add),
    Tool("board_search", args.BoardSearch, board_search, is_reading=True),
    Tool("query_log", args.QueryLog, query_log, is_reading=True),
    Tool("mode_status", args.ModeStatus, mode_status, is_reading=True),
    Tool("start_mode", args.StartMode, start_mode),
    Tool("stop", args.Stop, stop),
    Tool("chatter_collaborate", args.ChatterCollaborate, chatter_collaborate),
    Tool("chatter_poll", args.ChatterPoll, chatter_poll, is_reading=False),
)
for _tool in TOOLS:
    check_row(_tool.name, _tool.row, _tool.takes.__struct_fields__)
BY_NAME: Final = {tool.name: tool for tool in TOOLS}
