"""Find out what a handler asks of the room, without a room."""

from typing import Any

import pytest

from csp.gateway.auth import Caller
from csp.gateway.route_table import Call
from csp.protocol.enums import HUMAN, AgentId, Role

CLAUDE = AgentId("claude")
ROOM, AGENT = Caller(HUMAN, Role.ROOM), Caller(CLAUDE, Role.AGENT, 3)


class Enough(Exception):
    """The command is known; nobody answers it."""


class Recorder:
    """A gateway that notes the command it is asked for; `more` is what else a handler reads."""

    def __init__(self, **more: Any) -> None:
        self.commands: list[Any] = []
        self.arrived: list[Caller] = []
        self.__dict__ |= more

    async def submit(self, command: Any) -> Any:
        self.commands.append(command)
        raise Enough

    async def arrive(self, caller: Caller) -> None:
        self.arrived.append(caller)

    async def command(self, handler: Any, caller: Caller, body: Any, **path: str) -> Any:
        """Return what a route or an operation asks of the room."""
        with pytest.raises(Enough):
            await handler(self, Call(caller, path, None, body))
        return self.commands[-1]
