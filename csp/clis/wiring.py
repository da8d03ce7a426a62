"""Wire one run of a CLI: arguments, environment, files of this run alone.

Nothing of the user's is edited, all of it still applies: our hooks are added to theirs, our rules to their
own instructions. A command that is not an interactive session is left as it is. The launcher imports this
before the child starts, so it imports little.
"""

import os

from csp.clis import mcp_entry
from csp.clis.mcp_entry import toml_string
from csp.fast_start.fast_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    StrPath = str | os.PathLike[str]

#: Each event costs a process, so only what nothing else tells is asked for.
CLAUDE_EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PermissionRequest"),
    *("PostToolUse", "PostToolUseFailure", "Stop", "StopFailure"),
)
GEMINI_EVENTS = ("SessionStart", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification")
CODEX_EVENTS = ("PermissionRequest",)
HOOK_TIMEOUT_S = 10
RULES_FILE = "CSP-RULES.md"

_CLAUDE_COMMANDS = {
    *("agents", "auth", "auto-mode", "doctor", "gateway", "install", "mcp", "plugin", "plugins"),
    *("project", "setup-token", "ultrareview", "update", "upgrade", "-p", "--print", "-h"),
    *("--help", "-v", "--version", "--bg", "--background"),
}
_CODEX_COMMANDS = {
    *("agents", "exec", "e", "review", "login", "logout", "mcp", "plugin", "app-server"),
    *("remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply", "a"),
    *("queue", "archive", "delete", "migrate-rollouts", "migrate-nfs-db", "unarchive", "cloud"),
    *("exec-server", "features", "help", "-h", "--help", "-V", "--version"),
}
_GEMINI_COMMANDS = {
    *("mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma", "-p"),
    *("--prompt", "--acp", "--experimental-acp", "-l", "--list-extensions", "--list-sessions"),
    *("--delete-session", "-v", "--version", "-h", "--help"),
}
_CLAUDE_SESSION = ("--session-id", "-r", "--resume", "-c", "--continue", "--fork-session", "--from-pr")
_GEMINI_SESSION = ("--session-id", "-r", "--resume", "--session-file")
_CODEX_VALUES = {
    *("-c", "--config", "--enable", "--disable", "--remote", "--remote-auth-token-env", "-i"),
    *("--image", "-m", "--model", "--local-provider", "-p", "--profile", "-s", "--sandbox", "-C"),
    *("--cd", "--add-dir", "-a", "--ask-for-approval"),
}
_UUID_PARTS = [8, 4, 4, 4, 12]
_HEX = frozenset("0123456789abcdefABCDEF")
_LONGEST_MUNGED = 200


class Wired:
    """A run as it is to be started; without a spool the CLI is not an interactive session of ours."""

    def __init__(
        self,
        *,
        argv: list[str],
        env: dict[str, str],
        session_id: str = "",
        transcript_hint: str = "",
        spool_dir: str = "",
    ) -> None:
        self.argv, self.env = argv, env
        self.session_id, self.transcript_hint, self.spool_dir = session_id, transcript_hint, spool_dir

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wired) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # its lists may change

    def __repr__(self) -> str:
        return f"Wired({vars(self)})"


class _Run:
    def __init__(
        self,
        *,
        folder: str,
        argv: list[str],
        env: dict[str, str],
        session_id: str,
        rules: str,
        cwd: str,
        has_codex_hooks: bool,
        worktrees: str,
        server: list[str],
        has_peers: bool,
    ) -> None:
        self.folder, self.argv, self.env, self.cwd, self.worktrees = folder, argv, env, cwd, worktrees
        self.session_id, self.rules, self.has_codex_hooks = session_id, rules, has_codex_hooks
        #: Whether the CLI may write to other agents of its own kind.
        self.has_peers = has_peers
        #: The command of an MCP server, none where there is none.
        self.server = server
        self.spool = os.path.join(folder, "spool")

    def home(self, variable: str, *parts: str) -> str:
        """Return a folder that a variable names, or else one in the home directory."""
        return self.env.get(variable) or os.path.join(self.env.get("HOME") or os.path.expanduser("~"), *parts)


