"""A room served over real HTTP in this process, its journal in a folder of the test."""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
from aiohttp import web

from csp.config import Settings
from csp.gateway.gateway import Gateway
from csp.gateway.http_server import make_runner
from tests.closing import close
from tests.gateway.sockets import Socket
from tests.waiting import wait_until

ROOM: Final = "the room's token"
#: The one error whose words are older than our rules for them.
NO_MODE: Final = "Not in structured mode"


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    raw: bytes
    headers: Mapping[str, str]

    @property
    def data(self) -> Any:
        return json.loads(self.raw)

    @property
    def is_refusal(self) -> bool:
        """Tell whether this is an error as every error should be: two sentences for a person."""
        if not 400 <= self.status < 500 or not self.headers["Content-Type"].startswith("application/json"):
            return False
        said = self.data
        return set(said) == {"error", "hint"} and all(
            isinstance(text, str) and text and not _is_capitalised(text) and "Traceback" not in text
            for text in said.values()
        )


@dataclass(frozen=True, slots=True)
class Member:
    """A participant with its token."""

    id: str
    token: str


class ServedRoom:
    """One gateway that can be stopped, then started again on the same folder."""

    def __init__(self, folder: Path, settings: Settings, clock: Callable[[], float]) -> None:
        self.folder = folder
        self.settings = settings
        self.clock = clock
        self.sockets: list[Socket] = []

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        self.gateway = Gateway(self.settings, self.folder, self.clock)
        self.runner = make_runner(self.gateway, shutdown_timeout_s=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        self.port = int(self.runner.addresses[0][1])
        self.http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self.token = self.gateway.tokens.room_token

    async def stop(self) -> None:
        for socket in self.sockets:
            await socket.close()
        self.sockets.clear()
        for connection in list(self.gateway.sockets):
            connection.drop(1001, "the test is over")
        await self.http.close()
        await close(self.runner)
        await self.gateway.close()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    # --- calls -----------------------------------------------------------------------------------

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = ROOM,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request; `data` goes out as it is, `body` as JSON, neither with a Content-Type."""
        if data is None and body is not None:
            data = json.dumps(body).encode()
        # aiohttp's client warns of large bytes, but not of a file.
        payload = None if data is None else BytesIO(data)
        sent = dict(headers or {})
        if token is not None:
            sent["X-Auth-Token"] = self.token if token == ROOM else token
        async with self.http.request(
            method, self.url + path, data=payload, headers=sent, skip_auto_headers=["Content-Type"]
        ) as response:
            return Answer(response.status, await response.read(), dict(response.headers))

    async def get(self, path: str, token: str = ROOM) -> Any:
        """Return what a GET that must succeed answers."""
        answer = await self.call("GET", path, token=token)
        assert answer.status == 200, answer.raw
        return answer.data

    async def post(self, path: str, body: object = None, token: str = ROOM) -> Any:
        """Return what a POST that must succeed answers."""
        answer = await self.call("POST", path, {} if body is None else body, token=token)
        assert answer.status in (200, 201, 202), answer.raw
        return answer.data

    async def join(self, name: str, **fields: object) -> Member:
        said = await self.post("/register", {"agentId": name, **fields})
        return Member(said["agentId"], said["token"])

    async def enter(self) -> str:
        """Come in as a page; return its token."""
        link = await self.post("/page/link")
        answer = await self.call("POST", "/page/enter", {"code": link["code"]}, token=None)
        assert answer.status == 200, answer.raw
        return str(answer.data["token"])

    async def send(self, to: str, text: str, token: str = ROOM, **fields: object) -> str:
        """Send a message; return its id."""
        said = await self.post("/message", {"to": to, "content": text, **fields}, token)
        return str(said["id"])

    async def states(self, message: str) -> dict[str, str]:
        """Return the state of each delivery, such as held(offline)."""
        said = await self.get(f"/messages/{message}")
        return {
            agent: f"{view['state']}({view['reason']})" if view.get("reason") else view["state"]
            for agent, view in said["recipients"].items()
        }

    async def inbox(self, member: Member, query: str = "") -> list[str]:
        """Return the ids of what waits for a participant."""
        said = await self.get(f"/inbox/{member.id}{query}", member.token)
        return [item["id"] for item in said["items"]]

    async def history(self, query: str = "", token: str = ROOM) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.get(f"/history{query}", token))["items"]
        return items

    async def agent(self, agent: str) -> dict[str, Any]:
        """Return what /agents says of one participant."""
        found: dict[str, Any] = next(view for view in await self.get("/agents") if view["id"] == agent)
        return found

    async def until(self, condition: Callable[[], Awaitable[bool]], what: str = "") -> None:
        """Wait until the room says so."""
        asked: Callable[[], bool | Awaitable[bool]] = condition
        await wait_until(asked, what=what)

    async def connect(self, token: str = ROOM, after: int | None = None) -> Socket:
        """Open a WebSocket; it is closed with the room."""
        query = "" if after is None else f"?after={after}"
        headers = {"X-Auth-Token": self.token if token == ROOM else token}
        opened = await self.http.ws_connect(self.url + "/ws" + query, headers=headers, max_msg_size=0)
        socket = Socket(opened)
        self.sockets.append(socket)
        return socket


def _is_capitalised(text: str) -> bool:
    """Tell whether a text begins like a sentence; the name of a method is no such word."""
    return text[:1].isupper() and not text.split()[0].isupper() and text != NO_MODE


def room_settings(**changes: Any) -> Settings:
    return Settings(room="test", **changes)


def served(folder: Path, clock: Callable[[], float] = time.time, **changes: Any) -> ServedRoom:
    return ServedRoom(folder, room_settings(**changes), clock)
