"""The catalogue: modes, commands and texts for people, described once for all interfaces.

The pane, the page, the shell and MCP use these tables; the page reads `GET /catalogue`. The entries of
the modes are built from the table of modes by csp.room.sessions.modes; only their texts are here.
"""

from enum import StrEnum
from typing import Final, NamedTuple

from csp.protocol.enums import (
    AgentState,
    ControlVerb,
    DeliveryState,
    HeldReason,
    MessageAction,
    Mode,
    SessionAction,
    Struct,
)
from csp.protocol.notices import NoticeEntry
from csp.protocol.session_parts import EndReason


class ArgumentKind(StrEnum):
    """The kind of a command argument; the value is its form in the usage line."""

    AGENT = "AGENT"
    MAYBE_AGENT = "[AGENT]"
    MAYBE_ID = "[ID]"
    MAYBE_NUMBER = "[N]"
    MAYBE_WORD = "[WORD]"
    TEXT = "TEXT"
    MAYBE_TEXT = "[TEXT]"
    MAYBE_COMMAND = "[COMMAND]"
    MAYBE_MODE = "[MODE]"


class ModeOption(StrEnum):
    """An option that a person can set for a mode in addition to its topic, agents and length."""

    FIRST = "first"
    SYNTH = "synth"
    BALLOT = "ballot"
    RESPECT_FINAL = "respect_final"
    LIMITS = "limits"
    #: The mode has a builder and a reviewer instead of a list of agents.
    ROLES = "roles"
    #: The mode needs an orchestrator in the room.
    LEAD = "lead"


class ModeEntry(Struct, frozen=True):
    """A mode; `rounds` is its default length in `unit`, 0 if it has no end."""

    id: str
    name: str
    #: The short name for narrow displays.
    chip: str
    about: str
    #: `rounds`, `steps`, or empty if the length cannot be set.
    unit: str
    rounds: int
    fewest: int
    most: int | None
    options: tuple[ModeOption, ...]


class DeliveryStateEntry(Struct, frozen=True):
    """A state of a delivery; `kind` is `waits`, `moves`, `done`, `failed` or `ended`."""

    id: str
    sign: str
    text: str
    kind: str


class HeldReasonEntry(Struct, frozen=True):
    """Why a message is waiting; `remedy` is the command that helps, with `{agent}` for the agent."""

    id: str
    text: str
    remedy: str = ""


class TextEntry(Struct, frozen=True):
    id: str
    text: str


class CommandGroup(StrEnum):
    """The group under which help lists a command."""

    MESSAGES = "messages"
    MODES = "modes"
    AGENTS = "agents"
    ROOM = "room"


class CommandEntry(Struct, frozen=True, kw_only=False):
    """A command that a person can type.

    Any interface can perform one with `control`, `action` or `on_message` without special code: it sends
    the control to the named agent, or applies the action to the running session or the named message.
    """

    name: str
    help: str
    takes: tuple[ArgumentKind, ...] = ()
    #: How the arguments are shown if their kinds are not clear enough.
    usage: str = ""
    control: ControlVerb | None = None
    action: SessionAction | None = None
    on_message: MessageAction | None = None
    #: Whether the page has its own control for it.
    is_on_page: bool = False
    group: CommandGroup = CommandGroup.ROOM

    @property
    def form(self) -> str:
        """The command as it is typed, with its arguments."""
        return f"/{self.name} {self.usage or ' '.join(self.takes)}".rstrip()

    @property
    def is_page_command(self) -> bool:
        return self.is_on_page or self.control is not None or self.action is not None


class Catalogue(Struct, frozen=True):
    modes: tuple[ModeEntry, ...]
    delivery_states: tuple[DeliveryStateEntry, ...]
    held_reasons: tuple[HeldReasonEntry, ...]
    end_reasons: tuple[TextEntry, ...]
    agent_states: tuple[TextEntry, ...]
    notices: tuple[NoticeEntry, ...]
    #: The commands that the page supports.
    commands: tuple["CommandText", ...]
    #: The agents in each group, by group name.
    groups: dict[str, tuple[str, ...]]
    #: The commands that only the pane supports.
    pane_commands: tuple["CommandText", ...] = ()
    #: The types of events that may change the result of GET /attention.
    attention_events: tuple[str, ...] = ()


class CommandText(Struct, frozen=True):
    """A command in the list of an interface."""

    name: str
    form: str
    help: str
    group: CommandGroup = CommandGroup.ROOM


