"""Read a run's settings from one table.

Settings has the names, types and defaults; ROWS defines how each is set from outside. A value comes from the
first of: a flag, the environment, ./csp.toml, the user's config.toml, the default. Settings records which.
"""

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from csp import setting_types as types
from csp.clis.registry import cli_names, find_adapter
from csp.errors import BadInput
from csp.fast_start import process_environment as places
from csp.fast_start.atomic_files import read_plain
from csp.fast_start.process_environment import process_environment as process_environment
from csp.project import Claim, Project, claims_folder, project_of, read_claims, room_name
from csp.room.agent_roles import DUTY
from csp.room.approval_rules import is_plain_command
from csp.trust import GROUPS, LINEUPS, ROLES, Accepted, Ask, Untrusted, examine, harmless

DEFAULT: Final = "default"
#: The supported CLIs by name.
CLIS: Final = {name: find_adapter(name) for name in cli_names()}
_ORCHESTRATOR: Final = next(
    (name, *cli.orchestrator_options) for name, cli in CLIS.items() if cli.orchestrator_options
)


# --- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One [[agent]] table of csp.toml; an empty command means the profile's default.

    With a provider it is an API model, which has no command.
    """

    name: str
    command: tuple[str, ...] = ()
    profile: str = ""
    role: str = "agent"
    #: Its duty, in one word that is shown to the other participants.
    duty: str = ""
    #: The prompt that it gets when it starts.
    prompt: str = ""
    cwd: Path | None = None
    #: None means the room's setting for all agents.
    worktree: bool | None = None
    provider: str = ""
    model: str = ""
    base_url: str = ""
    key_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowSpec:
    """One [[allow]] table of csp.toml: a command that an agent may run without asking a person."""

    agent: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a run with their defaults; `load_settings` builds them once."""

    host: str = "127.0.0.1"
    port: int = 8765
    public_name: str = ""
    public_url: str = ""
    gateway_url: str = ""
    ca_file: Path | None = None
    auth_token: str = field(default="", repr=False)
    agent: str = ""
    room: str = "default"
    history_dir: Path = Path()
    layout: str = "auto"
    worktrees: bool = False
    history_cap: int = 1000
    durability: str = "fsync"
    journal: str = ""
    secret_file: Path | None = None
    nats_ca: Path | None = None
    nats_creds: Path | None = None
    config_file: Path | None = None
    orchestrator: bool = False
    orch_cmd: tuple[str, ...] = _ORCHESTRATOR
    strict_cli_check: bool = False
    injection_timeout_s: float = 10.0
    offline_after_s: float = 60.0
    message_ttl_s: float = 604800.0
    turn_warn_ms: int = 90000
    turn_timeout_ms: int = 120000
    soft_turns: int = 25
    soft_tokens: int = 250000
    window_items: int = 8
    window_tokens: int = 2500
    max_turns: int = 200
    max_tokens: int = 1000000
    max_minutes: float = 20.0
    max_cost_usd: float | None = None
    on_limit: str = ""
    on_hard_limit: str = "stop"
    board_replies: bool = True
    board_summary_after: int = 50
    board_summariser: str = ""
    board_max_kb: int = 65536
    board_provider: str = "local"
    #: Settings defined by the CLIs, by name, such as `claude_cmd`, if they differ from the default.
    of_clis: Mapping[str, Any] = field(default_factory=dict)
    agents: tuple[AgentSpec, ...] = ()
    #: Names that stand for several agents, from [groups] of csp.toml.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: The names of the agents in each saved line-up.
    lineups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Commands that need no approval, from the [[allow]] tables of csp.toml.
    allow: tuple[AllowSpec, ...] = ()
    state_dir: Path = Path()
    #: The project that the run belongs to; None only for settings that no run has.
    project: Project | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    #: Settings of ./csp.toml that the user has not accepted; they are not applied.
    withheld: Untrusted | None = None

    def is_set(self, name: str) -> bool:
        """Return whether this value was set explicitly, even if it equals the default."""
        return self.sources.get(name, DEFAULT) != DEFAULT

    def value(self, name: str) -> Any:
        """Return the value of a setting by its name in ROWS."""
        return {**CLI_DEFAULTS, **self.of_clis}[name] if name in CLI_DEFAULTS else getattr(self, name)

    def command_of(self, cli: str) -> tuple[str, ...]:
        """Return a supported CLI's command."""
        command: tuple[str, ...] = self.value(command_setting(cli))
        return command

    def has_peers(self, cli: str) -> bool:
        """Return whether a CLI may write to other agents of its own kind."""
        return bool(self.of_clis.get(_peers_setting(cli)))


