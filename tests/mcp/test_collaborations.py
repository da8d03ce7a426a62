"""chatter_collaborate: it waits with signs of progress, or gives a handle to poll, to stop, to go on with."""

import json
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import requests
from mcp.client.client import Client

from csp.http_client import GatewayClient
from tests.mcp.clients import call, in_a_pane, over_http, over_stdio, refused
from tests.rooms import LiveRoom

pytestmark = pytest.mark.xdist_group("mcp")

PAIR: Final = ("ada", "bob")
WISH: Final = {"objective": "solve it", "models": list(PAIR), "user_input": "be quick", "max_steps": 3}


class Answering:
    """A participant that answers each of its turns while it may."""

    def __init__(self, room: LiveRoom, name: str) -> None:
        joined = room.gateway.post("/register", {"agentId": name, "kind": "api"})
        self._gateway, self.name = GatewayClient(room.url, joined["token"]), str(joined["agentId"])
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self._answer)

    def _answer(self) -> None:
        while not self.is_over.is_set():
            for item in self._gateway.get(f"/inbox/{self.name}", wait=0.3)["items"]:
                if item["kind"] == "turn":
                    body = {"content": f"{self.name} says 42", "turn": item["turn"]}
                    self._gateway.post("/agent-output", body)


@pytest.fixture(scope="module")
def pair(room: LiveRoom) -> list[Answering]:
    """Two who could take turns, in a room with others."""
    return [Answering(room, name) for name in PAIR]


@contextmanager
def at_work(pair: list[Answering]) -> Iterator[None]:
    for one in pair:
        one.is_over.clear()
        one.thread = threading.Thread(target=one._answer)
        one.thread.start()
    try:
        yield
    finally:
        for one in pair:
            one.is_over.set()
        for one in pair:
            one.thread.join()


@pytest.mark.parametrize("way", ["stdio", "http", "pane"])
async def test_it_waits_for_the_end_and_tells_each_step(
    room: LiveRoom, pair: list[Answering], way: str, tmp_path: Path
) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    with at_work(pair):
        # One way by the protocol of before, the others by that of now.
        way_in: AbstractAsyncContextManager[Client] = over_stdio(room)
        if way == "http":
            way_in = over_http(room, room.token, "legacy")
        elif way == "pane":
            way_in = in_a_pane(room.url, tmp_path, room.token)
        async with way_in as client:
            # Without a name of its own, it speaks as the person at the keyboard.
            listed = await call(client, "list_agents")
            result = await client.call_tool("chatter_collaborate", WISH, progress_callback=on_progress)

    assert listed["you"] == "human"
    view = result.structured_content
    assert view is not None and (view["status"], view["reason"]) == ("ended", "done")
    assert (view["result"], view["speakers"]) == ("ada says 42", list(PAIR))
    assert told[-1][:2] == (3, 3)
    assert [progress for progress, _, _ in told] == sorted(progress for progress, _, _ in told)
    assert any("step 2 of 3: bob replied" in str(message) for _, _, message in told)
    assert view["progress"][:2] == ["step 1 of 3: ada replied", "step 2 of 3: bob replied"]


async def test_it_gives_a_handle_when_the_time_is_over_or_nobody_waits(
    room: LiveRoom, pair: list[Answering]
) -> None:
    async with over_http(room, room.token) as client:
        begun = await call(client, "chatter_collaborate", **WISH, wait=0)
        late = await call(client, "chatter_collaborate", **WISH, wait=0.5)
        polled = await call(client, "chatter_poll", handle=begun["handle"])
        stopped = await call(client, "chatter_poll", handle=late["handle"], stop=True, wait=10)
        await call(client, "chatter_poll", handle=begun["handle"], stop=True)
        unknown = await refused(client, "chatter_poll", handle="s-99999")
        parallel = await refused(client, "chatter_collaborate", **WISH, parallel=0)
        nothing = await refused(client, "chatter_collaborate")
        nobody = await refused(client, "chatter_collaborate", objective="solve it", models=["nobody"])

    assert begun["handle"] != late["handle"] and late["status"] == polled["status"] == "running"
    assert (stopped["status"], stopped["speakers"]) == ("ended", [])
    assert "s-99999" in unknown and "nobody" in nobody
    assert parallel.startswith("expected `int` >= 1 - at `$.parallel`")
    assert "objective" in nothing


async def test_one_that_is_over_goes_on_with_what_is_left_out_as_it_was(
    room: LiveRoom, pair: list[Answering]
) -> None:
    with at_work(pair):
        async with over_http(room, room.token) as client:
            first = await call(client, "chatter_collaborate", **WISH)
            again = await call(
                client, "chatter_collaborate", session_id=first["handle"], user_input="more", max_steps=2
            )

    assert again["handle"] == first["handle"]
    assert (again["status"], again["models"], again["objective"]) == ("ended", list(PAIR), "solve it")
    assert again["step"] > first["step"]


def test_over_http_progress_comes_as_events_to_those_who_ask_for_it(
    room: LiveRoom, pair: list[Answering]
) -> None:
    params = {"name": "chatter_collaborate", "arguments": WISH, "_meta": {"progressToken": "p"}}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    headers = {"Authorization": f"Bearer {room.token}", "Accept": "application/json, text/event-stream"}
    with at_work(pair):
        answer = requests.post(f"{room.url}/mcp", json=body, headers=headers, timeout=60)
    said = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]

    assert [one["method"] for one in said[:-1]] == ["notifications/progress"] * (len(said) - 1)
    assert said[-2]["params"]["progress"] == 3
    result: dict[str, Any] = said[-1]["result"]["structuredContent"]
    assert (said[-1]["id"], result["status"], result["result"]) == (7, "ended", "ada says 42")