class ModeText(NamedTuple):
    about: str
    chip: str = ""


# fmt: off
#: The modes, most used first.
MODE_TEXTS: Final[dict[Mode, ModeText]] = {
    Mode.DEBATE: ModeText("All agents state a position, then respond to each other in rounds; "
                          "with a ballot, they vote at the end."),
    Mode.CONSENSUS: ModeText("All agents make a proposal, then vote on the proposals "
                             "without knowing their authors."),
    Mode.COLLABORATE: ModeText("Agents hand the work over to each other until one of them declares it done.",
                               chip="Collab"),
    Mode.AUTOPILOT: ModeText("Agents take turns without supervision until somebody stops them "
                             "or a limit is reached."),
    Mode.ROUND_ROBIN: ModeText("Agents speak in turn for a number of steps, "
                               "followed by a synthesis."),
    Mode.ORCHESTRATOR: ModeText("One agent leads: it assigns each turn and declares the work done."),
    Mode.SINGLE: ModeText("One agent answers; it may hand over once."),
    Mode.FREEFORM: ModeText("No session: everybody talks freely."),
    Mode.REVIEW: ModeText("The first agent builds and the second reviews until the work is accepted."),
}

DELIVERY_STATES: Final = (
    DeliveryStateEntry(id=DeliveryState.QUEUED, sign="○", text="queued", kind="waits"),
    DeliveryStateEntry(id=DeliveryState.HELD, sign="◔", text="waits", kind="waits"),
    DeliveryStateEntry(id=DeliveryState.TYPED, sign="✓", text="typed", kind="moves"),
    DeliveryStateEntry(id=DeliveryState.SUBMITTED, sign="✓", text="submitted", kind="done"),
    DeliveryStateEntry(id=DeliveryState.CONFIRMED, sign="✓✓", text="confirmed", kind="done"),
    DeliveryStateEntry(id=DeliveryState.FAILED, sign="✗", text="failed", kind="failed"),
    DeliveryStateEntry(id=DeliveryState.WITHDRAWN, sign="–", text="withdrawn", kind="ended"),
    DeliveryStateEntry(id=DeliveryState.EXPIRED, sign="–", text="expired", kind="ended"),
)

HELD_REASONS: Final = (
    HeldReasonEntry(id=HeldReason.OFFLINE, text="offline; queued until it returns"),
    HeldReasonEntry(id=HeldReason.STARTING, text="still starting"),
    HeldReasonEntry(id=HeldReason.BUSY, text="busy; queued until this turn ends"),
    HeldReasonEntry(id=HeldReason.DIALOG, text="a dialog is open",
                    remedy="/approve {agent}, /deny {agent} or /focus {agent}"),
    HeldReasonEntry(id=HeldReason.TYPING, text="somebody is typing in its pane"),
    HeldReasonEntry(id=HeldReason.DRAFT, text="draft (you have text in its input box)"),
    HeldReasonEntry(id=HeldReason.PAUSED, text="paused", remedy="/resume {agent}"),
    HeldReasonEntry(id=HeldReason.TURN, text="will be delivered with its next turn"),
    HeldReasonEntry(id=HeldReason.LOOP, text="8 agent-to-agent messages in a row",
                    remedy="/continue"),
    HeldReasonEntry(id=HeldReason.STUCK, text="leftover text in its input box",
                    remedy="clear it there: /focus {agent}"),
    HeldReasonEntry(id=HeldReason.COVERED, text="a dialog is open",
                    remedy="/approve {agent}, /deny {agent} or /focus {agent}"),
)

END_REASONS: Final = (
    TextEntry(id=EndReason.FINAL, text="finished"),
    TextEntry(id=EndReason.NO_HANDOFF, text="ended, no next speaker was named"),
    TextEntry(id=EndReason.MALFORMED, text="ended, the answer could not be parsed"),
    TextEntry(id=EndReason.CAP_REACHED, text="ended, all rounds done"),
    TextEntry(id=EndReason.STOPPED_BY_USER, text="stopped"),
    TextEntry(id=EndReason.CANCELED, text="canceled"),
    TextEntry(id=EndReason.EMERGENCY_TURNS, text="stopped by the turn limit"),
    TextEntry(id=EndReason.EMERGENCY_TOKENS, text="stopped by the token limit"),
    TextEntry(id=EndReason.EMERGENCY_MINUTES, text="stopped by the time limit"),
    TextEntry(id=EndReason.EMERGENCY_COST, text="stopped by the cost limit"),
    TextEntry(id=EndReason.TOO_FEW, text="ended, too few agents"),
    TextEntry(id=EndReason.ALL_FAILED, text="ended, all agents failed"),
    TextEntry(id=EndReason.DONE, text="done"),
    TextEntry(id=EndReason.TIE, text="ended in a tie"),
    TextEntry(id=EndReason.NO_QUORUM, text="ended without a quorum"),
    TextEntry(id=EndReason.SUPERSEDED, text="replaced"),
    TextEntry(id=EndReason.ACCEPTED, text="accepted"),
    TextEntry(id=EndReason.ABORTED, text="aborted"),
    TextEntry(id=EndReason.HALTED, text="ended after a halt"),
    TextEntry(id=EndReason.AGENT_LIMITED, text="stopped at an agent's usage limit"),
)

