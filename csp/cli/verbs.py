"""List the verbs of the command line: one row each.

A row names its function instead of importing it, so that a verb loads only what it needs.
"""

import argparse
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from csp.clis.registry import profile_names
from csp.errors import BadInput
from csp.model_providers import PROVIDERS, well_known
from csp.setting_types import COUNT, FROM_ZERO, NUMBER, PORT, SettingType, read_text


class Arg(NamedTuple):
    """One argument with the options of argparse."""

    names: tuple[str, ...]
    help: str
    options: Mapping[str, Any] = {}


class Verb(NamedTuple):
    """One verb; `run` is the module under csp.cli with its function."""

    name: str
    help: str
    example: str
    run: str
    args: tuple[Arg, ...] = ()


class _Typed:
    """Read a value by its kind, as a type function of argparse."""

    def __init__(self, kind: SettingType[Any]) -> None:
        self._kind = kind

    def __call__(self, text: str) -> Any:
        try:
            return read_text(self._kind, text, "")
        except BadInput as exc:
            raise argparse.ArgumentTypeError(exc.message.removeprefix(": ")) from exc


def _value(flag: str, metavar: str, help: str, **options: Any) -> Arg:
    return Arg((flag,), help, {"metavar": metavar, **options})


def _switch(flag: str, help: str) -> Arg:
    return Arg((flag,), help, {"action": "store_true"})


_WHOLE: Final = _Typed(COUNT)
_SECONDS: Final = _Typed(NUMBER)
_FACTOR: Final = _Typed(FROM_ZERO)
_JSON: Final = _switch("--json", "print json for a script")
_YES: Final = _switch("--yes", "do it without asking")
_AGENT: Final = Arg(("agent",), "the agent's id", {"metavar": "AGENT"})
_ID: Final = Arg(("id",), "a message's id, or its number in csp history", {"metavar": "ID"})
_HISTORY_DIR: Final = _value("--history", "DIR", "folder of the journals")
_CHOICE: Final = _value("--choice", "N", "number of the choice in the agent's dialog", type=_WHOLE)

#: These may stand before or after any verb.
GLOBAL: Final = (
    _value("--room", "NAME", "room to use; found by itself if only one fits"),
    _switch("--verbose", "log to stderr what is being done"),
)

_TRUST: Final = _switch("--trust", "accept what the csp.toml here sets, without a question")

_UP: Final = (
    _switch("--demo", "start the scripted demo agents instead of real ones"),
    _value("--agents", "A,B", "only these agents, by their names; default: all"),
    _switch("--orchestrator", "start an orchestrator too"),
    _value("--dir", "DIR", "directory the agents work in; default: the current one"),
    _HISTORY_DIR,
    _switch("--detach", "build everything, but stay in this terminal"),
    _switch("--dry-run", "say what would be done, do nothing"),
    _TRUST,
    _JSON,
)
_DOWN: Final = (_switch("--purge", "remove the room's history too"), _YES, _JSON)
_PROFILES: Final = profile_names()
_PROFILE: Final = _value(
    "--profile",
    "P",
    f"{', '.join(_PROFILES[:-1])} or {_PROFILES[-1]}; default: by the command's name",
)
_ADD: Final = (
    Arg(("name",), "name of the agent in the room", {"metavar": "NAME"}),
    _PROFILE,
    _value("--dir", "DIR", "directory the agent works in; default: the room's"),
    _value("--provider", "P", f"a model behind an API instead of a command: {', '.join(well_known())}, ..."),
    _value("--model", "M", "with --provider: the model's name there"),
    _value("--base-url", "URL", "with --provider: address of the API; default: the provider's own"),
    _value("--key-env", "NAME", "with --provider: variable that has the key; default: the provider's own"),
    _value("--role", "R", "with --provider: agent or orchestrator", choices=("agent", "orchestrator")),
    Arg(("command",), "the command to run, behind --", {"metavar": "CMD", "nargs": "*"}),
    _TRUST,
    _JSON,
)
_ADD_EXAMPLES: Final = "\n  ".join(
    (
        "csp add helper -- ./my-agent --fast",
        "csp add claude-api --provider anthropic --model claude-sonnet-5",
    )
)
_REPLAY: Final = (
    _value(
        "--speed", "X", "times as fast as it was; 0 shows all at once; default: 8", type=_FACTOR, default=8.0
    ),
    _value("--limit", "N", "only the newest N items", type=_WHOLE),
    _HISTORY_DIR,
)
_LOGS: Final = (
    Arg(("name",), "gateway or an agent's id; default: all", {"metavar": "NAME", "nargs": "?"}),
    _value("--limit", "N", "newest lines of each; default: 50", type=_WHOLE, default=50),
    _switch("--follow", "go on with what comes"),
)