class Row(NamedTuple):
    """The external sources of one setting; an empty column means that it cannot be set there."""

    name: str
    env: str
    key: str
    kind: types.SettingType[Any]
    help: str
    flag: str = ""
    unit: str = ""
    default: str = ""
    secret: bool = False


_LOCAL: Final = "~/.local/share/csp/history; in a clone of CSP, its own history"
_OWN_ROOM: Final = "the room of the directory"
_NEXT: Final = "8765, else the next free port"
_AS_BEFORE: Final = "as it was before, else 0"


def command_setting(cli: str) -> str:
    """Return the name of the setting for a CLI's command."""
    return f"{cli}_cmd"


def _peers_setting(cli: str) -> str:
    return f"{cli}_peers"


def _row(
    name: str,
    section: str,
    kind: types.SettingType[Any],
    help: str,
    key: str = "",
    env: str = "",
    **more: Any,
) -> Row:
    """Return a row; its variable and its key are derived from its name unless they are given."""
    env, key = env or f"CSP_{name.upper()}", f"{section}.{key or name}" if section else ""
    return Row(name=name, env=env, key=key, kind=kind, help=help, **more)


_COMMAND_ROWS: Final = tuple(
    _row(command_setting(name), "room", types.COMMAND, f"command of {cli.label}")
    for name, cli in CLIS.items()
)
_PEERS_ROWS: Final = tuple(
    _row(_peers_setting(name), "room", types.BOOLEAN, cli.peers_help)
    for name, cli in CLIS.items()
    if cli.peers_help
)
CLI_DEFAULTS: Final[dict[str, Any]] = {command_setting(name): (name,) for name in CLIS} | {
    row.name: False for row in _PEERS_ROWS
}

