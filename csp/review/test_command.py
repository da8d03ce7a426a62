"""Run the test command of a run, for so long, with so much of its output kept."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from csp.fast_start.child_environment import USER, child_environment, without_git
from csp.protocol.review_messages import TestResult

MAX_OUTPUT_CHARS: Final = 16_000
#: For so long what was written before the end is still read, should somebody keep the pipe open.
DRAIN_S: Final = 1.0
#: For so long the end of all that a command has started is waited for.
END_S: Final = 30.0
_CHUNK: Final = 65_536
#: Runs the command with limits, and ends what it leaves behind.
_CONFINED: Final = Path(__file__).with_name("confined_command.py")
#: Whatever a command has started carries it, also what has left its process group.
_MARK: Final = "CSP_TEST_PLACE"
_LOOKS: Final = 100
_PAUSE_S: Final = 0.02
#: Bytecode that the tests leave behind would be in the next diff.
_CLEAN: Final = {"PYTHONDONTWRITEBYTECODE": "1"}


async def run_tests(
    command: str, dir: Path, timeout_s: float, env: Mapping[str, str], secrets: Collection[str] = ()
) -> TestResult:
    """Return what `command` came to in `dir`; whatever it has started ends with it.

    It has the user's environment but for what is ours; `secrets` are values that it must not have either.
    """
    began = time.monotonic()
    mark = f"{_MARK}={os.path.realpath(dir)}"
    # A gateway that was killed has left its tests running.
    await asyncio.to_thread(_end_strays, mark)
    name, _, place = mark.partition("=")
    own = child_environment(USER, {**_CLEAN, **without_git(env)}, {name: place}, secrets=secrets)
    (ours, theirs), (life, held) = os.pipe(), os.pipe()
    try:
        process = await _start(command, dir, own, theirs, life)
    except (OSError, ValueError) as exc:
        os.close(ours)
        os.close(held)
        return TestResult(command=command, passed=False, output=f"cannot be run: {exc}")
    finally:
        os.close(theirs)
        os.close(life)
    output, is_over = bytearray(), False
    reading = asyncio.ensure_future(_read(ours, output))
    try:
        async with asyncio.timeout(timeout_s):
            await process.wait()
            is_over = True
    except TimeoutError:
        pass
    finally:
        os.close(held)
        await _end(process)
        await asyncio.to_thread(_end_strays, mark)
        await asyncio.wait([reading], timeout=DRAIN_S)
        reading.cancel()
    code = process.returncode if is_over else None
    return TestResult(
        command=command,
        passed=code == 0,
        code=code,
        seconds=round(time.monotonic() - began, 3),
        output=_tail(output),
        timed_out=not is_over,
    )


async def _start(
    command: str, dir: Path, env: dict[str, str], output: int, life: int
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_CONFINED), str(life), command),
        cwd=dir,
        env=child_environment(USER, env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=asyncio.subprocess.STDOUT,
        pass_fds=(life,),
        start_new_session=True,
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    """Wait until all that the command has started is gone; it was told to end."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            await process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _end_strays(mark: str) -> None:
    """Kill every process of ours that carries the mark; where there is no /proc, none is found.

    One that is killed may have started another while we looked, so it is looked again until there is none.
    """
    for _ in range(_LOOKS):
        found = _carriers(os.fsencode(mark))
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _carriers(mark: bytes) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


async def _read(pipe: int, output: bytearray) -> None:
    # A pipe of our own: asyncio takes a process for alive while somebody else holds one of its pipes.
    loop, stream = asyncio.get_running_loop(), asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(pipe, "rb", buffering=0)
    )
    try:
        while chunk := await stream.read(_CHUNK):
            output += chunk
            # Of a flood only the end is of use, which is where the failures are summed up.
            del output[: -4 * MAX_OUTPUT_CHARS]
    finally:
        transport.close()


def _tail(output: bytearray) -> str:
    return output.decode(errors="replace")[-MAX_OUTPUT_CHARS:]
