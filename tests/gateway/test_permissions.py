"""Who may do what: every route, operation and tool with every kind of token, every dangerous field."""

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.gateway.http_server import make_runner
from csp.gateway.route_table import Route
from csp.gateway.routes import ROUTES, field_names
from csp.gateway.websocket import OPS
from csp.mcp.tools import TOOLS
from csp.protocol.requests import NoQuery
from csp.room import permissions
from csp.room.permissions import Party, check_row, is_dangerous
from tests.gateway.served import Member, ServedRoom, served

OK, BAD, NO_TOKEN, FORBIDDEN, HIDDEN, NOTHING_TO_SHOW = "ok", 400, 401, 403, 404, 409
ANYBODY = (OK, OK, OK, OK, OK, OK, OK)
AGENTS = (NO_TOKEN, NO_TOKEN, OK, OK, OK, OK, OK)
#: What an agent says of itself, which a page has no part in.
NO_PAGE = (NO_TOKEN, NO_TOKEN, OK, OK, OK, OK, FORBIDDEN)
ORCHESTRATORS = (NO_TOKEN, NO_TOKEN, FORBIDDEN, FORBIDDEN, OK, OK, OK)
THE_ROOM = (NO_TOKEN, NO_TOKEN, FORBIDDEN, FORBIDDEN, FORBIDDEN, OK, OK)
#: What a page that was left open must not be able to do.
NO_PAGE_BUT_THE_ROOM = (NO_TOKEN, NO_TOKEN, FORBIDDEN, FORBIDDEN, FORBIDDEN, OK, FORBIDDEN)
#: The room's own token is nobody's to leave.
ONLY_PAGES = (NO_TOKEN, NO_TOKEN, FORBIDDEN, FORBIDDEN, FORBIDDEN, BAD, OK)
#: The human behind the room's token has no state of its own to report.
ONLY_AGENTS = (NO_TOKEN, NO_TOKEN, OK, OK, OK, BAD, FORBIDDEN)
#: Allowed, but there is no turn in freeform.
NO_TURN = (NO_TOKEN, NO_TOKEN, FORBIDDEN, FORBIDDEN, BAD, BAD, BAD)
#: Nobody is asked to vote here; claude alone has an open turn.
NO_BALLOT = (NO_TOKEN, NO_TOKEN, *(NOTHING_TO_SHOW,) * 4, FORBIDDEN)
CLAUDES_TURN = (NO_TOKEN, NO_TOKEN, OK, *(NOTHING_TO_SHOW,) * 3, FORBIDDEN)
#: Claude's own things: another agent may not, the orchestrator is another agent here.
CLAUDES_INBOX = (NO_TOKEN, NO_TOKEN, OK, FORBIDDEN, FORBIDDEN, OK, FORBIDDEN)
#: Nobody has a WebSocket here, so there is no screen to show to those who may see it.
CLAUDES_SCREEN = (
    *(NO_TOKEN, NO_TOKEN, NOTHING_TO_SHOW, FORBIDDEN, FORBIDDEN, NOTHING_TO_SHOW, NOTHING_TO_SHOW),
)
CLAUDES_MESSAGE = (NO_TOKEN, NO_TOKEN, OK, HIDDEN, HIDDEN, OK, OK)
CLAUDES_REPORT = (NO_TOKEN, NO_TOKEN, OK, HIDDEN, HIDDEN, OK, FORBIDDEN)
#: Nobody here plays a role in the run, least of all the room itself.
NO_ROLE = (NO_TOKEN, NO_TOKEN, BAD, BAD, BAD, FORBIDDEN, FORBIDDEN)
#: No code here is good, whoever has it.
NO_CODE = (NO_TOKEN,) * 7

#: Allowed, but nothing is asked for.
NO_IDS = (NO_TOKEN, NO_TOKEN, *(BAD,) * 5)

#: No agent can have the name that is asked for, so nothing is started.
NO_MODEL = (NO_TOKEN, NO_TOKEN, FORBIDDEN, FORBIDDEN, FORBIDDEN, BAD, BAD)

