"""The adapter for Gemini CLI."""

from csp.clis.adapter import CliAdapter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from csp.clis.adapter import CliRun, Wired
    from csp.clis.gemini.transcript import GeminiReader
    from csp.clis.transcript_reader import FoundTranscripts


class GeminiAdapter(CliAdapter):
    """Gemini CLI: wired with a separate home for the run, and followed through its chat file and hooks."""

    label = "Gemini CLI"
    install = "npm install -g @google/gemini-cli"
    takes_rules = True
    has_mcp = True
    reports_commands = True
    has_hooks = True

    no_session = frozenset(
        (
            *("mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma", "-p"),
            *("--prompt", "--acp", "--experimental-acp", "-l", "--list-extensions", "--list-sessions"),
            *("--delete-session", "-v", "--version", "-h", "--help"),
        )
    )
    session_flags = ("--session-id", "-r", "--resume", "--session-file")

    def wire(self, run: "CliRun") -> "Wired":
        from csp.clis.gemini.wiring import wire_gemini

        return wire_gemini(run, self.session_flags)

    def unwire(self, home: str, owner: int | None) -> None:
        from pathlib import Path

        from csp.clis.gemini.gemini_home import bring_home

        bring_home(Path(home), owner)

    def session_of(self, transcript: "Path") -> str:
        from csp.clis.gemini.transcript import session_in

        return session_in(transcript)

    def new_reader(self, since: float, session_id: str, path: str) -> "GeminiReader":
        from csp.clis.gemini.transcript import GeminiReader

        return GeminiReader(since, session_id, path)

    def find_transcripts(self, hint: "Path", session_id: str, pid: int) -> "FoundTranscripts":
        from csp.clis.gemini.transcript import find_chat
        from csp.clis.transcript_reader import FoundTranscripts

        chat = find_chat(hint, session_id)
        return FoundTranscripts(main=[chat] if chat else [])

    def find_subagents(self, transcript: "Path") -> "list[Path]":
        # The folder name is the whole session id; the name of the chat file has only its beginning.
        return sorted(transcript.parent.glob(f"{transcript.stem[-8:]}*/*.jsonl"))


ADAPTER = GeminiAdapter()