# fmt: off
ROWS: Final = (
    _row("host", "room", types.LINE, "address the gateway listens on", flag="--host"),
    _row("port", "room", types.PORT,
         "port the gateway listens on; 0 for any free port", flag="--port", default=_NEXT),
    _row("public_name", "", types.HOSTS,
         "names at which clients reach the gateway through a balancer, separated by commas",
         flag="--public-name"),
    _row("public_url", "", types.ORIGIN,
         "URL at which browsers reach this one of several gateways; the pages of the others use it if their "
         "own gateway is lost", flag="--public-url"),
    _row("gateway_url", "", types.GATEWAYS,
         "gateway to use instead of looking for a running room; of several, separated by commas, "
         "the next one is used when one is lost"),
    _row("ca_file", "", types.PATH,
         "certificates to trust for the gateway in addition to those of the system, in PEM format"),
    _row("auth_token", "", types.LINE, "token for authentication; it determines the sender", secret=True),
    _row("agent", "", types.LINE, "agent in whose pane a command runs; set by the sidecar"),
    _row("room", "room", types.ROOM,
         "room to start or to use", key="name", flag="--room", default=_OWN_ROOM),
    _row("history_dir", "room", types.PATH, "folder for the journals", flag="--history", default=_LOCAL),
    _row("layout", "room", types.LAYOUT,
         "layout of the room's windows: top, left or focus; auto depends on the width", flag="--layout"),
    _row("worktrees", "room", types.BOOLEAN,
         "whether every CLI works in its own git worktree", flag="--worktrees", default=_AS_BEFORE),
    _row("history_cap", "room", types.COUNT, "number of newest events kept in memory"),
    _row("durability", "room", types.DURABILITY,
         "failures that an acknowledged message survives: flush a gateway crash, fsync also a power cut",
         flag="--durability"),
    _row("journal", "", types.LINE,
         "NATS servers, separated by commas, that keep the room's journal for several gateways"),
    _row("secret_file", "", types.PATH,
         "file with the secret that all gateways of a cluster share", flag="--secret-file"),
    _row("nats_ca", "", types.PATH,
         "certificates that NATS servers are checked with, in PEM format; else the system's",
         flag="--nats-ca"),
    _row("nats_creds", "", types.PATH,
         "credentials for NATS servers: a creds file, or the seed of an NKey", flag="--nats-creds"),
    _row("config_file", "", types.PATH, "file to read instead of ./csp.toml"),
    _row("orchestrator", "room", types.BOOLEAN, "also start an orchestrator"),
    _row("orch_cmd", "room", types.COMMAND, "command of the orchestrator"),
    *_COMMAND_ROWS,
    _row("strict_cli_check", "room", types.BOOLEAN,
         "fail if a CLI is not installed, instead of starting without it"),
    *_PEERS_ROWS,
    _row("injection_timeout_s", "room", types.NUMBER,
         "how long to wait for an unknown CLI to look idle", env="CSP_INJECTION_TIMEOUT", unit="seconds"),
    _row("offline_after_s", "room", types.NUMBER,
         "silence after which a participant counts as offline", unit="seconds"),
    _row("message_ttl_s", "room", types.NUMBER,
         "age at which an undeliverable message expires", unit="seconds"),
    _row("turn_warn_ms", "limits", types.COUNT, "turn length that triggers a warning", unit="ms"),
    _row("turn_timeout_ms", "limits", types.COUNT, "turn length after which the turn passes on", unit="ms"),
    _row("soft_turns", "limits", types.COUNT, "turns between reminders"),
    _row("soft_tokens", "limits", types.COUNT,
         "new tokens (not read from a cache) between reminders"),
    _row("window_items", "limits", types.COUNT, "number of newest items quoted in a prompt, at most 24"),
    _row("window_tokens", "limits", types.COUNT, "maximum number of tokens of these items"),
    _row("max_turns", "limits", types.COUNT, "turns after which a mode is stopped", key="turns"),
    _row("max_tokens", "limits", types.COUNT,
         "new tokens (not read from a cache) after which a mode is stopped", key="tokens"),
    _row("max_minutes", "limits", types.NUMBER,
         "time after which a mode is stopped", key="minutes", unit="minutes"),
    _row("max_cost_usd", "limits", types.COST,
         "cost after which a mode is stopped", key="cost_usd", unit="US dollars"),
    _row("on_limit", "limits", types.ON_LIMIT,
         "what a mode does at an agent's usage limit, else as its kind does: wait, skip or stop"),
    _row("on_hard_limit", "limits", types.ON_HARD_LIMIT, "what a mode does at its own limit: ask or stop"),
    _row("board_replies", "board", types.BOOLEAN,
         "put a session's replies on its whiteboard", key="replies"),
    _row("board_summary_after", "board", types.FROM_NOTHING,
         "notes after which a whiteboard is summarised; 0 for never", key="summary_after"),
    _row("board_summariser", "board", types.LINE,
         "agent that summarises it, else the session's synth or the orchestrator", key="summariser"),
    _row("board_max_kb", "board", types.FROM_NOTHING,
         "maximum size of a whiteboard's text; 0 for no limit", key="max_kb", unit="KiB"),
    _row("board_provider", "board", types.PROVIDER,
         "search provider: local, or openai if OPENAI_API_KEY is set", key="provider"),
)
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    """The options of `csp gateway`."""

    settings: Settings
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False
    #: The address of the listener for other machines; empty if there is none.
    lan: str = ""
    supervise: bool = False
    #: Whether this gateway of several works on review runs.
    hosts_runs: bool = False
    #: How long a room of a hub may be idle before it is let go.
    idle_s: float = 600.0
    dir: Path


