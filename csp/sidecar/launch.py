"""Start a sidecar: the CLI in its own terminal, the brain next to it, and the relay in place of this process.

The CLI should start as fast as without CSP, so this module imports little and does not query the CLI.
"""

import os
import sys
import time

from csp.clis.adapter import CliRun
from csp.clis.registry import find_adapter
from csp.clis.wiring import unwire, wire
from csp.errors import Broken, CspError, Forbidden, NotFound, Unauthenticated
from csp.fast_start.child_environment import HELPER, USER, child_environment
from csp.fast_start.fast_http import CA_FILE, ca_file_of
from csp.fast_start.room_files import agents_dir, make_private_dir, read_running, save_token
from csp.http_client import GatewayClient, field
from csp.prompt_files import read_prompt
from csp.sidecar.record_file import begin_to_join, capabilities_of, end_to_join, left_behind, write_record
from csp.sidecar.relay.job_control import open_life
from csp.sidecar.relay.pty_processes import SpawnPlan, exec_relay, start_child
from csp.sidecar.relay.user_terminal import repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from csp.clis.adapter import Wired
    from csp.sidecar.record_file import Record

DEFAULT_SIZE = (24, 80)
DEFAULT_INJECTION_TIMEOUT_S = 10.0
#: With -P, because a folder named csp in the user's directory must not shadow our package.
_PYTHON = (sys.executable, "-P")
_MCP_SERVER = (
    "import sys; sys.path.append(sys.argv[1]); import csp.sidecar.mcp_bridge as it; it.serve(sys.argv[2])"
)
#: Settings that the CLI does not inherit, because it is an agent in the room and not the room's owner.
_OURS = ("CSP_ROOM", "CSP_HISTORY_DIR", "CSP_TRANSCRIPT")


class ChosenProfile:
    """The parts of a profile that the launcher needs; `source` is its file, which the brain reads."""

    def __init__(self, *, name: str, capture: str, source: str) -> None:
        self.name, self.capture, self.source = name, capture, source


class RoomAddress:
    """The address of a room, the token for joining it, and the folder for the records of its agents."""

    def __init__(self, *, url: str, token: str, name: str, state_dir: str) -> None:
        self.url, self.token, self.name, self.state_dir = url, token, name, state_dir


class LaunchOrder:
    """The command to run, its directory, and the agent that it becomes."""

    def __init__(
        self,
        *,
        name: str,
        role: str,
        command: "Sequence[str]",
        profile: ChosenProfile,
        cwd: str,
        env: "Mapping[str, str]",
        initial_prompt: str = "",
        allow_shell: bool = False,
        injection_timeout_s: float = DEFAULT_INJECTION_TIMEOUT_S,
        has_peers: bool = False,
        duty: str = "",
        prompt: str = "",
    ) -> None:
        self.name, self.role, self.duty, self.prompt = name, role, duty, prompt
        self.command, self.cwd, self.env = command, cwd, env
        self.profile = profile
        self.initial_prompt, self.allow_shell = initial_prompt, allow_shell
        self.injection_timeout_s = injection_timeout_s
        self.has_peers = has_peers


class _Seat:
    """The CLI's identity in the room and its sidecar's folder; `before` is the name's previous owner."""

    def __init__(self, agent: str, token: str, folder: str, before: "Record | None") -> None:
        self.agent, self.token, self.folder, self.before = agent, token, folder, before


