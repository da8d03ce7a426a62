"""The adapter for Codex."""

from csp.clis.adapter import CliAdapter
from csp.clis.command_line import plain_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from csp.clis.adapter import CliRun, Wired
    from csp.clis.codex.transcript import CodexReader
    from csp.clis.transcript_reader import FoundTranscripts

_CHOOSE_SESSION = ("resume", "fork")
#: Options that take a value, which must not be mistaken for a subcommand.
_WITH_VALUE = frozenset(
    (
        *("-c", "--config", "--enable", "--disable", "--remote", "--remote-auth-token-env", "-i"),
        *("--image", "-m", "--model", "--local-provider", "-p", "--profile", "-s", "--sandbox", "-C"),
        *("--cd", "--add-dir", "-a", "--ask-for-approval"),
    )
)


class CodexAdapter(CliAdapter):
    """Codex: wired only with options, and followed through the rollouts that its processes write."""

    label = "Codex"
    install = "npm install -g @openai/codex"
    takes_rules = True
    reports_commands = True
    has_mcp = True
    has_several_transcripts = True

    no_session = frozenset(
        (
            *("agents", "exec", "e", "review", "login", "logout", "mcp", "plugin", "app-server"),
            *("remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply", "a"),
            *("queue", "archive", "delete", "migrate-rollouts", "migrate-nfs-db", "unarchive", "cloud"),
            *("exec-server", "features", "help", "-h", "--help", "-V", "--version"),
        )
    )

    def subcommand(self, argv: "Sequence[str]") -> list[str]:
        return plain_words(argv, _WITH_VALUE)[:1]

    def wire(self, run: "CliRun") -> "Wired":
        from csp.clis.codex.wiring import wire_codex

        return wire_codex(run, plain_words(run.argv, _WITH_VALUE))

    def has_chosen_session(self, argv: "Sequence[str]") -> bool:
        return any(word in _CHOOSE_SESSION for word in self.subcommand(argv))

    def resume(self, argv: "Sequence[str]", session_id: str) -> list[str]:
        at = argv.index(self.subcommand(argv)[0]) if self.has_chosen_session(argv) else len(argv)
        return [*argv[:at], "resume", session_id]

    def new_reader(self, since: float, session_id: str, path: str) -> "CodexReader":
        from csp.clis.codex.transcript import CodexReader

        return CodexReader(since, session_id, path)

    def find_transcripts(self, hint: "Path", session_id: str, pid: int) -> "FoundTranscripts":
        from csp.clis.codex.rollouts import find_rollouts

        return find_rollouts(hint, pid)


ADAPTER = CodexAdapter()
