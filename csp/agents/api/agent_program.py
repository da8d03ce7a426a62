"""Run a model in a room: join, reply to messages, reconnect after a move, and leave."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from csp import price_list
from csp.agents.api.connector import AgentConfig, Connector
from csp.agents.api.model_pane import ModelPane
from csp.agents.api.providers import Model, Target
from csp.client import Client, Registered
from csp.errors import CspError, Forbidden, NotFound, Unauthenticated
from csp.http_client import GatewayClient, field, objects
from csp.model_providers import Provider
from csp.protocol.enums import AgentId, Ending, JoinRole, ParticipantKind, Scalar
from csp.protocol.requests import Usage
from csp.protocol.session_parts import Status
from csp.room.commands import WindowSize
from csp.room.sessions.session_state import WindowItem
from csp.room.sessions.turn_prompt import render
from csp.sidecar.brain.reconnect import RoomConnection, has_moved, running_room, try_to_save
from csp.sidecar.record_file import left_behind
from csp.sidecar.run_record import SidecarRecord, agents_dir

log = logging.getLogger(__name__)

PROFILE: Final = "api"
_LOOK_S: Final = 1.0
_PAST: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStay:
    """An agent's name, model and room; `room` is empty if only the room's address is known."""

    name: str
    role: JoinRole
    target: Target
    provider: Provider
    url: str
    token: str
    room: str
    state_dir: Path
    cwd: str
    prompts: Mapping[str, str]
    window: WindowSize
    #: The part of the environment to store in the agent's record, excluding secrets.
    env: Mapping[str, str]
    #: A one-word role that is shown to the others, and the user's instructions.
    duty: str = ""
    prompt: str = ""


class AgentProgram:
    """Runs one model in one room until it is removed or stopped."""

    def __init__(self, stay: AgentStay, model: Model, pane: ModelPane) -> None:
        self._stay = stay
        self._model = model
        self._pane = pane
        self._run: SidecarRecord | None = None
        self.agent = ""

    async def join(self) -> Registered:
        """Join the room; reuse the id of an agent of the same name that is no longer running."""
        stay = self._stay
        before = left_behind(str(stay.state_dir), stay.room, stay.name) if stay.room else None
        if before and before.get("url") == stay.url:
            try:
                return await self._register(str(before.get("token")))
            except (Unauthenticated, Forbidden, NotFound):
                pass  # the id has a new owner, or the room is new
        return await self._register(stay.token)

    async def _register(self, token: str) -> Registered:
        stay = self._stay
        known: dict[str, Scalar] = {"provider": stay.target.provider, "model": stay.target.model}
        known |= {"duty": stay.duty} if stay.duty else {}
        joined = await Client.register(
            stay.url, token, stay.name, kind=ParticipantKind.API, role=stay.role, capabilities=known
        )
        self.agent = joined.agent
        return joined

    async def run(self, joined: Registered, stopped: asyncio.Event) -> str:
        """Work until `stopped`; return the reason if it ended by itself, else an empty string."""
        self._record(joined)
        client = Client(self._stay.url, joined.token, after=joined.seq)
        voice = self._voice()
        # Load the price list now, because this takes a while and must not delay an Allstop.
        await asyncio.to_thread(voice.price, Usage(input=1, output=1))
        connector = Connector(voice, client, self._pane)
        await self._catch_up(connector, joined)
        await asyncio.to_thread(self._hand_back, joined)
        self._pane.title(f"{joined.agent}: {self._stay.target.model} ({self._stay.target.provider})")
        self._pane.note("it replies to messages from the room; Ctrl-C ends it")
        stopping = asyncio.ensure_future(stopped.wait())
        try:
            return await self._work(connector, stopping)
        finally:
            stopping.cancel()
            with contextlib.suppress(CspError):
                await connector.stop("it has left the room")
            await connector.client.close(leave=True)
            await self._model.close()

    async def _work(self, connector: Connector, stopping: "asyncio.Future[Any]") -> str:
        async def moved() -> RoomConnection:
            """Wait until the room runs at another address, and return the room."""
            while True:
                await asyncio.sleep(_LOOK_S)
                if (
                    self._run is not None
                    and not connector.client.status.is_connected
                    and has_moved(self._run)
                ):
                    room = running_room(self._run)
                    if room is not None:
                        return room

        while True:
            client = connector.client
            await client.__aenter__()
            working = asyncio.ensure_future(connector.run())
            moving = asyncio.ensure_future(moved())
            try:
                await asyncio.wait({working, moving, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done():
                    return ""
                if not moving.done():
                    return end_reason(working.exception())
                room = moving.result()
            finally:
                for task in (working, moving):
                    task.cancel()
                await asyncio.gather(working, moving, return_exceptions=True)
            self._pane.note(f"the room has moved to {room.url}")
            assert self._run is not None
            self._run = replace(self._run, url=room.url)
            try_to_save(self._run)
            connector.client = Client(room.url, self._run.token, after=client.seq)
            await client.close(timeout_s=0.0)

    def _hand_back(self, joined: Registered) -> None:
        """Fail the turns that an earlier connector accepted, because its calls ended with its process."""
        gateway = GatewayClient(self._stay.url, joined.token)
        try:
            for turn in taken_up(gateway, joined.agent):
                why = {"ending": Ending.FAILED, "reason": "it was restarted"}
                gateway.post("/agent-output", {"content": "", "turn": turn, **why})
        except CspError as error:
            log.info("turns could not be returned", extra={"why": error.message})

    # --- exchanging state with the room ----------------------------------------------------------

    def _record(self, joined: Registered) -> None:
        """Write the record that the panes look for, unless only the room's address is known."""
        stay = self._stay
        if not stay.room:
            return
        self._run = SidecarRecord(
            name=stay.name,
            agent=joined.agent,
            token=joined.token,
            url=stay.url,
            room=stay.room,
            role=stay.role,
            pid=os.getpid(),
            profile=PROFILE,
            argv=[],
            env=dict(stay.env),
            cwd=stay.cwd,
            folder=str(agents_dir(stay.state_dir, stay.room) / joined.agent),
            started=time.time(),
        )
        try_to_save(self._run, is_first=True)

    def _voice(self) -> AgentConfig:
        stay = self._stay
        model, provider = stay.target.model, stay.provider.prices
        names = ("api", "orchestrator") if stay.role is JoinRole.ORCHESTRATOR else ("api",)
        texts = [*(render(stay.prompts, name, {"agent": self.agent}) for name in names), stay.prompt]
        system = "\n\n".join(filter(None, texts))
        return AgentConfig(
            agent=AgentId(self.agent),
            model=self._model,
            model_name=model,
            system=system,
            prompts=stay.prompts,
            # None if the price list does not include the provider.
            price=lambda usage: price_list.cost_usd(model, usage, provider=provider) if provider else None,
            secret=stay.target.key,
            prices=price_list.source(),
            step_s=stay.target.timeout_s,
            window=stay.window,
        )

    async def _catch_up(self, connector: Connector, joined: Registered) -> None:
        """Read the part of the recent history that this agent may see."""
        gateway = GatewayClient(self._stay.url, joined.token)
        types = "human_message,agent_call,agent_response"
        try:
            page = await asyncio.to_thread(gateway.get, "/history", limit=_PAST, types=types)
        except CspError as error:
            log.info("history could not be read", extra={"why": error.message})
            return
        for item in objects(field(page, "items", list)):
            words = [str(item.get(name, "")) for name in ("id", "sender", "target", "text")]
            connector.hear(WindowItem(*words), str(item.get("thread", "")))  # type: ignore[arg-type]  # ids are str


def taken_up(gateway: GatewayClient, agent: str) -> list[str]:
    """Return this agent's open turns that were already accepted, so they will not be delivered again."""
    running = [
        field(session, "id", str)
        for session in objects(field(gateway.get("/sessions"), "items", list))
        if session.get("status") != Status.ENDED and agent in session.get("agents", ())
    ]
    shown = [field(gateway.get(f"/sessions/{id}"), "orchestration", dict) for id in running]
    turns = [mode.get("turns", {}).get(agent) for mode in shown]
    # Read last, because a turn that was requested in the meantime is still in the inbox.
    waiting = {item.get("turn") for item in objects(field(gateway.get(f"/inbox/{agent}"), "items", list))}
    return [turn for turn in turns if turn and turn not in waiting]


def end_reason(error: BaseException | None) -> str:
    """Return the reason why a connection to a room ended; raise errors that do not concern the room."""
    if error is None:
        return "the connection to the room has ended"
    if isinstance(error, Unauthenticated | Forbidden):
        return "it was removed from the room, or its name was taken"
    if isinstance(error, CspError):
        return error.message
    raise error
