"""One call to a model, with retries until it replies."""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from csp.agents.api.call_errors import ATTEMPTS, failure_of, wait_s
from csp.agents.api.providers import Model
from csp.agents.api.reply_stream import Listener
from csp.agents.api.request import ModelRequest
from csp.errors import CallFailed
from csp.protocol.enums import MAX_TEXT_BYTES
from csp.protocol.requests import Usage
from csp.room.sessions.session_state import tokens_in

#: The time limit for a step, including all retries.
STEP_S: Final = 300.0
#: The time before the room's own deadline at which to give up, so that the actual reason is reported first.
EARLIER_S: Final = 2.0

Hear = Callable[[str], None]


class ModelCall:
    """Calls a model until it replies or a retry would be pointless; `hear` receives the text as it arrives.

    `note` receives the reason for each retry. `usage` is the total of all tries so far.
    """

    def __init__(self, model: Model, name: str, secret: str, step_s: float = STEP_S) -> None:
        self._model = model
        self._name = name
        self._secret = secret
        self._step_s = step_s
        self.usage: Usage | None = None

    async def run(self, ask: ModelRequest, hear: Hear, note: Hear) -> str:
        """Return the complete reply; raise CallFailed if there is none."""
        deadline = asyncio.get_running_loop().time() + max(self._step_s - EARLIER_S, self._step_s / 2)
        try:
            async with asyncio.timeout_at(deadline) as limit:
                return await self._tries(ask, hear, note, deadline)
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise CallFailed(f"the reply was not complete within {self._step_s:g} s") from exc

    async def _tries(self, ask: ModelRequest, hear: Hear, note: Hear, deadline: float) -> str:
        for tries in range(ATTEMPTS):
            try:
                return await self._try(ask, hear)
            except Exception as error:
                failure = failure_of(error, self._secret, time.time())
            pause_s = wait_s(failure, tries)
            is_hopeless = asyncio.get_running_loop().time() + pause_s >= deadline
            if not failure.is_passing or is_hopeless or tries == ATTEMPTS - 1:
                raise failure
            note(f"{failure.message}; retrying in {pause_s:.1f} s")
            await asyncio.sleep(pause_s)
        raise AssertionError("the last try returns or raises")

    async def _try(self, ask: ModelRequest, hear: Hear) -> str:
        listener, pieces, size = Listener(), list[str](), 0
        counted: Usage | None = None
        try:
            async with aclosing(self._model.stream(ask)) as stream:
                async for piece in stream:
                    if isinstance(piece, Usage):
                        counted = piece
                        continue
                    pieces.append(piece)
                    size += len(piece.encode(errors="replace"))
                    if size > MAX_TEXT_BYTES:
                        raise CallFailed(f"its reply is over {MAX_TEXT_BYTES} bytes")
                    hear(listener.hear(piece))
        finally:
            text = "".join(pieces)
            if counted is None and text:
                # The provider has not reported the usage, so estimate it.
                counted = Usage(input=ask.tokens, output=tokens_in(text), model=self._name, estimated=True)
            if counted is not None:
                before = self.usage or Usage()
                self.usage = Usage(
                    input=before.input + counted.input,
                    output=before.output + counted.output,
                    cache_read=before.cache_read + counted.cache_read,
                    cache_write=before.cache_write + counted.cache_write,
                    reasoning=before.reasoning + counted.reasoning,
                    estimated=before.estimated or counted.estimated,
                    model=counted.model,
                )
        return text
