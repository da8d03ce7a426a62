"""What a person types is done once, though the answer to it is lost."""

import asyncio
from dataclasses import replace

import pytest

from csp.human.chat import Chat
from csp.human.theme import UNICODE, Theme
from csp.protocol.events import CallRecorded
from csp.room_registry import Address
from tests.client.proxy import Proxy
from tests.human.fakes import Shown
from tests.human.scene import join, script_order
from tests.rooms import LiveRoom
from tests.waiting import wait_until


def _calls(room: LiveRoom) -> int:
    """Return how much has been done in the room under an id of its caller's own."""
    return sum(isinstance(event, CallRecorded) for event in room.journal())


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("/mode debate tabs --agents claude,codex --replace", "began debate"),
        ("/pause claude", "paused claude"),
        ("Allstop", "No mode is running"),
    ],
)
async def test_what_was_typed_is_done_once_though_its_answer_is_lost(
    room: LiveRoom, line: str, shown: str
) -> None:
    for name in ("claude", "codex"):
        join(room, name)
    done = _calls(room)
    async with Proxy(room.port) as proxy:
        order = script_order(room)
        order = replace(order, address=Address(url=proxy.url, token=room.token, room=room.name))
        out = Shown()
        async with Chat(order, out, Theme(UNICODE, has_colour=False)) as chat:
            serving = asyncio.ensure_future(chat.serve())
            await chat.ready(serving)
            proxy.hold(to_gateway=False)
            chat.enter(line)
            await wait_until(lambda: _calls(room) > done, what="the deed")
            proxy.cut()
            proxy.flow()
            await wait_until(lambda: any(shown in each for each in out.lines), what=f"{shown!r} to be shown")
            serving.cancel()

    assert chat.failures == 0
    assert _calls(room) == done + 1
