"""Notify the agent of changes in the list of other participants."""

import asyncio
from collections.abc import Mapping
from typing import Final

from csp.errors import CspError
from csp.http_client import GatewayClient, field
from csp.protocol.events import Joined, Left
from csp.room.agent_roles import duty_of
from csp.sidecar.run_record import SidecarRecord

#: A longer list of names would be less useful.
MAX_NAMES: Final = 20


class RosterNotice:
    """The other participants. The agent is notified of them with its next message, not in a separate turn."""

    def __init__(self, run: SidecarRecord) -> None:
        self._run = run
        #: The duty of each participant.
        self._others: dict[str, str] = {}
        self._told: tuple[str, ...] = ()

    async def look(self) -> None:
        """Fetch the participants once; later changes arrive as events."""
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
        """Record participants that join or leave."""
        if isinstance(event, Joined):
            self._add(event.sender, event.capabilities)
        elif isinstance(event, Left):
            self._others.pop(event.sender, None)

    def _add(self, agent: str, capabilities: object) -> None:
        if agent != self._run.agent:
            self._others[agent] = duty_of(capabilities)

    def news(self) -> tuple[str, ...]:
        """Return the other participants if they have changed since the last call; () if they have not."""
        others = tuple(f"{agent} ({duty})" if duty else agent for agent, duty in sorted(self._others.items()))
        if others == self._told:
            return ()
        self._told = others
        return others[:MAX_NAMES] or ("nobody else",)

    def forget(self) -> None:
        """Record that the agent did not get the last notice."""
        self._told = ()
