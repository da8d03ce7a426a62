"""Flood a room as bad agents would, until stdin closes: python -m tests.chaos.flooder URL TOKEN...

Half of the agents post over HTTP as fast as they are answered, half over WebSocket without waiting. Some
callers send half a request and stop; some open a WebSocket and never read.
"""

import asyncio
import contextlib
import itertools
import os
import sys
from typing import Final
from urllib.parse import urlsplit

import aiohttp

_SLOW: Final = 50


async def flood(url: str, tokens: list[str]) -> None:
    """Do all of it until somebody closes our stdin."""
    works = [_post(url, token) for token in tokens[::2]] + [_push(url, token) for token in tokens[1::2]]
    works += [_half(url) for _ in range(_SLOW)] + [_never_read(url, tokens[0]) for _ in range(_SLOW)]
    tasks = [asyncio.ensure_future(work) for work in works]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _post(url: str, token: str) -> None:
    async with aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session:
        for number in itertools.count():
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                body = {"to": "human", "content": f"flood {token[:8]} {number}"}
                async with session.post(f"{url}/message", json=body) as answer:
                    await answer.read()


async def _push(url: str, token: str) -> None:
    while True:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, ConnectionError):
            async with (
                aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session,
                session.ws_connect(f"{url}/ws") as socket,
            ):
                for number in itertools.count():
                    content = f"flood {token[:8]} {number}"
                    frame = {"op": "message", "ref": str(number), "to": "human", "content": content}
                    await socket.send_json(frame)
                    if number % 50 == 0:
                        await socket.receive(timeout=5)
        await asyncio.sleep(0.1)


async def _half(url: str) -> None:
    host, _, port = urlsplit(url).netloc.partition(":")
    while True:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /message HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
            await reader.read(100)
            writer.close()
        await asyncio.sleep(0.2)


async def _never_read(url: str, token: str) -> None:
    with contextlib.suppress(aiohttp.ClientError):
        async with (
            aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session,
            session.ws_connect(f"{url}/ws", max_msg_size=0) as _,
        ):
            await asyncio.Event().wait()


if __name__ == "__main__":
    os.nice(19)
    asyncio.run(flood(sys.argv[1], sys.argv[2:]))