_GATEWAY: Final = (
    _value("--host", "ADDRESS", "address to listen on"),
    _value("--port", "N", "port to listen on; 0 takes any free one"),
    _HISTORY_DIR,
    _value("--durability", "LEVEL", "none, flush or fsync"),
    _value("--tls-cert", "FILE", "certificate, as pem"),
    _value("--tls-key", "FILE", "key of the certificate, as pem"),
    _switch("--insecure", "allow an address other than loopback without tls"),
    _switch("--supervise", "start the gateway again when it dies"),
    _value("--dir", "DIR", "directory the room belongs to; default: the current one"),
    _TRUST,
)

_SIDECAR: Final = (
    Arg(("--name",), "name of the agent in the room", {"metavar": "N", "required": True}),
    _PROFILE,
    _value("--profile-file", "F", "a profile of your own, as toml"),
    _value("--role", "R", "agent or orchestrator", choices=("agent", "orchestrator"), default="agent"),
    _value("--initial-prompt-file", "F", "text to type in once the CLI is ready"),
    _switch("--allow-shell", "type messages into a plain shell, which runs them"),
    _value("--cmd", "CMD", "the command as one string, instead of behind --"),
    Arg(("command",), "the command to run, behind --", {"metavar": "CMD", "nargs": "*"}),
)

_API: Final = (
    Arg(("--name",), "name of the agent in the room", {"metavar": "N", "required": True}),
    Arg(
        ("--provider",),
        " or ".join((", ".join([*PROVIDERS][:-1]), [*PROVIDERS][-1])),
        {"metavar": "P", "required": True},
    ),
    Arg(("--model",), "the model's name at its provider", {"metavar": "M", "required": True}),
    _value("--base-url", "URL", "address of the API; default: the provider's own"),
    _value("--key-env", "NAME", "variable that has the key; default: the provider's own"),
    _value("--role", "R", "agent or orchestrator", choices=("agent", "orchestrator"), default="agent"),
    _value(
        "--timeout",
        "S",
        "seconds an answer may take with all its tries; default: 300",
        type=_SECONDS,
        default=300.0,
    ),
)

_SEND: Final = (
    Arg(("target",), "an agent's id, or all", {"metavar": "TARGET"}),
    Arg(
        ("text",),
        "words of the message; - reads stdin; behind -- they may begin with -",
        {"metavar": "TEXT", "nargs": "*"},
    ),
    _switch("--wait", "wait for the replies and print them"),
    _value("--timeout", "S", "seconds to wait; default: 600", type=_SECONDS, default=600.0),
    _switch("--urgent", "interrupt a busy agent"),
    _value("--from-last", "AGENT", "append the last message of this agent"),
    _value("--thread", "T", "thread to send in"),
    _value("--reply-to", "ID", "message that this one answers"),
    _value("--id", "ID", "id to give it; the same id is never sent twice"),
    _JSON,
)

_HISTORY: Final = (
    Arg(("form",), "nothing, prune, or redact ID", {"metavar": "FORM", "nargs": "*"}),
    _value("--limit", "N", "newest items to show; default: 50", type=_WHOLE),
    _value("--search", "Q", "only items with this text"),
    _switch("--follow", "go on with what comes"),
    _value("--agent", "A", "only items from or to this agent"),
    _value("--types", "A,B", "only these types of events"),
    _value("--before", "SEQ", "only items before this one; with prune: remove them", type=_WHOLE),
    _value("--after", "SEQ", "only items after this one", type=_WHOLE),
    _value("--keep", "N", "with prune: events to keep, remove all before", type=_WHOLE),
    _YES,
    _JSON,
)

