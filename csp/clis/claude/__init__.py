"""Claude Code."""

from csp.clis.adapter import CliAdapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from csp.clis.adapter import CliRun, Wired
    from csp.clis.claude.transcript import ClaudeReader

#: Subcommands and options that start something other than an interactive session.
_NO_SESSION = frozenset(
    (
        *("agents", "auth", "auto-mode", "doctor", "gateway", "install", "mcp", "plugin", "plugins"),
        *("project", "setup-token", "ultrareview", "update", "upgrade", "-p", "--print", "-h"),
        *("--help", "-v", "--version", "--bg", "--background"),
    )
)
SESSION_FLAGS = ("--session-id", "-r", "--resume", "-c", "--continue", "--fork-session", "--from-pr")


class ClaudeAdapter(CliAdapter):
    """Claude Code: wired by a settings file and options, followed by its transcript and its hooks."""

    label = "Claude Code"
    install = "npm install -g @anthropic-ai/claude-code"
    orchestrator_options = ("--model", "haiku")
    has_mcp = True
    has_hooks = True
    peers_help = "leave Claude Code its SendMessage and ListAgents, by which it writes to its agents"
    knows_transcript = True

    def is_session(self, argv: "Sequence[str]") -> bool:
        from csp.clis.wiring_parts import option_names

        return not _NO_SESSION & {*option_names(argv), *argv[1:2]}

    def wire(self, run: "CliRun") -> "Wired":
        from csp.clis.claude.wiring import wire_claude

        return wire_claude(run)

    def has_chosen_session(self, argv: "Sequence[str]") -> bool:
        from csp.clis.wiring_parts import chosen_session

        return chosen_session(argv, SESSION_FLAGS) is not None

    def resume(self, argv: "Sequence[str]", session_id: str) -> list[str]:
        from csp.clis.wiring_parts import with_resume

        return with_resume(argv, SESSION_FLAGS, session_id)

    def session_of(self, transcript: "Path") -> str:
        from csp.clis.wiring_parts import uuid_in_name

        return uuid_in_name(transcript.stem)

    def new_reader(self, since: float, session_id: str, path: str) -> "ClaudeReader":
        from csp.clis.claude.transcript import ClaudeReader

        return ClaudeReader(since, session_id, path)

    def find_subagents(self, transcript: "Path") -> "list[Path]":
        return sorted(transcript.with_suffix("").glob("subagents/*.jsonl"))


ADAPTER = ClaudeAdapter()
