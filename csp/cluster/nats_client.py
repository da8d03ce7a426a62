"""A NATS client that sends nothing over a connection that should be encrypted but is not."""

from typing import Any

from nats.aio.client import Client
from nats.errors import Error


class SafeClient(Client):
    """A client that refuses a server without TLS at a tls:// address.

    The base class would send its signature unencrypted, and an attacker could use it.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and "tls" in self.options and not info.get("tls_required"):
            raise Error("the server does not offer TLS")
        await super()._process_info(info, initial_connection=initial_connection)