_MODE: Final = (
    Arg(
        ("form",),
        "set MODE TOPIC, show, next, pause, resume, extend, skip [AGENT], votes, end or stop; default: show",
        {"metavar": "FORM", "nargs": "*"},
    ),
    _value("--agents", "A,B", "who takes part, in this order; default: all who are online"),
    _value("--rounds", "N", "rounds as the mode counts; with extend: that many more", type=_WHOLE),
    _value("--steps", "N", "turns of a round robin", type=_WHOLE),
    _value("--first", "AGENT", "who speaks first"),
    _value("--synth", "AGENT", "who writes the synthesis"),
    _switch("--ballot", "end a debate with a vote"),
    _switch("--respect-final", "let an agent end an autopilot"),
    _switch("--soft-turns", "type what agents say to one that waits at once, not with its turn"),
    _value("--turns", "N", "end after so many turns", type=_WHOLE),
    _value("--tokens", "N", "end after so many tokens", type=_WHOLE),
    _value("--minutes", "M", "end after so many minutes; with extend: that many more", type=_SECONDS),
    _value("--cost", "USD", "end after so many US dollars", type=_SECONDS),
    _value("--thread", "T", "thread of the session"),
    _JSON,
)

_MODE_EXAMPLES: Final = "\n  ".join(
    (
        "csp mode set debate 'tabs or spaces' --rounds 2 --agents claude,codex",
        "csp mode set autopilot 'make the tests pass' --turns 50 --minutes 10",
        "csp mode pause",
        "csp mode extend --rounds 2",
        "csp mode skip codex",
        "csp mode votes",
    )
)

_COLLABORATE: Final = (
    Arg(
        ("objective",),
        "what to work on; with --continue: what to say to them; - reads stdin",
        {"metavar": "OBJECTIVE", "nargs": "*"},
    ),
    _value("--models", "A,B", "who takes part, in this order; the first leads, sums up"),
    _value("--mode", "M", "round_robin or orchestrator; default: round_robin"),
    _value("--max-steps", "N", "turns at most; with --continue: that many more; default: 10", type=_WHOLE),
    _value("--parallel", "N", "how many are asked at once; default: 1", type=_WHOLE),
    _value("--timeout-per-step", "S", "seconds a step may take; default: 300", type=_SECONDS),
    _value("--cost-limit", "USD", "no call is made that would cost more in all", type=_SECONDS),
    _value("--continue", "SESSION", "go on with one that runs or is over", dest="session"),
    _value("--poll", "SESSION", "wait for one that was begun before, instead", dest="poll"),
    _value("--stop", "SESSION", "stop one, instead", dest="stop"),
    _switch("--no-wait", "print its id, do not wait for its result; with --poll: say how far it is"),
    _value("--timeout", "S", "seconds to wait; default: 1800", type=_SECONDS, default=1800.0),
    _JSON,
)
_COLLABORATE_EXAMPLES: Final = "\n  ".join(
    (
        "csp collaborate 'a plan for the move' --models claude,gpt,gem --parallel 3 --cost-limit 0.50",
        "csp collaborate 'mind the budget' --continue s-12 --max-steps 4",
        "csp collaborate --poll s-12",
        "csp collaborate --stop s-12",
    )
)

_REVIEW: Final = (
    Arg(
        ("form",),
        "start GOAL, list, show [RUN], go [RUN], decide RUN accept|revise|abort [WHY], halt RUN [WHY], "
        "resume RUN, abort RUN WHY, finding RUN f-1 confirmed|rejected, defect RUN TEXT or stats; "
        "default: list",
        {"metavar": "FORM", "nargs": "*"},
    ),
    _value("--builder", "AGENT", "who does the work; mailbox: a program that writes files"),
    _value("--reviewer", "AGENT", "who checks it; mailbox: a program that writes files"),
    _value("--test", "CMD", "command that CSP runs after each step"),
    _value("--test-timeout", "S", "seconds it may take; default: 600", type=_SECONDS),
    _value("--max-revisions", "N", "revisions before a person is asked; default: 3", type=_Typed(PORT)),
    _value("--on-accept", "DO", "branch or nothing; default: branch", choices=("branch", "nothing")),
    _switch("--approve", "have a person look at every plan, whatever its risk"),
    _value("--run-id", "ID", "name of the run, also of its folder"),
    _value("--dir", "DIR", "where the work is; default: here"),
    _value("--plan", "FILE", "with go: the plan to follow; default: plan.json of the run"),
    _value(
        "--severity",
        "GRADE",
        "with defect: minor, major or critical; default: major",
        choices=("minor", "major", "critical"),
    ),
    _value("--thread", "T", "thread of the session"),
    _JSON,
)