# --- sources of the values -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _File:
    """A csp.toml or config.toml that was read."""

    path: Path
    data: dict[str, Any]
    #: Whether it came with a repository and was neither named nor written by the user.
    is_found: bool = False

    def get(self, key: str) -> object:
        section, _, name = key.partition(".")
        return self.data.get(section, {}).get(name)


def load_settings(
    flags: Mapping[str, str | None] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    ask: Ask | None = None,
) -> Settings:
    """Build the settings of this run; raise BadInput with the source of a wrong value.

    Settings in ./csp.toml that are not accepted are ignored unless `ask` returns true. The file is read
    once, so the settings applied are those that were shown.
    """
    env = process_environment() if env is None else env
    cwd = current_dir() if cwd is None else cwd
    claims = read_claims(claims_folder(env))
    project = _project_of(cwd, claims, env)
    files, withheld = _with_trust(_read_files(env, cwd, project), env, ask)
    values: dict[str, Any] = {"state_dir": default_state_dir(env)}
    sources: dict[str, str] = {}
    for row in ROWS:
        found = _find(row, flags or {}, env, files)
        sources[row.name] = found[1] if found else DEFAULT
        if found:
            values[row.name] = found[0]
    if "history_dir" in values:
        values["history_dir"] = Path(os.path.abspath(cwd / values["history_dir"]))
    of_clis = {name: values.pop(name) for name in CLI_DEFAULTS if name in values}
    settings = Settings(
        **values,
        of_clis=of_clis,
        agents=_read_agents(files),
        groups=_read_groups(files),
        lineups=_read_lineups(files),
        allow=tuple(_read_allow(path, entry) for path, entry in _tables(files, "allow")),
        sources=sources,
        withheld=withheld,
    )
    return _of_project(settings, project, claims, env)


def settings_for(settings: Settings, dir: Path, env: Mapping[str, str]) -> Settings:
    """Return the settings for another directory's room, with its own name and history unless they are set."""
    claims = read_claims(claims_folder(env))
    return _of_project(settings, _project_of(dir, claims, env), claims, env)


def _project_of(dir: Path, claims: Collection[Claim], env: Mapping[str, str]) -> Project:
    # A room of the home directory does not extend to the directories in it.
    return project_of(dir, {claim.identity for claim in claims} - {os.path.realpath(places.home(env)), "/"})


def _of_project(
    settings: Settings, project: Project, claims: Collection[Claim], env: Mapping[str, str]
) -> Settings:
    room = settings.room if settings.is_set("room") else room_name(project, claims)
    history = settings.history_dir
    if not settings.is_set("history_dir"):
        history = history_dir_of(room, project, claims, env)
    return replace(settings, project=project, room=room, history_dir=history)


def _with_trust(
    files: list[_File], env: Mapping[str, str], ask: Ask | None
) -> tuple[list[_File], Untrusted | None]:
    """Return the accepted parts of the files, and the settings that were not accepted."""
    for at, file in enumerate(files):
        found = examine(file.path, file.data) if file.is_found else None
        if found is not None and not Accepted(env).has(found) and not (ask is not None and ask(found)):
            return [*files[:at], _File(file.path, harmless(file.data)), *files[at + 1 :]], found
    return files, None


def read_project_file(path: Path) -> dict[str, Any] | None:
    """Return the content of a csp.toml; None if it does not exist."""
    file = _read_file(path)
    return file.data if file else None


def current_dir() -> Path:
    """Return the working directory; raise BadInput if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError as exc:
        raise BadInput("the current directory no longer exists", "change to another one") from exc


def _find(
    row: Row, flags: Mapping[str, str | None], env: Mapping[str, str], files: list[_File]
) -> tuple[Any, str] | None:
    flag = flags.get(row.name)
    if flag is not None:
        return types.read_text(row.kind, flag, row.flag), row.flag
    if env.get(row.env):
        return types.read_text(row.kind, env[row.env], row.env, is_secret=row.secret), row.env
    for file in files:
        value = file.get(row.key)
        if value is not None:
            return types.read_toml(row.kind, value, file.path, row.key), str(file.path)
    return None


def _read_files(env: Mapping[str, str], cwd: Path, project: Project) -> list[_File]:
    """Return the csp.toml of this directory or else of its project, followed by the user's own file."""
    chosen = env.get("CSP_CONFIG_FILE")
    if chosen:
        local = _read_file(cwd / types.read_text(types.PATH, chosen, "CSP_CONFIG_FILE"))
        if local is None:
            raise BadInput(f"CSP_CONFIG_FILE: expected a file that exists, got {chosen!r}")
    else:
        here = _read_file(cwd / "csp.toml", is_found=True)
        local = here or _read_file(project.root / "csp.toml", is_found=True)
    user = _found(places.xdg(env, "XDG_CONFIG_HOME", ".config")) / "csp" / "config.toml"
    return [file for file in (local, _read_file(user)) if file]


