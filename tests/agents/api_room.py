"""A room in which API models take part: real SDKs, real gateway, scripted models on loopback."""

import asyncio
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from csp.agents.api.agent_program import AgentProgram, AgentStay
from csp.agents.api.model_pane import ModelPane
from csp.agents.api.providers import Target, open_model
from csp.model_providers import PROVIDERS
from csp.prompt_files import load_prompts
from csp.protocol.enums import JoinRole
from csp.room.commands import DEFAULT_WINDOW
from tests.models.rules import Part, Rule, Text
from tests.models.server import ModelServer
from tests.modes.acceptance import ModeRoom
from tests.waiting import wait_until_sync

#: Looks like a key, so that it would be found wherever it leaked to.
KEY: Final = "sk-test-5f1c0ffee5ecret0key0of0nobody"
MODELS: Final = {
    "anthropic": "claude-sonnet-5",
    "openai": "gpt-5",
    "gemini": "gemini-2.5-flash",
    "openai-compatible": "llama-at-home",
}


def envelope(message: str, to: str = "", task: str = "go on", *, final: bool = False) -> str:
    """Return a reply as a strict schema has it: what is not meant is null."""
    handoff = {"to": to, "task": task} if to else None
    return json.dumps({"message": message, "handoff": handoff, "final": final or None})


class Player:
    """One model in the room, in the thread of all of them."""

    def __init__(self, stay: AgentStay, room: "ApiRoom") -> None:
        self.shown: list[str] = []
        self._stay = stay
        self._room = room
        self._stopped: asyncio.Event | None = None
        self._is_here = threading.Event()
        self.why: str | None = None

    @property
    def screen(self) -> str:
        return "".join(self.shown)

    def start(self) -> None:
        self._task = asyncio.run_coroutine_threadsafe(self._run(), self._room.loop)
        assert self._is_here.wait(240), self._task.exception() if self._task.done() else "it is stuck"

    async def _run(self) -> None:
        stay = self._stay
        self._stopped = asyncio.Event()
        program = AgentProgram(stay, open_model(stay.provider, stay.target), ModelPane(self.shown.append))
        joined = await program.join()
        self._is_here.set()
        self.why = await program.run(joined, self._stopped)

    def stop(self) -> None:
        if self._stopped is not None:
            self._room.loop.call_soon_threadsafe(self._stopped.set)
        self._task.result(20)


class ApiRoom(ModeRoom):
    """A stage on which API models join demo agents; `models` is what all of them are served by."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, env)
        self.models = ModelServer()
        self.players: dict[str, Player] = {}
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="connectors", daemon=True)

    def __enter__(self) -> Self:
        self.models.__enter__()
        self._thread.start()
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for player in self.players.values():
            player.stop()
        super().__exit__(kind, exc, trace)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()
        self.models.__exit__()

    def join_api(self, name: str, provider: str = "anthropic", **fields: Any) -> Player:
        """Let a model take part."""
        base = self.models.url(name) + ("" if provider == "anthropic" else "/v1")
        values = {"provider": provider, "model": MODELS[provider], "key": KEY, "base_url": base}
        target = Target(**values | fields)
        stay = AgentStay(
            name=name,
            role=JoinRole.AGENT,
            target=target,
            provider=PROVIDERS[provider],
            url=self.room.url,
            token=self.room.token,
            room=self.room.name,
            state_dir=self.room.home.parent / "run" / "csp",
            cwd=str(self.room.dir),
            prompts=load_prompts(),
            window=DEFAULT_WINDOW,
            env={},
        )
        player = self.players[name] = Player(stay, self)
        player.start()
        wait_until_sync(lambda: self.agent(name).get("state") == "idle", 90, f"{name} in the room")
        return player

    # --- what the models say ---------------------------------------------------------------------

    def script(self, client: str, *replies: str | list[Part], match: str = "") -> None:
        """Have a model give these replies, each once, in this order."""
        parts = [[Text(text=reply)] if isinstance(reply, str) else reply for reply in replies]
        self.models.add(*(Rule(match=match, reply=part, client=client, times=1) for part in parts))

    def always(self, client: str, reply: str | list[Part], match: str = "") -> None:
        """Have a model give one reply to everything."""
        parts: list[Part] = [Text(text=reply)] if isinstance(reply, str) else reply
        self.models.add(Rule(match=match, reply=parts, client=client))

    def asked(self, client: str) -> list[str]:
        """Return what a model was asked last in each of its calls."""
        return [exchange.ask.governing for exchange in self.models.exchanges(client)]

    def calls(self, client: str = "") -> int:
        return len(self.models.exchanges(client))

    def rest(self) -> None:
        """Bring everything back to where the next test can begin."""
        self.room.gateway.post("/stop", {"all": True})
        self.models.reset()
        names = [*self.players, *self.seats]
        wait_until_sync(
            lambda: all(self.agent(name).get("state") in ("idle", "limited") for name in names),
            30,
            f"peace, there is {[self.agent(name) for name in names]}",
        )
