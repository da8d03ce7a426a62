"""A model that is started without a pane: found when it is there, named when it ends."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from csp.errors import Broken, Unreachable
from csp.http_client import GatewayClient
from csp.panes import wait_ready
from csp.panes.room_processes import RoomProcesses
from csp.panes.tmux_session import room_key
from csp.panes.wait_ready import StartOutcome, start_in_background
from csp.sidecar.run_record import SidecarRecord, agents_dir

#: Does what a model does for its room: leaves its record, then stays.
_MODEL = """
import json, os, sys, time
from pathlib import Path
from csp.sidecar.run_record import SidecarRecord
folder = Path(sys.argv[1])
folder.mkdir(parents=True)
SidecarRecord(name="m", agent="m-2", token="t", url="u", room="r", role="agent",
    pid=os.getpid(), profile="p", argv=[],
    env=dict(os.environ), cwd=os.getcwd(), folder=str(folder), started=0.0).save(folder)
time.sleep(600)
"""

_REPORT = """from csp.fast_start.failure_report import claim, report; claim(); report("no key is set")"""


class Room:
    """A gateway that shows one picture after the other."""

    def __init__(self, *pictures: Any) -> None:
        self.pictures = list(pictures)

    def get(self, path: str) -> Any:
        picture = self.pictures.pop(0) if len(self.pictures) > 1 else self.pictures[0]
        if picture is None:
            raise Unreachable("away")
        return picture


def start(tmp_path: Path, room: Room, *argv: str, **env: str) -> StartOutcome:
    processes, gateway = RoomProcesses(tmp_path, "default"), cast(GatewayClient, room)
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": os.getcwd(), **env}
    return start_in_background(processes, gateway, "m", argv, tmp_path, given, lambda _: None, ("MY_KEY",))


def state(word: str, *, online: bool = True) -> list[dict[str, Any]]:
    return [{"id": "m-2", "state": word, "online": online}]


def test_a_model_is_here_once_it_has_told_its_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = agents_dir(tmp_path, "default") / "m-2"
    room = Room(None, state("idle", online=False), state("starting"), state("busy"))
    words = (sys.executable, "-c", _MODEL, str(folder))
    # The product lets it run on when it ends itself; a test that goes on must not.
    started: list[subprocess.Popen[bytes]] = []

    class Kept(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Kept)
    try:
        found = start(tmp_path, room, *words, CSP_AUTH_TOKEN="secret", CSP_AGENT="x", MY_KEY="k", OTHER="o")
        run = SidecarRecord.load(folder)
    finally:
        for process in started:
            process.kill()
            process.wait()

    assert found == StartOutcome("m-2", "busy")
    assert run is not None and run.cwd == str(tmp_path)
    assert run.env["CSP_PANES"] == room_key(tmp_path, "default")
    assert run.env["MY_KEY"] == "k"
    assert not {"CSP_AUTH_TOKEN", "CSP_AGENT", "OTHER"} & set(run.env)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (f"echo noise >&2; {sys.executable} -c '{_REPORT}'; echo more >&2", "no key is set"),
        ("echo first >&2; echo last >&2", "last"),
        ("true", "it said nothing"),
    ],
)
def test_a_model_that_ends_says_why(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(Broken, match=f"m has ended: {said}$"):
        start(tmp_path, Room([]), "sh", "-c", script)


def test_a_model_that_never_joins_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_ready, "PATIENCE_S", 0.2)
    ended: list[int] = []

    class Noted(subprocess.Popen[bytes]):
        def terminate(self) -> None:
            ended.append(self.pid)
            self.kill()
            self.wait()

    monkeypatch.setattr(subprocess, "Popen", Noted)

    assert start(tmp_path, Room([]), "sleep", "600") == StartOutcome(
        "m", "offline", "m has not joined after 0.2 s"
    )
    assert len(ended) == 1
