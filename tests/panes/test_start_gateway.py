"""The gateway that `csp up` starts in the background: how it is started, waited for, given up."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from csp.config import Settings
from csp.errors import Broken, CspError, Refused, Unreachable, UntrustedCertificate
from csp.panes import start_gateway as gateway
from csp.panes.processes import family
from csp.panes.start_gateway import (
    find_running,
    has_lost_supervisor,
    log_path,
    open_to_lan,
    start_gateway,
    supervise_again,
)
from csp.room_registry import RoomFile, RunningRoom, remove_room, write_room
from tests.waiting import wait_until_sync

#: Stands in for the gateway: writes what it was started with, then sleeps.
_FAKE = (
    "import json, os, sys, time\n"
    "json.dump([sys.argv[1:], dict(os.environ), os.getcwd(), os.getsid(0) == os.getpid()], open({!r}, 'w'))\n"
    "{}"
)


def nothing(text: str) -> None:
    pass


def room_at(folder: Path, *, pid: int = 0, supervisor: int | None = None) -> RunningRoom:
    return RunningRoom(
        room="default",
        url="http://127.0.0.1:1234",
        token="t",
        pid=pid or os.getpid(),
        supervisor=supervisor,
        dir=folder,
        history=folder / "history" / "default",
        started=0.0,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "state").mkdir(mode=0o700)
    return Settings(state_dir=tmp_path / "state", history_dir=tmp_path / "history")


def stand_in(monkeypatch: pytest.MonkeyPatch, out: Path, then: str = "time.sleep(600)") -> None:
    monkeypatch.setattr(gateway, "CSP", (sys.executable, "-c", _FAKE.format(str(out), then)))


@pytest.fixture
def announced(settings: Settings, tmp_path: Path) -> Iterator[RoomFile]:
    file = write_room(settings.state_dir, room_at(tmp_path))
    yield file
    remove_room(file)


def test_a_gateway_is_started_for_its_room_without_anybodys_identity(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    stand_in(monkeypatch, out)
    monkeypatch.setattr(gateway, "answers", lambda room: out.exists() and out.stat().st_size > 0)
    monkeypatch.setattr(gateway, "running_room", lambda state_dir, name: room_at(tmp_path))
    env = {
        "PATH": os.environ["PATH"],
        "CSP_AUTH_TOKEN": "t",
        "CSP_AGENT": "a",
        "CSP_GATEWAY_URL": "u",
        "X": "1",
    }
    started: list[int] = []
    popen = subprocess.Popen

    def noted(*args: object, **more: object) -> object:
        process = popen(*args, **more)  # type: ignore[call-overload]  # passed on as it came
        started.append(process.pid)
        processes.append(process)
        return process

    processes: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr(subprocess, "Popen", noted)
    shown: list[str] = []
    found = start_gateway(settings, tmp_path, tmp_path / "state", env, shown.append, None, "4321")
    argv, seen, cwd, is_leader = json.loads(out.read_text())
    processes[0].kill()
    processes[0].wait()

    assert found.room == "default" and shown[0] == "starting the gateway…"
    assert argv == [
        *("gateway", "--supervise", "--room", "default", "--dir", str(tmp_path)),
        *("--history", str(settings.history_dir), "--port", "4321"),
    ]
    assert (seen["X"], "CSP_AUTH_TOKEN" in seen, "CSP_AGENT" in seen) == ("1", False, False)
    assert "CSP_GATEWAY_URL" not in seen
    assert (Path(cwd), is_leader) == (tmp_path / "state", True)
    assert stat.S_IMODE(log_path(settings.state_dir, "default").stat().st_mode) == 0o600


def test_a_gateway_that_gives_no_answer_is_ended(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    # As one that is just starting: it hears no polite signal.
    stand_in(
        monkeypatch,
        out,
        "import signal; signal.signal(15, signal.SIG_IGN); time.sleep(600)",
    )
    monkeypatch.setattr(gateway, "READY_S", 1.0)
    monkeypatch.setattr(
        "csp.panes.processes.STEPS", ((0.1, signal.SIGTERM), (0.1, signal.SIGKILL), (9, None))
    )
    with pytest.raises(Unreachable, match="the gateway did not answer within 1 s"):
        start_gateway(settings, tmp_path, tmp_path, dict(os.environ), nothing)

    assert not [process for process in family([os.getpid()]) if str(out) in process.command]


def test_the_last_line_of_a_gateway_is_that_of_this_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    old = "an old complaint\n"
    for text, expected in {"one\ntwo\n": "two", "": "it said nothing"}.items():
        log.write_text(old + text)

        assert gateway.last_line(log, len(old)) == expected


@pytest.mark.parametrize(
    ("script", "message", "hint"),
    [
        ("report('port 1 is taken', 'choose another')", "port 1 is taken", "choose another"),
        ("report('no luck')", "no luck", "its log is "),
        ("print('oops', file=sys.stderr)", "oops", "its log is "),
    ],
)
def test_a_gateway_that_ends_says_why(
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    message: str,
    hint: str,
) -> None:
    reports = "from csp.fast_start.failure_report import claim, report; claim()"
    stand_in(monkeypatch, tmp_path / "out", f"{reports}; {script}; sys.exit(1)")
    env = dict(os.environ) | {"PYTHONPATH": os.getcwd()}
    with pytest.raises(Broken, match=f"the gateway did not start: {message}$") as found:
        start_gateway(settings, tmp_path, tmp_path, env, nothing)

    assert found.value.hint.startswith(hint)


def test_a_long_log_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * (1 << 20))
    gateway.open_log(path).close()
    assert path.stat().st_size == 1 << 20
    path.write_bytes(b"x" * ((1 << 20) + 1))
    gateway.open_log(path).close()

    assert path.stat().st_size == 0


def test_a_room_that_answers_is_found_and_a_silent_one_is_waited_for(
    settings: Settings, announced: RoomFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [False, False, True]
    monkeypatch.setattr(gateway, "answers", lambda room: answers.pop(0))
    monkeypatch.setattr(gateway, "family", lambda pids: {1})
    shown: list[str] = []
    found = find_running(settings, shown.append)

    assert found is not None and found.room == "default"
    assert shown == ["waiting for the gateway…"] * 2


def test_a_room_that_never_answers_is_said_to_be_so(
    settings: Settings, announced: RoomFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "RESTART_S", 0.1)
    monkeypatch.setattr(gateway, "answers", lambda room: False)
    monkeypatch.setattr(gateway, "family", lambda pids: {1})
    with pytest.raises(Unreachable) as error:
        find_running(settings, nothing)

    assert error.value.message == "the gateway of room 'default' does not answer"
    assert error.value.hint == "end it with: csp down"


def test_the_announcement_of_the_dead_is_taken_away(
    settings: Settings, announced: RoomFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "answers", lambda room: False)
    monkeypatch.setattr(gateway, "family", lambda pids: set())

    assert find_running(settings, nothing) is None
    assert not announced.path.exists()
    assert find_running(settings, nothing) is None


def test_only_the_child_of_another_has_lost_its_supervisor(tmp_path: Path) -> None:
    assert not has_lost_supervisor(room_at(tmp_path))
    assert not has_lost_supervisor(room_at(tmp_path, supervisor=os.getppid()))
    assert has_lost_supervisor(room_at(tmp_path, supervisor=1 << 22))


def test_a_room_is_opened_to_a_network_by_its_supervisor_alone(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    new = room_at(tmp_path)

    def restart(*args: object) -> RunningRoom:
        given.extend(args)
        return new

    monkeypatch.setattr(gateway, "supervise_again", restart)
    plain = room_at(tmp_path, supervisor=os.getppid())

    def opened(room: RunningRoom) -> RunningRoom:
        return open_to_lan(settings, room, "10.0.0.7", {}, nothing)

    there = replace(plain, options="--lan 10.0.0.7")
    assert (opened(there), given) == (there, [])
    assert opened(plain) is new
    assert given == [settings, plain, {}, nothing, ["--lan", "10.0.0.7"]]
    # The machine has moved to another network.
    assert opened(replace(plain, options="--lan 192.168.1.5")) is new
    with pytest.raises(Refused, match="the gateway of room 'default' runs in its own terminal"):
        opened(room_at(tmp_path))
    with pytest.raises(Refused, match="the gateway of room 'default' was started with --insecure"):
        opened(replace(plain, options="--insecure"))


def test_a_certificate_that_is_not_trusted_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Client:
        def __init__(self, url: str, token: str) -> None:
            pass

        def get(self, path: str) -> object:
            raise problem

    monkeypatch.setattr(gateway, "GatewayClient", Client)
    problem: CspError = UntrustedCertificate("the certificate is not trusted")
    with pytest.raises(UntrustedCertificate):
        gateway.answers(room_at(tmp_path))
    problem = Unreachable("nobody answers")
    assert not gateway.answers(room_at(tmp_path))


def test_a_gateway_without_its_supervisor_is_started_again_at_its_place(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    monkeypatch.setattr(gateway, "start_gateway", lambda *args: given.extend(args))
    old = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        before = replace(room_at(tmp_path, pid=old.pid), options="--tls-cert 'a b'")
        supervise_again(settings, before, {"X": "1"}, nothing)
        wait_until_sync(lambda: old.poll() is not None, 60.0, "the end of the old one")
    finally:
        old.kill()
        old.wait()

    assert given[:4] == [settings, tmp_path, tmp_path, {"X": "1"}]
    assert given[5:] == [tmp_path / "history", "1234", ["--tls-cert", "a b"]]
