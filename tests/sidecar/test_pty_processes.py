"""How the child, the brain and the relay are started: what they inherit, and what they do not."""

import errno
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from csp.sidecar.relay.pty_processes import start_brain, start_child

SH: Final = "/bin/sh"
WITHIN_S: Final = 60.0
ENV: Final = {"PATH": os.defpath}


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def children() -> set[str]:
    """Return the processes that are ours; other tests may have left some that they share."""
    lists = Path("/proc/self/task").glob("*/children")
    return {pid for one in lists for pid in one.read_text().split()}


def read_all(fd: int) -> str:
    """Return what comes from a descriptor until its other end is closed."""
    parts = []
    while select.select([fd], [], [], WITHIN_S)[0]:
        try:
            part = os.read(fd, 1 << 16)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(fd)
    return b"".join(parts).decode().replace("\r\n", "\n")


def child_says(script: str, env: dict[str, str] | None = None, cwd: str = "/", **options: Any) -> str:
    pid, master = start_child([SH, "-c", script], env or ENV, cwd, 30, 90, **options)
    assert not os.get_blocking(master)
    said = read_all(master)
    os.waitpid(pid, 0)
    return said


@contextmanager
def more_files() -> Iterator[set[str]]:
    """Have files open that a program would inherit, with low numbers and with a high one."""
    fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(12)]
    fds.append(fcntl.fcntl(fds[0], fcntl.F_DUPFD, 200))
    for fd in fds:
        os.set_inheritable(fd, True)
    # A shell that lists its files has one of the lowest numbers for the folder.
    yield {str(fd) for fd in fds if fd > 4}
    for fd in fds:
        os.close(fd)


@contextmanager
def blocked_signal(number: int) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- the child -----------------------------------------------------------------------------------


def test_a_child_has_a_terminal_of_that_size_its_folder_and_its_environment(tmp_path: Path) -> None:
    said = child_says('pwd; echo "$A"; stty size; tty', {**ENV, "A": "b c"}, str(tmp_path))
    folder, variable, size, terminal = said.splitlines()

    assert (folder, variable, size) == (str(tmp_path), "b c", "30 90")
    assert terminal.startswith("/dev/pts/")


def test_a_child_inherits_neither_files_nor_signals() -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with more_files() as ours, blocked_signal(signal.SIGUSR2):
            files = child_says("cd /proc/$$/fd; echo *")
            # A shell would unblock signals by itself.
            grep = [str(shutil.which("grep")), "-E", "Sig(Blk|Ign)", "/proc/self/status"]
            pid, master = start_child(grep, ENV, "/", 24, 80)
            masks = read_all(master)
            os.waitpid(pid, 0)
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)

    assert set(files.split()) & ours == set()
    assert [int(mask.split()[1], 16) for mask in masks.splitlines()] == [0, 0]


@pytest.mark.parametrize("is_fd", [True, False])
def test_a_child_has_the_settings_of_the_persons_terminal(is_fd: bool) -> None:
    master, slave = os.openpty()
    subprocess.run(["stty", "erase", "^H", "-onlcr"], stdin=slave, check=True)
    said = child_says("stty -a", like=slave if is_fd else termios.tcgetattr(slave))
    os.close(master)
    os.close(slave)

    assert "erase = ^H" in said
    assert "-onlcr" in said


