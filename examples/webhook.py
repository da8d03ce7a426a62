"""Post every message of a room to a webhook, and what the webhook's side sends back to the room.

    CSP_AUTH_TOKEN=$(csp token) python examples/webhook.py http://localhost:8765 https://example.org/hook

A POST of {"to": "claude", "text": "hello"} to http://localhost:9000/ is sent to the room. The webhook gets
{"sender", "to", "text"} for each message of a person or an agent.
"""

import asyncio
import contextlib
import os
import sys

from aiohttp import ClientError, ClientSession, web

from csp.client import Client
from csp.protocol.events import AgentCall, AgentResponse, HumanMessage

PORT = 9000


async def forward(room: Client, session: ClientSession, hook: str) -> None:
    async for item in room:
        if isinstance(item, HumanMessage | AgentCall | AgentResponse):
            body = {"sender": item.sender, "to": item.target, "text": item.text}
            try:
                async with session.post(hook, json=body) as answer:
                    answer.raise_for_status()
            except ClientError as exc:
                print(f"the webhook did not accept {item.id}: {exc}", file=sys.stderr)


async def main(url: str, hook: str, port: int = PORT) -> None:
    async with Client(url, os.environ["CSP_AUTH_TOKEN"]) as room, ClientSession() as session:

        async def receive(request: web.Request) -> web.Response:
            said = await request.json()
            sent = await room.send(said["to"], said["text"])
            return web.json_response({"id": sent.id})

        app = web.Application()
        app.router.add_post("/", receive)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            await forward(room, session, hook)
        finally:
            await runner.cleanup()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], sys.argv[2]))
