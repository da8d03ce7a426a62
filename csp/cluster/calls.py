"""Commands on their way to the owner of a room, and the answers of the owner.

A command with an effect needs no answer: its id is in the header of the batch with its events, which every
gateway reads. Only a refusal, or a command that causes nothing, is answered. A command is sent again until
one of both has come; the owner ignores those that it already has.

Commands reach an owner in the order in which they were added. Whenever some may have been lost, because the
connection or the owner was replaced, all that are open are sent again before any new one. Messages are
numbered from each such time on, and the owner ignores one that does not follow the last.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from csp.cluster.background import end_task
from csp.cluster.bus import Bus
from csp.cluster.names import answer_subject, call_subject
from csp.errors import LogLost

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES: Final = 256 * 1024
#: The pause before calls are repeated that nobody listened to, or that nobody answered.
AGAIN_S: Final = 0.05
UNANSWERED_S: Final = 1.0


class RemoteCommand(msgspec.Struct, frozen=True):
    """A command with its id; `kind` is the name of its class."""

    id: str
    kind: str
    body: msgspec.Raw


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error on the wire."""

    kind: str
    message: str
    hint: str = ""
    after_s: float | None = None


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a call without events: why it was refused, or the event after which it caused nothing."""

    id: str
    seq: int = 0
    failure: Failure | None = None


class _Parcel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of calls or of answers; `echo` asks the owner for a sign of life.

    `turn` counts the times at which everything open was sent again, `number` the messages since.
    """

    turn: int = 0
    number: int = 0
    calls: tuple[RemoteCommand, ...] = ()
    answers: tuple[Answer, ...] = ()
    echo: bool = False


_decoder: Final = msgspec.json.Decoder(_Parcel)
#: Returns whether the calls were accepted; if not, they come again.
OnCalls = Callable[[str, Sequence[RemoteCommand]], bool]
OnAnswers = Callable[[Sequence[Answer]], None]


class Calls:
    """The calls of one room: those that this process passes on, and those that it gets as the owner."""

    def __init__(self, bus: Bus, me: str, room: str) -> None:
        self._bus = bus
        self._me = me
        self._room = room
        self.on_calls: OnCalls = lambda reply, calls: False
        self.on_answers: OnAnswers = lambda answers: None
        #: Called with whether somebody listens to the owner's calls.
        self.on_echo: Callable[[bool], None] = lambda is_heard: None
        self._owner = ""
        self._open: dict[str, bytes] = {}
        self.open_bytes = 0
        self._unsent: deque[str] = deque()
        self._is_held = False
        self._turn = self._number = 0
        self._repeated_at = 0.0
        #: Calls that arrived during a claim of this process; None at other times.
        self._early: list[tuple[str, _Parcel]] | None = None
        #: The last message of each process that passes calls on to this one.
        self._last: dict[str, tuple[int, int]] = {}
        self._news = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._ends: list[Callable[[], Awaitable[None]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._own_answers = answer_subject(me, room)

    async def open(self) -> None:
        """Begin."""
        self._ends = [
            await self._bus.follow(call_subject(self._me, self._room), self._hear_calls),
            await self._bus.follow(self._own_answers, self._hear_answers),
        ]
        self._sending = asyncio.create_task(self._send())

    async def close(self) -> None:
        """End."""
        await end_task(self._sending)
        for end in self._ends:
            await end()

    def add(self, call: RemoteCommand) -> None:
        """Send a call to the owner until `remove`."""
        self.remove(call.id)
        data = self._open[call.id] = msgspec.json.encode(call)
        self.open_bytes += len(data)
        self._unsent.append(call.id)
        self._news.set()

    def remove(self, call_id: str) -> None:
        """Forget a call."""
        self.open_bytes -= len(self._open.pop(call_id, b""))

    def hold(self) -> None:
        """Keep the calls that come until `release`."""
        self._early = []

    def release(self) -> None:
        """Handle the calls that were kept."""
        early, self._early = self._early or [], None
        for sender, parcel in early:
            self._handle(sender, parcel)

    def redirect(self, owner: str) -> None:
        """Send everything open, and all calls from now on, to this owner."""
        self._owner = owner
        self._repeat()

    def refresh(self) -> bool:
        """Repeat the calls if none of them has been answered for a while; return whether that is so."""
        is_late = bool(self._open) and time.monotonic() - self._repeated_at > UNANSWERED_S
        if is_late:
            self._repeat()
        return is_late

    def probe(self) -> None:
        """Find out whether the owner listens."""
        self._publish_soon(call_subject(self._owner, self._room), _Parcel(echo=True))

    def answer(self, reply: str, answers: Sequence[Answer]) -> None:
        """Answer calls."""
        self._publish_soon(reply, _Parcel(answers=tuple(answers)))

    def _repeat(self) -> None:
        self._unsent = deque(self._open)
        self._is_held = False
        self._turn, self._number = self._turn + 1, 0
        self._repeated_at = time.monotonic()
        if self._unsent:
            self._news.set()

    async def _send(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._unsent and not self._is_held and self._owner not in ("", self._me):
                parts: list[bytes] = []
                size = 0
                while self._unsent and size < MAX_MESSAGE_BYTES:
                    part = self._open.get(self._unsent.popleft())
                    if part is not None:
                        parts.append(part)
                        size += len(part)
                if not parts:
                    continue
                data = b'{"turn":%d,"number":%d,"calls":[%b]}' % (self._turn, self._number, b",".join(parts))
                self._number += 1
                try:
                    await self._bus.publish(call_subject(self._owner, self._room), data, self._own_answers)
                except LogLost:
                    # The next connection repeats everything.
                    break

    def _publish_soon(self, subject: str, parcel: _Parcel) -> None:
        async def publish() -> None:
            with contextlib.suppress(LogLost):
                await self._bus.publish(subject, msgspec.json.encode(parcel), self._own_answers)

        # The loop keeps no reference of its own to a task.
        task = asyncio.create_task(publish())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _hear_calls(self, message: "Msg | None") -> None:
        parcel = _read(message)
        if message is None or parcel is None:
            return
        if parcel.echo:
            self.answer(message.reply, ())
        if parcel.calls and self._early is not None:
            self._early.append((message.reply, parcel))
        elif parcel.calls:
            self._handle(message.reply, parcel)

    def _handle(self, sender: str, parcel: _Parcel) -> None:
        if self._is_next(sender, parcel) and self.on_calls(sender, parcel.calls):
            self._last[sender] = parcel.turn, parcel.number

    def _is_next(self, sender: str, parcel: _Parcel) -> bool:
        """Return whether no message of the sender is missing before this one."""
        turn, number = self._last.get(sender, (-1, 0))
        return parcel.number == (number + 1 if parcel.turn == turn else 0) and parcel.turn >= turn

    def _hear_answers(self, message: "Msg | None") -> None:
        if message is None:
            # A new connection.
            self._repeat()
            return
        if (message.headers or {}).get("Status") == "503":
            self.on_echo(False)
            self._is_held = True
            asyncio.get_running_loop().call_later(AGAIN_S, self._repeat)
            return
        parcel = _read(message)
        if parcel is not None:
            self.on_echo(True)
            self.on_answers(parcel.answers)


def _read(message: "Msg | None") -> _Parcel | None:
    if message is None:
        return None
    try:
        return _decoder.decode(message.data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        log.warning("message of a gateway not understood", extra={"problem": str(exc)})
        return None