def test_what_is_no_terminal_has_no_settings_to_be_taken_over(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert child_says("echo here", like=file.fileno()) == "here\n"


@pytest.mark.parametrize(
    ("argv", "cwd", "name"), [(["/none/such"], "/", "/none/such"), ([SH], "/none", "/none")]
)
def test_a_child_that_cannot_be_started_leaves_nothing_behind(argv: list[str], cwd: str, name: str) -> None:
    before, others = open_files(), children()
    with pytest.raises(FileNotFoundError) as failure:
        start_child(argv, ENV, cwd, 24, 80)

    assert (failure.value.errno, failure.value.filename) == (errno.ENOENT, name)
    assert open_files() == before
    assert children() == others


# --- the brain -----------------------------------------------------------------------------------


def test_a_brain_has_its_socket_a_log_and_a_session_of_its_own(tmp_path: Path) -> None:
    log = tmp_path / "brain.log"
    log.write_text("before\n")
    script = "echo out; echo err >&2; cat; cut -d' ' -f1,6 /proc/$$/stat >&3; cd /proc/$$/fd; echo * >&3"
    with more_files() as others:
        pid, ours = start_brain([SH, "-c", script], str(log))
        assert not os.get_blocking(ours)
        said = read_all(ours)
    os.waitpid(pid, 0)
    numbers, files = said.splitlines()

    assert numbers.split() == [str(pid), str(pid)]
    assert set(files.split()) & others == set()
    assert log.read_text() == "before\nout\nerr\n"


def test_the_log_of_a_brain_is_private_and_its_environment_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSP_TEST", "known")
    log = tmp_path / "brain.log"
    pid, ours = start_brain([SH, "-c", 'echo "$CSP_TEST"'], str(log))
    read_all(ours)
    os.waitpid(pid, 0)

    assert log.read_text() == "known\n"
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("program", "log"), [("/none/such", os.devnull), (SH, "/none/such.log")])
def test_a_brain_that_cannot_be_started_leaves_nothing_behind(program: str, log: str) -> None:
    before, others = open_files(), children()
    with pytest.raises(FileNotFoundError, match="such"):
        start_brain([program], log)

    assert open_files() == before
    assert children() == others


# --- the relay -----------------------------------------------------------------------------------

HAND_OVER: Final = """
import json, os, sys
from csp.sidecar.relay import pty_processes
state = sys.argv[1]
os.dup2(0, 100)
fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]
plan = pty_processes.SpawnPlan(
    child=7, master=fds[0], argv=["a"], env={"A": "b" * 100_000}, cwd="/", brain_argv=["b"], state=state,
    life=fds[1],
)
def become(path, argv, env):
    facts = {"argv": argv[1:], "env": env, "left": os.listdir(state), "mode": os.stat(state).st_mode & 0o777}
    facts["kept"] = [os.get_inheritable(fd) for fd in (3, plan.master, plan.life)]
    got = pty_processes.read_plan()
    facts["plan"] = {**vars(got), "env": len(got.env["A"])}
    listed = os.listdir("/proc/self/fd")
    facts["open"] = [int(fd) for fd in listed if os.path.exists(f"/proc/self/fd/{fd}")]
    facts["inherited"] = [os.get_inheritable(fd) for fd in (got.master, got.life)]
    facts["blocking"] = [os.get_blocking(fd) for fd in (got.master, got.life)]
    print(json.dumps(facts), flush=True)
    os._exit(0)
os.execve = become
pty_processes.exec_relay(plan, {"C": "d"}, "csp-sidecar-ada")
"""


def test_a_relay_is_handed_its_plan_and_nothing_else(tmp_path: Path) -> None:
    state = tmp_path / "state"
    run = subprocess.run(
        [sys.executable, "-c", HAND_OVER, state], capture_output=True, text=True, check=True, umask=0
    )
    facts = json.loads(run.stdout)
    plan = facts["plan"]

    assert facts["argv"][:2] == ["-I", "-S"]
    assert Path(facts["argv"][2]).name == "relay.py"
    assert facts["argv"][3:] == ["csp-sidecar-ada"]
    assert facts["env"] == {"C": "d"}
    assert (facts["left"], facts["mode"], facts["kept"]) == ([], 0o700, [True, True, True])
    assert facts["inherited"] == facts["blocking"] == [False, False]
    assert (plan["child"], plan["env"]) == (7, 100_000)
    assert (plan["argv"], plan["brain_argv"], plan["log"]) == (["a"], ["b"], os.devnull)
    assert min(plan["master"], plan["life"]) > 3
    assert set(facts["open"]) == {0, 1, 2, plan["master"], plan["life"]}
