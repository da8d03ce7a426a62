"""What is sealed reaches no other agent by any way until its phase is over."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from csp.gateway.routes import ROUTES
from tests.gateway.served import Member, ServedRoom, served
from tests.gateway.test_privacy import FILTERS

SECRET = "marzipan"
BOARDS = (f"/board/search?q={SECRET}", f"/board?tag={SECRET}", "/board/n-1", "/board/export?session=room")
PARSED = "/markdown?ids=" + ",".join(f"{number},n-{number}" for number in range(1, 51))
EVERY_TYPE = "types=agent_response,agent_call,activity,vote,mode,turn,turn_signal,system,answer,late,note"


MCP = {"Accept": "application/json", "Content-Type": "application/json"}
TOOLS: dict[str, dict[str, object]] = {
    "read_messages": {"limit": 200},
    "list_agents": {},
    "query_log": {"limit": 200},
    "mode_status": {},
    "board_search": {"query": "plan"},
}
RESOURCES = ("csp://transcript", "csp://board", "csp://runs")


class Sealed:
    """A consensus in which claude has proposed, the others have not."""

    def __init__(self, room: ServedRoom) -> None:
        self.room = room

    async def fill(self) -> None:
        room = self.room
        self.claude, self.codex, self.gemini = [await room.join(one) for one in ("claude", "codex", "gemini")]
        self.boss = await room.join("orchestrator", role="orchestrator")
        self.sockets = [await room.connect(spy.token) for spy in (self.codex, self.boss)]
        asked = await room.send("claude", "are you there?", self.codex.token)
        await room.post("/mode", {"mode": "consensus", "topic": "sweets"})
        claude = self.claude.token
        turn = (await room.get("/mode"))["turns"]["claude"]
        activity = {"content": f"{SECRET}, perhaps", "turn": turn, "activity": True}
        await room.post("/agent-output", activity, claude)
        await room.post("/turn/working", {"note": f"melting {SECRET}"}, claude)
        await room.post("/agent-output", {"content": f"@working on {SECRET}", "turn": turn}, claude)
        await room.post("/state", {"state": "needs_approval", "detail": f"Bash {SECRET}"}, claude)
        await room.post("/state", {"state": "busy"}, claude)
        await room.post("/delivery", {"id": asked, "state": "failed", "reason": SECRET}, claude)
        await room.post("/board", {"text": f"a plan of {SECRET}", "tags": [SECRET]}, claude)
        await room.post("/register", {"agentId": "claude", "capabilities": [SECRET]}, claude)
        words = f"I propose {SECRET}\n@send.codex {SECRET}!\n@all {SECRET}!"
        usage = {"input": 1, "output": 1, "model": SECRET}
        await room.post("/agent-output", {"content": words, "turn": turn, "usage": usage}, claude)
        await room.post("/state", {"state": "busy", "detail": f"thinking of {SECRET}"}, claude)
        await room.send("orchestrator", f"{SECRET}?", claude)
        await room.post("/agent-output", {"content": "@query.log 20"}, self.codex.token)

    async def finish(self) -> None:
        for member in (self.codex, self.gemini):
            turn = (await self.room.get("/mode"))["turns"][member.id]
            await self.room.post("/agent-output", {"content": "nothing", "turn": turn}, member.token)

    async def seen_by(self, spy: Member) -> list[str]:
        """Return every way on which a spy finds the secret."""
        found = []
        queries = [*FILTERS, EVERY_TYPE, f"q={SECRET}&{EVERY_TYPE}", "session=s-5"]
        paths = [f"/history?{query}" for query in queries] + [*BOARDS, PARSED]
        messages = [item["id"] for item in await self.room.history("?limit=1000&" + EVERY_TYPE)]
        session = (await self.room.get("/mode"))["sessionId"]
        for route in ROUTES:
            if route.method == "GET" and route.path not in ("/history", "/openapi.json"):
                names = messages if route.path.startswith("/messages") else [spy.id, "claude", session]
                paths += [route.path.replace("{id}", quote(name, safe="")) for name in names]
        for path in dict.fromkeys(paths):
            answer = await self.room.call("GET", path, token=spy.token)
            if SECRET in answer.raw.decode().replace(f"q={SECRET}", ""):
                found.append(path)
        caught_up = await self.room.connect(spy.token, after=0)
        await caught_up.ask("delivery", id="m-1", state="held", reason="busy")
        await caught_up.ask("watch", after=0)
        seq = (await self.room.get("/health"))["seq"]
        await self.room.send(spy.id, "that is all")
        await self.room.until(lambda: _has_seen(caught_up.seqs, seq), "the spy is up to date")
        if SECRET in json.dumps([caught_up.events, caught_up.delivers]):
            found.append("/ws")
        for name, arguments in TOOLS.items():
            params = {"name": name, "arguments": arguments}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = await self.room.call("POST", "/mcp", body, token=spy.token, headers=MCP)
            if SECRET in answer.raw.decode():
                found.append(name)
        for uri in RESOURCES:
            body = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}
            answer = await self.room.call("POST", "/mcp", body, token=spy.token, headers=MCP)
            if SECRET in answer.raw.decode():
                found.append(uri)
        return found


async def _has_seen(seqs: list[int], seq: int) -> bool:
    return bool(seqs) and seqs[-1] > seq


@pytest.fixture
async def sealed(tmp_path: Path) -> AsyncIterator[Sealed]:
    async with served(tmp_path / "room") as room:
        sealed = Sealed(room)
        await sealed.fill()
        yield sealed


@pytest.mark.parametrize("who", ["codex", "boss"])
async def test_no_way_leads_to_what_is_sealed(sealed: Sealed, who: str) -> None:
    spy: Member = getattr(sealed, who)

    assert await sealed.seen_by(spy) == []
    for socket in sealed.sockets:
        assert SECRET not in json.dumps([socket.events, socket.delivers])


async def test_author_reads_its_own_words(sealed: Sealed) -> None:
    items = await sealed.room.history(f"?q={SECRET}", sealed.claude.token)

    assert items


async def test_people_read_everything(sealed: Sealed) -> None:
    assert await sealed.room.history(f"?q={SECRET}&types=agent_response")


async def test_mode_shows_nobody_what_is_sealed(sealed: Sealed) -> None:
    assert SECRET not in json.dumps(await sealed.room.get("/mode"))
    assert SECRET not in json.dumps(await sealed.room.get("/sessions", sealed.codex.token))


async def test_all_is_open_once_the_phase_is_over(sealed: Sealed) -> None:
    await sealed.finish()
    items = await sealed.room.history(f"?q={SECRET}&types=agent_response", sealed.codex.token)

    assert [item["sender"] for item in items] == ["claude"]
    assert SECRET in json.dumps(await sealed.room.get("/inbox/codex", sealed.codex.token))


async def test_people_see_what_a_sealed_agent_does(sealed: Sealed) -> None:
    agent = await sealed.room.agent("claude")
    notices = [item["text"] for item in await sealed.room.history("?types=system&limit=1000")]

    assert agent["detail"] == f"thinking of {SECRET}"
    assert [text for text in notices if text.endswith(f"to claude failed: {SECRET}")]


async def test_sealed_message_is_not_sent_again(sealed: Sealed) -> None:
    items = await sealed.room.history(f"?q={SECRET}&types=agent_call")
    answer = await sealed.room.call("POST", f"/messages/{items[-1]['id']}/resend")

    assert (answer.status, "is sealed until" in answer.data["error"]) == (409, True)