def launch(order: LaunchOrder, room: RoomAddress, *, is_light: bool = False) -> None:
    """Start the CLI, then become the relay, which starts the brain; returns only by an exception.

    If this process `is_light`, that is, has loaded little more than a relay needs, the relay runs
    in it. Otherwise the process executes the relay as a new program.
    """
    path = find_command(order.command[0], order.env, order.cwd)
    before = left_behind(room.state_dir, room.name, order.name)
    launched = begin_to_join(room.state_dir, room.name, order.name, new_session())
    try:
        agent, token = join(order, room, before, launched)
    except CspError:
        end_to_join(room.state_dir, room.name)
        raise
    folder = os.path.join(agents_dir(room.state_dir, room.name), agent)
    try:
        _start(order, room, _Seat(agent, token, folder, before), path, is_light=is_light)
    except (CspError, OSError) as error:
        # The agent has no process, but the room would still show it for another minute.
        leave(room.url, token)
        end_to_join(room.state_dir, room.name)
        unwire(folder)
        if isinstance(error, CspError):
            raise
        raise Broken(f"cannot write to {folder}: {(error.strerror or str(error)).lower()}") from error


def _start(order: LaunchOrder, room: RoomAddress, seat: _Seat, path: str, *, is_light: bool) -> None:
    save_token(room.state_dir, room.name, seat.agent, seat.token)
    make_private_dir(seat.folder)
    env = child_env(order.env, room.url, seat.agent, seat.token, (room.token,))
    unwire(seat.folder)
    adapter = find_adapter(order.profile.capture)
    has_server = adapter.has_mcp
    told = "\n\n".join(filter(None, ("" if adapter.takes_rules else order.prompt, order.initial_prompt)))
    run = CliRun(
        seat.folder,
        [path, *order.command[1:]],
        env,
        new_session(),
        rules_text(seat.agent, order.role, order.prompt, has_tools=has_server),
        cwd=order.cwd,
        worktrees=_worktrees(room),
        server=mcp_server(seat.folder) if has_server else [],
        has_peers=order.has_peers,
    )
    wired = wire(order.profile.capture, run)
    terminals = os.path.join(room.state_dir, "terminals")
    repair(0, terminals)
    rows, cols = terminal_size()
    life, end = open_life()
    try:
        child, master = start_child(wired.argv, wired.env, order.cwd, rows, cols, like=0, life=life)
    except OSError as exc:
        raise Broken(f"cannot start {wired.argv[0]!r}: {(exc.strerror or str(exc)).lower()}") from exc
    if life >= 0:
        os.close(life)
    write_record(seat.folder, _record(order, room, seat, wired, told))
    end_to_join(room.state_dir, room.name)
    plan = SpawnPlan(
        child=child,
        master=master,
        argv=wired.argv,
        env=wired.env,
        cwd=order.cwd,
        brain_argv=[*_PYTHON, "-c", f"from csp.cli.brain import brain; brain({seat.folder!r})"],
        state=terminals,
        log=os.path.join(seat.folder, "brain.log"),
        life=end,
    )
    if is_light:
        from csp.sidecar.relay.relay_loop import relay

        os._exit(relay(plan))
    exec_relay(plan, child_environment(HELPER, order.env), f"csp-sidecar-{seat.agent}")


def mcp_server(folder: str) -> list[str]:
    """Return the command of the CLI's MCP server, in an interpreter without site-packages."""
    package = os.path.abspath(f"{__file__}/../../..")
    return [sys.executable, "-I", "-S", "-c", _MCP_SERVER, package, folder]


def _worktrees(room: RoomAddress) -> str:
    """Return the folder of the worktrees of a room's runs, or "" if the room is on another machine."""
    running = read_running(os.path.join(room.state_dir, f"{room.name}.json")) or {}
    if running.get("url") != room.url or not running.get("history"):
        return ""
    folder = os.path.join(str(running["history"]), "worktrees")
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
    except OSError:
        return ""
    return folder


def _record(order: LaunchOrder, room: RoomAddress, seat: _Seat, wired: "Wired", told: str) -> "Record":
    """Return the fields of a `SidecarRecord`."""
    return {
        "name": order.name,
        "agent": seat.agent,
        "token": seat.token,
        "url": room.url,
        "room": room.name,
        "role": order.role,
        "duty": order.duty,
        "pid": os.getpid(),
        "profile": order.profile.source,
        "argv": wired.argv,
        "env": wired.env,
        "cwd": order.cwd,
        "folder": seat.folder,
        "started": time.time(),
        "session_id": wired.session_id,
        "transcript": wired.transcript_hint,
        "spool": wired.spool_dir,
        "earlier": seat.before.get("transcripts", []) if seat.before else [],
        "initial_prompt": told,
        "allow_shell": order.allow_shell,
        "injection_timeout_s": order.injection_timeout_s,
        "asked": list(order.command),
    }


