"""Start a sidecar: the CLI in its own terminal, the brain beside it, the relay in our place.

The CLI should be there as soon as without us, so little is loaded here, nothing is asked of the CLI.
"""

import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from csp.config import Settings
from csp.errors import BadInput, Broken, Forbidden, NotFound, Refused, Unauthenticated
from csp.oneshot import Gateway, field
from csp.rooms import Address, make_private_dir, save_agent_token
from csp.sidecar.guard import open_life
from csp.sidecar.profile import Profile
from csp.sidecar.rules import rules_text
from csp.sidecar.run import Run, agents_dir, left_behind
from csp.sidecar.spawn import Plan, exec_relay, start_brain, start_child
from csp.sidecar.terminal import mend
from csp.sidecar.wiring import Wired, unwire, wire

DEFAULT_SIZE: Final = (24, 80)
#: Our own settings: the CLI is an agent of the room, not its owner.
_OURS: Final = ("CSP_AUTH_TOKEN", "CSP_AGENT", "CSP_GATEWAY_URL", "CSP_ROOM", "CSP_HISTORY_DIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be run, as whom, where."""

    name: str
    role: str
    command: tuple[str, ...]
    profile: Profile
    cwd: Path
    env: Mapping[str, str]
    initial_prompt: str = ""
    allow_shell: bool = False


def launch(order: Order, settings: Settings, address: Address) -> None:
    """Start everything, then become the relay; returns only by an error."""
    path = find_command(order.command[0], order.env, order.cwd)
    check_room_token(settings, address)
    before = left_behind(settings.state_dir, address.room, order.name)
    agent, token = join(order, address, before)
    folder = agents_dir(settings.state_dir, address.room) / agent
    make_private_dir(settings.state_dir)
    make_private_dir(folder.parent)
    make_private_dir(folder)
    save_agent_token(settings, address.room, agent, token)
    env = child_env(order.env, address, agent, token)
    unwire(folder)
    argv = [path, *order.command[1:]]
    session = str(uuid4())
    wired = wire(order.profile.capture, folder, argv, env, session, rules_text(agent), cwd=str(order.cwd))
    _start(order, settings, address, Identity(agent, token, folder), wired, before)


@dataclass(frozen=True, slots=True)
class Identity:
    agent: str
    token: str
    folder: Path


def _start(
    order: Order, settings: Settings, address: Address, who: Identity, wired: Wired, before: Run | None
) -> None:
    terminals = str(settings.state_dir / "terminals")
    mend(0, terminals)
    rows, cols = terminal_size()
    life, end = open_life()
    try:
        child, master = start_child(wired.argv, wired.env, str(order.cwd), rows, cols, like=0, life=life)
    except OSError as exc:
        raise Broken(f"cannot start {wired.argv[0]!r}: {(exc.strerror or str(exc)).lower()}") from exc
    _run(order, settings, address, who, wired, before).save(who.folder)
    # -P: a folder named csp in the user's directory must not be taken for ours.
    code = f"from csp.cli.brain import brain; brain({str(who.folder)!r})"
    brain_argv = [sys.executable, "-P", "-c", code]
    log = str(who.folder / "brain.log")
    brain, link = start_brain(brain_argv, log)
    plan = Plan(
        child=child,
        master=master,
        argv=wired.argv,
        env=wired.env,
        cwd=str(order.cwd),
        brain_argv=brain_argv,
        brain=brain,
        link=link,
        state=terminals,
        log=log,
        life=end,
    )
    exec_relay(plan, dict(order.env), f"csp-sidecar-{who.agent}")


def _run(
    order: Order, settings: Settings, address: Address, who: Identity, wired: Wired, before: Run | None
) -> Run:
    return Run(
        name=order.name,
        agent=who.agent,
        token=who.token,
        url=address.url,
        room=address.room,
        role=order.role,
        pid=os.getpid(),
        profile=order.profile.source,
        argv=wired.argv,
        env=wired.env,
        cwd=str(order.cwd),
        folder=str(who.folder),
        started=time.time(),
        session_id=wired.session_id,
        transcript=wired.transcript_hint,
        spool=wired.spool_dir,
        earlier=before.transcripts if before else [],
        initial_prompt=order.initial_prompt,
        allow_shell=order.allow_shell,
        injection_timeout_s=settings.injection_timeout_s,
        asked=list(order.command),
    )


def find_command(command: str, env: Mapping[str, str], cwd: Path) -> str:
    """Return the path of a command as the user's own shell would find it."""
    found = shutil.which(command, path=env.get("PATH"))
    if found is None:
        hint = "check its spelling, or give its path" if "/" not in command else "check the path"
        raise NotFound(f"command {command!r} was not found", hint)
    return found if os.path.isabs(found) else str(cwd / found)


def terminal_size() -> tuple[int, int]:
    """Return rows and columns of the terminal we are in, or usual ones."""
    for fd in (0, 1, 2):
        try:
            size = os.get_terminal_size(fd)
        except OSError:
            continue
        if size.lines and size.columns:
            return size.lines, size.columns
    return DEFAULT_SIZE


def check_room_token(settings: Settings, address: Address) -> None:
    """Refuse to start a sidecar inside another's pane: the new one would join as that agent."""
    if settings.agent:
        raise Refused(f"this pane is already agent {settings.agent!r}", "start the sidecar in another pane")
    if not address.token:
        raise BadInput("no token for the room", "set CSP_AUTH_TOKEN")


def join(order: Order, address: Address, before: Run | None) -> tuple[str, str]:
    """Join the room, under the id of a sidecar of that name which no longer runs if there is one."""
    body = {
        "agentId": order.name,
        "kind": "cli",
        "role": order.role,
        "capabilities": [order.profile.name],
    }
    if before is not None and before.url == address.url:
        try:
            return _register(Gateway(address.url, before.token), body)
        except (Unauthenticated, Forbidden, NotFound):
            pass  # somebody else has had the id meanwhile, or the room is a new one
    return _register(Gateway(address.url, address.token), body)


def _register(gateway: Gateway, body: Mapping[str, object]) -> tuple[str, str]:
    answer = gateway.post("/register", dict(body))
    return field(answer, "agentId", str), field(answer, "token", str)


def child_env(env: Mapping[str, str], address: Address, agent: str, token: str) -> dict[str, str]:
    """Return the user's environment with the agent's identity in place of the room's."""
    own = {name: value for name, value in env.items() if name not in _OURS}
    own |= {"CSP_AUTH_TOKEN": token, "CSP_AGENT": agent, "CSP_GATEWAY_URL": address.url}
    if shutil.which("csp", path=env.get("PATH")) is None:
        own["PATH"] = os.pathsep.join([env.get("PATH", os.defpath), os.path.dirname(sys.executable)])
    return own
