"""Tells the agent who else is in the room, when that has changed."""

import asyncio
from collections.abc import Mapping
from typing import Final

from csp.errors import CspError
from csp.http_client import GatewayClient, field
from csp.protocol.events import Joined, Left
from csp.room.duties import duty_of
from csp.sidecar.run_record import SidecarRecord

#: More names than this would say less.
MAX_NAMES: Final = 20


class RosterNotice:
    """The other participants. The agent learns of them with its next message, not in a turn of its own."""

    def __init__(self, run: SidecarRecord) -> None:
        self._run = run
        #: Each with its duty.
        self._others: dict[str, str] = {}
        self._told: tuple[str, ...] = ()

    async def look(self) -> None:
        """Ask once who is here; events tell the rest."""
        try:
            agents = await asyncio.to_thread(
                lambda: GatewayClient(self._run.url, self._run.token).get("/agents")
            )
        except CspError:
            return
        for agent in agents:
            if isinstance(agent, Mapping) and agent.get("online"):
                self._add(field(dict(agent), "id", str), agent.get("capabilities"))

    def note(self, event: object) -> None:
        """Note who joins and leaves."""
        if isinstance(event, Joined):
            self._add(event.sender, event.capabilities)
        elif isinstance(event, Left):
            self._others.pop(event.sender, None)

    def _add(self, agent: str, capabilities: object) -> None:
        if agent != self._run.agent:
            self._others[agent] = duty_of(capabilities)

    def news(self) -> tuple[str, ...]:
        """Return who else is here if the agent has been told otherwise; it counts as told now."""
        others = tuple(f"{agent} ({duty})" if duty else agent for agent, duty in sorted(self._others.items()))
        if others == self._told:
            return ()
        self._told = others
        return others[:MAX_NAMES] or ("nobody else",)

    def forget(self) -> None:
        """Note that the agent did not get the news."""
        self._told = ()
