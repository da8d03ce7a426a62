"""What a participant, or the gateway for the clock, asks of a room."""

import msgspec

from csp.wire import (
    AgentId,
    AgentState,
    Capabilities,
    ControlVerb,
    DeliveryState,
    Dialog,
    Ending,
    Handoff,
    JoinRole,
    Kind,
    MessageId,
    Usage,
)


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One wish; `decide` turns it into events or refuses it."""


class Join(Command, frozen=True, kw_only=True):
    """Come in under a name; an id whose owner is offline is taken over."""

    name: str
    kind: Kind = Kind.CLI
    role: JoinRole = JoinRole.AGENT
    capabilities: Capabilities | None = None


class Return(Command, frozen=True, kw_only=True):
    """Come back as the owner of `agent`, known by its token."""

    agent: AgentId
    capabilities: Capabilities | None = None


class Leave(Command, frozen=True, kw_only=True):
    agent: AgentId
    reason: str


class Remove(Command, frozen=True, kw_only=True):
    agent: AgentId


class Send(Command, frozen=True, kw_only=True):
    """Say `text` to one participant or to all; `only` narrows the recipients of a resend."""

    sender: AgentId
    to: str
    text: str
    thread: str | None = None
    reply_to: MessageId | None = None
    urgent: bool = False
    id: MessageId | None = None
    ttl_s: float | None = None
    only: tuple[AgentId, ...] | None = None


class Answer(Command, frozen=True, kw_only=True):
    """Post what a participant wrote; it goes to whoever asked. The commands in an agent's text are run."""

    sender: AgentId
    text: str
    turn: str | None = None
    reply_to: MessageId | None = None
    handoff: Handoff | None = None
    final: bool = False
    usage: Usage | None = None
    thread: str | None = None
    id: MessageId | None = None
    ttl_s: float | None = None
    activity: bool = False
    local: bool = False
    ending: Ending = Ending.DONE


class Tell(Command, frozen=True, kw_only=True):
    """Answer a query of an agent with what was found."""

    query: MessageId
    text: str
    ttl_s: float | None = None


class Report(Command, frozen=True, kw_only=True):
    """Say how far a message has come on its way to `agent`."""

    agent: AgentId
    message: str
    state: DeliveryState
    reason: str = ""


class SetState(Command, frozen=True, kw_only=True):
    agent: AgentId
    state: AgentState
    detail: str = ""
    until: float | None = None
    dialog: Dialog | None = None


class Control(Command, frozen=True, kw_only=True):
    """Press a button for `agent`."""

    agent: AgentId
    verb: ControlVerb
    choice: int | None = None


class Cancel(Command, frozen=True, kw_only=True):
    message: str


class Continue(Command, frozen=True, kw_only=True):
    """Release a message that the loop guard holds."""

    message: str


class Redact(Command, frozen=True, kw_only=True):
    """Take the text of a message out of the journal; the caller has checked that it is there."""

    message: str


class Prune(Command, frozen=True, kw_only=True):
    """Take everything before `before` out of the journal."""

    before: int


class Notice(Command, frozen=True, kw_only=True):
    text: str
    target: AgentId


class Tick(Command, frozen=True, kw_only=True):
    """Let the deadlines that have come take effect."""


AnyCommand = (
    Join
    | Return
    | Leave
    | Remove
    | Send
    | Answer
    | Tell
    | Report
    | SetState
    | Control
    | Cancel
    | Continue
    | Redact
    | Prune
    | Notice
    | Tick
)
