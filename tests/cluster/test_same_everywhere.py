"""Every route and every operation answers at an edge as at the owner."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

import aiohttp
import pytest

from csp.gateway.routes import ROUTES
from csp.gateway.websocket import OPS
from tests.cluster.gateways import TOKEN, Gateways
from tests.cluster.nats_servers import NatsServer
from tests.gateway.sockets import Socket
from tests.rooms import LiveRoom
from tests.waiting import wait_until

#: What differs from one gateway to the other, or from one moment to the next.
OWN: Final = frozenset(
    {"uptime_s", "watchers", "replica", "journal", "lastSeen", "took_ms", "hosts", "until"}
)
#: Routes that stop nothing and need nothing, but whose answers are figures of one process.
OWN_ROUTES: Final = frozenset({"GET /metrics", "GET /agents/{id}/screen"})
PARTS: Final = {
    "id": ("ada", "m-4", "nobody", "s-9"),
    "verb": ("interrupt", "wrong"),
    "action": ("cancel", "wrong"),
    "change": ("pause", "wrong"),
    "act": ("go", "wrong"),
    "number": ("1", "99"),
}
BODIES: Final[tuple[Any, ...]] = (None, [], {"to": "nobody"}, {"id": "x", "state": "typed"}, {"before": "x"})

FIELDS: Final[tuple[dict[str, Any], ...]] = (
    {"to": "nobody", "content": "x"},
    {"id": "m-99", "state": "typed"},
    {"screen": "nobody"},
)


@pytest.fixture(scope="module")
def gateways(
    nats_server: NatsServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LiveRoom, LiveRoom]]:
    """An owner and an edge."""
    with Gateways(tmp_path_factory.mktemp("gateways"), [nats_server.url], 2) as both:
        owner = both.owner()
        (edge,) = [one for one in both.all if one is not owner]
        yield owner, edge


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def call(
    http: aiohttp.ClientSession, gateway: LiveRoom, method: str, path: str, token: str, body: Any = None
) -> tuple[int, Any]:
    headers = {"X-Auth-Token": token} if token else {}
    async with http.request(method, gateway.url + path, headers=headers, json=body) as response:
        text = await response.text()
    try:
        return response.status, without_own(json.loads(text))
    except ValueError:
        return response.status, text


def without_own(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: without_own(value) for key, value in found.items() if key not in OWN}
    return [without_own(one) for one in found] if isinstance(found, list) else found


@pytest.fixture
async def tokens(gateways: tuple[LiveRoom, LiveRoom], http: aiohttp.ClientSession) -> list[str]:
    """The room's token and those of two agents in a debate whose first phase is sealed."""
    owner, edge = gateways
    found = []
    for gateway, name in ((owner, "ada"), (edge, "bob")):
        _, said = await call(http, gateway, "POST", "/register", TOKEN, {"agentId": name})
        found.append(said["token"])
    agents = [token.split(".")[0] for token in found]
    body = {"mode": "consensus", "topic": "tabs", "agents": agents}
    status, said = await call(http, edge, "POST", "/sessions", TOKEN, body)
    assert status == 201, said
    sealed = {"content": "my secret view", "thread": said["thread"]}
    status, said = await call(http, edge, "POST", "/agent-output", found[0], sealed)
    assert status == 200, said
    await equal(http, gateways)
    return [TOKEN, *found, "wrong", ""]


async def equal(http: aiohttp.ClientSession, gateways: tuple[LiveRoom, LiveRoom]) -> None:
    """Wait until both are at the same event."""

    async def is_equal() -> bool:
        return len({(await call(http, one, "GET", "/health", ""))[1]["seq"] for one in gateways}) == 1

    asked: Callable[[], bool | Awaitable[bool]] = is_equal
    await wait_until(asked)


def paths_of(pattern: str) -> list[str]:
    """Return paths of a route with known and unknown values."""
    # Without a time, a report begins some hours before it is asked for.
    paths = [f"{pattern}?since=1" if pattern == "/report" else pattern]
    for name, values in PARTS.items():
        word = "{" + name + "}"
        paths = (
            [path.replace(word, value) for path in paths for value in values] if word in pattern else paths
        )
    return paths


async def test_every_route_that_reads_answers_the_same(
    gateways: tuple[LiveRoom, LiveRoom], http: aiohttp.ClientSession, tokens: list[str]
) -> None:
    compared = 0
    for route in ROUTES:
        if route.method != "GET" or route.name in OWN_ROUTES:
            continue
        for path in paths_of(route.path):
            for token in tokens:
                first, second = [await call(http, one, "GET", path, token) for one in gateways]
                assert first == second, (route.name, path, token[:8])
                compared += first[0] == 200
    assert compared > 30


async def test_the_text_of_a_sealed_phase_is_nowhere_shown_to_the_others(
    gateways: tuple[LiveRoom, LiveRoom], http: aiohttp.ClientSession, tokens: list[str]
) -> None:
    shown = {}
    for name, token in zip(("human", "ada", "bob"), tokens, strict=False):
        texts = [json.dumps(await call(http, one, "GET", "/history?limit=50", token)) for one in gateways]
        shown[name] = ["my secret view" in text for text in texts]

    assert shown == {"human": [True, True], "ada": [True, True], "bob": [False, False]}


async def test_every_route_that_changes_something_refuses_the_same(
    gateways: tuple[LiveRoom, LiveRoom], http: aiohttp.ClientSession, tokens: list[str]
) -> None:
    refused = 0
    for route in ROUTES:
        if route.method == "GET":
            continue
        for path in paths_of(route.path):
            if "nobody" not in path and "wrong" not in path and "{" in route.path:
                continue
            for token, body in zip(tokens * 2, BODIES * 2, strict=True):
                first = await call(http, gateways[0], route.method, path, token, body)
                second = await call(http, gateways[1], route.method, path, token, body)
                if first[0] < 400:
                    assert second[0] == first[0], (route.name, path, body)
                    continue
                assert first == second, (route.name, path, body)
                refused += 1
    assert refused > 200


async def test_every_operation_of_a_socket_refuses_the_same(
    gateways: tuple[LiveRoom, LiveRoom], http: aiohttp.ClientSession, tokens: list[str]
) -> None:
    refused = 0
    for token in tokens[:2]:
        sockets = []
        for gateway in gateways:
            opened = await http.ws_connect(f"{gateway.url}/ws", headers={"X-Auth-Token": token})
            sockets.append(Socket(opened))
        for name in (*OPS, "watch", "unknown"):
            for fields in (
                {"to": "nobody", "content": "x"},
                {"id": "m-99", "state": "typed"},
                {"screen": "nobody"},
            ):
                first, second = [without_own(await socket.ask(name, **fields)) for socket in sockets]
                assert first == second or first.get("ok"), (name, fields)
                refused += first == second and not first.get("ok")
        for socket in sockets:
            await socket.close()
    assert refused > 20