#: One row for each route: what a caller gets without a token, with a wrong one, as claude (whom the
#: path names), as codex, as the orchestrator, as the room, as a page. Written from the design, not from the
#: code.
EXPECTED: dict[str, tuple[str | int, ...]] = {
    "GET /health": ANYBODY,
    "GET /openapi.json": ANYBODY,
    "POST /register": NO_PAGE,
    "GET /agents": AGENTS,
    "GET /me": AGENTS,
    "POST /state": ONLY_AGENTS,
    "POST /message": AGENTS,
    "GET /messages/{id}": CLAUDES_MESSAGE,
    "GET /inbox/{id}": CLAUDES_INBOX,
    "POST /delivery": CLAUDES_REPORT,
    "POST /agent-output": NO_PAGE,
    "GET /history": AGENTS,
    "GET /markdown": NO_IDS,
    "GET /usage": AGENTS,
    "GET /catalogue": AGENTS,
    "POST /line": THE_ROOM,
    "GET /mode": AGENTS,
    "POST /turn/working": NO_PAGE,
    "POST /turn/vote": NO_BALLOT,
    "POST /turn/handoff": CLAUDES_TURN,
    "GET /ws": AGENTS,
    "POST /mcp": NO_PAGE,
    "POST /mode": ORCHESTRATORS,
    "POST /stop": ORCHESTRATORS,
    "POST /turn/next": NO_TURN,
    "GET /sessions": AGENTS,
    "POST /sessions": ORCHESTRATORS,
    "GET /sessions/{id}": AGENTS,
    "POST /sessions/{id}/{change}": ORCHESTRATORS,
    "POST /collaborations": ORCHESTRATORS,
    "GET /collaborations/{id}": AGENTS,
    "POST /collaborations/{id}/stop": ORCHESTRATORS,
    "GET /board": AGENTS,
    "POST /board": AGENTS,
    "GET /board/search": (NO_TOKEN, NO_TOKEN, BAD, BAD, BAD, BAD, BAD),
    "GET /board/export": AGENTS,
    "POST /board/summarise": ORCHESTRATORS,
    "GET /board/{id}": AGENTS,
    "GET /runs": AGENTS,
    "POST /runs": ORCHESTRATORS,
    "GET /runs/{id}": AGENTS,
    "POST /runs/{id}/message": NO_ROLE,
    "POST /runs/{id}/{act}": THE_ROOM,
    "DELETE /agents/{id}": NO_PAGE_BUT_THE_ROOM,
    "POST /agents": NO_MODEL,
    "POST /agents/{id}/{verb}": THE_ROOM,
    "GET /agents/{id}/screen": CLAUDES_SCREEN,
    "POST /messages/{id}/{action}": THE_ROOM,
    "GET /queue": THE_ROOM,
    "GET /attention": ORCHESTRATORS,
    "GET /report": THE_ROOM,
    "GET /rules": ORCHESTRATORS,
    "POST /rules": THE_ROOM,
    "DELETE /rules/{number}": THE_ROOM,
    "POST /history/prune": NO_PAGE_BUT_THE_ROOM,
    "GET /metrics": NO_PAGE_BUT_THE_ROOM,
    "POST /page/link": NO_PAGE_BUT_THE_ROOM,
    "POST /page/enter": NO_CODE,
    "POST /page/leave": ONLY_PAGES,
}
BODIES: dict[str, dict[str, Any]] = {
    "POST /mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "POST /agents": {"name": "-gpt", "provider": "openai", "model": "gpt"},
    "POST /register": {"agentId": "gemini"},
    "POST /state": {"state": "busy"},
    "POST /rules": {"agent": "codex", "pattern": "ls"},
    "POST /message": {"to": "all", "content": "hello"},
    "POST /line": {"line": "@all hello"},
    "POST /delivery": {"id": "for-claude", "state": "held", "reason": "busy"},
    "POST /agent-output": {"content": "done"},
    "POST /mode": {"mode": "freeform"},
    "POST /turn/vote": {"label": "A"},
    "POST /turn/handoff": {"to": "claude", "task": "go on"},
    "POST /history/prune": {"before": 1},
    "POST /sessions": {"mode": "single", "agents": ["codex"]},
    "POST /collaborations": {"objective": "a plan", "models": ["codex"]},
    "POST /page/enter": {"code": "wrong"},
    "POST /runs": {"goal": "g", "builder": "mailbox", "reviewer": "mailbox"},
    "POST /runs/{id}/message": {
        "schema_version": "0.1",
        "timestamp": "2026-01-01T00:00:00Z",
        "sender": "reviewer",
        "run_id": "run-1",
        "message_type": "session.ack",
        "body": {},
    },
    "POST /runs/{id}/{act}": {"rationale": "enough"},
    "POST /board": {"text": "look here"},
    "POST /board/summarise": {"by": "claude"},
}
MCP = {"Accept": "application/json", "Content-Type": "application/json"}
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


