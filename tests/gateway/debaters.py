"""Agents that take part in the modes of a served room over HTTP."""

from typing import Any

from tests.gateway.served import Member, ServedRoom


class Debaters:
    """A served room with claude and codex in it."""

    def __init__(self, room: ServedRoom) -> None:
        self.room = room
        self.members: dict[str, Member] = {}

    async def join(self, *names: str) -> None:
        for name in names:
            self.members[name] = await self.room.join(name)

    async def start(self, mode: str = "debate", **fields: Any) -> dict[str, Any]:
        said = await self.room.post("/mode", {"mode": mode, "topic": "tabs", **fields})
        view: dict[str, Any] = said["orchestration"]
        return view

    async def mode(self) -> dict[str, Any]:
        view: dict[str, Any] = await self.room.get("/mode")
        return view

    async def reply(self, name: str, text: str, **fields: Any) -> dict[str, Any]:
        """Post what a participant answers to the ask in its inbox."""
        token = self.members[name].token
        turn = fields.pop("turn", None) or (await self.mode())["turns"][name]
        answer: dict[str, Any] = await self.room.post(
            "/agent-output", {"content": text, "turn": turn, **fields}, token
        )
        return answer

    async def notices(self) -> list[str]:
        return [item["text"] for item in await self.room.history("?types=system&limit=1000")]
