"""Start API models as agents when an HTTP client requests it.

The gateway knows nothing about panes, so it runs `csp add`.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from csp.config import process_environment
from csp.errors import BadInput, Broken, CspError, Refused, TooMany
from csp.fast_start.child_environment import CONNECTOR, child_environment
from csp.fast_start.failure_report import FailurePipe
from csp.model_providers import variables_of
from csp.protocol.enums import JoinRole
from csp.protocol.requests import StartBody
from csp.protocol.responses import StartedView

#: `csp add` waits up to a minute for the agent, after waiting for a lock that another command may hold.
PATIENCE_S: Final = 90.0
#: Agents are started one after the other, so more requests would only wait.
_MOST: Final = 8
_KEPT: Final = 100
_CSP: Final = (sys.executable, "-P", "-m", "csp.cli")
_MISUSED: Final = 2


class AgentLauncher:
    """Starts API models as agents in one room."""

    def __init__(self, room: str) -> None:
        self._room = room
        self._under_way = 0
        #: Calls with an id: those in progress and the latest finished ones.
        self._calls: dict[tuple[str, str], asyncio.Task[StartedView]] = {}

    def find(self, caller: str, key: str) -> "asyncio.Task[StartedView] | None":
        """Return the earlier call with this key, which may still be running."""
        return self._calls.get((caller, key))

    async def start_once(
        self, caller: str, key: str, body: StartBody, note: Callable[[str], Awaitable[object]]
    ) -> StartedView:
        """Start a model at most once per key; `note` records the call beforehand and its agent afterwards."""

        async def run() -> StartedView:
            # Recorded before the start, so that a restarted gateway does not start a second agent.
            await note("")
            started = await self.start(body)
            await note(started.agent_id)
            return started

        task = asyncio.create_task(run())
        self._calls[caller, key] = task
        if len(self._calls) > _KEPT:
            del self._calls[next(iter(self._calls))]
        return await asyncio.shield(task)

    async def start(self, body: StartBody, patience_s: float = PATIENCE_S) -> StartedView:
        """Start an agent and return it once it has joined; raise if it does not."""
        if self._under_way >= _MOST:
            raise TooMany(f"{_MOST} agents are being started", "try again in a moment")
        argv, keys = start_argv(body, self._room), variables_of(body.provider, body.key_env)
        self._under_way += 1
        try:
            code, out, (message, hint) = await _run(argv, keys, patience_s)
        finally:
            self._under_way -= 1
        found: dict[str, Any] = {}
        with suppress(ValueError):
            told = json.loads(out)
            found = told if isinstance(told, dict) else {}
        if code or found.get("problem"):
            raise failure(code, str(found.get("problem") or message), hint)
        return StartedView(success=True, agent_id=str(found["agent"]), state=str(found["state"]))


def start_argv(body: StartBody, room: str) -> list[str]:
    """Return the command line, in which no value can be mistaken for an option."""
    if body.name.startswith("-"):
        raise BadInput(f"name {body.name!r} begins with a dash", "choose a name such as claude-api")
    given = [(name, getattr(body, name)) for name in ("provider", "model", "base_url", "key_env")]
    words = [f"--{name.replace('_', '-')}={value}" for name, value in given if value]
    words += [f"--role={body.role}"] if body.role is not JoinRole.AGENT else []
    return [*_CSP, "add", body.name, f"--room={room}", "--json", "--number", *words]


async def _run(argv: list[str], keys: tuple[str, ...], patience_s: float) -> tuple[int, str, tuple[str, str]]:
    """Run the command; return its exit code, its output, and the message and hint if it failed."""
    # Use the room's own command, however the gateway was started.
    rest = {name: value for name, value in process_environment().items() if name != "CSP_ROOM"}
    with FailurePipe() as pipe:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=child_environment(CONNECTOR, rest, pipe.variables, keys=keys),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=(pipe.fd,),
        )
        try:
            async with asyncio.timeout(patience_s):
                out, _ = await process.communicate()
        except TimeoutError:
            raise Refused(f"it has not joined within {patience_s:g} s", "see: csp logs") from None
        finally:
            # The caller may have disconnected. A command that nobody waits for is interrupted as by Ctrl-C.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
        return process.returncode or 0, out.decode(errors="replace"), pipe.read()


def failure(code: int, message: str, hint: str) -> CspError:
    """Return the error for a failed command."""
    if not message:
        return Broken("the agent could not be started", "see the gateway's log")
    kind = BadInput if code == _MISUSED else Refused
    return kind(message, hint or "see: csp logs")
