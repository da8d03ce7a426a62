"""The description of the gateway is true, and nothing made from it brings the gateway down."""

import asyncio
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from csp.client import Client, Live
from csp.gateway.openapi import document
from csp.gateway.routes import ROUTES
from csp.protocol.screen_frames import RunView, ScreenView
from tests.gateway.served import ServedRoom
from tests.rooms import LiveRoom
from tests.waiting import wait_until

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
    "use_after_free",
    "ensure_resource_availability",
]


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document(ROUTES))
    return found


def _operations(described: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }


# --- the document --------------------------------------------------------------------------------


def test_the_document_is_openapi_3_1(described: dict[str, Any]) -> None:
    OPENAPI_31_VALIDATOR.validate(described)

    for name, schema in described["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name


def test_patterns_end_as_those_of_json_schema_do(described: dict[str, Any]) -> None:
    patterns = re.findall(r'"pattern": "((?:[^"\\]|\\.)*)"', json.dumps(described))

    assert patterns
    assert [pattern for pattern in patterns if "\\Z" in pattern] == []


def test_every_route_is_described(described: dict[str, Any]) -> None:
    listed = [f"{route.method} {route.path}" for route in ROUTES]

    assert sorted(_operations(described)) == sorted(listed)


def test_every_operation_has_a_name_of_its_own(described: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in _operations(described).values()]

    assert len(names) == len(set(names))


def test_every_reference_and_link_leads_somewhere(described: dict[str, Any]) -> None:
    text = json.dumps(described)
    references = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', text))
    links = set(re.findall(r'"operationId": "(\w+)", "(?:parameters|requestBody)": {"id": "\$response', text))
    names = {operation["operationId"] for operation in _operations(described).values()}

    assert references and references <= set(described["components"]["schemas"])
    assert links and links <= names


def test_every_parameter_of_a_path_is_described(described: dict[str, Any]) -> None:
    for name, operation in _operations(described).items():
        told = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}

        assert told == set(re.findall(r"{(\w+)}", name)), name


def test_only_what_anybody_may_read_needs_no_token(described: dict[str, Any]) -> None:
    free = [name for name, operation in _operations(described).items() if not operation["security"]]

    assert sorted(free) == ["GET /health", "GET /openapi.json", "POST /page/enter"]


def test_a_body_is_required_where_something_in_it_is(described: dict[str, Any]) -> None:
    optional = [
        name
        for name, operation in _operations(described).items()
        if not operation.get("requestBody", {"required": True})["required"]
    ]

    assert sorted(optional) == [
        "POST /agents/{id}/{verb}",
        "POST /collaborations",
        "POST /collaborations/{id}/stop",
        "POST /messages/{id}/{action}",
        "POST /page/leave",
        "POST /page/link",
        "POST /runs/{id}/{act}",
        "POST /sessions/{id}/{change}",
        "POST /stop",
        "POST /turn/next",
        "POST /turn/working",
    ]


def test_long_polling_is_told_in_words_and_what_is_optional_has_no_null(described: dict[str, Any]) -> None:
    operations = _operations(described)
    history = operations["GET /history"]
    names = {one["name"]: one for one in history["parameters"]}

    assert "wait" not in names and "With wait=S" in history["description"]
    assert "With wait=S" not in operations["GET /agents"]["description"]
    assert names["after"]["schema"]["type"] == "integer"
    assert names["after"]["required"] is False
    assert all("default" not in one["schema"] for one in names.values())
    search = {one["name"]: one["required"] for one in operations["GET /board/search"]["parameters"]}
    assert search["q"] is True and search["limit"] is False


async def test_the_gateway_serves_the_document(room: ServedRoom, described: dict[str, Any]) -> None:
    answer = await room.call("GET", "/openapi.json", token=None)

    assert (answer.status, answer.data) == (200, described)


# --- what is made from it ------------------------------------------------------------------------


#: How many examples of each operation, in which phases. Only a long run finds a good call of every route.
SHORT = (1, "examples,fuzzing")
LONG = (40, "examples,coverage,fuzzing,stateful")


