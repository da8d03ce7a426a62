"""A NATS client that is safe and light.

It sends nothing over a connection that should be encrypted but is not. Its listeners are called as messages
are read, without the queue and the task of a subscription, because a process may serve thousands of rooms.
"""

import logging
from collections.abc import Callable
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.protocol import command

log = logging.getLogger(__name__)

OnMessage = Callable[[Msg], None]


class SafeClient(Client):
    """A client that refuses a server without TLS at a tls:// address.

    The base class would send its signature unencrypted, and an attacker could use it.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and "tls" in self.options and not info.get("tls_required"):
            raise Error("the server does not offer TLS")
        await super()._process_info(info, initial_connection=initial_connection)

    async def listen(self, subject: str, on_message: OnMessage) -> "SubjectListener":
        """Call `on_message` with every message of a subject until `ignore`."""
        self._sid += 1
        listener = SubjectListener(self._sid, on_message)
        self._subs[listener.id] = listener  # type: ignore[assignment]  # it has what the base class uses
        await self._send_command(command.sub_cmd(subject, "", listener.id))
        await self._flush_pending()
        return listener

    async def ignore(self, listener: "SubjectListener") -> None:
        """Call the listener no more."""
        self._remove_sub(listener.id)
        if not self.is_closed:
            await self._send_unsubscribe(listener.id)


class SubjectListener:
    """A subscription, as the base class uses it; each message goes to a function at once."""

    __slots__ = ("_on_message", "_pending_size", "_received", "id")

    _max_msgs: Final = 0
    _pending_bytes_limit: Final = 0
    _jsi: Final = None
    _future: Final = None
    _wait_for_msgs_task: Final = None
    _message_iterator: Final = None
    _pending_next_msgs_calls: Final = None

    def __init__(self, id: int, on_message: OnMessage) -> None:
        self.id = id
        self._on_message = on_message
        self._received = self._pending_size = 0

    @property
    def _pending_queue(self) -> "SubjectListener":
        return self

    def put_nowait(self, message: Msg) -> None:
        """Pass on a message; a failure must not end the connection."""
        try:
            self._on_message(message)
        except Exception:
            log.exception("message not handled", extra={"subject": message.subject})