#: How long a file that came with a repository may be.
MAX_FOUND_BYTES: Final = 128 * 1024
_MOST_PARTS: Final = 16
_PART: Final = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
#: The parser takes minutes for a key of thousands of parts.
_DEEP_KEY: Final = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_MOST_PARTS}}}")


def _read_file(path: Path, *, is_found: bool = False) -> _File | None:
    try:
        # In a repository it may be a link to a device that never ends.
        raw = read_plain(path, MAX_FOUND_BYTES + 1) if is_found else path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise BadInput(f"cannot read {str(path)!r}: {(exc.strerror or '').lower()}") from exc
    if is_found and len(raw) > MAX_FOUND_BYTES:
        raise BadInput(f"{path}: over {MAX_FOUND_BYTES} bytes", "put long texts into files that agents read")
    import tomllib  # most runs have no file to read

    try:
        text = raw.decode()
        if _DEEP_KEY.search(text):
            raise BadInput(f"{path}: a key with more than {_MOST_PARTS} parts")
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise BadInput(f"{path}: not valid TOML: {str(exc)[:1].lower()}{str(exc)[1:]}") from exc
    _check_keys(path, data)
    return _File(path, data, is_found)


def _check_keys(path: Path, data: dict[str, Any]) -> None:
    known = [row.key for row in ROWS if row.key]
    sections = sorted({key.partition(".")[0] for key in known})
    for section, table in data.items():
        if section not in (*sections, *_LISTS, GROUPS, LINEUPS):
            raise _unknown(path, section, [*sections, *_LISTS, GROUPS, LINEUPS])
        if section in (*_LISTS, GROUPS):
            continue
        if not isinstance(table, dict):
            raise BadInput(f"{path}: {section}: expected a table, got {table!r}", f"write it as [{section}]")
        for name in table if section != LINEUPS else ():
            if f"{section}.{name}" not in known:
                raise _unknown(path, f"{section}.{name}", known)


def _unknown(path: Path, key: str, known: list[str]) -> BadInput:
    return BadInput(f"{path}: unknown key {key!r}", nearest(key, known) or f"known: {', '.join(known)}")


