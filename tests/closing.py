"""End a server of the tests without leaving a connection behind."""

import asyncio
from typing import Final

from aiohttp import web

#: Turns of the event loop from an accepted connection to one that its server knows, and one more.
_ACCEPT_STEPS: Final = 4


async def close(runner: web.BaseRunner) -> None:
    """Accept no more callers, then close all of them."""
    await stop_accepting(runner)
    await runner.cleanup()


async def stop_accepting(runner: web.BaseRunner) -> None:
    """Accept no new connections; return when the server knows every accepted one.

    Python 3.11 never closes a connection that is accepted in the moment its server closes; its warning fails
    whichever test runs when it is collected.
    """
    for site in runner.sites:
        server = getattr(site, "_server", None)
        assert isinstance(server, asyncio.Server)
        _stop_listening(server)
    await _let_accepted_in()


async def take_accepted(server: asyncio.Server) -> None:
    """Do the same for a server of asyncio."""
    _stop_listening(server)
    await _let_accepted_in()


def _stop_listening(server: asyncio.Server) -> None:
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener.fileno())


async def _let_accepted_in() -> None:
    for _ in range(_ACCEPT_STEPS):
        await asyncio.sleep(0)
