"""The adapter for Claude Code."""

from csp.clis.adapter import CliAdapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from csp.clis.adapter import CliRun, Wired
    from csp.clis.claude.transcript import ClaudeReader


class ClaudeAdapter(CliAdapter):
    """Claude Code: wired with a settings file and options, and followed through its transcript and hooks."""

    label = "Claude Code"
    install = "npm install -g @anthropic-ai/claude-code"
    orchestrator_options = ("--model", "haiku")
    takes_rules = True
    has_mcp = True
    reports_commands = True
    has_hooks = True
    peers_help = "let Claude Code use SendMessage and ListAgents to write to other Claude agents"
    knows_transcript = True

    no_session = frozenset(
        (
            *("agents", "auth", "auto-mode", "doctor", "gateway", "install", "mcp", "plugin", "plugins"),
            *("project", "setup-token", "ultrareview", "update", "upgrade", "-p", "--print", "-h"),
            *("--help", "-v", "--version", "--bg", "--background"),
        )
    )
    session_flags = ("--session-id", "-r", "--resume", "-c", "--continue", "--fork-session", "--from-pr")

    def wire(self, run: "CliRun") -> "Wired":
        from csp.clis.claude.wiring import wire_claude

        return wire_claude(run, self.session_flags)

    def new_reader(self, since: float, session_id: str, path: str) -> "ClaudeReader":
        from csp.clis.claude.transcript import ClaudeReader

        return ClaudeReader(since, session_id, path)

    def find_subagents(self, transcript: "Path") -> "list[Path]":
        return sorted(transcript.with_suffix("").glob("subagents/*.jsonl"))


ADAPTER = ClaudeAdapter()
