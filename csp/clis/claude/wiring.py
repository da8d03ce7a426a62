"""Wire a run of Claude Code with our hooks, MCP server, rules and a session id."""

import os

from csp.clis import mcp_entry
from csp.clis.adapter import Wired
from csp.clis.command_line import chosen_session, without_options
from csp.clis.wiring_parts import HOOK_TIMEOUT_S, hook_command, read_text, with_hooks, write_private
from csp.fast_start.fast_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from csp.clis.adapter import CliRun

#: Each hook starts a process, so only events that nothing else reports are included.
EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PermissionRequest"),
    *("PostToolUse", "PostToolUseFailure", "Stop", "StopFailure"),
)
#: The tools that find other sessions on the machine and write to them.
PEER_TOOLS = ("SendMessage", "ListAgents")
_LONGEST_MUNGED = 200


def wire_claude(run: "CliRun", session_flags: "Sequence[str]") -> Wired:
    """Return the run with our wiring, or unchanged if the user's own settings cannot be read."""
    argv, chosen = without_options(run.argv, ("--settings",))
    settings = _settings(run, chosen[-1] if chosen else "")
    if settings is None:
        # Claude itself will report the error in the given settings.
        return Wired(argv=run.argv, env=run.env)
    file = os.path.join(run.folder, "claude-settings.json")
    write_private(file, dumps(settings, is_ascii=False))
    ours = ["--settings", file]
    if run.server:
        servers = os.path.join(run.folder, "claude-mcp.json")
        write_private(servers, mcp_config(run.server))
        # This option accepts any number of files, so another option must follow.
        ours = ["--mcp-config", servers, *ours]
    session = chosen_session(argv, session_flags)
    if session is None:
        session = run.session_id
        ours += ["--session-id", session]
    argv, rules = _rules(argv, run.rules, run.cwd)
    config = run.home("CLAUDE_CONFIG_DIR", ".claude")
    place = os.path.realpath(run.cwd)
    munged = "".join(char if char.isascii() and char.isalnum() else "-" for char in place)
    hint = os.path.join(config, "projects", munged, f"{session}.jsonl")
    is_known = session and len(munged) <= _LONGEST_MUNGED
    return Wired(
        argv=[argv[0], *ours, *rules, *argv[1:]],
        # By default, a server that does not answer within 30 s counts as failed for the whole session.
        env={"MCP_TIMEOUT": str(mcp_entry.START_S * 1000), **run.env} if run.server else run.env,
        session_id=session,
        transcript_hint=hint if is_known else "",
        spool_dir=run.spool,
    )


def _settings(run: "CliRun", chosen: str) -> "dict[str, Any] | None":
    """Return the settings of the run, merged with the user's chosen file or text; None if unreadable."""
    hook = {"type": "command", "command": hook_command(run.spool), "timeout": HOOK_TIMEOUT_S}
    ours = {event: [{"hooks": [hook]}] for event in EVENTS}
    theirs: dict[str, Any] = {}
    try:
        if chosen:
            is_text = chosen.lstrip().startswith("{")
            theirs = loads(chosen if is_text else read_text(os.path.join(run.cwd, chosen)))
        settings = without_peers(with_hooks(theirs, ours), has_peers=run.has_peers)
        return with_permission(settings) if run.server else settings
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _rules(argv: list[str], rules: str, cwd: str) -> tuple[list[str], list[str]]:
    """Return the command line and the option with our rules, which include the user's own text."""
    if not rules:
        return argv, []
    kept, texts = without_options(argv, ("--append-system-prompt",))
    kept, files = without_options(kept, ("--append-system-prompt-file",))
    try:
        texts += [read_text(os.path.join(cwd, file)) for file in files]
    except (OSError, ValueError):
        return argv, []
    return kept, ["--append-system-prompt", "\n\n".join([*texts[-1:], rules])]


def mcp_config(command: "Sequence[str]") -> str:
    """Return the content of a file for --mcp-config; its server gets the whole environment of the CLI."""
    # Without `alwaysLoad`, newer versions hide the tools from the model until it searches for them.
    entry = {"type": "stdio", "command": command[0], "args": list(command[1:]), "alwaysLoad": True}
    return dumps({"mcpServers": {mcp_entry.NAME: entry}}, is_ascii=False)


def with_permission(settings: "dict[str, Any]") -> "dict[str, Any]":
    """Return settings that allow our own tools without asking."""
    permissions = dict(settings.get("permissions") or {})
    permissions["allow"] = [*(permissions.get("allow") or []), f"mcp__{mcp_entry.NAME}"]
    return {**settings, "permissions": permissions}


def without_peers(settings: "dict[str, Any]", *, has_peers: bool) -> "dict[str, Any]":
    """Return settings that prevent other sessions from reaching this one except through the room.

    Without `has_peers`, it cannot reach others either, because the tools for that are denied. Its subagents
    still work, but it cannot write to one of them a second time.
    """
    settings = {**settings, "crossSessionInbound": "refuse"}
    if not has_peers:
        permissions = dict(settings.get("permissions") or {})
        permissions["deny"] = [*(permissions.get("deny") or []), *PEER_TOOLS]
        settings["permissions"] = permissions
    return settings
