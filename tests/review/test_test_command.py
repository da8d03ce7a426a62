"""The test command of a run, with all that it may do."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from csp.review.test_command import MAX_OUTPUT_CHARS, run_tests
from tests.waiting import wait_until

ENV = {"PATH": "/usr/bin:/bin", "CSP_AUTH_TOKEN": "s3cr3t", "GIT_DIR": "/nowhere"}


@pytest.mark.parametrize(
    ("command", "code", "output"), [("echo hi", 0, "hi\n"), ("echo no >&2; exit 3", 3, "no\n")]
)
async def test_code_and_output_are_kept(tmp_path: Path, command: str, code: int, output: str) -> None:
    result = await run_tests(command, tmp_path, 60, ENV)

    assert (result.code, result.passed, result.output) == (code, code == 0, output)


async def test_command_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    for timeout_s in (0.5, 5, 50):
        result = await run_tests("echo begun; sleep 600 & sleep 600; echo never", tmp_path, timeout_s, ENV)
        if result.output:
            # On a busy machine a shell may take longer to begin.
            break

    assert (result.timed_out, result.passed, result.code) == (True, False, None)
    assert result.output == "begun\n" and result.seconds >= timeout_s
    assert strays(tmp_path) == []


async def test_flood_leaves_its_end(tmp_path: Path) -> None:
    result = await run_tests("yes | head -c 3000000; echo; echo the end", tmp_path, 60, ENV)

    assert len(result.output) == MAX_OUTPUT_CHARS and result.output.endswith("the end\n")


async def test_command_knows_no_secret_of_the_room(tmp_path: Path) -> None:
    result = await run_tests("env", tmp_path, 60, ENV)

    assert "s3cr3t" not in result.output and "GIT_DIR" not in result.output


async def test_place_that_is_gone_is_a_failed_test(tmp_path: Path) -> None:
    result = await run_tests("true", tmp_path / "gone", 60, ENV)

    assert not result.passed and "cannot be run" in result.output


@pytest.mark.parametrize(
    "way", ["setsid sleep 100 &", "sleep 100 &", "(setsid sleep 100 > /dev/null 2>&1 &)"]
)
async def test_daemon_neither_holds_the_tests_up_nor_outlives_them(tmp_path: Path, way: str) -> None:
    result = await run_tests(f"{way}\necho done", tmp_path, 60, ENV)

    assert (result.code, result.timed_out) == (0, False)
    assert result.output.endswith("done\n")
    assert strays(tmp_path) == []


async def test_what_a_killed_gateway_left_running_is_ended_first(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "CSP_TEST_PLACE": str(tmp_path)}
    left = subprocess.Popen(["sleep", "600"], env=env)
    result = await run_tests(f"grep State: /proc/{left.pid}/status", tmp_path, 60, ENV)

    assert left.wait(60) == -signal.SIGKILL
    # Nobody has waited for it yet, so the tests saw what is left of a dead process.
    assert "Z (zombie)" in result.output


async def test_command_that_is_not_there_says_so(tmp_path: Path) -> None:
    result = await run_tests("no-such-command", tmp_path, 60, ENV)

    assert (result.code, result.passed, "not found" in result.output) == (127, False, True)


async def test_tests_leave_no_bytecode(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    result = await run_tests(f"{sys.executable} -c 'import a'", tmp_path, 60, ENV)

    assert result.passed and [path.name for path in tmp_path.iterdir()] == ["a.py"]


def strays(place: Path) -> list[str]:
    mark = f"CSP_TEST_PLACE={place}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                found.append(folder.name)
    return found


async def test_a_command_has_the_rest_of_the_environment_and_no_input(tmp_path: Path) -> None:
    env = {**ENV, "COLOUR": "red", "CSP_AGENT": "ada", "PYTHONDONTWRITEBYTECODE": ""}
    result = await run_tests("env; cat; pwd", tmp_path, 60, env)
    said = result.output.splitlines()

    assert {"COLOUR=red", f"CSP_TEST_PLACE={tmp_path}", "PYTHONDONTWRITEBYTECODE="} <= set(said)
    assert "ada" not in result.output and said[-1] == str(tmp_path)
    assert (result.command, result.passed) == ("env; cat; pwd", True)


@pytest.mark.parametrize(
    "way",
    [
        "CSP_TEST_PLACE=elsewhere setsid {sleep} &",
        "env -i /usr/bin/setsid {sleep} &",
        "(env -i /usr/bin/setsid /bin/sh -c 'trap \"\" HUP TERM; {sleep} & wait' >/dev/null 2>&1 &)",
    ],
)
async def test_daemon_that_hides_is_found_and_ended(tmp_path: Path, way: str) -> None:
    # No other test sleeps for as long.
    span = str(100_000 + os.getpid())
    command = way.format(sleep=f"/bin/sleep {span}")
    result = await run_tests(f"{command}\necho done", tmp_path, 60, ENV)

    assert (result.output, result.passed, result.timed_out) == ("done\n", True, False)
    assert sleepers(span) == []


def sleepers(span: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes() == f"/bin/sleep\0{span}\0".encode():
                found.append(folder.name)
    return found


async def test_output_that_somebody_keeps_open_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.review.test_command.DRAIN_S", 0.05)
    # It is started by nobody below the command, so it is not found; it ends with this test.
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    hold = f"read pid < {fifo}; exec > /proc/$pid/fd/1; touch {tmp_path / 'held'}; exec sleep 600"
    helper = subprocess.Popen(["sh", "-c", hold])
    # In a shell of its own, because the output of the first must not be the pipe while it is looked at.
    result = await run_tests(
        f"(echo $$ > {fifo}); until [ -e held ]; do :; done; echo done", tmp_path, 60, ENV
    )
    helper.kill()
    helper.wait()

    assert (result.output, result.passed, result.timed_out) == ("done\n", True, False)


async def test_what_runs_ends_when_its_gateway_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, pathlib, sys; from csp.review.test_command import run_tests\n"
        "command = 'env -i /usr/bin/setsid /bin/sleep 600 & echo $! > pid; sleep 600'\n"
        "asyncio.run(run_tests(command, pathlib.Path(sys.argv[1]), 600, {'PATH': '/usr/bin:/bin'}))"
    )
    gateway = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    await wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), what="a start")
    gateway.kill()
    gateway.wait()
    pid = (tmp_path / "pid").read_text().strip()

    await wait_until(lambda: not Path(f"/proc/{pid}").exists(), what="the end of what it started")


async def test_commands_have_limits_that_a_command_may_raise(tmp_path: Path) -> None:
    result = await run_tests("ulimit -S -c; ulimit -S -f; ulimit -S -d; ulimit -H -d", tmp_path, 60, ENV)
    core, file, memory, most = result.output.split()

    assert (core, file) == ("0", str((4 << 30) // 512))
    assert int(memory) >= 2 << 20 and most == "unlimited"


async def test_file_that_grows_too_long_ends_the_command(tmp_path: Path) -> None:
    grow = f"import os; os.truncate({str(tmp_path / 'long')!r}, 5 << 30)"
    (tmp_path / "long").touch()
    result = await run_tests(f'{sys.executable} -c "{grow}"', tmp_path, 60, ENV)

    assert not result.passed and (tmp_path / "long").stat().st_size == 0


async def test_process_that_takes_all_memory_ends_alone(tmp_path: Path) -> None:
    take = "import mmap; mmap.mmap(-1, 1 << 45, flags=mmap.MAP_PRIVATE | mmap.MAP_NORESERVE)"
    result = await run_tests(f'{sys.executable} -c "{take}" && echo never; echo after', tmp_path, 60, ENV)

    assert result.passed and "never" not in result.output and result.output.endswith("after\n")


async def test_signal_that_ended_the_command_is_its_code(tmp_path: Path) -> None:
    assert (await run_tests("kill -TERM $$", tmp_path, 60, ENV)).code == -signal.SIGTERM


async def test_command_does_not_know_the_token_by_any_name(tmp_path: Path) -> None:
    env = {**ENV, "HEADER": "X-Auth-Token: the-rooms-token", "OTHER": "the-rooms-token"}
    result = await run_tests("env", tmp_path, 60, env, ("the-rooms-token",))

    assert "the-rooms-token" not in result.output


async def test_bytes_that_are_no_text_are_kept_as_marks(tmp_path: Path) -> None:
    result = await run_tests(r"printf 'a\377b'", tmp_path, 60, ENV)

    assert result.output == "a\ufffdb"


@pytest.mark.parametrize("command", ["echo hi", "setsid sleep 100 &", "no-such-program"])
async def test_no_pipe_stays_open(tmp_path: Path, command: str) -> None:
    await run_tests("true", tmp_path, 60, ENV)
    before = len(os.listdir("/proc/self/fd"))
    await run_tests(command, tmp_path, 60, ENV)
    await run_tests(command, tmp_path / "gone", 60, ENV)

    await wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before, what="closed files")


async def test_of_a_flood_little_is_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.review.test_command._tail", lambda output: str(len(output)))
    result = await run_tests("yes | head -c 3000000", tmp_path, 60, ENV)

    assert 0 < int(result.output) <= 4 * MAX_OUTPUT_CHARS
