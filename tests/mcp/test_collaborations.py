"""chatter_collaborate: it waits with signs of progress, or gives a handle; against a room made of answers."""

import json
from typing import Any

import pytest
from mcp.client.client import Client

from csp.errors import NotFound
from csp.mcp.asgi import App
from csp.mcp.server import Room
from tests.mcp.clients import call, refused

WISH = {"objective": "solve it", "models": ["ada", "bob"], "user_input": "be quick", "max_steps": 3}


class Answers:
    """A door to a room in which one collaboration takes so many steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.step = 0
        self.posted: list[tuple[str, dict[str, Any]]] = []

    async def get(self, path: str, **query: object) -> Any:
        if path == "/me":
            return {"id": "human", "role": "room", "kind": "human", "room": "default"}
        if path != "/collaborations/c-1":
            raise NotFound(f"unknown collaboration {path!r}", "see the handle")
        self.step += 1
        status = "ended" if self.step >= self.steps else "running"
        return {"handle": "c-1", "status": status, "step": self.step, "max_steps": 3, "result": "42"}

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        self.posted.append((path, body))
        return {"success": True, "handle": "c-1", "session": "s-1", "thread": "t"}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_it_waits_for_the_end_and_tells_each_step(mode: str) -> None:
    answers = Answers(steps=3)
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with Client(Room(lambda ctx: answers).server(), mode=mode) as client:
        result = await client.call_tool("chatter_collaborate", WISH, progress_callback=on_progress)

    assert result.structured_content is not None and result.structured_content["result"] == "42"
    assert told == [(1, 3, "step 1 of 3"), (2, 3, "step 2 of 3"), (3, 3, "step 3 of 3")]
    ((path, body),) = answers.posted
    assert path == "/collaborations"
    assert body == WISH | {"mode": "round_robin", "parallel": 1, "timeout_per_step": 300}


async def test_it_gives_a_handle_when_the_time_is_over_or_nobody_waits() -> None:
    answers = Answers(steps=10**9)
    async with Client(Room(lambda ctx: answers).server()) as client:
        begun = await call(client, "chatter_collaborate", **WISH, wait=0)
        late = await call(client, "chatter_collaborate", **WISH, wait=0.5)
        polled = await call(client, "chatter_poll", handle=late["handle"])
        await call(client, "chatter_poll", handle="c-1", stop=True)
        unknown = await refused(client, "chatter_poll", handle="c-2")
        parallel = await refused(client, "chatter_collaborate", **WISH, parallel=0)

    assert (begun["handle"], late["handle"], late["status"]) == ("c-1", "c-1", "running")
    assert polled["step"] > late["step"]
    assert answers.posted[-1] == ("/collaborations/c-1/stop", {})
    assert unknown == "unknown collaboration '/collaborations/c-2' (see the handle)"
    assert parallel.startswith("expected `int` >= 1 - at `$.parallel`")


async def test_over_http_progress_comes_as_events_to_those_who_ask_for_it() -> None:
    params = {"name": "chatter_collaborate", "arguments": WISH, "_meta": {"progressToken": "p"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(dict(message))

    app = App()
    headers = [(b"accept", b"application/json, text/event-stream"), (b"content-type", b"application/json")]
    async with app.run():
        await app.answer(headers, body, Answers(steps=2), send)
    events = b"".join(message.get("body", b"") for message in sent).decode().split("data: ")[1:]
    said = [json.loads(event.partition("\r\n")[0]) for event in events]

    assert [one["params"]["message"] for one in said[:-1]] == ["step 1 of 3", "step 2 of 3"]
    assert said[-1]["id"] == 7 and said[-1]["result"]["structuredContent"]["status"] == "ended"
