"""The interface between CSP and one CLI."""

import os

from csp.clis.command_line import chosen_session, is_uuid, option_names, without_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from csp.clis.transcript_reader import FoundTranscripts, TranscriptReader


class CliRun:
    """A run of a CLI before it is wired; its own files are stored in `folder`, which must be private."""

    def __init__(
        self,
        folder: "str | os.PathLike[str]",
        argv: "Sequence[str]",
        env: "Mapping[str, str]",
        session_id: str,
        rules: str = "",
        *,
        cwd: str | None = None,
        worktrees: str = "",
        server: "Sequence[str]" = (),
        is_hook_trusted: bool = False,
        has_peers: bool = False,
    ) -> None:
        self.folder, self.argv, self.env = os.fspath(folder), list(argv), dict(env)
        self.cwd = cwd or os.getcwd()
        self.spool = os.path.join(self.folder, "spool")
        #: A new UUID, used if the user has not chosen a session.
        self.session_id = session_id
        #: The instructions about the room, in addition to the user's own instructions.
        self.rules = rules.strip()
        #: The folder outside the agent's own directory in which it is asked to build.
        self.worktrees = worktrees
        #: The command of our MCP server; empty if there is none.
        self.server = list(server)
        #: Whether the user trusts our hooks, for a CLI that requires it.
        self.is_hook_trusted = is_hook_trusted
        #: Whether the CLI may write to other agents of its own kind.
        self.has_peers = has_peers

    def home(self, variable: str, *parts: str) -> str:
        """Return the folder named by a variable, or else one in the home directory."""
        return self.env.get(variable) or os.path.join(self.env.get("HOME") or os.path.expanduser("~"), *parts)


class Wired:
    """A run that is ready to start; without a spool, it is not a wired interactive session."""

    def __init__(
        self,
        *,
        argv: list[str],
        env: dict[str, str],
        session_id: str = "",
        transcript_hint: str = "",
        spool_dir: str = "",
    ) -> None:
        self.argv, self.env, self.session_id, self.spool_dir = argv, env, session_id, spool_dir
        #: The file that the CLI will write, or the folder that will contain it.
        self.transcript_hint = transcript_hint

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Wired) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # its lists may change

    def __repr__(self) -> str:
        return f"Wired({vars(self)})"


class CliAdapter:
    """The behaviour of one CLI beyond its profile; this base class changes nothing."""

    #: The name shown to people.
    label = ""
    #: The command line that installs the CLI.
    install = ""
    #: The options with which the CLI runs as the orchestrator if nobody has chosen another command.
    orchestrator_options: tuple[str, ...] = ()
    #: Whether the wiring passes on the room's rules.
    takes_rules = False
    #: Whether the CLI can use our MCP server.
    has_mcp = False
    #: Whether the CLI runs our hooks without asking the user to trust them.
    has_hooks = False
    #: The effect of the setting `<name>_peers`; empty for a CLI without tools to reach its own kind.
    peers_help = ""
    #: Whether the wiring determines the exact path of the transcript.
    knows_transcript = False
    #: Whether the CLI reports the whole command that it asks to run, so that approval rules apply to it.
    reports_commands = False
    #: Whether a process may write to several transcripts at once that no hook names.
    has_several_transcripts = False

    #: Subcommands and options that start something other than an interactive session.
    no_session: "frozenset[str]" = frozenset()
    #: Options by which the user chooses a session.
    session_flags: tuple[str, ...] = ()

    def subcommand(self, argv: "Sequence[str]") -> list[str]:
        """Return the word that may be a subcommand, if there is one."""
        return list(argv[1:2])

    def is_session(self, argv: "Sequence[str]") -> bool:
        """Return whether a command line starts an interactive session, which can be wired."""
        return not self.no_session & {*option_names(argv), *self.subcommand(argv)}

    def wire(self, run: CliRun) -> Wired:
        """Return a run with our hooks, rules and tools; its own files are stored in `run.folder`."""
        return Wired(argv=run.argv, env=run.env)

    def unwire(self, home: str, owner: int | None) -> None:
        """Clean up `<name>-home`, a folder left by a run; with `owner`, only if that process built it."""

    def has_chosen_session(self, argv: "Sequence[str]") -> bool:
        """Return whether the user has chosen the session to continue."""
        return chosen_session(argv, self.session_flags) is not None

    def resume(self, argv: "Sequence[str]", session_id: str) -> list[str]:
        """Return the command line that continues a session, keeping the user's other arguments."""
        if not self.session_flags:
            return list(argv)
        kept, _ = without_options(argv, self.session_flags)
        return [kept[0], "--resume", session_id, *kept[1:]]

    def session_of(self, transcript: "Path") -> str:
        """Return the session id of a transcript, which is usually part of its file name; "" if unknown."""
        session = transcript.stem[-36:]
        return session if is_uuid(session) else ""

    def new_reader(self, since: float, session_id: str, path: str) -> "TranscriptReader":
        """Return a reader of the transcripts that starts at `since`, in Unix seconds."""
        raise NotImplementedError

    def find_transcripts(self, hint: "Path", session_id: str, pid: int) -> "FoundTranscripts":
        """Return those transcripts of a run that no hook names."""
        from csp.clis.transcript_reader import FoundTranscripts

        return FoundTranscripts()

    def find_subagents(self, transcript: "Path") -> "list[Path]":
        """Return the transcripts of a conversation's subagents."""
        return []
