"""Which words of a person are the room's; what is done with them is in test_brain.py too."""

import asyncio
from unittest import mock

import pytest

from csp.errors import CspError
from csp.sidecar.brain import relay_events
from csp.sidecar.brain.reconnect import RoomConnection
from csp.sidecar.brain.relay_events import PaneCommands
from tests.sidecar.test_run_record import RUN


def test_resume_is_ours_only_where_there_is_a_pause_to_end() -> None:
    claimed: list[tuple[str, ...]] = []
    words = PaneCommands(RUN, claimed.append)
    words.claim(is_paused=False)
    words.claim(is_paused=True)

    assert claimed == [("/share", "/noshare", "/pause"), ("/share", "/noshare", "/pause", "/resume")]


async def _take(room: RoomConnection | None, gateway: mock.Mock) -> None:
    words = PaneCommands(RUN, lambda _: None)
    with (
        mock.patch.object(relay_events, "running_room", return_value=room) as asked,
        mock.patch.object(relay_events, "GatewayClient", gateway),
    ):
        words.handle(b"/pause")
        await asyncio.gather(*words._tasks)
        asked.assert_called_once_with(RUN)
    assert words._tasks == set()


async def test_a_word_is_said_as_the_human_of_the_room_as_it_runs_now() -> None:
    gateway = mock.Mock()
    await _take(RoomConnection(url="http://new", token="human's"), gateway)

    gateway.assert_called_once_with("http://new", "human's")
    gateway.return_value.post.assert_called_once_with("/agents/ada-2/pause")


@pytest.mark.parametrize("is_running", [True, False])
async def test_a_word_that_nobody_obeys_is_logged(is_running: bool, caplog: pytest.LogCaptureFixture) -> None:
    gateway = mock.Mock()
    gateway.return_value.post.side_effect = CspError("no")
    await _take(RoomConnection(url="http://new", token="") if is_running else None, gateway)

    assert gateway.called is is_running
    assert caplog.messages == [
        "room refused" if is_running else "room is not running, so the command had no effect"
    ]
