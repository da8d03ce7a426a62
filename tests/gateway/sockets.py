"""A WebSocket of a test: reads all the time, keeps what came."""

import asyncio
import contextlib
import json
from typing import Any, Final

import aiohttp

from tests.waiting import wait_until

Frame = dict[str, Any]
ANSWER_S: Final = 60.0


class Socket:
    """Collects frames by kind; `ask` sends an operation and returns its answer."""

    def __init__(self, opened: aiohttp.ClientWebSocketResponse) -> None:
        self.opened = opened
        self.events: list[Frame] = []
        self.delivers: list[Frame] = []
        self.answers: list[Frame] = []
        self.others: list[Frame] = []
        self._asked = 0
        self._arrived = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    @property
    def is_closed(self) -> bool:
        return self._reading.done()

    @property
    def seqs(self) -> list[int]:
        return [event["seq"] for event in self.events]

    @property
    def texts(self) -> list[str]:
        return [event["text"] for event in self.events]

    async def _read(self) -> None:
        async for message in self.opened:
            frame: Frame = json.loads(message.data)
            if "seq" in frame and "type" in frame:
                self.events.append(frame)
            elif "deliver" in frame:
                self.delivers.append(frame["deliver"])
            elif "ref" in frame:
                self.answers.append(frame)
            else:
                self.others.append(frame)
            self._arrived.set()

    async def send(self, frame: object) -> None:
        await self.opened.send_str(frame if isinstance(frame, str) else json.dumps(frame))

    async def ask(self, op: str, **fields: object) -> Frame:
        self._asked += 1
        ref = f"ask-{self._asked}"
        await self.send({"op": op, "ref": ref, **fields})
        return await self.answer_to(ref)

    async def answer_to(self, ref: object) -> Frame:
        """Return the answer that carries `ref`; it must come within a while."""
        async with asyncio.timeout(ANSWER_S):
            while True:
                self._arrived.clear()
                for answer in self.answers:
                    if answer["ref"] == ref:
                        return answer
                await self._arrived.wait()

    async def until_seq(self, seq: int, timeout_s: float = 60.0) -> None:
        await wait_until(
            lambda: self.events and self.events[-1]["seq"] >= seq, timeout_s, what=f"event {seq}"
        )

    async def until_closed(self, timeout_s: float = 60.0) -> int | None:
        """Wait until the gateway has closed it; return the closing code."""
        await wait_until(lambda: self.is_closed, timeout_s, what="the end of the WebSocket")
        return self.opened.close_code

    async def close(self) -> None:
        await self.opened.close()
        with contextlib.suppress(asyncio.CancelledError, aiohttp.ClientError):
            await self._reading
