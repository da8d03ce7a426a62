"""The table of the command line's verbs, with one row per verb.

A row names its handler instead of importing it, so that a verb loads only what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from csp.cli.arguments import Handler


class Verb(NamedTuple):
    """One verb; `handler` is a module in csp.cli, with the function if its name differs."""

    name: str
    help: str
    handler: str

    def load(self) -> "Handler":
        """Import the handler."""
        module, _, function = self.handler.partition(":")
        found: Handler = getattr(import_module(f"csp.cli.{module}"), function or module)
        return found


VERBS: Final = (
    Verb("up", "open the group chat in tmux", "up"),
    Verb("down", "stop a room with its panes, agents and gateway", "up:down"),
    Verb("rooms", "list your rooms, running or not", "rooms"),
    Verb("join", "join a room on another machine with agents of this one", "join"),
    Verb("add", "start another agent in the room", "up:add"),
    Verb("chat", "talk to the room from this terminal", "chat"),
    Verb("web", "open the room in a browser", "web"),
    Verb("gateway", "run a room's gateway", "gateway"),
    Verb("hub", "run many rooms of a cluster in one process", "hub"),
    Verb("sidecar", "run a CLI in this pane as an agent", "sidecar"),
    Verb("agent", "run an API model as an agent", "agent"),
    Verb("mcp", "serve the room to an MCP client on stdin", "mcp"),
    Verb("send", "send a message", "send"),
    Verb("resend", "resend a message as a new one", "send:act"),
    Verb("cancel", "withdraw a message that has not arrived", "send:act"),
    Verb("continue", "release a message held by the loop guard", "send:act"),
    Verb("agents", "list the agents", "status:agents"),
    Verb("status", "show the room, its agents and what needs you", "status"),
    Verb("history", "show, prune or redact the history", "history"),
    Verb("export", "print the whole history", "history:export"),
    Verb("replay", "replay the history with its original timing", "replay"),
    Verb("logs", "show the logs of the gateway and the sidecars", "replay:logs"),
    Verb("mode", "set, show, steer or end the mode", "mode"),
    Verb("collaborate", "let models work on an objective together", "collaborate"),
    Verb("board", "write on, search or show the whiteboard", "board"),
    Verb("review", "have one agent build and another one review", "review"),
    Verb("stop", "stop all running work in the room", "control:stop"),
    Verb("pause", "pause deliveries to an agent", "control"),
    Verb("resume", "resume deliveries to a paused agent", "control"),
    Verb("share", "also post an agent's replies to text typed in its pane", "control"),
    Verb("noshare", "stop posting replies to text typed in an agent's pane", "control"),
    Verb("interrupt", "interrupt an agent's current work", "control"),
    Verb("approve", "answer yes to an agent's dialog", "control:answer_dialog"),
    Verb("deny", "answer no to an agent's dialog", "control:answer_dialog"),
    Verb("allow", "allow an agent to run a command without approval", "needs:allow"),
    Verb("rules", "list the commands that need no approval", "needs:rules"),
    Verb("unallow", "remove an approval rule", "needs:unallow"),
    Verb("decide", "decide a tie, or how to handle a limit", "needs:decide"),
    Verb("report", "show what happened while you were away", "report"),
    Verb("restart", "restart an agent's CLI", "control"),
    Verb("remove", "remove an agent from the room", "control:remove"),
    Verb("token", "print the room's token, for curl", "status:token"),
    Verb("config", "show every setting with its source", "status:config"),
    Verb("trust", "accept the settings in a csp.toml", "trust"),
    Verb("doctor", "check this machine, or a journal", "doctor"),
    Verb("journal", "copy a journal into a cluster or out of it, compare journals", "journal"),
    Verb("cluster", "print the files for a cluster, make its keys", "cluster"),
    Verb("docs", "print a page of the documentation", "docs"),
    Verb("uninstall", "end all rooms and remove CSP's files, except the histories", "uninstall"),
    Verb("demo", "run a demo agent in this terminal", "demo"),
    Verb("bench", "run benchmarks on this machine", "bench"),
    Verb("completion", "print a completion script", "completion"),
)