@pytest.mark.parametrize("run", [SHORT, pytest.param(LONG, marks=pytest.mark.full)], ids=["short", "long"])
def test_nothing_made_from_the_document_is_our_failure(
    tmp_path: Path, described: dict[str, Any], run: tuple[int, str]
) -> None:
    examples, phases = run
    statuses: dict[str, set[int]] = {name: set() for name in _operations(described)}
    # The description of itself is read before the tests and left out of them.
    statuses["GET /openapi.json"].add(200)
    # Each call of this one starts a process that waits for a model; tests/panes has real ones.
    statuses["POST /agents"].add(201)
    with LiveRoom(tmp_path / "room") as room:
        claude, codex = _prepare(room)
        with _showing(room.url, claude):
            if run == LONG:
                # Only an agent has a state to report; all else is the room's to try.
                of_agent = phases.removesuffix(",stateful")
                _try_out(room, codex, tmp_path / "agent.har", examples, of_agent, "--include-path", "/state")
            _try_out(room, room.token, tmp_path / "room.har", examples, phases)
        health = room.gateway.get("/health")
        said = room.said()
    for report in tmp_path.glob("*.har"):
        _collect(report, statuses)

    assert health["status"] == "ok"
    assert "Traceback" not in said
    assert max(status for answers in statuses.values() for status in answers) < 500
    if run == SHORT:
        assert len(json.loads((tmp_path / "room.har").read_text())["log"]["entries"]) > len(statuses)
        return
    unanswered = [name for name, answers in statuses.items() if not any(200 <= s < 300 for s in answers)]
    # Only who is asked for its turn can vote or hand over, only who plays a role in a run can speak in it.
    assert unanswered == ["POST /turn/vote", "POST /turn/handoff", "POST /runs/{id}/message"]


def _prepare(room: LiveRoom) -> tuple[str, str]:
    """Make what the examples of the document name; return the tokens of claude, of codex."""
    claude = room.gateway.post("/register", {"agentId": "claude"})["token"]
    codex = room.gateway.post("/register", {"agentId": "codex"})["token"]
    for message in ("m-3", "m-4"):
        assert room.gateway.post("/message", {"to": "claude", "content": "hello"})["id"] == message
    for session, thread in (("s-5", "dev"), ("s-10", "default")):
        begun = {"mode": "autopilot", "agents": ["claude" if thread == "dev" else "codex"], "thread": thread}
        assert room.gateway.post("/mode", begun)["orchestration"]["sessionId"] == session
    run = {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "run_id": "run-1", "thread": "run"}
    room.gateway.post("/runs", run)
    room.gateway.post("/register", {"agentId": "gpt", "kind": "api"})
    plan = {"objective": "a plan", "models": ["gpt"], "session_id": "plan"}
    room.gateway.post("/collaborations", plan)
    # In no session yet, so that one can be begun.
    room.gateway.post("/register", {"agentId": "gemini"})
    return str(claude), str(codex)


@contextmanager
def _showing(url: str, token: str) -> Iterator[None]:
    """Have an agent show its screen to whoever asks, in a thread."""
    is_over = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_show(url, token, is_over)))
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


async def _show(url: str, token: str, is_over: threading.Event) -> None:
    async with Client(url, token) as client:
        showing = asyncio.ensure_future(_answer_watchers(client))
        await wait_until(is_over.is_set, 600)
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)


async def _answer_watchers(client: Client) -> None:
    async for item in client:
        if isinstance(item, Live) and item.watch:
            await client.show(ScreenView(rows=((RunView("hello"),),), cols=80))


def _try_out(room: LiveRoom, token: str, report: Path, examples: int, phases: str, *more: str) -> None:
    """Have the description taken at its word with so many calls of each operation."""
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    options = {
        "--header": f"X-Auth-Token: {token}",
        "--seed": "1",
        "--phases": phases,
        "--max-examples": str(examples),
        "--checks": ",".join(CHECKS),
        "--report-har-path": str(report),
        "--generation-database": "none",
        "--suppress-health-check": "all",
        "--request-timeout": "20",
        "--warnings": "off",
        "--exclude-operation-id": "post_agents",
    }
    words = [word for option in options.items() for word in option]
    command = [sys.executable, "-c", program, "run", f"{room.url}/openapi.json", *words, *more]
    run = subprocess.run(command, cwd=report.parent, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout[-5000:] + run.stderr


def _collect(report: Path, statuses: dict[str, set[int]]) -> None:
    """Add the status codes that each operation was answered with."""
    for entry in json.loads(report.read_text())["log"]["entries"]:
        method, path = entry["request"]["method"], urlsplit(entry["request"]["url"]).path
        for name, answers in statuses.items():
            if re.fullmatch(re.sub(r"{\w+}", "[^/]+", name), f"{method} {path}"):
                answers.add(entry["response"]["status"])
