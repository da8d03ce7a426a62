"""Codex."""

from csp.clis.adapter import CliAdapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from csp.clis.adapter import CliRun, Wired
    from csp.clis.codex.transcript import CodexReader
    from csp.clis.transcript_reader import FoundTranscripts

#: Subcommands and options that start something other than an interactive session.
_NO_SESSION = frozenset(
    (
        *("agents", "exec", "e", "review", "login", "logout", "mcp", "plugin", "app-server"),
        *("remote-control", "completion", "update", "doctor", "sandbox", "debug", "apply", "a"),
        *("queue", "archive", "delete", "migrate-rollouts", "migrate-nfs-db", "unarchive", "cloud"),
        *("exec-server", "features", "help", "-h", "--help", "-V", "--version"),
    )
)
_CHOOSE_SESSION = ("resume", "fork")
#: Options that take a value, which is not a subcommand.
WITH_VALUE = frozenset(
    (
        *("-c", "--config", "--enable", "--disable", "--remote", "--remote-auth-token-env", "-i"),
        *("--image", "-m", "--model", "--local-provider", "-p", "--profile", "-s", "--sandbox", "-C"),
        *("--cd", "--add-dir", "-a", "--ask-for-approval"),
    )
)


class CodexAdapter(CliAdapter):
    """Codex: wired by options alone, followed by the rollouts that its processes write."""

    label = "Codex"
    install = "npm install -g @openai/codex"
    has_mcp = True
    has_several_transcripts = True

    def is_session(self, argv: "Sequence[str]") -> bool:
        from csp.clis.wiring_parts import option_names

        return not _NO_SESSION & {*option_names(argv), *_subcommand(argv)}

    def wire(self, run: "CliRun") -> "Wired":
        from csp.clis.codex.wiring import wire_codex

        return wire_codex(run)

    def has_chosen_session(self, argv: "Sequence[str]") -> bool:
        return any(word in _CHOOSE_SESSION for word in _subcommand(argv))

    def resume(self, argv: "Sequence[str]", session_id: str) -> list[str]:
        at = argv.index(_subcommand(argv)[0]) if self.has_chosen_session(argv) else len(argv)
        return [*argv[:at], "resume", session_id]

    def session_of(self, transcript: "Path") -> str:
        from csp.clis.wiring_parts import uuid_in_name

        return uuid_in_name(transcript.stem)

    def new_reader(self, since: float, session_id: str, path: str) -> "CodexReader":
        from csp.clis.codex.transcript import CodexReader

        return CodexReader(since, session_id, path)

    def find_transcripts(self, hint: "Path", session_id: str, pid: int) -> "FoundTranscripts":
        from csp.clis.codex.rollouts import find_rollouts

        return find_rollouts(hint, pid)


def _subcommand(argv: "Sequence[str]") -> list[str]:
    """Return the first word of a command line that is not an option, if there is one."""
    from csp.clis.wiring_parts import plain_words

    return plain_words(argv, WITH_VALUE)[:1]


ADAPTER = CodexAdapter()
