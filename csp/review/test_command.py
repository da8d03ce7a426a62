"""Run a run's test command with a time limit and limited output."""

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
#: How long output is read after the command ends, if a process keeps the pipe open.
DRAIN_S: Final = 1.0
#: How long to wait for all processes of a command to end.
END_S: Final = 30.0
_CHUNK: Final = 65_536
#: The script that runs the command with limits and ends its remaining processes.
_CONFINED: Final = Path(__file__).with_name("confined_command.py")
#: Set in the environment of all of a command's processes, so that even those outside its group can be found.
_MARK: Final = "CSP_TEST_PLACE"
_LOOKS: Final = 100
_PAUSE_S: Final = 0.02
#: Bytecode files from the tests would appear in the next diff.
_CLEAN: Final = {"PYTHONDONTWRITEBYTECODE": "1"}


async def run_tests(
    command: str, dir: Path, timeout_s: float, env: Mapping[str, str], secrets: Collection[str] = ()
) -> TestResult:
    """Run `command` in `dir`, end all its processes, and return its result.

    It runs in the user's environment without our variables and without values that contain any of `secrets`.
    """
    began = time.monotonic()
    place = os.path.realpath(dir)
    # A gateway that was killed may have left its tests running.
    await asyncio.to_thread(_end_strays, place)
    (ours, theirs), (life, held) = os.pipe(), os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_CONFINED), str(life), command),
            cwd=dir,
            env=child_environment(USER, {**_CLEAN, **without_git(env)}, {_MARK: place}, secrets=secrets),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=theirs,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(life,),
            start_new_session=True,
        )
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
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await asyncio.to_thread(_end_strays, place)
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


def _end_strays(place: str) -> None:
    """Kill every process that carries the mark of this directory; without /proc, none can be found.

    A killed process may have started another one in the meantime, so this repeats until there are none.
    """
    mark = os.fsencode(f"{_MARK}={place}")
    for _ in range(_LOOKS):
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


async def _read(pipe: int, output: bytearray) -> None:
    # Use our own pipe: asyncio waits for a process as long as another one has one of its pipes open.
    loop, stream = asyncio.get_running_loop(), asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(pipe, "rb", buffering=0)
    )
    try:
        while chunk := await stream.read(_CHUNK):
            output += chunk
            # Only the end of long output is useful, because it summarises the failures.
            del output[: -4 * MAX_OUTPUT_CHARS]
    finally:
        transport.close()


def _tail(output: bytearray) -> str:
    return output.decode(errors="replace")[-MAX_OUTPUT_CHARS:]
