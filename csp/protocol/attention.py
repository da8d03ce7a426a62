"""Types for items that need a person (GET /attention) and for rules that approve commands without one."""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from csp.protocol.enums import Name, Struct

#: Room changes that may change the list; apart from the clock, nothing else does.
EVENTS: Final = (
    *("state", "joined", "left", "control", "delivery"),
    *("human_message", "agent_call", "agent_response", "redacted", "base"),
    *("turn", "turn_signal"),
    *("mode", "vote", "run.started", "run.prepared", "run.message", "run.phase", "run.plan", "run.ended"),
)


class AttentionKind(StrEnum):
    APPROVAL = "approval"
    LOGIN = "login"
    TRUST = "trust"
    DIALOG = "dialog"
    QUESTION = "question"
    PLAN = "plan"
    DECISION = "decision"
    TIE = "tie"
    BUDGET = "budget"
    HELD = "held"
    LIMITED = "limited"
    ENDED = "ended"
    STUCK = "stuck"


class AttentionLevel(StrEnum):
    """Whether an item requires action or is for information only."""

    ACTION = "action"
    INFO = "info"


class AttentionAnswer(Struct, frozen=True):
    """A possible answer: its key, its label, and the equivalent line that a person could type."""

    key: str
    label: str
    line: str


class AttentionItem(Struct, frozen=True, omit_defaults=False):
    """An item that needs a person; `detail` is its subject, such as the command to approve.

    The id stays the same for as long as the cause does; `since` changes when the agent asks something else.
    """

    id: str
    kind: AttentionKind
    title: str
    since: float
    answers: tuple[AttentionAnswer, ...]
    level: AttentionLevel = AttentionLevel.ACTION
    agent: str = ""
    session: str = ""
    run: str = ""
    detail: str = ""


class AttentionView(Struct, frozen=True, omit_defaults=False):
    """Everything that needs a person, oldest first, as of event `seq`."""

    items: tuple[AttentionItem, ...]
    seq: int


# --- approval rules ------------------------------------------------------------------------------

Pattern = Annotated[str, Meta(min_length=1, max_length=500, examples=["pytest"])]


class ApprovalRuleBody(Struct, frozen=True):
    """A command that an agent may always run: `pytest` also allows `pytest -q`, `only pytest` does not."""

    agent: Name
    pattern: Pattern


class ApprovalRuleView(Struct, frozen=True, omit_defaults=False):
    """An approval rule; rules from csp.toml have the number 0 and cannot be removed through the API."""

    number: int
    agent: str
    pattern: str
    #: `room` or `csp.toml`.
    source: str
    #: Why the rule has no effect; empty if it has one.
    problem: str = ""


class ApprovalRulesView(Struct, frozen=True, omit_defaults=False):
    items: tuple[ApprovalRuleView, ...]


class ApprovalRuleDoneView(Struct, frozen=True):
    success: bool
    rule: ApprovalRuleView
