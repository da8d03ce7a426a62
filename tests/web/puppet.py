"""A participant whose every word a test decides, over the same routes as any other."""

from typing import Any, Final

from csp.http_client import GatewayClient
from tests.rooms import LiveRoom
from tests.waiting import wait_until

TIMEOUT_S: Final = 60.0


class Puppet:
    """Joins a room, answers when the test says so."""

    def __init__(self, room: LiveRoom, name: str, *, kind: str = "cli") -> None:
        body = {"agentId": name, "kind": kind}
        joined = room.gateway.post("/register", body)
        self.id = str(joined["agentId"])
        self._gateway = GatewayClient(room.url, joined["token"])
        self._after = 0

    async def next(self, kind: str = "turn") -> dict[str, Any]:
        """Return the next thing of a kind that waits for it."""
        return await wait_until(lambda: self._take(kind), TIMEOUT_S, f"a {kind} for {self.id}")

    def _take(self, kind: str) -> dict[str, Any]:
        items = self._gateway.get(f"/inbox/{self.id}", after=self._after)["items"]
        found: dict[str, Any] = next((item for item in items if item["kind"] == kind), {})
        if found:
            self._after = found["seq"]
        return found

    def say(self, text: str, **fields: Any) -> dict[str, Any]:
        """Post a text, of a turn or an answer where `fields` say so."""
        answer: dict[str, Any] = self._gateway.post("/agent-output", {"content": text, **fields})
        return answer

    async def take_turn(self, text: str, **fields: Any) -> dict[str, Any]:
        """Wait for its turn; answer it."""
        return self.say(text, turn=(await self.next())["turn"], **fields)

    def call(self, path: str, body: dict[str, Any]) -> Any:
        """Post anything as this participant."""
        return self._gateway.post(path, body)

    def report(self, state: str, **fields: Any) -> None:
        """Say what it is doing."""
        self._gateway.post("/state", {"state": state, **fields})

    def deliver(self, message: str, state: str, reason: str = "") -> None:
        """Say how far a message has come."""
        self._gateway.post("/delivery", {"id": message, "state": state, "reason": reason})
