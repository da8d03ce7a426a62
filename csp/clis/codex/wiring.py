"""Wire a run of Codex with options for our rules, MCP server and hooks."""

import os

from csp.clis import mcp_entry
from csp.clis.adapter import Wired
from csp.clis.command_line import is_uuid, option_names, without_options
from csp.clis.wiring_parts import hook_command, read_text
from csp.fast_start.fast_json import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from csp.clis.adapter import CliRun

EVENTS = ("PermissionRequest",)


def wire_codex(run: "CliRun", words: list[str]) -> Wired:
    """Return the run with our wiring; `words` are its arguments that are neither options nor their values."""
    ours: list[str] = []
    if not {"--no-daemon", "--remote"} & option_names(run.argv):
        # The shared daemon would write the rollouts, outlive the pane and block the next start.
        ours.append("--no-daemon")
    if run.worktrees:
        # Its sandbox would only allow a builder to write to its own directory.
        ours += ["--add-dir", run.worktrees]
    if run.is_hook_trusted:
        command = toml_string(hook_command(run.spool))
        ours.append("--dangerously-bypass-hook-trust")
        for event in EVENTS:
            ours += ["-c", f'hooks.{event}=[{{hooks=[{{type="command",command={command}}}]}}]']
    late: list[str] = []
    if run.rules:
        # Our setting replaces the user's own instructions, so it includes them.
        text = "\n\n".join(filter(None, (_user_setting(run, "developer_instructions", ""), run.rules)))
        late += ["-c", f"developer_instructions={toml_string(text)}"]
    # A user's server with the same name and a URL cannot be given a command.
    if run.server and "url" not in _user_setting(run, "mcp_servers", {}).get(mcp_entry.NAME, {}):
        late += mcp_options(run.server)
    # Insert after the user's options, because the last one for a key wins, and before their first word.
    args = run.argv[1:]
    at = next((index for index, arg in enumerate(args) if words and arg == words[0]), len(args))
    at = min(at, args.index("--") if "--" in args else len(args))
    is_resumed = words[:1] == ["resume"] and len(words) > 1 and is_uuid(words[1])
    return Wired(
        argv=[run.argv[0], *ours, *args[:at], *late, *args[at:]],
        env=run.env,
        session_id=words[1] if is_resumed else "",
        transcript_hint=os.path.join(run.home("CODEX_HOME", ".codex"), "sessions"),
        spool_dir=run.spool,
    )


def _user_setting(run: "CliRun", key: str, default: "Any") -> "Any":
    """Return the last value of a key in the user's own settings if it has the type of the default."""
    import contextlib
    import tomllib

    home = run.home("CODEX_HOME", ".codex")
    _, profiles = without_options(run.argv, ("-p", "--profile"))
    _, settings = without_options(run.argv, ("-c", "--config"))
    files = [os.path.join(home, f"{name}config.toml") for name in ("", *(f"{name}." for name in profiles))]
    found = default
    texts = []
    for file in files:
        with contextlib.suppress(OSError, ValueError):
            texts.append(read_text(file))
    for text in [*texts, *settings]:
        try:
            value = tomllib.loads(text).get(key, default)
        except tomllib.TOMLDecodeError:
            value = text.removeprefix(f"{key}=") if f"{key}=" in text else default
        found = value if isinstance(value, type(default)) and value else found
    return found


def mcp_options(command: "Sequence[str]") -> list[str]:
    """Return the options for our server, which gets only the named variables."""
    values = {
        "command": toml_string(command[0]),
        "args": f"[{','.join(map(toml_string, command[1:]))}]",
        "env_vars": f"[{','.join(map(toml_string, mcp_entry.ENV))}]",
        "default_tools_approval_mode": toml_string("approve"),
        "startup_timeout_sec": str(mcp_entry.START_S),
        "tool_timeout_sec": str(mcp_entry.CALL_S),
    }
    name = f"mcp_servers.{mcp_entry.NAME}"
    return [word for key, value in values.items() for word in ("-c", f"{name}.{key}={value}")]


def toml_string(text: str) -> str:
    """Return the text as a TOML string."""
    return dumps(text, is_ascii=False).replace("\x7f", "\\u007f")
