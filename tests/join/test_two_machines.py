"""Two machines with one cable between them: it is pulled for a minute, and either side is killed."""

import os
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from csp.fast_start.room_files import read_running
from csp.panes.processes import family
from tests.join.asking import answered, say
from tests.join.namespaces import LaptopPlace, ServerRoom, TwoMachines
from tests.join.ssh_host import SshHost
from tests.rooms import Room
from tests.waiting import wait_until_sync

NAME: Final = "app-server"
CUT_S: Final = 60.0


def link_of(laptop: LaptopPlace) -> tuple[int, int]:
    """Return the pids of the link and of its ssh."""

    def found() -> tuple[int, int] | None:
        room = read_running(str(laptop.state / f"{NAME}.json"))
        if room is None:
            return None
        ssh = [one.pid for one in family([room["supervisor"]]) if one.command.startswith("ssh ")]
        return (room["pid"], ssh[0]) if ssh else None

    pids = wait_until_sync(found, 120.0, "the link")
    assert pids is not None
    return pids


def say_from(laptop: LaptopPlace, text: str) -> int:
    """Say something from the laptop; return how often the room must have it."""
    done = laptop.csp("send", "all", text, "--room", NAME)
    return 1 if done.code == 0 else 0


def cut_for_a_minute(machines: TwoMachines, room: Room, laptop: LaptopPlace) -> dict[str, int]:
    """Pull the cable while both sides speak; return how often the room must have each text."""
    said = {}
    until = time.monotonic() + CUT_S
    say(room, "just before")
    machines.cut()
    for number in range(4):
        say(room, f"meanwhile {number}")
        said[f"from the laptop {number}"] = say_from(laptop, f"from the laptop {number}")
    while time.monotonic() < until:
        time.sleep(1.0)
    lost = laptop.csp("status", "--room", NAME)
    assert f"the link to {machines.server.address}" in lost.err.replace("server:app", machines.server.address)
    machines.mend()
    answered(room, "just before", *(f"meanwhile {number}" for number in range(4)))
    return said


@pytest.mark.full
@pytest.mark.timeout(900)
def test_nothing_is_lost_or_doubled_between_two_machines(tmp_path: Path) -> None:
    with TwoMachines() as machines:
        room = ServerRoom(tmp_path / "room", "--supervise", name="app")
        room.machine = machines.server
        host = SshHost(tmp_path / "host", room, machines.server.address, machines.server.enter)
        with room, host, LaptopPlace(tmp_path / "laptop") as laptop:
            laptop.machine = machines.laptop
            options = ("--detach", "--demo", "--agents", "ada", *host.options)
            joined = laptop.csp("join", "server", *options)
            assert joined.code == 0, joined.err
            said = cut_for_a_minute(machines, room, laptop)
            for what in ("ssh", "link", "sessions", "gateway"):
                say(room, f"before {what}")
                if what == "sessions":
                    host.signal_sessions(signal.SIGKILL)
                elif what == "gateway":
                    room.kill9()
                else:
                    os.kill(link_of(laptop)[0 if what == "link" else 1], signal.SIGKILL)
                said[f"after {what}"] = say_from(laptop, f"after {what}")
                answered(room, f"before {what}")
            ended = laptop.csp("down", "--room", NAME)
            counts = {text: room.journal_texts().count(text) for text in said}

    assert (ended.code, counts) == (0, said), ended.err
