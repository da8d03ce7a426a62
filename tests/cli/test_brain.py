"""The process of a sidecar's brain: what it does before and after its work."""

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.cli import brain as module
from csp.cli.brain import brain
from csp.errors import Broken, Forbidden, Unauthenticated, Unreachable
from csp.sidecar.relay.pty_processes import HANDED_FD


class Handed:
    """The link as it was handed over, with the copies that were made of it."""

    def __init__(self, link: socket.socket) -> None:
        self.link, self.copies = link, list[socket.socket]()

    def dup(self) -> socket.socket:
        self.copies.append(self.link.dup())
        return self.copies[-1]


class Scene:
    """A relay at the other end of the link, and all that a brain calls on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.relay, link = socket.socketpair()
        self.handed = Handed(link)
        self.failure: Exception | None = None
        self.does_rejoin = True
        self.parent_after_work = 4321
        self.seen: list[Any] = []
        self.parent = 4321
        run = SimpleNamespace(profile="/p/claude.toml", pid=4321)
        found = SimpleNamespace(profile="/found/claude.toml", pid=4321)
        monkeypatch.setattr(module, "os", SimpleNamespace(getppid=lambda: self.parent))
        monkeypatch.setattr(module, "socket", SimpleNamespace(socket=self.take))
        monkeypatch.setattr(module, "configure", lambda **options: self.seen.append(options))
        monkeypatch.setattr(module, "SidecarRecord", SimpleNamespace(load=lambda folder: run))
        monkeypatch.setattr(module, "find_room", lambda given: found)
        monkeypatch.setattr(module, "load_recorded_profile", lambda path: f"profile {path}")
        monkeypatch.setattr(module, "run_brain", self.work)
        monkeypatch.setattr(module, "rejoin", self.rejoin)

    def take(self, fileno: int) -> Handed:
        assert fileno == HANDED_FD
        return self.handed

    async def work(self, run: Any, profile: str, handed: Handed) -> None:
        self.seen.append((run.profile, profile))
        handed.link.close()
        self.parent = self.parent_after_work
        if self.failure is not None:
            raise self.failure

    def rejoin(self, run: Any) -> bool:
        self.seen.append("rejoin")
        return self.does_rejoin


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(monkeypatch)
    yield made
    for one in (made.relay, made.handed.link, *made.handed.copies):
        one.close()


def test_a_brain_works_with_the_room_as_it_is_now(scene: Scene) -> None:
    brain("/runs/1")

    assert scene.seen == [{"is_verbose": False}, ("/found/claude.toml", "profile /found/claude.toml")]


@pytest.mark.parametrize("failure", [Unauthenticated("who?"), Forbidden("no")])
def test_a_brain_that_the_room_does_not_know_joins_again_and_ends(scene: Scene, failure: Exception) -> None:
    scene.failure = failure
    brain("/runs/1")

    assert scene.seen[-1] == "rejoin"


def test_a_brain_whose_relay_has_gone_still_says_its_last_words(scene: Scene) -> None:
    scene.parent = 1
    brain("/runs/1")

    assert ("/found/claude.toml", "profile /found/claude.toml") in scene.seen


def test_a_brain_whose_relay_has_gone_does_not_join_again(scene: Scene) -> None:
    scene.failure, scene.parent_after_work = Unauthenticated("who?"), 1
    brain("/runs/1")

    assert "rejoin" not in scene.seen


def test_a_brain_of_a_removed_agent_stays_until_the_relay_goes(scene: Scene) -> None:
    scene.failure, scene.does_rejoin = Forbidden("removed"), False
    scene.handed.link.setblocking(False)
    scene.relay.sendall(b"what the CLI says" * 10)
    scene.relay.shutdown(socket.SHUT_WR)
    brain("/runs/1")

    # All that came was taken: nobody has to wait for a brain that only stays.
    (spare,) = scene.handed.copies
    assert scene.seen[-1] == "rejoin" and spare.getblocking()
    assert spare.recv(1, socket.MSG_DONTWAIT) == b""


def test_any_other_failure_ends_the_process(scene: Scene) -> None:
    scene.failure = Unreachable("gone")
    with pytest.raises(Unreachable):
        brain("/runs/1")

    assert "rejoin" not in scene.seen


def test_a_record_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Broken, match="cannot be read"):
        brain(str(tmp_path))
