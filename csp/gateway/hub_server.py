"""Run a hub: bind, serve many rooms, and shut down in order."""

import asyncio
import contextlib
import logging
import socket
import ssl

from csp.config import GatewayOptions
from csp.errors import BadInput
from csp.gateway.acceptor import Acceptor, HttpServer
from csp.gateway.http_server import make_runner
from csp.gateway.hub import Hub
from csp.gateway.lan_listener import LanListener
from csp.gateway.server import OnReady, SteadyClock, open_node, url_of

log = logging.getLogger(__name__)


async def serve_hub(
    options: GatewayOptions,
    listener: socket.socket,
    stop: asyncio.Event,
    *,
    tls: ssl.SSLContext | None = None,
    on_ready: OnReady = lambda: None,
    supervisor: int | None = None,
    lan: LanListener | None = None,
) -> None:
    """Serve the rooms of a cluster on `listener` until `stop` is set."""
    node = await open_node(options, "")
    if node is None:
        raise BadInput("a hub needs the NATS servers of a cluster", "add --journal nats://HOST:4222")
    settings = options.settings
    hub = Hub(node, settings, SteadyClock(), options.idle_s)
    runner = make_runner(hub)
    acceptor: Acceptor | None = None
    try:
        await hub.open()
        await runner.setup()
        assert isinstance(runner.server, HttpServer)
        acceptor = Acceptor(runner.server, listener, tls)
        url = url_of(settings.host, listener.getsockname()[1], is_tls=tls is not None)
        log.info("hub ready", extra={"url": url})
        on_ready()
        await stop.wait()
    finally:
        if acceptor is not None:
            acceptor.close()
        await hub.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(runner.cleanup(), 5)
        await hub.close_rooms()
        await node.close()
        log.info("hub stopped")
