"""Queue operations in order until the gateway has answered them."""

import asyncio
from collections import deque
from copy import copy
from typing import Final

import msgspec

from csp.client.incoming_frames import CallAnswer
from csp.errors import BadInput, CspError, Refused, TooLarge
from csp.protocol.codec import encode
from csp.protocol.enums import MAX_BODY_BYTES, Struct
from csp.protocol.requests import Op

MAX_OPS: Final = 10_000
MAX_BYTES: Final = 64 * 1024 * 1024


class Pending:
    """An operation that has not been answered yet."""

    def __init__(self, ref: int, name: str, body: bytes, subject: str) -> None:
        self.ref = ref
        self.name = name
        self.body = body
        #: The delivery whose state is reported.
        self.subject = subject
        self.answer: asyncio.Future[CallAnswer] = asyncio.get_running_loop().create_future()
        self.was_sent = False
        #: Whether it was sent over an earlier connection, so that the room may already have it.
        self.is_repeated = False


def to_frame(name: str, ref: int | str, body: bytes) -> bytes:
    """Return an operation as the text of a WebSocket frame."""
    head = encode(Op(op=name, ref=ref))
    return head if body == b"{}" else b"%b,%b" % (head[:-1], body[1:])


class Outbox:
    """The open operations and their callers; each stays until it is answered, even across reconnects."""

    def __init__(self) -> None:
        #: The number of operations answered so far.
        self.settled = 0
        self._pending: dict[int, Pending] = {}
        self._unsent: deque[Pending] = deque()
        self._bytes = 0
        self._last_ref = 0
        # A lock wakes its waiters in order, so operations keep the order of their calls.
        self._entrance = asyncio.Lock()
        self._changed = asyncio.Event()
        self._error: CspError | None = None

    # --- callers ---------------------------------------------------------------------------------

    async def ask(self, name: str, body: Struct, subject: str = "") -> CallAnswer:
        """Return the gateway's response or raise its error; wait first while too many are pending."""
        try:
            data = encode(body)
        except (UnicodeEncodeError, msgspec.MsgspecError) as exc:
            raise BadInput(f"text cannot be sent: {exc}", "replace lone surrogates") from exc
        # The gateway would close the connection now and with each retry.
        if len(data) > MAX_BODY_BYTES - 200:
            hint = "put it into a file and send its path"
            raise TooLarge(f"operation is over {MAX_BODY_BYTES} bytes", hint)
        async with self._entrance:
            while (len(self._pending) >= MAX_OPS or self._bytes >= MAX_BYTES) and self._error is None:
                await self._change()
            if self._error is not None:
                raise copy(self._error)
            self._last_ref += 1
            pending = self._pending[self._last_ref] = Pending(self._last_ref, name, data, subject)
            self._bytes += len(data)
            self._unsent.append(pending)
            self._changed.set()
        try:
            return await pending.answer
        finally:
            if not pending.was_sent:
                self._drop(pending)

    def _drop(self, pending: Pending) -> None:
        if self._pending.pop(pending.ref, None) is not None:
            self._bytes -= len(pending.body)
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    # --- transports ------------------------------------------------------------------------------

    def rewind(self) -> None:
        """Restart with the oldest open operation; cancelled ones are dropped."""
        for pending in [pending for pending in self._pending.values() if pending.answer.done()]:
            self._drop(pending)
        for pending in self._pending.values():
            pending.is_repeated = pending.was_sent
        self._unsent = deque(self._pending.values())

    async def next(self) -> Pending:
        """Return the next operation to send."""
        while True:
            while not self._unsent:
                await self._change()
            pending = self._unsent.popleft()
            if not pending.answer.done():
                pending.was_sent = True
                return pending

    def settle(self, ref: int, answer: CallAnswer) -> None:
        """Pass a response to its caller."""
        pending = self._pending.get(ref)
        if pending is None:
            return
        error = answer.to_error()
        # A report may be refused because a later one arrived first.
        is_overtaken = bool(pending.subject and pending.is_repeated) and any(
            later.is_repeated and later.subject == pending.subject and later.ref > pending.ref
            for later in self._pending.values()
        )
        is_old_news = answer.status == Refused.status and is_overtaken
        self._drop(pending)
        self.settled += 1
        if pending.answer.done():
            return
        if error is None or is_old_news:
            pending.answer.set_result(answer)
        else:
            pending.answer.set_exception(error)

    # --- the end ---------------------------------------------------------------------------------

    async def flushed(self) -> None:
        """Wait until every operation has been answered."""
        while self._pending:
            await self._change()

    def close(self, error: CspError, of_pending: CspError | None = None) -> None:
        """Fail new operations with `error`, and pending ones with `of_pending` or else with `error`."""
        self._error = self._error or error
        for pending in list(self._pending.values()):
            self._drop(pending)
            if not pending.answer.done():
                pending.answer.set_exception(copy(of_pending or error))
        self._unsent.clear()
        self._changed.set()
