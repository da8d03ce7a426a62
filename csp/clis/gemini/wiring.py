"""Wire a run of Gemini CLI with a separate home whose settings contain our hooks, MCP server and rules."""

from pathlib import Path

from csp.clis import mcp_entry
from csp.clis.adapter import Wired
from csp.clis.command_line import chosen_session
from csp.clis.gemini import gemini_home
from csp.clis.wiring_parts import HOOK_TIMEOUT_S, hook_command, with_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from csp.clis.adapter import CliRun

#: Each hook starts a process, so only events that nothing else reports are included.
EVENTS = ("SessionStart", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification")
RULES_FILE = "CSP-RULES.md"


def wire_gemini(run: "CliRun", session_flags: "Sequence[str]") -> Wired:
    """Return the run with our wiring; it uses the user's own home if its settings cannot be read."""
    user_home = Path(run.home("GEMINI_CLI_HOME"))
    theirs = gemini_home.read_settings(user_home / ".gemini" / gemini_home.SETTINGS)
    session = chosen_session(run.argv, session_flags)
    argv = run.argv
    if session is None:
        session = run.session_id
        argv = [argv[0], "--session-id", session, *argv[1:]]
    home = Path(run.folder, "gemini-home")
    env = run.env
    # If the settings cannot be read, let the CLI report that in the user's own home.
    if theirs is not None:
        try:
            extra = {RULES_FILE: run.rules + "\n"} if run.rules else {}
            gemini_home.build(home, user_home, _settings(run, theirs), extra)
            env = {**env, "GEMINI_CLI_HOME": str(home)}
        except (OSError, TypeError, AttributeError):
            pass
    return Wired(
        argv=argv,
        env=env,
        session_id=session,
        transcript_hint=str(user_home / ".gemini" / "tmp"),
        spool_dir=run.spool,
    )


def _settings(run: "CliRun", theirs: "dict[str, Any]") -> "dict[str, Any]":
    """Return the user's settings with our hooks, our server and our rules file."""
    hook = {
        "type": "command",
        "name": "csp",
        "command": hook_command(run.spool),
        "timeout": HOOK_TIMEOUT_S * 1000,
    }
    settings = with_hooks(theirs, {event: [{"hooks": [hook]}] for event in EVENTS})
    if run.server:
        settings = with_server(settings, run.server, run.env)
    if run.rules:
        context = settings.get("context") or {}
        names = context.get("fileName") or "GEMINI.md"
        names = [*([names] if isinstance(names, str) else names), RULES_FILE]
        settings["context"] = {**context, "fileName": names}
    return settings


def with_server(
    settings: "dict[str, Any]", command: "Sequence[str]", env: "Mapping[str, str]"
) -> "dict[str, Any]":
    """Return settings with our server, which is also added to a list of allowed servers."""
    entry = {
        "command": command[0],
        "args": list(command[1:]),
        # Gemini hides variables with secret-looking names from servers that do not list them.
        "env": {name: f"${name}" for name in mcp_entry.ENV if name in env},
        "trust": True,
        "timeout": mcp_entry.CALL_S * 1000,
    }
    servers = {**(settings.get("mcpServers") or {}), mcp_entry.NAME: entry}
    settings = {**settings, "mcpServers": servers}
    rules = settings.get("mcp") or {}
    if rules.get("allowed"):
        settings["mcp"] = {**rules, "allowed": [*rules["allowed"], mcp_entry.NAME]}
    return settings
