"""What one call of a verb knows of its room."""

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from csp.cli.verb_call import VerbCall
from csp.config import Settings
from csp.errors import Unreachable
from csp.room_registry import RunningRoom, remove_room, write_room


class Rooms:
    """Rooms that are announced in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.state, self._stack = folder / "state", ExitStack()
        self._held: dict[str, object] = {}

    def open(self, name: str, port: int) -> None:
        room = RunningRoom(
            room=name,
            url=f"http://127.0.0.1:{port}",
            token=f"token-{name}",
            pid=os.getpid(),
            dir=Path("/"),
            history=Path("/history"),
            started=1.5,
        )
        self._held[name] = write_room(self.state, room)

    def close(self, name: str) -> None:
        remove_room(self._held.pop(name))  # type: ignore[arg-type]  # what write_room returned

    def call(self, **fields: object) -> VerbCall:
        settings = replace(Settings(), state_dir=self.state, **fields)  # type: ignore[arg-type]  # each test its own
        return VerbCall(argparse.Namespace(json=True), settings, Path("/"))


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Rooms]:
    made = Rooms(tmp_path)
    yield made
    for name in list(made._held):
        made.close(name)


def test_a_call_speaks_to_the_room_that_is_found(rooms: Rooms) -> None:
    rooms.open("one", 1)
    call = rooms.call()

    assert (call.address.room, call.gateway.url, call.gateway._headers["X-Auth-Token"]) == (
        "one",
        "http://127.0.0.1:1",
        "token-one",
    )
    assert call.is_json


def test_a_room_that_comes_back_elsewhere_is_found_among_others(rooms: Rooms) -> None:
    rooms.open("one", 1)
    call = rooms.call()
    assert call.gateway.url == "http://127.0.0.1:1"
    rooms.close("one")
    rooms.open("two", 2)
    with pytest.raises(Unreachable):
        call.reconnect()
    rooms.open("one", 3)

    assert (call.reconnect().url, call.address.token) == ("http://127.0.0.1:3", "token-one")


def test_an_address_of_the_environment_is_kept(rooms: Rooms) -> None:
    rooms.open("one", 1)
    rooms.open("two", 2)
    call = rooms.call(gateway_url="http://127.0.0.1:2")

    assert (call.gateway.url, call.reconnect().url) == ("http://127.0.0.1:2",) * 2
