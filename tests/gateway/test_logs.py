"""What the gateway writes to its log: what was done, never what was said."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from csp.errors import CspError
from tests.gateway import raw
from tests.gateway.processes import Process

MARKER = "marzipan"


async def _live_a_little(room: Process) -> list[str]:
    """Use every part of a room with the marker in it; return the tokens."""
    headers = {"X-Auth-Token": room.token}
    async with aiohttp.ClientSession(room.url, headers=headers) as session:
        tokens = [room.token]
        for name in ("claude", "codex"):
            async with session.post("/register", json={"agentId": name}) as response:
                tokens.append((await response.json())["token"])
        own = {"X-Auth-Token": tokens[1]}
        text = f"the {MARKER}"
        async with session.ws_connect("/ws?after=0", headers=own) as socket:
            for frame in (
                {"op": "message", "ref": 1, "to": "codex", "content": text},
                {"op": "output", "ref": 2, "content": text},
                {"op": "working", "ref": 3, "note": MARKER},
                {"op": MARKER, "ref": 4},
            ):
                await socket.send_json(frame)
            await socket.send_str(MARKER)
            for _ in range(5):
                await socket.receive(timeout=60)
        bodies = {
            "/message": {"to": "claude", "content": text, "id": "mine"},
            "/agent-output": {"content": text, "turn": "t-1"},
            "/delivery": {"id": "mine", "agent": "claude", "state": "failed", "reason": MARKER},
            "/messages/mine/resend": {},
            "/messages/mine/redact": {},
            "/mode": {"mode": MARKER},
        }
        for path, body in bodies.items():
            async with session.post(path, json=body) as response:
                assert response.status in (200, 400)
        async with session.get("/history", params={"q": MARKER}) as response:
            assert response.status == 200
    return tokens


def _garbage(token: str) -> list[bytes]:
    """Return requests with secrets in the very places that make them malformed."""
    head = raw.request("POST", "/message", f"X-Auth-Token: {token}", "Transfer-Encoding: chunked")
    zipped = [f"X-Auth-Token: {token}", "Content-Encoding: gzip"]
    return [
        f"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Auth-Token: {token}\x00\r\n\r\n".encode(),
        f"GET /health HTTP/1.1\r\nHost: localhost\r\n{token} {MARKER}\r\n\r\n".encode(),
        f"{MARKER} {token}\r\n\r\n".encode(),
        f"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MARKER}\r\n\r\n".encode(),
        head + f"{MARKER}\r\n{token}\r\n0\r\n\r\n".encode(),
        raw.post("/message", MARKER.encode(), *zipped),
        raw.post("/message", f'{{"to": "{MARKER}", "content": 1}}'.encode(), f"X-Auth-Token: {token}"),
        raw.request("GET", f"/{MARKER}", f"X-Auth-Token: {token}"),
        raw.request("GET", "/health", f"Origin: {MARKER}"),
    ]


@pytest.mark.parametrize("options", [(), ("--supervise",)])
async def test_no_secret_and_no_text_is_logged(tmp_path: Path, options: tuple[str, ...]) -> None:
    room = Process(tmp_path, *options)
    await asyncio.to_thread(room.start)
    try:
        tokens = await _live_a_little(room)
        for token in tokens:
            for request in _garbage(token):
                assert (await raw.exchange(room.port, request)).status >= 400
        await asyncio.to_thread(room.kill9 if options else room.restart)
        if options:
            await asyncio.to_thread(room.wait)
        code = await asyncio.to_thread(room.end)
    finally:
        await asyncio.to_thread(room.stop)
    said = room.said()

    assert code == 0
    assert MARKER not in said
    assert not any(token.rpartition(".")[2] in said for token in tokens)
    assert "Traceback" not in said
    assert said.count("gateway ready") == 2


async def test_a_malformed_request_is_no_error_of_ours(tmp_path: Path) -> None:
    room = Process(tmp_path)
    await asyncio.to_thread(room.start)
    try:
        for request in _garbage("token"):
            await raw.exchange(room.port, request)
        await asyncio.to_thread(room.end)
    finally:
        await asyncio.to_thread(room.stop)

    assert [line for line in room.said().splitlines() if " ERROR " in line] == []


def test_a_refused_call_says_so_to_the_caller_alone(tmp_path: Path) -> None:
    with Process(tmp_path) as room:
        before = room.said()
        for _ in range(3):
            with pytest.raises(CspError):
                room.gateway.post("/message", {"to": "nobody", "content": MARKER})

        assert room.said() == before
