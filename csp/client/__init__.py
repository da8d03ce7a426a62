"""The async client of a room, used by every participant.

    async with Client(url, token) as client:
        await client.send("claude", "fix the parser")
        async for item in client:
            match item:
                case Deliver(): ...

Importing this package loads neither websockets nor aiohttp.
"""

from csp.client.client import Client, Registered, Sent
from csp.client.connection import Status
from csp.client.incoming_frames import Item, Live
from csp.protocol.responses import Deliver

__all__ = ["Client", "Deliver", "Item", "Live", "Registered", "Sent", "Status"]
