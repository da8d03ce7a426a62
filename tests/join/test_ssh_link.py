"""A link over ssh: when ssh is started again, and what is written about it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from csp.errors import Unreachable
from csp.join import ssh_link
from csp.join.announcement import Announcement, LinkOrder
from csp.join.link_state import LinkState
from csp.join.ssh import Ssh
from csp.join.ssh_link import SshLink, socket_path
from csp.room_registry import running_rooms
from tests.waiting import wait_until

#: An ssh that lists one room, and forwards until its input ends; each start is a line in a file.
SCRIPT = """
echo start >> {starts}
case "$*" in
    *"token --all"*) echo '[{{"room": "app", "url": "http://127.0.0.1:1", "token": "{token}"}}]';;
    *) {then};;
esac
"""


READY = "echo welcome; echo 'csp: forwarding'"


def link_of(folder: Path, then: str = f"{READY}; exec cat >/dev/null") -> SshLink:
    """Return a link whose ssh is a script."""
    script = SCRIPT.format(starts=folder / "starts", token="secret", then=then)
    ssh = Ssh(("sh", "-c", script, "ssh"), "server", "csp", {"PATH": "/usr/bin:/bin"})
    order = LinkOrder(
        name="app-server", target="server:app", state_dir=folder, dir=folder, history=folder, project=""
    )
    return SshLink(ssh, "app", Announcement(order, 40123, lambda: None), socket_path(folder, "app"), 40123)


def starts(folder: Path) -> int:
    path = folder / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


@asynccontextmanager
async def running(link: SshLink) -> AsyncIterator[None]:
    task = asyncio.ensure_future(link.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        link.close()
        link._announcement.withdraw()


async def test_a_room_is_announced_once_ssh_forwards(tmp_path: Path) -> None:
    async with running(link_of(tmp_path)):
        await wait_until(lambda: running_rooms(tmp_path))
        (room,) = running_rooms(tmp_path)
        state = LinkState.load(tmp_path, "app-server")

    assert (room.url, room.token, room.joined) == ("http://127.0.0.1:40123", "secret", "server:app")
    assert state is not None
    assert state[:3] == ("server:app", 40123, "")
    assert running_rooms(tmp_path) == []


async def test_ssh_is_started_again_when_it_ends(tmp_path: Path) -> None:
    async with running(link_of(tmp_path, f"{READY}; sleep 0.1; echo 'Connection lost' >&2; exit 255")):
        await wait_until(lambda: starts(tmp_path) >= 4)
        await wait_until(lambda: "Connection lost" in (LinkState.load(tmp_path, "app-server") or [""] * 3)[2])


async def test_ssh_is_started_again_after_a_sleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh_link, "TICK_S", 0.01)
    slept = [0.0]
    clock = time.time
    async with running(link_of(tmp_path)):
        await wait_until(lambda: starts(tmp_path) == 2)
        await wait_until(lambda: running_rooms(tmp_path))
        monkeypatch.setattr(time, "time", lambda: clock() + slept[0])
        slept[0] = 60.0
        await wait_until(lambda: starts(tmp_path) == 3)


async def test_a_room_that_does_not_answer_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_link, "TICK_S", 0.01)
    monkeypatch.setattr(ssh_link, "PROBE_EVERY_S", 0.01)
    async with running(link_of(tmp_path)):
        # Nothing listens at the link's port here: two calls that list the rooms, two that forward.
        await wait_until(lambda: starts(tmp_path) >= 4)


async def test_a_link_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="ssh server failed: nobody"):
        await link_of(tmp_path, "echo nobody >&2; exit 255").run()


def test_a_long_path_is_replaced_by_a_private_folder(tmp_path: Path) -> None:
    short = socket_path(Path("/run/user/1000/csp"), "app-server")
    long = socket_path(tmp_path / ("d" * 100), "app-server")
    mode = long.parent.stat().st_mode & 0o777
    long.parent.rmdir()

    assert short == Path("/run/user/1000/csp/app-server.link.sock")
    assert (mode, len(str(long)) < 85) == (0o700, True)
