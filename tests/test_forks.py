"""Commands that are forked run as if Python had been started for them."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forks
from tests.forks import Forked, run
from tests.waiting import wait_until_sync


def environment(home: Path, **more: str) -> dict[str, str]:
    history = {"CSP_HISTORY_DIR": str(home / "history")}
    return {"HOME": str(home), "PATH": os.environ["PATH"], **history, **more}


def gateway(home: Path) -> Forked:
    """Start a gateway, which lasts until it is told to end; return when it can be told."""
    place = Forked(["gateway", "--port", "0"], home, environment(home))
    wait_until_sync(lambda: list((home / ".cache/csp").glob("*.json")) or place.poll() is not None, 90)
    assert place.poll() is None, place.communicate()
    return place


@pytest.mark.parametrize("argv", [["--version"], ["config", "--json"], ["no-such-verb"], ["send"]])
def test_a_command_says_and_returns_what_it_does_when_python_runs_it(tmp_path: Path, argv: list[str]) -> None:
    env = environment(tmp_path, CSP_PORT="4321", COLUMNS="70")
    forked = run(argv, tmp_path, env)
    root = {"PYTHONPATH": str(Path(forks.__file__).parents[1])}
    started = subprocess.run(
        [sys.executable, "-m", "csp.cli", *argv],
        cwd=tmp_path,
        env=env | root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


def test_a_command_has_its_own_directory_and_environment_alone(tmp_path: Path) -> None:
    (tmp_path / "csp.toml").write_text("[room]\nport = 4321\n")
    here = run(["config", "--json"], tmp_path, environment(tmp_path, CSP_ROOM="den"))
    (tmp_path / "other").mkdir()
    there = run(["config", "--json"], tmp_path / "other", environment(tmp_path))

    def setting(done: "subprocess.CompletedProcess[str]", name: str) -> object:
        return next(row["value"] for row in json.loads(done.stdout) if row["name"] == name)

    assert [setting(here, name) for name in ("CSP_PORT", "CSP_ROOM")] == ["4321", "den"]
    assert setting(there, "CSP_PORT") != "4321" and setting(there, "CSP_ROOM") != "den"


def test_a_running_command_has_no_code_and_ends_by_a_signal(tmp_path: Path) -> None:
    with gateway(tmp_path) as process:
        assert process.poll() is None and process.returncode is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.0)
        process.terminate()

        assert process.wait(90) == 0
        assert process.poll() == process.returncode == 0
        # Nobody else is hit by a signal that comes too late.
        process.kill()


def test_a_killed_command_tells_the_signal(tmp_path: Path) -> None:
    with gateway(tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)

        assert process.wait(90) == -signal.SIGKILL


def test_leaving_it_ends_it_with_its_streams(tmp_path: Path) -> None:
    with gateway(tmp_path) as process:
        pass

    assert process.returncode == -signal.SIGKILL
    streams = (process.stdin, process.stdout, process.stderr)
    assert all(stream is not None and stream.closed for stream in streams)
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_one_that_does_not_end_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with gateway(tmp_path) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.05)
        process.terminate()
        out, err = process.communicate(timeout=90)

    assert process.returncode == 0
    assert "listening" in out + err or "gateway" in out + err


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Forked] = []

    class Noted(Forked):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]  # passed on as they came
            begun.append(self)

    monkeypatch.setattr(forks, "Forked", Noted)
    with pytest.raises(subprocess.TimeoutExpired):
        run(["gateway", "--port", "0"], tmp_path, environment(tmp_path), timeout_s=0.05)

    assert begun[0].wait(90) == -signal.SIGKILL


def test_much_is_written_and_read_without_a_deadlock(tmp_path: Path) -> None:
    done = run(["send", "claude", "-"], tmp_path, environment(tmp_path), stdin="é" * 3_000_000)

    assert done.returncode != 0 and done.stdout == ""
    assert done.stderr.startswith("csp: ")


def test_several_run_at_once(tmp_path: Path) -> None:
    processes = [Forked(["--version"], tmp_path, environment(tmp_path)) for _ in range(5)]
    said = {process.communicate(timeout=90) for process in processes}

    assert len({process.pid for process in processes}) == 5
    assert len(said) == 1 and [process.wait() for process in processes] == [0] * 5


def test_a_leader_has_the_terminal_that_it_is_given(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        process = Forked(
            ["gateway", "--port", "0"],
            tmp_path,
            environment(tmp_path),
            stdin=theirs,
            output=theirs,
            is_leader=True,
        )
        os.close(theirs)
        with process:
            wait_until_sync(lambda: list((tmp_path / ".cache/csp").glob("*.json")), 90, "the gateway")
            assert os.getsid(process.pid) == process.pid
            assert (process.stdin, process.stdout, process.stderr) == (None, None, None)
            # Ctrl-C in its own terminal, which is nobody else's.
            os.write(ours, b"\x03")

            assert process.wait(90) in (0, 130, -signal.SIGINT)
    finally:
        os.close(ours)


def test_no_descriptor_of_ours_stays_open(tmp_path: Path) -> None:
    run(["--version"], tmp_path, environment(tmp_path))
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run(["--version"], tmp_path, environment(tmp_path))

    assert len(set(os.listdir("/proc/self/fd"))) <= len(before)


def test_a_caller_that_gives_up_does_not_end_the_process_that_forks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(["--version"], tmp_path, environment(tmp_path))
    forker, _ = forks._forker()
    with monkeypatch.context() as patched:
        patched.setattr(
            forks, "_ask_for", lambda request, fds: asked.append((request, list(map(os.dup, fds))))
        )
        patched.setattr(Forked, "_read_status", lambda place, timeout_s: "1")
        asked: list[tuple[bytes, list[int]]] = []
        gone = Forked(["--version"], tmp_path, environment(tmp_path))
    for end in (gone._status, gone.stdin, gone.stdout, gone.stderr):
        assert end is not None
        end.close()
    for request, fds in asked:
        socket.send_fds(forker, [request], fds)
        for fd in fds:
            os.close(fd)

    assert run(["--version"], tmp_path, environment(tmp_path)).returncode == 0
