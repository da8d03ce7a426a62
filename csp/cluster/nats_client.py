"""The client of NATS, which sends nothing before a connection is encrypted if it has to be."""

from typing import Any

from nats.aio.client import Client
from nats.errors import Error


class SafeClient(Client):
    """A client that does not follow a server which offers no TLS at a tls:// address.

    The original would send its signature there, which somebody in between could use.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if initial_connection and "tls" in self.options and not info.get("tls_required"):
            raise Error("the server does not offer TLS")
        await super()._process_info(info, initial_connection=initial_connection)