def nearest(word: str, known: list[str]) -> str:
    """Return a hint with the most similar known word, or an empty string."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""


#: Sections that are lists of tables.
_LISTS: Final = ("agent", "allow")

# --- agents --------------------------------------------------------------------------------------

#: The role of an agent: `orchestrator` or its duty.
WORD: Final = types.SettingType("one short word of a-z, 0-9 or -, such as reviewer", types.matching(DUTY))
_AGENT_KINDS: Final[dict[str, types.SettingType[Any]]] = {
    "name": types.NAME,
    "command": types.COMMAND,
    "profile": types.LINE,
    "role": WORD,
    "prompt": types.TEXT,
    "cwd": types.PATH,
    "worktree": types.BOOLEAN,
    "provider": types.LINE,
    "model": types.LINE,
    "base_url": types.WEB,
    "key_env": types.VARIABLE,
}
_OF_MODELS: Final = ("provider", "model", "base_url", "key_env")
_OF_CLIS: Final = ("command", "profile", "worktree")


def _tables(files: list[_File], name: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the tables [[name]] of the first file that has any; lists are not merged."""
    for file in files:
        entries = file.data.get(name, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise BadInput(f"{file.path}: {name}: expected a list of tables", f"write each as [[{name}]]")
        if entries:
            return [(file.path, entry) for entry in entries]
    return []


def _read_agents(files: list[_File]) -> tuple[AgentSpec, ...]:
    agents: dict[str, AgentSpec] = {}
    for path, entry in _tables(files, "agent"):
        agent = _read_agent(path, entry)
        if agent.name in agents:
            raise BadInput(f"{path}: agent.name: expected unique names, got {agent.name!r} twice")
        agents[agent.name] = agent
    return tuple(agents.values())


def _read_groups(files: list[_File]) -> dict[str, tuple[str, ...]]:
    """Return the groups of all files; the first file that defines a group takes precedence."""
    found: dict[str, tuple[str, ...]] = {}
    for file in files:
        table = file.data.get(GROUPS, {})
        if not isinstance(table, dict):
            raise BadInput(
                f"{file.path}: {GROUPS}: expected a table, got {table!r}", f"write it as [{GROUPS}]"
            )
        for name, members in table.items():
            where = f"{GROUPS}.{name}"
            types.read_toml(types.GROUP, name, file.path, where)
            if not isinstance(members, list) or not members:
                raise BadInput(f"{file.path}: {where}: expected a list of agents, got {members!r}")
            names = tuple(types.read_toml(types.GROUP, one, file.path, where) for one in members)
            found.setdefault(name, names)
    return found


def _read_agent(path: Path, entry: dict[str, object]) -> AgentSpec:
    known = list(_AGENT_KINDS)
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in known:
            raise _unknown(path, f"agent.{name}", [f"agent.{key}" for key in known])
        values[name] = types.read_toml(_AGENT_KINDS[name], value, path, f"agent.{name}")
    if "name" not in values:
        raise BadInput(f"{path}: agent: expected a name, got {', '.join(entry) or 'nothing'}")
    # The fields of a CLI and of an API model cannot be mixed.
    of_model = [name for name in _OF_MODELS if name in values]
    where = f"{path}: agent {values['name']!r}"
    missing = [name for name in ("provider", "model") if name not in values]
    if of_model and missing:
        raise BadInput(f"{where}: {of_model[0]} also needs a {missing[0]}", f'{missing[0]} = "..."')
    both = [name for name in _OF_CLIS if name in values]
    if of_model and both:
        raise BadInput(f"{where}: an API model has no {both[0]}", f"leave out {both[0]} or provider")
    if values.get("role", "agent") not in ROLES:
        values |= {"role": "agent", "duty": values["role"]}
    return AgentSpec(**values)


def _read_lineups(files: list[_File]) -> dict[str, tuple[str, ...]]:
    """Return the saved line-ups of all files; the first file that defines a line-up takes precedence."""
    found: dict[str, tuple[str, ...]] = {}
    for file in reversed(files):
        for name, table in file.data.get(LINEUPS, {}).items():
            where = f"{LINEUPS}.{name}"
            if not isinstance(table, dict):
                raise BadInput(f"{file.path}: {where}: expected a table", f'[{where}] agents = ["..."]')
            for key in table:
                if key != "agents":
                    raise _unknown(file.path, f"{where}.{key}", [f"{where}.agents"])
            agents = table.get("agents")
            if not isinstance(agents, list) or not agents:
                raise BadInput(f"{file.path}: {where}.agents: expected a list of names, got {agents!r}")
            found[name] = tuple(
                types.read_toml(types.NAME, agent, file.path, f"{where}.agents") for agent in agents
            )
    return found


_ALLOW_KINDS: Final[dict[str, types.SettingType[Any]]] = {"agent": types.NAME, "command": types.LINE}


def _read_allow(path: Path, entry: dict[str, object]) -> AllowSpec:
    values: dict[str, Any] = {}
    for name, value in entry.items():
        if name not in _ALLOW_KINDS:
            raise _unknown(path, f"allow.{name}", [f"allow.{key}" for key in _ALLOW_KINDS])
        values[name] = types.read_toml(_ALLOW_KINDS[name], value, path, f"allow.{name}")
    for name in _ALLOW_KINDS:
        if name not in values:
            raise BadInput(f"{path}: allow: expected {name}", 'agent = "ada", command = "pytest"')
    if not is_plain_command(values["command"]):
        problem = f"expected the first words of a command without shell syntax, got {values['command']!r}"
        raise BadInput(f"{path}: allow.command: {problem}")
    return AllowSpec(agent=values["agent"].lower(), command=values["command"])


# --- locations -----------------------------------------------------------------------------------


def _found(place: str) -> Path:
    """Return a folder that the environment names, or one in the home directory."""
    if not place:
        raise BadInput("HOME: expected the path of a home directory, got nothing")
    return Path(place)


def history_dir_of(room: str, project: Project, claims: Collection[Claim], env: Mapping[str, str]) -> Path:
    """Return the folder for a room's history if no setting names one."""
    claim = next((claim for claim in claims if claim.room == room), None)
    if claim is not None:
        return Path(claim.history)
    folders = history_dirs(env)
    # A room from an earlier version, which did not make claims.
    if found := next((folder for name, folder in _unclaimed(folders) if name == room), None):
        return found
    return folders[0] if project.root == clone_dir() else folders[-1]


def history_dirs(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders that may contain histories: that of this package's clone, and the user's."""
    clone = clone_dir()
    own = _found(places.xdg(env, "XDG_DATA_HOME", ".local/share")) / "csp" / "history"
    return (clone / "history", own) if clone else (own,)


def earlier_rooms(env: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the rooms from earlier versions, which have a history but no claim, with their folders."""
    claimed = {claim.room for claim in read_claims(claims_folder(env))}
    found = [(name, folder / name) for name, folder in _unclaimed(history_dirs(env))]
    return [(name, history) for name, history in found if name not in claimed]


def _unclaimed(folders: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield rooms that have a history in one of the folders but may have no claim, each with its folder.

    A clone contains rooms of earlier versions and its own room. Only the latter has an id; its user, who
    may be somebody else, has a claim to it.
    """
    own = clone_dir()
    for folder in folders:
        for journal in sorted(folder.glob("*/journal.jsonl")):
            if own is None or folder != own / "history" or not _has_room_id(journal):
                yield journal.parent.name, folder


def _has_room_id(journal: Path) -> bool:
    from csp.protocol.events import room_id_in

    try:
        with journal.open("rb") as file:
            return bool(room_id_in(file.readline().rstrip()))
    except OSError:
        return False


def clone_dir() -> Path | None:
    """Return the root of the clone that this package runs from, or None if it was installed."""
    top = Path(__file__).resolve().parent.parent
    is_clone = (top / ".git").exists() or (top / "pyproject.toml").exists()
    return top if is_clone and (top / "history").is_dir() else None


def default_state_dir(env: Mapping[str, str]) -> Path:
    """Return the folder in which running rooms are announced."""
    return _found(places.state_dir(env))


# --- showing the table ---------------------------------------------------------------------------


def show(value: object) -> str:
    """Format a value as in an environment variable."""
    match value:
        case None | "" | ():
            return "none"
        case bool():
            return "1" if value else "0"
        case float():
            return f"{value:.12g}"
        case tuple():
            return shlex.join(value)
        case _:
            return str(value)


def shown(settings: Settings, row: Row) -> str:
    """Return the value of a row for display; secrets are masked."""
    value = settings.value(row.name)
    return "********" if row.secret and value else show(value)


def settings_markdown() -> str:
    """Return the table of settings for the README."""
    lines = ["| variable | csp.toml | flag | default | meaning |", "|---|---|---|---|---|"]
    defaults = Settings()
    for row in ROWS:
        default = row.default or show(defaults.value(row.name))
        unit = f" ({row.unit})" if row.unit else ""
        code = [f"`{cell}`" if cell else "" for cell in (row.env, row.key, row.flag)]
        lines.append(f"| {' | '.join(code)} | {default} | {row.help}{unit} |")
    return "\n".join(lines)