async def _prepare(room: ServedRoom) -> list[str | None]:
    """Fill a room; return the tokens in the order of the columns."""
    claude, codex = await room.join("claude"), await room.join("codex")
    boss = await room.join("orchestrator", role="orchestrator")
    await room.send("claude", "for claude alone", id="for-claude")
    await room.call("POST", "/mode", {"mode": "single", "agents": ["claude"], "thread": "dev"})
    run = BODIES["POST /runs"] | {"run_id": "run-1", "thread": "run"}
    await room.call("POST", "/runs", run)
    plan = {"objective": "a plan", "models": ["codex"], "session_id": "plan"}
    await room.call("POST", "/collaborations", plan)
    await room.call("POST", "/collaborations/plan/stop")
    await room.call("POST", "/board", {"text": "a note"})
    await room.call("POST", "/rules", {"agent": "claude", "pattern": "pytest"})
    return [None, "wrong", claude.token, codex.token, boss.token, room.token, await room.enter()]


async def _status(room: ServedRoom, row: str, token: str | None) -> str | int:
    method, path = row.split(" ")
    path = path.replace("{verb}", "pause").replace("{action}", "cancel")
    rule = (await room.get("/rules"))["items"][0]["number"]
    path = path.replace("{number}", str(rule))
    board = (await room.get("/board"))["items"][0]["id"]
    names = {"messages": "for-claude", "sessions": "s-5", "runs": "run-1", "board": board}
    names["collaborations"] = "plan"
    named = names.get(path.split("/")[1], "claude")
    path = path.replace("{id}", named).replace("{change}", "pause").replace("{act}", "abort")
    headers = UPGRADE if path == "/ws" else MCP if path == "/mcp" else None
    answer = await room.call(method, path, BODIES.get(row), token=token, headers=headers)
    if answer.status in (101, 200, 201, 202):
        return OK
    assert answer.is_refusal, answer
    return answer.status


#: Served by the HTTP shell itself.
OTHERS = ("GET /ws", "POST /mcp", "GET /", "GET /page/{file}")


def test_every_route_has_a_row() -> None:
    rows = [route.name for route in ROUTES]

    assert sorted([*rows, "GET /ws", "POST /mcp"]) == sorted(EXPECTED)
    assert sorted([*rows, *OTHERS]) == sorted(permissions.ROUTES)
    assert sorted([*OPS, "watch", "unwatch"]) == sorted(permissions.OPS)
    assert sorted(tool.name for tool in TOOLS) == sorted(permissions.TOOLS)


