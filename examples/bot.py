"""A bot in 20 lines: CSP_AUTH_TOKEN=$(csp token) python examples/bot.py http://localhost:8765"""

import asyncio
import os
import sys

from csp.client import Client, Deliver


async def main(url: str) -> None:
    me = await Client.register(url, os.environ["CSP_AUTH_TOKEN"], "echo")
    async with Client(url, me.token) as room:
        async for item in room:
            match item:
                case Deliver(kind="turn", turn=turn):
                    await room.output("I have nothing to add.", turn=turn)
                case Deliver(kind="message", text=text, id=id):
                    await room.output(f"You said: {text}", reply_to=id)


asyncio.run(main(sys.argv[1]))