def new_session() -> str:
    """Return a new random UUID (version 4)."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) % 4]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def find_command(command: str, env: "Mapping[str, str]", cwd: str) -> str:
    """Return a command's path as the user's own shell would find it."""
    found = _which(command, env)
    if found is None:
        hint = "check its spelling, or give its path" if "/" not in command else "check the path"
        raise NotFound(f"command {command!r} was not found", hint)
    return os.path.join(cwd, found.removeprefix("./"))


def _which(command: str, env: "Mapping[str, str]") -> str | None:
    folders = [""] if "/" in command else env.get("PATH", os.defpath).split(os.pathsep)
    paths = [os.path.join(folder, command) for folder in folders]
    return next((path for path in paths if os.access(path, os.X_OK) and not os.path.isdir(path)), None)


def terminal_size() -> tuple[int, int]:
    """Return the rows and columns of our terminal, or default values if there is none."""
    for fd in (0, 1, 2):
        try:
            size = os.get_terminal_size(fd)
        except OSError:
            continue
        if size.lines and size.columns:
            return size.lines, size.columns
    return DEFAULT_SIZE


def join(order: LaunchOrder, room: RoomAddress, before: "Record | None", launched: str) -> tuple[str, str]:
    """Join the room; reuse the id of a sidecar with that name that is no longer running, if there is one."""
    body: dict[str, object] = {
        "agentId": order.name,
        "kind": "cli",
        "role": order.role,
        "capabilities": capabilities_of(order.profile.name, order.duty),
        "launch": launched,
    }
    if before and before.get("url") == room.url:
        try:
            return _register(GatewayClient(room.url, str(before.get("token"))), body)
        except (Unauthenticated, Forbidden, NotFound):
            pass  # the id has a new owner, or the room is new
    return _register(GatewayClient(room.url, room.token), body)


def leave(url: str, token: str) -> None:
    """Report the agent as offline; an unreachable room will notice on its own."""
    try:
        GatewayClient(url, token).post("/state", {"state": "offline"})
    except CspError:
        return


def _register(gateway: GatewayClient, body: dict[str, object]) -> tuple[str, str]:
    answer = gateway.post("/register", body)
    return field(answer, "agentId", str), field(answer, "token", str)


def child_env(
    env: "Mapping[str, str]", url: str, agent: str, token: str, secrets: "Sequence[str]" = ()
) -> dict[str, str]:
    """Return the user's environment with the agent's identity instead of the room's."""
    rest = {name: value for name, value in env.items() if name not in _OURS}
    identity = {"CSP_AUTH_TOKEN": token, "CSP_AGENT": agent, "CSP_GATEWAY_URL": url}
    if ca_file := ca_file_of(url):
        identity[CA_FILE] = ca_file
    own = child_environment(USER, rest, identity, secrets=secrets)
    if _which("csp", env) is None:
        own["PATH"] = os.pathsep.join([env.get("PATH", os.defpath), os.path.dirname(sys.executable)])
    return own


def rules_text(agent: str, role: str = "agent", prompt: str = "", *, has_tools: bool = False) -> str:
    """Return the room's rules for a new CLI and its prompt from csp.toml.

    The rules for tools are included if it has them.
    """
    names = ["rules.md", *(["rules_tools.md"] if has_tools else [])]
    names += ["orchestrator.md"] if role == "orchestrator" else []
    rules = "\n".join([read_prompt(name) for name in names]).replace("{agent}", agent)
    return f"{rules}\n{prompt}\n" if prompt else rules
