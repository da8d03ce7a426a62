"""Run the test command of a run, for so long, with so much of its output kept."""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from csp.wire import TestResult

MAX_OUTPUT_CHARS: Final = 16_000
_CHUNK: Final = 65_536
#: Whoever runs tests for a run does not speak for the room.
_SECRETS: Final = ("CSP_AUTH_TOKEN", "CSP_AGENT")


async def run_tests(command: str, dir: Path, timeout_s: float, env: Mapping[str, str]) -> TestResult:
    """Return what `command` came to in `dir`; whatever it has started ends with it."""
    began = time.monotonic()
    clean = {
        name: value for name, value in env.items() if not name.startswith("GIT_") and name not in _SECRETS
    }
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            command,
            cwd=dir,
            env=clean,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        return TestResult(command=command, passed=False, output=f"cannot be run: {exc}")
    output, is_over = bytearray(), False
    try:
        async with asyncio.timeout(timeout_s):
            await _read(process, output)
            await process.wait()
            is_over = True
    except TimeoutError:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    code = process.returncode if is_over else None
    return TestResult(
        command=command,
        passed=code == 0,
        code=code,
        seconds=round(time.monotonic() - began, 3),
        output=_tail(output),
        timed_out=not is_over,
    )


async def _read(process: asyncio.subprocess.Process, output: bytearray) -> None:
    assert process.stdout is not None
    while chunk := await process.stdout.read(_CHUNK):
        output += chunk
        # Of a flood only the end is of use, which is where the failures are summed up.
        del output[: -4 * MAX_OUTPUT_CHARS]


def _tail(output: bytearray) -> str:
    return output.decode(errors="replace")[-MAX_OUTPUT_CHARS:]