_REVIEW_EXAMPLES: Final = "\n  ".join(
    (
        "csp review start 'fix the parser' --builder claude --reviewer codex --test 'pytest -q'",
        "csp review show",
        "csp review go run-12",
        "csp review decide run-12 revise 'mind the tests'",
        "csp review abort run-12 'wrong goal'",
        "csp review finding run-12 f-1 confirmed",
        "csp review defect run-12 'tabs are lost at the end of a line'",
        "csp review stats",
    )
)

_BOARD: Final = (
    Arg(
        ("form",),
        "add TEXT, search WORDS, show [NOTE], export [DIR] or summarise; default: show; "
        "add - reads stdin; behind -- words may begin with -",
        {"metavar": "FORM", "nargs": "*"},
    ),
    _value("--session", "S", "board of this session; add: default the room's own"),
    _value("--author", "A", "only notes of this author"),
    _value("--kind", "K", "only notes of this kind", choices=("note", "reply", "summary")),
    _value("--tag", "T", "only notes with this tag; add: tags for the note, as A,B"),
    _value("--limit", "N", "how many notes; default: 50, of a search 10", type=_WHOLE),
    _switch("--rerank", "search: compare more notes word by word"),
    _value("--id", "ID", "add: id to give it; the same id is never written twice"),
    _value("--by", "AGENT", "summarise: who writes it"),
    _JSON,
)

_BOARD_EXAMPLES: Final = "\n  ".join(
    (
        "csp board add 'the parser must keep tabs' --tag parser,decision",
        "csp board search 'who owns the retry logic?' --session s-12 --rerank",
        "csp board search test_roles --json",
        "csp board show n-418",
        "csp board summarise --session s-12 --by claude",
        "csp board export notes --session s-12",
    )
)

_EXPORT: Final = (
    _value("--format", "F", "md or json; default: md", choices=("md", "json"), default="md"),
    _value("--limit", "N", "only the newest N items", type=_WHOLE),
)

_DOCTOR: Final = (_switch("--journal", "read the whole journal and check every line"), _HISTORY_DIR, _JSON)
_SUBJECTS: Final = ("gateway", "sidecar", "modes")
_BENCH: Final = (
    Arg(("subject",), "gateway, sidecar or modes", {"metavar": "WHAT", "choices": _SUBJECTS}),
    _value("--seconds", "S", "length of each load on the gateway; default: 1", type=_SECONDS),
    _switch("--quick", "shorter loads, fewer rounds, a journal of 100,000 lines instead of a million"),
    _JSON,
)
_WEB: Final = (
    _switch("--no-open", "print the link, open no browser"),
    _switch("--leave-all", "end every page that is in the room, instead"),
    _JSON,
)
_MCP: Final = (_value("--name", "NAME", "join the room as an agent of this name; default: speak as you"),)
_ACCEPT: Final = (
    Arg(("path",), "a csp.toml or its directory; default: here", {"metavar": "PATH", "nargs": "?"}),
    _switch("--list", "show what was accepted"),
    _switch("--remove", "accept it no longer"),
    _JSON,
)
_ACCEPT_EXAMPLES: Final = "csp trust ~/src/project\n  csp trust --list"
_SHELLS: Final = {"metavar": "SHELL", "choices": ("bash", "zsh", "fish")}


def _control(name: str, help: str, *more: Arg) -> Verb:
    return Verb(name, help, f"csp {name} claude", "control:control", (_AGENT, *more, _JSON))


def _act(name: str, help: str) -> Verb:
    return Verb(name, help, f"csp {name} 12", "send:act", (_ID, _JSON))