def wire(
    profile_name: str,
    run_dir: "StrPath",
    argv: "Sequence[str]",
    env: "Mapping[str, str]",
    session_id: str,
    rules_text: str = "",
    *,
    cwd: str | None = None,
    has_codex_hooks: bool = False,
    worktrees: str = "",
    server: "Sequence[str]" = (),
    has_peers: bool = False,
) -> Wired:
    """Return the run of a CLI with our wiring; files of it go to `run_dir`, which must be private.

    `server` is the command of an MCP server whose tools the CLI gets beside those of its user's own servers.

    `session_id` is a new UUID, used where the user has not chosen a session. Hooks of Codex need the user's
    trust, so they are wired only when that was given. In `worktrees` the CLI is asked to build. Without
    `has_peers` Claude has no tools to find other sessions or to write to them; theirs never reach it.
    """
    run = _Run(
        folder=os.fspath(run_dir),
        argv=list(argv),
        env=dict(env),
        session_id=session_id,
        rules=rules_text.strip(),
        cwd=cwd or os.getcwd(),
        has_codex_hooks=has_codex_hooks,
        worktrees=worktrees,
        server=list(server),
        has_peers=has_peers,
    )
    wiring = _WIRINGS.get(profile_name)
    if wiring is None or not is_session(profile_name, run.argv):
        return Wired(argv=run.argv, env=run.env)
    os.makedirs(run.spool, 0o700, exist_ok=True)
    return wiring(run)


def unwire(run_dir: "StrPath", owner: int | None = None) -> None:
    """Put away what a run has left; to be called when it is over, or for one that has died.

    With an `owner`, the process that wired the run, what another run has wired since is left alone.
    """
    home = os.path.join(run_dir, "gemini-home")
    if os.path.isdir(home):
        from pathlib import Path

        from csp.clis.gemini import gemini_home

        gemini_home.bring_home(Path(home), owner)


def is_session(profile_name: str, argv: "Sequence[str]") -> bool:
    """Tell whether a command line starts an interactive session."""
    commands = {"claude": _CLAUDE_COMMANDS, "codex": _CODEX_COMMANDS, "gemini": _GEMINI_COMMANDS}
    known = commands.get(profile_name, set[str]())
    options = {arg.partition("=")[0] for arg in _options(argv)}
    words = _words(argv, _CODEX_VALUES) if profile_name == "codex" else list(argv[1:2])
    return not options & known and not known.intersection(words[:1])


def resume(profile_name: str, argv: "Sequence[str]", session_id: str) -> list[str]:
    """Return the command line that goes on with a session; the user's other arguments stay."""
    if profile_name == "codex":
        words = _words(argv, _CODEX_VALUES)
        if words[:1] == ["resume"] or words[:1] == ["fork"]:
            at = list(argv).index(words[0])
            return [*argv[:at], "resume", session_id]
        return [*argv, "resume", session_id]
    flags = _CLAUDE_SESSION if profile_name == "claude" else _GEMINI_SESSION
    if profile_name not in ("claude", "gemini"):
        return list(argv)
    kept, _ = _without(argv, flags)
    return [kept[0], "--resume", session_id, *kept[1:]]


def hook_command(spool: "StrPath") -> str:
    """Return the shell line of a hook: its input goes to the spool; it always succeeds, and says nothing."""
    folder = "'" + os.fspath(spool).replace("'", "'\"'\"'") + "'"
    return f'exec 2>/dev/null;umask 077;t={folder}/.$$;cat >"$t"&&mv "$t" {folder}/$$.json||rm -f "$t";exit 0'


def _claude(run: _Run) -> Wired:
    argv, chosen = _without(run.argv, ("--settings",))
    settings = _claude_settings(run, chosen[-1] if chosen else "")
    if settings is None:
        # Claude will say itself what is wrong with the settings it was given.
        return Wired(argv=run.argv, env=run.env)
    file = os.path.join(run.folder, "claude-settings.json")
    _write(file, dumps(settings, is_ascii=False))
    # The option before takes as many files as follow it.
    ours = [*_claude_tools(run), "--settings", file]
    session = _chosen_session(argv, _CLAUDE_SESSION)
    if session is None:
        session = run.session_id
        ours += ["--session-id", session]
    argv, rules = _claude_rules(argv, run.rules, run.cwd)
    config = run.home("CLAUDE_CONFIG_DIR", ".claude")
    place = os.path.realpath(run.cwd)
    munged = "".join(char if char.isascii() and char.isalnum() else "-" for char in place)
    hint = os.path.join(config, "projects", munged, f"{session}.jsonl")
    is_known = session and len(munged) <= _LONGEST_MUNGED
    return Wired(
        argv=[argv[0], *ours, *rules, *argv[1:]],
        # A server that is not there in half a minute has failed for the whole session.
        env={"MCP_TIMEOUT": str(mcp_entry.START_S * 1000), **run.env} if run.server else run.env,
        session_id=session,
        transcript_hint=hint if is_known else "",
        spool_dir=run.spool,
    )


