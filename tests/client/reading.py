"""What a test wants to know of the things a client yields."""

import asyncio
from collections.abc import Callable

from csp.client import Client, Deliver, Item
from csp.protocol.events import AnyEvent, MessageEvent

READ_S = 60.0


def texts(items: list[Item]) -> list[str]:
    """Return what was said, in order."""
    return [item.text for item in items if isinstance(item, MessageEvent)]


def delivered(items: list[Item]) -> list[str]:
    """Return the texts of the deliveries, in order."""
    return [item.text for item in items if isinstance(item, Deliver)]


def events(items: list[Item]) -> list[AnyEvent]:
    """Return the events alone."""
    return [item for item in items if isinstance(item, AnyEvent)]


async def read_until(client: Client, is_enough: Callable[[list[Item]], bool]) -> list[Item]:
    """Return what the client yields up to the item that makes it enough."""
    items: list[Item] = []
    async with asyncio.timeout(READ_S):
        while not is_enough(items):
            items.append(await anext(client))
    return items


async def read_texts(client: Client, last: str) -> list[str]:
    """Return what was said, up to `last`."""
    return texts(await read_until(client, lambda items: texts(items[-1:]) == [last]))


async def read_delivered(client: Client, last: str) -> list[str]:
    """Return the texts of the deliveries, up to `last`."""
    return delivered(await read_until(client, lambda items: delivered(items[-1:]) == [last]))
