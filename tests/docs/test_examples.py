"""The examples work, and what csp.client offers is what its page lists."""

import asyncio
import contextlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

import csp.client
from csp.http_client import GatewayClient
from tests.closing import close
from tests.docs.pages import ROOT, text_of
from tests.rooms import LiveRoom, free_port
from tests.waiting import wait_until, wait_until_sync

EXAMPLES = ROOT / "examples"
#: Without its docstring and blank lines.
MAX_BOT_LINES = 20


@contextlib.contextmanager
def running(example: str, room: LiveRoom, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run an example beside a room, as its first line says."""
    env = {**room.env, "CSP_AUTH_TOKEN": room.token, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(EXAMPLES / example), room.url, *words]
    program = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def test_the_bot_answers_a_message_and_its_turn(tmp_path: Path) -> None:
    with LiveRoom(tmp_path) as room, running("bot.py", room):
        gateway = GatewayClient(room.url, room.token)
        wait_until_sync(lambda: any(one["id"] == "echo" for one in gateway.get("/agents")), 60.0, "the bot")
        gateway.post("/message", {"to": "echo", "content": "hello"})
        wait_until_sync(lambda: "You said: hello" in said(gateway), 60.0, "the answer")
        gateway.post("/mode", {"mode": "single", "topic": "speak", "agents": ["echo"]})
        wait_until_sync(lambda: "I have nothing to add." in said(gateway), 60.0, "the turn")


def said(gateway: GatewayClient) -> list[str]:
    return [item["text"] for item in gateway.get("/history", limit=50)["items"]]


async def test_the_webhook_passes_messages_in_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked: list[dict[str, Any]] = []

    async def hook(request: web.Request) -> web.Response:
        hooked.append(await request.json())
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", hook)
    runner = web.AppRunner(app)
    await runner.setup()
    port, own = free_port(), free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    with LiveRoom(tmp_path) as room:
        monkeypatch.setenv("CSP_AUTH_TOKEN", room.token)
        bridge = asyncio.create_task(loaded("webhook").main(room.url, f"http://127.0.0.1:{port}/hook", own))
        async with ClientSession() as session:

            async def post() -> bool:
                with contextlib.suppress(OSError):
                    body = {"to": "all", "text": "from outside"}
                    async with session.post(f"http://127.0.0.1:{own}/", json=body) as answer:
                        return answer.status == 200
                return False

            is_up: bool = await wait_until(post, 60.0, "the bridge")
            assert is_up
            passed_on = {"sender": "human", "to": "all", "text": "from outside"}
            await wait_until(lambda: passed_on in hooked, 60.0, "the call of the webhook")
        bridge.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await bridge
    await close(runner)


def loaded(name: str) -> Any:
    """Import an example."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bot_has_twenty_lines() -> None:
    code = (EXAMPLES / "bot.py").read_text().split('"""', 2)[2]

    assert len([line for line in code.splitlines() if line.strip()]) <= MAX_BOT_LINES


def test_the_page_lists_what_the_client_offers() -> None:
    listed = re.search(
        r"`csp\.client\.__all__` is the public interface: (.+)\.", text_of("docs/programs/python.md")
    )

    assert listed is not None
    assert re.findall(r"`(\w+)`", listed[1]) == sorted(csp.client.__all__)
    assert all(hasattr(csp.client, name) for name in csp.client.__all__)