def _claude_tools(run: _Run) -> list[str]:
    if not run.server:
        return []
    file = os.path.join(run.folder, "claude-mcp.json")
    _write(file, mcp_entry.claude_config(run.server))
    return ["--mcp-config", file]


def _claude_settings(run: _Run, chosen: str) -> "dict[str, Any] | None":
    hook = {"type": "command", "command": hook_command(run.spool), "timeout": HOOK_TIMEOUT_S}
    ours = {event: [{"hooks": [hook]}] for event in CLAUDE_EVENTS}
    if not chosen:
        return _with_permission(run, {"hooks": ours})
    try:
        text = chosen if chosen.lstrip().startswith("{") else _read_text(os.path.join(run.cwd, chosen))
        return _with_permission(run, _with_hooks(loads(text), ours))
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _with_permission(run: _Run, settings: "dict[str, Any]") -> "dict[str, Any]":
    settings = mcp_entry.alone(settings, has_peers=run.has_peers)
    return mcp_entry.with_permission(settings) if run.server else settings


def _claude_rules(argv: list[str], rules: str, cwd: str) -> tuple[list[str], list[str]]:
    if not rules:
        return argv, []
    kept, texts = _without(argv, ("--append-system-prompt",))
    kept, files = _without(kept, ("--append-system-prompt-file",))
    try:
        texts += [_read_text(os.path.join(cwd, file)) for file in files]
    except (OSError, ValueError):
        return argv, []
    return kept, ["--append-system-prompt", "\n\n".join([*texts[-1:], rules])]


def _codex(run: _Run) -> Wired:
    words = _words(run.argv, _CODEX_VALUES)
    ours: list[str] = []
    if not {"--no-daemon", "--remote"} & {arg.partition("=")[0] for arg in _options(run.argv)}:
        # The shared server would write the rollouts, outlive the pane, and be in the way of the next start.
        ours.append("--no-daemon")
    if run.worktrees:
        # Its sandbox would let a builder write nowhere but in its own directory.
        ours += ["--add-dir", run.worktrees]
    if run.rules:
        text = "\n\n".join(filter(None, (_codex_instructions(run), run.rules)))
        # After the user's own arguments: of two settings of a key, the last one holds.
        late = ["-c", f"developer_instructions={toml_string(text)}"]
    else:
        late = []
    late += _codex_tools(run)
    if run.has_codex_hooks:
        command = toml_string(hook_command(run.spool))
        ours.append("--dangerously-bypass-hook-trust")
        for event in CODEX_EVENTS:
            ours += ["-c", f'hooks.{event}=[{{hooks=[{{type="command",command={command}}}]}}]']
    is_resumed = words[:1] == ["resume"] and len(words) > 1 and _is_uuid(words[1])
    return Wired(
        argv=[run.argv[0], *ours, *_before_words(run.argv[1:], words, late)],
        env=run.env,
        session_id=words[1] if is_resumed else "",
        transcript_hint=os.path.join(run.home("CODEX_HOME", ".codex"), "sessions"),
        spool_dir=run.spool,
    )


def _codex_tools(run: _Run) -> list[str]:
    # To a server of the user's of that name, which has an address, no command can be added.
    if not run.server or "url" in _codex_value(run, "mcp_servers", {}).get(mcp_entry.NAME, {}):
        return []
    return mcp_entry.codex_options(run.server)


def _before_words(args: list[str], words: list[str], late: list[str]) -> list[str]:
    """Put options behind the user's options, before their first word."""
    at = next((index for index, arg in enumerate(args) if words and arg == words[0]), len(args))
    at = min(at, args.index("--") if "--" in args else len(args))
    return [*args[:at], *late, *args[at:]]


def _codex_instructions(run: _Run) -> str:
    """Return the user's own developer instructions, which a setting of ours would replace."""
    found: str = _codex_value(run, "developer_instructions", "")
    return found


def _codex_value(run: _Run, key: str, default: "Any") -> "Any":
    """Return the last value of the user's own settings for a key, of the kind of its default."""
    import tomllib

    home = run.home("CODEX_HOME", ".codex")
    _, profiles = _without(run.argv, ("-p", "--profile"))
    _, settings = _without(run.argv, ("-c", "--config"))
    files = [os.path.join(home, f"{name}config.toml") for name in ("", *(f"{name}." for name in profiles))]
    found = default
    for text in [*map(_read, files), *settings]:
        try:
            value = tomllib.loads(text).get(key, default)
        except tomllib.TOMLDecodeError:
            value = text.removeprefix(f"{key}=") if f"{key}=" in text else default
        found = value if isinstance(value, type(default)) and value else found
    return found


