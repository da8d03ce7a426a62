"""What `csp down` ends and removes, and what it leaves alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import Refused
from csp.panes import down
from csp.panes.down import EndReport, check_ended, end_room, purge
from csp.panes.processes import Process, family
from csp.panes.room_processes import RoomProcesses
from csp.panes.tmux_session import room_key
from csp.room_registry import RunningRoom
from csp.sidecar.run_record import SidecarRecord, agents_dir
from csp.terminal.pane_layout import Size, default_form

SLEEP = "import time; time.sleep(600)"


def save_run(state: Path, agent: str, pid: int, env: dict[str, str]) -> SidecarRecord:
    folder = agents_dir(state, "default") / agent
    folder.mkdir(parents=True)
    run = SidecarRecord(
        name=agent,
        agent=agent,
        token="t",
        url="u",
        room="default",
        role="agent",
        pid=pid,
        profile="/p/generic.toml",
        argv=[],
        env=env,
        cwd="/p",
        folder=str(folder),
        started=0.0,
    )
    run.save(folder)
    return run


def test_only_sidecars_of_our_own_panes_are_ours(tmp_path: Path) -> None:
    key = room_key(tmp_path, "default")
    save_run(tmp_path, "ours", os.getpid(), {"CSP_PANES": key})
    save_run(tmp_path, "other", os.getpid(), {"CSP_PANES": room_key(tmp_path, "other")})
    save_run(tmp_path, "bare", os.getpid(), {})
    save_run(tmp_path, "ended", 1 << 22, {})
    ours, foreign = down.sidecars_of(RoomProcesses(tmp_path, "default"))

    assert [run.agent for run in ours] == ["ended", "ours"]
    assert [run.agent for run in foreign] == ["bare", "other"]


def test_a_process_of_the_same_number_is_not_taken_for_a_sidecar(tmp_path: Path) -> None:
    key = {"CSP_PANES": room_key(tmp_path, "default")}
    stranger = subprocess.Popen([sys.executable, "-c", SLEEP])
    relay = subprocess.Popen([sys.executable, "-c", SLEEP, "sidecar", "--name", "ann", "--"])
    try:
        save_run(tmp_path, "ann", relay.pid, key)
        save_run(tmp_path, "ben", stranger.pid, key)
        report = end_room(tmp_path, "default", tmp_path / "history", lambda _: None, None)

        assert report.ended == ["ann"]
        assert (relay.wait(60), stranger.poll()) == (-signal.SIGHUP, None)
    finally:
        for process in (stranger, relay):
            process.kill()
            process.wait()


def test_the_gateway_is_asked_by_its_supervisor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append((pid, number)))
    monkeypatch.setattr(down, "family", lambda pids: set(pids))
    monkeypatch.setattr(down, "end", lambda processes: processes)
    room = RunningRoom(
        room="default",
        url="http://x",
        token="t",
        started=0.0,
        pid=22,
        supervisor=11,
        dir=tmp_path,
        history=tmp_path,
    )
    report = EndReport()
    down.end_gateway(report, room, lambda _: None)

    assert killed == [(11, signal.SIGTERM)]
    assert report.ended == ["gateway at http://x"]
    assert [*map(str, report.stubborn)] == ["11", "22"]


@pytest.mark.parametrize(
    ("stubborn", "foreign", "is_kept"), [(False, False, False), (True, False, True), (False, True, True)]
)
def test_a_room_is_ended_in_order_and_its_conversations_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubborn: bool, foreign: bool, is_kept: bool
) -> None:
    """The second look finds what a CLI began with its last words."""
    did: list[object] = []
    one = Process(7, "1", "cat")

    def noted(asked: object, found: Process) -> set[Process]:
        did.append(asked)
        return {found}

    panes: Any = SimpleNamespace(
        id="$1",
        name="csp",
        form=default_form(Size(cols=80, rows=24)),
        pids=lambda: [7],
        kill=lambda: did.append("panes"),
    )
    run = save_run(tmp_path, "ann", 1 << 22, {"CSP_PANES": room_key(tmp_path, "default")})
    runs = ([run], [save_run(tmp_path, "guest", 1 << 22, {})] if foreign else [])
    monkeypatch.setattr(down, "sidecars_of", lambda *_: runs)
    monkeypatch.setattr(down, "conversations_of", lambda *_: {})
    monkeypatch.setattr(down, "save_conversations", lambda path, new: did.append(path))
    monkeypatch.setattr(down, "matching", lambda words: noted(words, Process(8, "1", "brain")))
    monkeypatch.setattr(down, "family", lambda pids: noted(pids, one))
    monkeypatch.setattr(down, "end", lambda processes: processes if stubborn else set())
    removed: list[bool] = []
    monkeypatch.setattr(down, "remove_files", lambda *_, keep_folder: removed.append(keep_folder))
    report = end_room(tmp_path, "default", tmp_path / "h", lambda _: None, panes)

    kept = tmp_path / "h" / "agents.json"
    assert did == [kept, f"brain({run.folder!r})", [8, 7], "panes", kept]
    assert (report.ended, report.stubborn) == (["tmux session csp"], [one] if stubborn else [])
    assert removed == [is_kept]
    assert report.left == (["guest runs in its own terminal and is not ended"] if foreign else [])


def files_of(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def room_files(state: Path) -> None:
    for name in ("default.json", "default.lineup", "default.up.lock", "defaults.json", "other.lineup"):
        (state / name).write_text("{}")
    for name in ("ann", "guest"):
        folder = agents_dir(state, "default")
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.token").write_text("t")


def test_what_a_room_left_is_removed_and_nothing_of_others(tmp_path: Path) -> None:
    room_files(tmp_path)
    run = save_run(tmp_path, "ann", 1 << 22, {})
    down.remove_files(RoomProcesses(tmp_path, "default"), [run], keep_folder=False)

    assert files_of(tmp_path) == ["defaults.json", "other.lineup"]


def test_while_somebody_stays_the_room_keeps_its_address(tmp_path: Path) -> None:
    room_files(tmp_path)
    run = save_run(tmp_path, "ann", 1 << 22, {})
    save_run(tmp_path, "guest", os.getpid(), {})
    down.remove_files(RoomProcesses(tmp_path, "default"), [run], keep_folder=True)

    assert files_of(tmp_path) == [
        *("default.agents/guest.token", "default.agents/guest/run.json"),
        *("default.json", "defaults.json", "other.lineup"),
    ]


def test_the_records_of_terminals_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "terminals"
    folder.mkdir()
    for name in ("tty-dev-null.json", "tty-dev-pts-99999.json", "other"):
        (folder / name).write_text("")
    down.forget_terminals(folder)

    assert sorted(path.name for path in folder.iterdir()) == ["other", "tty-dev-null.json"]


def test_a_history_is_removed_whole(tmp_path: Path) -> None:
    history = tmp_path / "history"
    assert purge(history, {}) == []
    (history / "files").mkdir(parents=True)
    (history / "journal.jsonl").write_text("x")
    (history / "link").symlink_to(tmp_path)

    assert purge(history, dict(os.environ)) == []
    assert not history.exists()
    assert tmp_path.exists()


def test_what_would_not_end_is_named() -> None:
    process = subprocess.Popen([sys.executable, "-c", SLEEP])
    try:
        report = EndReport(stubborn=sorted(family([process.pid])))
        with pytest.raises(Refused, match=rf"would not end: {process.pid} \("):
            check_ended(report)
    finally:
        process.kill()
        process.wait()

    check_ended(report)
