"""Start a brain: wait for the greeting of the relay, connect to the room, run."""

import asyncio
import socket
from typing import Final

from csp.client import Client
from csp.clis.profile import Profile
from csp.sidecar.brain.brain import Brain
from csp.sidecar.brain.brain_init import BrainStart
from csp.sidecar.brain_socket import RelayPort
from csp.sidecar.relay import relay_frames
from csp.sidecar.run_record import SidecarRecord

GREETING_S: Final = 0.01


async def run_brain(run: SidecarRecord, profile: Profile, link: socket.socket) -> None:
    """Greet the relay, then work until the child has ended."""
    early: list[tuple[bytes, bytes]] = []
    greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(kind: bytes, payload: bytes) -> None:
        if brains:
            brains[0].handle_frame(kind, payload)
            return
        early.append((kind, payload))
        if kind == relay_frames.START and not greeted.done():
            greeted.set_result(None)

    brains: list[Brain] = []
    port = RelayPort(link, take)
    await port.open()
    await asyncio.wait((greeted, port.closed), return_when=asyncio.FIRST_COMPLETED)
    async with Client(run.url, run.token) as client:
        if not greeted.done():
            # The relay has gone without a word: nobody is there to speak for.
            await client.close(leave=True)
            return
        # The note comes right behind the greeting.
        await asyncio.sleep(GREETING_S)
        brains.append(Brain(run, profile, port, client, BrainStart.read(early)))
        for kind, payload in early:
            brains[0].handle_frame(kind, payload)
        await brains[0].run()