AGENT_STATES: Final = (
    TextEntry(id=AgentState.STARTING, text="starting"),
    TextEntry(id=AgentState.IDLE, text="idle"),
    TextEntry(id=AgentState.BUSY, text="working"),
    TextEntry(id=AgentState.NEEDS_APPROVAL, text="needs approval"),
    TextEntry(id=AgentState.NEEDS_HUMAN, text="needs you"),
    TextEntry(id=AgentState.LIMITED, text="at its limit"),
    TextEntry(id=AgentState.PAUSED, text="paused"),
    TextEntry(id=AgentState.BENCHED, text="benched"),
    TextEntry(id=AgentState.OFFLINE, text="offline"),
)
# fmt: on

_MESSAGES, _MODES, _AGENTS = CommandGroup.MESSAGES, CommandGroup.MODES, CommandGroup.AGENTS
_A, _MA = (ArgumentKind.AGENT,), (ArgumentKind.MAYBE_AGENT,)
_ID, _N, _TEXT = (ArgumentKind.MAYBE_ID,), (ArgumentKind.MAYBE_NUMBER,), (ArgumentKind.MAYBE_TEXT,)


# fmt: off
#: The commands that people can type. The pane has a handler for those that do more than send a control.
COMMANDS: Final = (
    CommandEntry("agents", "list the agents and their activity", is_on_page=True, group=_AGENTS),
    CommandEntry("status", "show the mode, the current turn and the agents", is_on_page=True),
    CommandEntry("queue", "show undelivered messages and why", is_on_page=True, group=_MESSAGES),
    CommandEntry("history", "show the newest messages, or those of one agent",
                 (ArgumentKind.MAYBE_WORD, ArgumentKind.MAYBE_WORD), usage="[N] [AGENT]", is_on_page=True,
                 group=_MESSAGES),
    CommandEntry("search", "find messages that contain a text", (ArgumentKind.TEXT,), is_on_page=True,
                 group=_MESSAGES),
    CommandEntry("show", "show a full message (default: the last long one)", _ID, is_on_page=True,
                 group=_MESSAGES),
    CommandEntry("fwd", "forward an agent's last message to another", _A + _A + _TEXT,
                 usage="FROM TO [NOTE]", is_on_page=True, group=_MESSAGES),
    CommandEntry("cancel", "withdraw an undelivered message", _ID, on_message=MessageAction.CANCEL,
                 is_on_page=True, group=_MESSAGES),
    CommandEntry("resend", "send a message again as a new one", _ID, on_message=MessageAction.RESEND,
                 is_on_page=True, group=_MESSAGES),
    CommandEntry("continue", "release a message held by the loop guard", _ID, is_on_page=True,
                 group=_MESSAGES),
    CommandEntry("mode", "start a mode, or show the current one", (ArgumentKind.MAYBE_MODE,),
                 usage='[MODE "TOPIC" --rounds N --agents a,b --first a --synth b --replace]',
                 is_on_page=True, group=_MODES),
    CommandEntry("review", "start or show builder/reviewer runs", _TEXT,
                 usage="start|list|show|go|decide ...", is_on_page=True, group=_MODES),
    CommandEntry("board", "show, search or write on the whiteboard", _TEXT,
                 usage="[add TEXT | search WORDS | summarise AGENT | NOTE]", is_on_page=True),
    CommandEntry("next", "move to the next speaker", is_on_page=True, group=_MODES),
    CommandEntry("end", "end the mode gracefully, with a summary", is_on_page=True, group=_MODES),
    CommandEntry("stop", "stop everything at once", (ArgumentKind.MAYBE_WORD,), usage="[all]",
                 is_on_page=True, group=_MODES),
    CommandEntry("votes", "show proposals with their votes", is_on_page=True, group=_MODES),
    CommandEntry("decide", "decide a tie, or how to handle a limit",
                 (ArgumentKind.MAYBE_WORD, ArgumentKind.MAYBE_WORD), usage="SESSION CHOICE", is_on_page=True,
                 group=_MODES),
    CommandEntry("extend", "extend the running mode by some rounds", _N, action=SessionAction.EXTEND,
                 group=_MODES),
    CommandEntry("skip", "skip the current speaker", _MA, action=SessionAction.SKIP, group=_MODES),
    CommandEntry("pause", "hold back an agent's messages, or pause the mode", _MA,
                 control=ControlVerb.PAUSE, action=SessionAction.PAUSE, group=_MODES),
    CommandEntry("resume", "undo /pause", _MA, control=ControlVerb.RESUME, action=SessionAction.RESUME,
                 group=_MODES),
    CommandEntry("needs", "list items that need you, with their answers", group=_AGENTS),
    CommandEntry("answer", "answer the newest item (or /y, /n, Alt-Y)",
                 (ArgumentKind.MAYBE_WORD,), usage="[KEY]", group=_AGENTS),
    CommandEntry("report", "show what happened while you were away", (ArgumentKind.MAYBE_TEXT,),
                 usage="[SESSION] [--since TIME]", is_on_page=True, group=_AGENTS),
    CommandEntry("approve", "answer yes to an agent's dialog, or choose N", _MA + _N,
                 control=ControlVerb.APPROVE, group=_AGENTS),
    CommandEntry("deny", "answer no to an agent's dialog", _MA + _N, control=ControlVerb.DENY, group=_AGENTS),
    CommandEntry("allow", "allow an agent to run a command unasked", (*_A, ArgumentKind.TEXT),
                 usage="AGENT COMMAND", is_on_page=True, group=_AGENTS),
    CommandEntry("rules", "list the commands agents may run unasked", is_on_page=True, group=_AGENTS),
    CommandEntry("unallow", "remove an approval rule", (ArgumentKind.MAYBE_WORD,), usage="N",
                 is_on_page=True, group=_AGENTS),
    CommandEntry("interrupt", "interrupt an agent's current work", _A, control=ControlVerb.INTERRUPT,
                 group=_AGENTS),
    CommandEntry("share", "also post replies to what you type in its pane", _A, control=ControlVerb.SHARE,
                 group=_AGENTS),
    CommandEntry("noshare", "stop posting those replies", _A, control=ControlVerb.NOSHARE, group=_AGENTS),
    CommandEntry("restart", "restart an agent, running or ended", _A, control=ControlVerb.RESTART,
                 group=_AGENTS),
    CommandEntry("add", "start another agent in the room", (ArgumentKind.TEXT,), usage="NAME -- COMMAND",
                 is_on_page=True, group=_AGENTS),
    CommandEntry("remove", "remove an agent; with end, also its program",
                 (*_A, ArgumentKind.MAYBE_WORD), usage="AGENT [end]", group=_AGENTS),
    CommandEntry("focus", "go to an agent's pane; F10 returns here", _A, is_on_page=True,
                 group=_AGENTS),
    CommandEntry("zoom", "zoom a pane, or restore its size (F11)", _MA),
    CommandEntry("layout", "arrange the panes, or show the current layout", (ArgumentKind.MAYBE_WORD,),
                 usage="[top | left | focus]"),
    CommandEntry("web", "print a link for opening the room in a browser"),
    CommandEntry("export", "write the history to a new file, .md or .json", (ArgumentKind.MAYBE_WORD,),
                 usage="[FILE]", is_on_page=True),
    CommandEntry("rooms", "list the rooms on this machine"),
    CommandEntry("down", "stop the room: panes, agents, gateway", (ArgumentKind.MAYBE_WORD,), usage="[yes]"),
    CommandEntry("help", "list the commands, or explain one", (ArgumentKind.MAYBE_COMMAND,), is_on_page=True),
    CommandEntry("quit", "leave; agents keep running (Ctrl-D does the same)"),
)
# fmt: on


def why_held(reason: str) -> HeldReasonEntry | None:
    """Return the catalogue entry for the reason why a message is waiting, if there is one."""
    return next((entry for entry in HELD_REASONS if entry.id == reason), None)
