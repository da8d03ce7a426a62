"""The examples work, and what csp.client offers is what its page lists."""

import asyncio
import contextlib
import importlib.util
import os
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
from tests.docs.playing import prepare
from tests.models.rules import Rule, Text
from tests.models.server import ModelServer
from tests.panes.place import Place
from tests.review.repository import git
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


@pytest.mark.full
def test_the_action_comments_on_a_pull_request_with_the_common_result(tmp_path: Path) -> None:
    """Its steps are executed as GitHub does, with scripted models and a program in place of gh."""
    rules = [
        Rule(match="Two reviews of the same change follow", reply=[Text(text="Both found the lost tabs.")]),
        Rule(match="Review this change", reply=[Text(text="- parser.py:3 drops tabs")]),
    ]
    with Place(tmp_path / "a") as place, ModelServer(rules) as models:
        prepare(place)
        base = git(place.dir, "rev-parse", "HEAD").strip()
        (place.dir / "parser.py").write_text("print('no tabs')\n")
        git(place.dir, "add", "parser.py")
        git(place.dir, "commit", "--quiet", "-m", "Drop the tabs")
        comment = place.folder / "comment"
        place.program("gh", f'#!/bin/sh\necho "$1 $2 $3 $4" > {comment}\ncat "$5" >> {comment}\n')
        place.set(
            PATH=f"{place.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            BASE=base,
            NUMBER="7",
            RUNNER_TEMP=str(place.folder),
            ANTHROPIC_API_KEY="sk-none",
            ANTHROPIC_BASE_URL=models.url("claude"),
            OPENAI_API_KEY="sk-none",
            OPENAI_BASE_URL=f"{models.url('gpt')}/v1",
        )
        for name, script in steps("review-pull-request.yml").items():
            if name == "Install CSP":
                continue
            # The gateway outlives the step that starts it, and with it a pipe would stay open.
            with (place.folder / "step.log").open("w+") as log:
                step = subprocess.run(
                    ["bash", "-e", "-o", "pipefail", "-c", script],
                    cwd=place.dir,
                    env=place.env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    timeout=280,
                    check=False,
                )
            place.watch()
            assert step.returncode == 0, f"{name}: {(place.folder / 'step.log').read_text()}"
        # GitHub ends what its steps have left running.
        assert place.csp("down", "--room", "review").code == 0
        asked = "\n".join(text for exchange in models.exchanges() for text in exchange.ask.texts)

        assert comment.read_text() == "pr comment 7 --body-file\nBoth found the lost tabs.\n"
        assert "+print('no tabs')" in asked
        assert asked.count("- parser.py:3 drops tabs") >= 2


def steps(action: str) -> dict[str, str]:
    """Return the scripts of an action by the names of their steps."""
    found: dict[str, str] = {}
    for name, one_line, block in re.findall(
        r"^      - name: (.+)\n(?:        run: (?!\|)(.+)|        run: \|\n((?:          .*\n?)+))",
        (EXAMPLES / action).read_text(),
        re.MULTILINE,
    ):
        found[name] = one_line or re.sub(r"^ {10}", "", block, flags=re.MULTILINE)
    return found


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