async def test_route_without_a_row_cannot_be_served(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = Route("POST", "/new", ROUTES[0].handler, "Do something new", ROUTES[0].answer)
    monkeypatch.setattr("csp.gateway.http_server.ROUTES", (*ROUTES, new))
    with pytest.raises(LookupError, match="'POST /new' has no row"):
        make_runner(room.gateway)


class _Inner(msgspec.Struct):
    key_env: str = ""


class _Outer(msgspec.Struct):
    topic: str = ""
    more: _Inner | None = None


def test_dangerous_field_inside_another_is_found() -> None:
    with pytest.raises(LookupError, match="key_env"):
        check_row("POST /mode", permissions.ROUTES["POST /mode"], field_names(_Outer))


@dataclass(frozen=True, slots=True)
class Prepared:
    """The folder of a room as `_prepare` leaves it, with the tokens of the columns."""

    folder: Path
    tokens: list[str | None]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("roles") / "room"

    async def prepare() -> list[str | None]:
        async with served(folder, durability="none") as room:
            return await _prepare(room)

    return Prepared(folder, asyncio.run(prepare()))


@pytest.mark.parametrize("row", EXPECTED)
async def test_every_kind_of_token_gets_what_it_may(tmp_path: Path, prepared: Prepared, row: str) -> None:
    expected = EXPECTED[row]
    # What one caller was allowed to change must not change the next one's answer; a refusal changes nothing.
    is_harmless = row.startswith("GET ") or OK not in expected
    alone = [] if is_harmless else [column for column, answer in enumerate(expected) if answer == OK]
    together = [column for column in range(7) if column not in alone]
    got: dict[int, str | int] = {}
    for number, columns in enumerate([together, *([column] for column in alone)]):
        copy = shutil.copytree(prepared.folder, tmp_path / str(number))
        async with served(copy, durability="none") as room:
            for column in columns:
                got[column] = await _status(room, row, prepared.tokens[column])

    assert tuple(got[column] for column in range(7)) == expected


DANGEROUS = [
    (route, field)
    for route in ROUTES
    for field in sorted(field_names(route.body) | field_names(route.query))
    if is_dangerous(field)
]
COLUMNS = {Party.NONE: 0, Party.AGENT: 2, Party.ORCHESTRATOR: 4, Party.PAGE: 6}


def test_dangerous_fields_are_those_we_know() -> None:
    known = {(route.name, field) for route, field in DANGEROUS}

    assert known == {
        ("POST /runs", "test"),
        ("POST /runs", "dir"),
        ("POST /agents", "base_url"),
        ("POST /agents", "key_env"),
    }


async def test_nobody_but_the_room_sets_a_dangerous_field(tmp_path: Path, prepared: Prepared) -> None:
    async with served(shutil.copytree(prepared.folder, tmp_path / "room"), durability="none") as room:
        for route, field in DANGEROUS:
            body = BODIES[route.name] | {field: "HOME"}
            for party, column in COLUMNS.items():
                answer = await room.call("POST", route.path, body, token=prepared.tokens[column])

                assert answer.status == (401 if party is Party.NONE else 403), (route.name, field, party)
        assert [run["id"] for run in (await room.get("/runs"))["items"]] == ["run-1"]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
async def test_no_body_smuggles_a_dangerous_field(
    tmp_path: Path, prepared: Prepared, route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A field that a route does not know must not become one by another name, in any query or body."""
    smuggled = {"test": "touch x", "dir": "/", "base_url": "http://127.0.0.1:1", "key_env": "HOME"}
    if route.method != "POST" or route.name in ("POST /runs", "POST /agents"):
        assert route.query is NoQuery or not field_names(route.query) & set(smuggled)
        return
    async with served(shutil.copytree(prepared.folder, tmp_path / "room"), durability="none") as room:
        monkeypatch.setattr(room.gateway.agent_launcher, "start", lambda body: pytest.fail("it was started"))
        body = BODIES.get(route.name, {}) | smuggled | {"terms": smuggled, "limits": {}}
        path = "?".join((route.path, "test=x&dir=/")).replace("{id}", "run-1").replace("{act}", "abort")
        await room.call("POST", path, body, token=prepared.tokens[6])

        assert all(
            not run.terms.test and not run.terms.dir for run in room.gateway.writer.room.runs.by_id.values()
        )


OPERATIONS: dict[str, dict[str, Any]] = {
    "message": {"to": "codex", "content": "hello"},
    "output": {"content": "hello"},
    "delivery": {"id": "for-claude", "state": "held", "reason": "busy"},
    "control_done": {"id": "for-claude"},
    "working": {},
    "state": {"state": "busy", "agent": "claude"},
    "live": {"text": "hello"},
    "stop": {},
    "line": {"line": "@all hello"},
    "watch": {"after": 0},
    "unwatch": {},
}


async def test_every_operation_is_for_those_in_its_row(tmp_path: Path, prepared: Prepared) -> None:
    async with served(shutil.copytree(prepared.folder, tmp_path / "room"), durability="none") as room:
        for party, column in {**COLUMNS, Party.ROOM: 5}.items():
            if party is Party.NONE:
                continue  # without a token there is no connection
            token = prepared.tokens[column]
            assert token is not None
            socket = await room.connect(token)
            for op, body in OPERATIONS.items():
                answer = await socket.ask(op, **body)

                is_refused = answer.get("status") == 403
                assert is_refused == (party not in permissions.OPS[op].parties), (party, op, answer)
    assert set(OPERATIONS) == set(permissions.OPS)


CALLS: dict[str, dict[str, Any]] = {
    "send_message": {"to": "codex", "text": "hello"},
    "broadcast": {"text": "hello"},
    "read_messages": {},
    "list_agents": {},
    "set_status": {"state": "busy"},
    "working": {},
    "handoff": {"to": "claude", "task": "go on"},
    "vote": {"label": "A"},
    "board_add": {"text": "a note"},
    "board_search": {"query": "note"},
    "query_log": {},
    "mode_status": {},
    "start_mode": {"mode": "freeform"},
    "stop": {},
    "chatter_collaborate": {"objective": "a plan", "models": ["codex"], "wait": 0},
    "chatter_poll": {"handle": "plan"},
}


async def test_every_tool_is_for_those_in_its_row(tmp_path: Path, prepared: Prepared) -> None:
    async with served(shutil.copytree(prepared.folder, tmp_path / "room"), durability="none") as room:
        for party, column in {**COLUMNS, Party.ROOM: 5}.items():
            for tool, arguments in CALLS.items():
                params = {"name": tool, "arguments": arguments}
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                answer = await room.call("POST", "/mcp", body, token=prepared.tokens[column], headers=MCP)
                is_refused = answer.status in (401, 403) or " may not call " in answer.raw.decode()

                assert is_refused == (party not in permissions.TOOLS[tool].parties), (party, tool, answer.raw)
    assert set(CALLS) == set(permissions.TOOLS)


# --- what an agent cannot do by other means ------------------------------------------------------


async def _two(room: ServedRoom) -> tuple[Member, Member]:
    return await room.join("claude"), await room.join("codex")


@pytest.mark.parametrize("field", ["sender", "from", "agentId", "agent", "role", "target"])
@pytest.mark.parametrize("path", ["/message", "/agent-output"])
async def test_an_agent_cannot_choose_the_sender(room: ServedRoom, path: str, field: str) -> None:
    claude, _ = await _two(room)
    body = {"to": "codex", "content": "hello", field: "human"}

    await room.post(path, body, claude.token)

    assert [item["sender"] for item in await room.history()] == ["claude"]
    assert [item["type"] for item in await room.history()] != ["human_message"]


async def test_a_sender_in_a_header_or_query_is_ignored(room: ServedRoom) -> None:
    claude, _ = await _two(room)

    await room.call(
        "POST",
        "/message?sender=human&agent=human",
        {"to": "codex", "content": "hello"},
        token=claude.token,
        headers={"X-Agent": "human", "X-Sender": "human"},
    )

    assert [item["sender"] for item in await room.history()] == ["claude"]


async def test_an_agent_cannot_choose_the_sender_over_the_websocket(room: ServedRoom) -> None:
    claude, _ = await _two(room)
    socket = await room.connect(claude.token)

    await socket.ask("message", to="codex", content="hello", sender="human", agent="human")

    assert [item["sender"] for item in await room.history()] == ["claude"]


async def test_an_agent_cannot_report_on_anothers_delivery(room: ServedRoom) -> None:
    claude, codex = await _two(room)
    message = await room.send("codex", "hello")
    socket = await room.connect(claude.token)
    body = {"id": message, "state": "confirmed"}

    answers = [
        await room.call("POST", "/delivery", body, token=claude.token),
        await room.call("POST", "/delivery", body | {"agent": "codex"}, token=claude.token),
    ]
    op = await socket.ask("delivery", **body, agent="codex")
    done = await socket.ask("control_done", id=message, agent="codex")

    assert [answer.status for answer in answers] == [404, 404]
    assert "error" in op and "error" in done
    assert await room.states(message) == {"codex": "queued"}
    assert await room.inbox(codex) == [message]


async def test_an_agents_answer_confirms_only_its_own_delivery(room: ServedRoom) -> None:
    claude, codex = await _two(room)
    message = await room.send("codex", "hello")

    await room.post("/agent-output", {"content": "I am codex", "replyTo": message}, claude.token)

    assert await room.states(message) == {"codex": "queued"}
    assert await room.inbox(codex) == [message]


async def test_an_agent_cannot_take_anothers_message_id(room: ServedRoom) -> None:
    claude, codex = await _two(room)
    await room.send("codex", "mine", claude.token, id="mine")

    answer = await room.call(
        "POST", "/message", {"to": "claude", "content": "stolen", "id": "mine"}, token=codex.token
    )

    assert answer.status == 409
    assert [item["text"] for item in await room.history()] == ["mine"]


async def test_an_agent_cannot_change_anothers_state(room: ServedRoom) -> None:
    claude, _ = await _two(room)

    await room.post("/state", {"state": "busy", "agent": "codex", "id": "codex"}, claude.token)

    assert [(await room.agent(agent))["state"] for agent in ("claude", "codex")] == ["busy", "idle"]