VERBS: Final = (
    Verb("up", "open the group chat in tmux", "csp up --demo", "up:up", _UP),
    Verb("down", "end a room's panes with its gateway", "csp down", "up:down", _DOWN),
    Verb("add", "start one more agent in the room", _ADD_EXAMPLES, "add:add", _ADD),
    Verb("chat", "talk to the room from this terminal", "csp chat", "chat:chat"),
    Verb("web", "open the room in a browser", "csp web --no-open", "web:web", _WEB),
    Verb("gateway", "run the gateway of a room", "csp gateway --room review", "gateway:gateway", _GATEWAY),
    Verb(
        "sidecar",
        "run a CLI in this pane as an agent",
        "csp sidecar --name claude -- claude --model sonnet",
        "sidecar:sidecar",
        _SIDECAR,
    ),
    Verb(
        "agent",
        "let a model behind an API take part",
        "csp agent --provider anthropic --model claude-sonnet-5 --name claude-api",
        "agent:agent",
        _API,
    ),
    Verb("mcp", "serve the room to an MCP client on stdin", "csp mcp --name scout", "mcp:mcp", _MCP),
    Verb("send", "send a message", "csp send claude 'fix the parser' --wait", "send:send", _SEND),
    _act("resend", "send a message again, as a new one"),
    _act("cancel", "withdraw a message that has not arrived"),
    _act("continue", "release a message held by the loop guard"),
    Verb("agents", "list the agents", "csp agents", "status:agents", (_JSON,)),
    Verb("status", "show the room, its agents, what waits for whom", "csp status", "status:status", (_JSON,)),
    Verb("history", "show, prune or redact the history", "csp history --follow", "history:history", _HISTORY),
    Verb("export", "print the whole history", "csp export --format md > chat.md", "export:export", _EXPORT),
    Verb("replay", "show a room's history as it came", "csp replay --speed 20", "replay:replay", _REPLAY),
    Verb("logs", "show what the gateway or a sidecar logged", "csp logs codex", "replay:logs", _LOGS),
    Verb("mode", "set, show, steer or end the mode", _MODE_EXAMPLES, "mode:mode", _MODE),
    Verb(
        "collaborate",
        "have models work on an objective together",
        _COLLABORATE_EXAMPLES,
        "collaborate:collaborate",
        _COLLABORATE,
    ),
    Verb("board", "write on the whiteboard, search it, show it", _BOARD_EXAMPLES, "board:board", _BOARD),
    Verb("review", "have one agent build, another review", _REVIEW_EXAMPLES, "review:review", _REVIEW),
    Verb(
        "stop",
        "stop what is running in the room",
        "csp stop",
        "control:stop",
        (_switch("--all", "in every thread"), _JSON),
    ),
    _control("pause", "hold messages back from an agent"),
    _control("resume", "let a paused agent have its messages"),
    _control("share", "post what an agent answers in its pane"),
    _control("noshare", "keep what an agent answers in its pane there"),
    _control("interrupt", "stop what an agent is doing"),
    _control("approve", "say yes to an agent's dialog", _CHOICE),
    _control("deny", "say no to an agent's dialog", _CHOICE),
    _control("restart", "start an agent again"),
    Verb("remove", "remove an agent from the room", "csp remove codex", "control:remove", (_AGENT, _JSON)),
    Verb("token", "print the room's token, for curl", "csp token", "status:token"),
    Verb("config", "show every setting with its source", "csp config", "status:config", (_JSON,)),
    Verb("trust", "accept what a csp.toml sets", _ACCEPT_EXAMPLES, "trust:trust", _ACCEPT),
    Verb("doctor", "check this machine, or a journal", "csp doctor --journal", "doctor:doctor", _DOCTOR),
    Verb(
        "demo",
        "be a scripted demo agent in this terminal",
        "csp demo ada",
        "demo:demo",
        (Arg(("persona",), "ada, bob, cy or conductor", {"metavar": "PERSONA"}),),
    ),
    Verb("bench", "measure this machine", "csp bench gateway --quick", "bench:bench", _BENCH),
    Verb(
        "completion",
        "print a completion script",
        "csp completion bash > ~/.local/share/bash-completion/completions/csp",
        "completion:completion",
        (Arg(("shell",), "bash, zsh or fish", _SHELLS),),
    ),
)
