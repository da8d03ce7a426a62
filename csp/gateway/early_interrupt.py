"""Interrupt agents before the log has answered.

A stop is an event like any other, and while NATS servers elect a leader no event can be committed. Agents go
on working and spending meanwhile. An interrupt is safe to send twice, so it is sent when the log has not
answered for a moment; the event follows.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec

from csp.cluster.bus import Message
from csp.cluster.names import interrupt_subject
from csp.cluster.node import ClusterRoom
from csp.errors import CspError, LogLost
from csp.gateway.broadcast import text_frame
from csp.protocol.codec import encode
from csp.protocol.enums import AgentId, DeliverKind
from csp.protocol.events import ControlSent
from csp.protocol.responses import Deliver, DeliverFrame
from csp.room.agent_commands import is_allstop
from csp.room.commands import AnyCommand, RoomRules, Send, Stop
from csp.room.decide import draft_of
from csp.room.messages import pending
from csp.room.room_state import Room

log = logging.getLogger(__name__)

#: How long the log may take before interrupts are sent without it.
PATIENCE_S: Final = 0.3


class Interrupt(msgspec.Struct, frozen=True):
    """A control for an agent, as it will be delivered."""

    agent: AgentId
    deliver: Deliver


_decoder: Final = msgspec.json.Decoder(tuple[Interrupt, ...])


def interrupts_of(room: Room, command: AnyCommand, now: float, rules: RoomRules) -> tuple[Interrupt, ...]:
    """Return the controls with which a stop ends what runs; none for any other command."""
    is_stop = isinstance(command, Stop) or (
        isinstance(command, Send) and is_allstop(room, command.sender, command.text)
    )
    if not is_stop:
        return ()
    try:
        draft = draft_of(room, command, now, rules)
    except CspError:
        return ()
    sent = {event.id: event.target for event in draft.events if isinstance(event, ControlSent)}
    return tuple(
        Interrupt(agent, deliver)
        for agent in set(sent.values())
        for deliver in pending(draft.room, agent)
        if deliver.kind is DeliverKind.CONTROL and deliver.id in sent
    )


class EarlyStop:
    """Sends interrupts to the agents of this gateway, and through it to those of the others."""

    def __init__(self, cluster: ClusterRoom, tell: Callable[[AgentId, bytes], int]) -> None:
        self._bus = cluster.node.bus
        self._subject = interrupt_subject(cluster.name)
        self._tell = tell
        self._tasks: set[asyncio.Task[None]] = set()
        self._end: Callable[[], Awaitable[None]] | None = None

    async def open(self) -> None:
        """Listen to the other gateways."""
        self._end = await self._bus.follow(self._subject, self._hear)

    async def close(self) -> None:
        """Listen no more."""
        if self._end is not None:
            await self._end()

    def send_unless(self, done: "asyncio.Future[Any]", interrupts: tuple[Interrupt, ...]) -> None:
        """Send interrupts if a command is not committed in a moment."""

        def send() -> None:
            if not done.done():
                log.warning("the log does not answer, agents are interrupted without it")
                self._interrupt(interrupts)
                task = asyncio.create_task(self._publish(interrupts))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        if interrupts:
            asyncio.get_running_loop().call_later(PATIENCE_S, send)

    async def _publish(self, interrupts: tuple[Interrupt, ...]) -> None:
        with contextlib.suppress(LogLost):
            await self._bus.publish(self._subject, msgspec.json.encode(interrupts))

    def _hear(self, message: Message | None) -> None:
        if message is not None:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                self._interrupt(_decoder.decode(message.data))

    def _interrupt(self, interrupts: Iterable[Interrupt]) -> None:
        for interrupt in interrupts:
            self._tell(interrupt.agent, text_frame(encode(DeliverFrame(deliver=interrupt.deliver))))