def _gemini(run: _Run) -> Wired:
    from pathlib import Path

    from csp.clis.gemini import gemini_home

    user_home = Path(run.home("GEMINI_CLI_HOME"))
    theirs = gemini_home.read_settings(user_home / ".gemini" / gemini_home.SETTINGS)
    session = _chosen_session(run.argv, _GEMINI_SESSION)
    ours = [] if session is not None else ["--session-id", run.session_id]
    argv = [run.argv[0], *ours, *run.argv[1:]]
    session = run.session_id if session is None else session
    hook = {
        "type": "command",
        "name": "csp",
        "command": hook_command(run.spool),
        "timeout": HOOK_TIMEOUT_S * 1000,
    }
    try:
        # Settings that cannot be read are the CLI's to complain about, in the user's own home.
        settings = _with_hooks(theirs or {}, {event: [{"hooks": [hook]}] for event in GEMINI_EVENTS})
        settings = mcp_entry.with_server(settings, run.server, run.env) if run.server else settings
        extra = {}
        if run.rules:
            settings["context"] = _with_context_file(settings.get("context") or {})
            extra[RULES_FILE] = run.rules + "\n"
        home = Path(run.folder, "gemini-home")
        is_wired = theirs is not None
        if is_wired:
            gemini_home.build(home, user_home, settings, extra)
    except (OSError, TypeError, AttributeError):
        is_wired = False
    return Wired(
        argv=argv,
        env={**run.env, **({"GEMINI_CLI_HOME": str(home)} if is_wired else {})},
        session_id=session,
        transcript_hint=str(user_home / ".gemini" / "tmp"),
        spool_dir=run.spool,
    )


def _plain(run: _Run) -> Wired:
    """Name the file that csp.clis.plain.transcript will read."""
    transcript = os.path.join(run.folder, "transcript.jsonl")
    return Wired(
        argv=run.argv,
        env={**run.env, "CSP_TRANSCRIPT": transcript},
        transcript_hint=transcript,
        spool_dir=run.spool,
    )


def _with_context_file(context: "dict[str, Any]") -> "dict[str, Any]":
    names = context.get("fileName") or "GEMINI.md"
    return {**context, "fileName": [*([names] if isinstance(names, str) else names), RULES_FILE]}


def _with_hooks(settings: "dict[str, Any]", ours: "dict[str, Any]") -> "dict[str, Any]":
    hooks = dict(settings.get("hooks") or {})
    for event, entries in ours.items():
        hooks[event] = [*(hooks.get(event) or []), *entries]
    return {**settings, "hooks": hooks}


def _options(argv: "Sequence[str]") -> list[str]:
    args = list(argv[1:])
    return [arg for arg in args[: args.index("--") if "--" in args else len(args)] if arg.startswith("-")]


def _words(argv: "Sequence[str]", with_value: set[str]) -> list[str]:
    """Return the arguments that are no options, nor the values of options."""
    words, args = [], iter(argv[1:])
    for arg in args:
        if arg == "--":
            break
        if arg in with_value:
            next(args, None)
        elif not arg.startswith("-"):
            words.append(arg)
    return words


def _without(argv: "Sequence[str]", flags: "Sequence[str]") -> tuple[list[str], list[str]]:
    """Take options out of a command line; return it without them, with their values."""
    values: list[str] = []
    kept, at = list(argv[:1]), 1
    while at < len(argv):
        arg = argv[at]
        name, sign, value = arg.partition("=")
        if arg == "--":
            return [*kept, *argv[at:]], values
        if name not in flags:
            kept.append(arg)
        elif sign:
            values.append(value)
        elif at + 1 < len(argv) and not argv[at + 1].startswith("-"):
            values.append(argv[at + 1])
            at += 1
        at += 1
    return kept, values


def _chosen_session(argv: "Sequence[str]", flags: "Sequence[str]") -> str | None:
    """Return the session that the user has chosen, "" if it has no id yet; None if there is none."""
    chosen = {arg.partition("=")[0] for arg in _options(argv)} & set(flags)
    if not chosen:
        return None
    _, values = _without(argv, ("--session-id", "-r", "--resume"))
    is_forked = "--fork-session" in chosen and "--session-id" not in chosen
    found = [value for value in values if _is_uuid(value)]
    return found[-1] if found and not is_forked else ""


def _is_uuid(text: str) -> bool:
    parts = text.split("-")
    return list(map(len, parts)) == _UUID_PARTS and _HEX.issuperset("".join(parts))


def _read(path: str) -> str:
    try:
        return _read_text(path)
    except (OSError, ValueError):
        return ""


def _read_text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)


_WIRINGS: "dict[str, Callable[[_Run], Wired]]" = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "plain": _plain,
}
