"""Run an API model as an agent in the room."""

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from csp.cli.arguments import ROLES, SECONDS, takes, value
from csp.cli.logging_setup import log_to
from csp.cli.output import is_terminal
from csp.cli.sidecar import DUTY, PROMPT_FILE, text_of
from csp.cli.verb_call import VerbCall
from csp.config import process_environment
from csp.errors import Broken
from csp.fast_start.child_environment import CONNECTOR, MADE, child_environment, identity
from csp.fast_start.room_files import agents_dir
from csp.model_providers import PROVIDERS, variables_of

if TYPE_CHECKING:
    from csp.agents.api.agent_program import AgentProgram, AgentStay
    from csp.agents.api.providers import Model

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The name under which `csp logs` looks for the log.
_LOG: Final = "brain.log"


@takes(
    value("--name", "N", "name of the agent in the room", required=True),
    value("--provider", "P", " or ".join((", ".join([*PROVIDERS][:-1]), [*PROVIDERS][-1])), required=True),
    value("--model", "M", "the model's name at its provider", required=True),
    value("--base-url", "URL", "address of the API; default: the provider's own"),
    value("--key-env", "NAME", "environment variable with the key; default: the provider's own"),
    value("--role", "R", "agent or orchestrator", choices=ROLES, default="agent"),
    DUTY,
    PROMPT_FILE,
    value(
        "--timeout",
        "S",
        "time limit for a reply including retries, in seconds; default: 300",
        type=SECONDS,
        default=300.0,
    ),
    examples=("csp agent --provider anthropic --model claude-sonnet-5 --name claude-api",),
)
def agent(call: VerbCall) -> int:
    """Join the room with a model and show its replies in this terminal until it is stopped."""
    from csp.agents.api.agent_program import AgentProgram
    from csp.agents.api.model_pane import ModelPane

    call.check_free_pane("it")
    before = process_environment()
    keys = variables_of(call.args.provider, call.args.key_env)
    clean = child_environment(CONNECTOR, before, {**identity(before), MADE: "1"}, keys=keys)
    if MADE not in before and call.argv:
        # Run the same command again without other providers' keys, because a pane has the user's environment.
        os.execve(sys.executable, [sys.executable, "-P", "-m", "csp.cli", *call.argv], clean)
    stay = stay_of(call)
    pane = ModelPane(_write, has_colour=is_terminal(sys.stdout))
    program = AgentProgram(stay, opened_model(stay), pane)
    with quiet_terminal():
        why = asyncio.run(work(call, program))
    if why:
        raise Broken(f"{program.agent} has left the room: {why}")
    return 0


def stay_of(call: VerbCall) -> "AgentStay":
    """Return the agent's configuration from the options; raise if anything is missing."""
    from csp.agents.api.agent_program import AgentStay
    from csp.agents.api.providers import Target
    from csp.agents.api.requirements import wanted
    from csp.gateway.rules_from_settings import load_rules
    from csp.panes.pane_borders import MARK
    from csp.protocol.enums import JoinRole

    args, address, env = call.args, call.address, process_environment()
    found = wanted(args.provider, args.base_url, args.key_env, env)
    target = Target(
        provider=args.provider,
        model=args.model,
        key=found.key,
        base_url=found.base_url,
        timeout_s=args.timeout,
    )
    rules = load_rules(call.settings)
    return AgentStay(
        name=args.name,
        role=JoinRole(args.role),
        target=target,
        provider=found.provider,
        url=address.url,
        token=address.token,
        room=address.room,
        state_dir=call.settings.state_dir,
        cwd=str(call.cwd),
        prompts=rules.prompts,
        window=rules.window,
        # The record is read by others and needs only the variables that identify the pane.
        env={MARK: env[MARK]} if MARK in env else {},
        duty=args.duty or "",
        prompt=text_of(call, "--prompt-file", args.prompt_file),
    )


def opened_model(stay: "AgentStay") -> "Model":
    """Return the opened model; loading its SDK takes seconds."""
    from csp.agents.api.providers import open_model

    _write(f"loading {stay.provider.extra}...\n")
    try:
        return open_model(stay.provider, stay.target)
    except ImportError as exc:
        raise Broken(f"the package {stay.provider.extra!r} cannot be loaded: {exc}") from exc


async def work(call: VerbCall, program: "AgentProgram") -> str:
    """Join and work until a signal arrives; return the reason if it ended by itself."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    joined = await program.join()
    room = call.address.room
    if room:
        log_to(Path(agents_dir(str(call.settings.state_dir), room)) / joined.agent / _LOG)
    return await program.run(joined, stopped)


def _write(text: str) -> None:
    """Write to the pane without delay; ignore a closed pane."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(text)
        sys.stdout.flush()


@contextlib.contextmanager
def quiet_terminal() -> Iterator[None]:
    """Turn off the echo of typed keys, which would appear in the model's output."""
    if not is_terminal(sys.stdin):
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    quiet = termios.tcgetattr(sys.stdin)
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
