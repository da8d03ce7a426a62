"""The link process of a joined room, with the supervisor that starts it again."""

import asyncio
import signal
import socket
from pathlib import Path
from typing import Final

from csp.errors import Broken
from csp.fast_start.room_files import make_private_dir
from csp.gateway.server import supervise
from csp.join.announcement import Announcement, LinkOrder, OnReady
from csp.join.link_state import LinkState
from csp.join.ssh import Ssh
from csp.join.ssh_link import SshLink, socket_path
from csp.join.url_link import UrlLink

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LISTEN: Final = 128


def keep_ssh_link(order: LinkOrder, ssh: Ssh, room: str) -> int:
    """Keep a link over ssh until a stop signal arrives; return the exit code."""
    make_private_dir(order.state_dir)
    before = LinkState.load(order.state_dir, order.name)

    async def serve(listener: socket.socket, on_ready: OnReady) -> int:
        port = listener.getsockname()[1]
        announcement = Announcement(order, port, on_ready)
        link = SshLink(ssh, room, announcement, socket_path(order.state_dir, order.name), port)
        server = await asyncio.start_server(link.forwarder.serve, sock=listener.dup())
        try:
            await _until_signal(link, announcement)
        finally:
            server.close()
            link.close()
        return 0

    with listen(before.port if before and before.target == order.target else 0) as listener:
        return supervise(lambda ready: asyncio.run(serve(listener, ready)), "link")


def keep_url_link(order: LinkOrder, urls: str, token_file: Path, ca_file: str) -> int:
    """Keep a link to gateways that are reachable by themselves until a stop signal arrives."""
    make_private_dir(order.state_dir)

    async def serve(on_ready: OnReady) -> int:
        announcement = Announcement(order, 0, on_ready)
        await _until_signal(UrlLink(urls, token_file, ca_file, announcement), announcement)
        return 0

    return supervise(lambda ready: asyncio.run(serve(ready)), "link")


def listen(port: int) -> socket.socket:
    """Return a listening socket on loopback; at the port of an earlier link, where clients still look."""
    for number in dict.fromkeys((port, 0)):
        listener = socket.socket()
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", number))
            listener.listen(_LISTEN)
        except OSError as exc:
            listener.close()
            problem = exc
        else:
            return listener
    raise Broken(f"cannot listen on 127.0.0.1: {(problem.strerror or '').lower()}") from problem


async def _until_signal(link: SshLink | UrlLink, announcement: Announcement) -> None:
    """Run a link until a stop signal arrives; raise if it fails at the start."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stop.set)
    running, stopping = asyncio.ensure_future(link.run()), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
    finally:
        for task in (running, stopping):
            task.cancel()
        await asyncio.gather(running, stopping, return_exceptions=True)
        announcement.withdraw()
