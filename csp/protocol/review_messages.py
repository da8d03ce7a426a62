"""Messages of the builder and the reviewer, on disk, in the journal and on the wire.

In its external form, a message is an object with a type and a body. Internally, the body is one of
eight tagged types, so that the type is checked only once.
"""

import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from csp.errors import BadInput
from csp.protocol.enums import AgentId, Name, Note, OwnId, Struct, Text, Thread, Word
from csp.protocol.session_parts import EndReason, OnLimit

SCHEMA_VERSION: Final = "0.1"
#: The participant for a role that is played through files.
MAILBOX: Final = AgentId("mailbox")
MAX_REVISIONS: Final = 3
MAX_ITEMS: Final = 50
#: The prefix of the metrics that CSP measures itself.
OWN_METRICS: Final = "csp."

RunId = Annotated[
    str, Meta(pattern=r"^(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,63}\Z", examples=["2025-10-06-refactor"])
]
#: Stricter than the type: a run id has to be a valid git branch name.
_RUN_ID: Final = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9._-]{0,63}(?<!\.)(?<!\.lock)")
Line = Annotated[str, Meta(min_length=1, max_length=2000)]
Lines = Annotated[tuple[Line, ...], Meta(max_length=MAX_ITEMS)]
FindingId = Annotated[str, Meta(pattern=r"^f-[1-9][0-9]{0,5}\Z", examples=["f-1"])]
Long = Annotated[str, Meta(max_length=64 * 1024)]
Confidence = Annotated[float, Meta(ge=0, le=1)]


def is_run_id(text: str) -> bool:
    """Return whether a name is a valid run id, which is also the name of a folder."""
    return _RUN_ID.fullmatch(text) is not None


class RunRole(StrEnum):
    BUILDER = "builder"
    REVIEWER = "reviewer"


class MessageType(StrEnum):
    SESSION_START = "session.start"
    SESSION_ACK = "session.ack"
    PLAN_PROPOSED = "plan.proposed"
    PLAN_FEEDBACK = "plan.feedback"
    EXECUTION_UPDATE = "execution.update"
    EXECUTION_ALERT = "execution.alert"
    REVIEW_DECISION = "review.decision"
    SESSION_END = "session.end"


class RunPhase(StrEnum):
    SETUP = "setup"  # CSP prepares the working directory
    START = "start"
    PLAN = "plan"
    FEEDBACK = "feedback"
    APPROVAL = "approval"  # a person approves the plan
    EXECUTION = "execution"
    CHECKS = "checks"  # CSP creates the diff and runs the tests
    WATCH = "watch"
    DECISION = "decision"
    ESCALATED = "escalated"  # a person decides
    HALTED = "halted"  # a person resumes or aborts it
    CLOSING = "closing"
    ENDED = "ended"


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Severity(StrEnum):
    MINOR = "minor"
    MAJOR = "major"
    CRITICAL = "critical"


class AlertLevel(StrEnum):
    INFO = "info"
    CRITICAL = "critical"


class Decision(StrEnum):
    ACCEPT = "accept"
    REVISE = "revise"
    ABORT = "abort"


class Telemetry(StrEnum):
    """The details that a reviewer gets after every step, not only at the end."""

    STEPS = "steps"
    DIFFS = "diffs"
    TESTS = "tests"


class Verdict(StrEnum):
    """A person's later verdict on a finding."""

    CONFIRMED = "confirmed"
    REJECTED = "rejected"


class OnAccept(StrEnum):
    BRANCH = "branch"
    NOTHING = "nothing"


class RunAction(StrEnum):
    GO = "go"
    DECIDE = "decide"
    HALT = "halt"
    RESUME = "resume"
    ABORT = "abort"
    FINDING = "finding"
    DEFECT = "defect"


# --- the eight bodies ------------------------------------------------------------------------------


class Body(Struct, frozen=True, tag_field="message_type"):
    """The body of a message; the tag is its type."""


class RunContext(Struct, frozen=True):
    """The working directory of a run: a worktree created from `base`, or a plain directory."""

    dir: str = ""
    worktree: str = ""
    repository: str = ""
    base: str = ""
    note: str = ""


class SessionStart(Body, frozen=True, tag=MessageType.SESSION_START.value):
    goal: Text
    context: RunContext = RunContext()
    test: Note = ""
    max_revisions: Annotated[int, Meta(ge=0, le=1000)] = MAX_REVISIONS


class SessionAck(Body, frozen=True, tag=MessageType.SESSION_ACK.value):
    note: Note = ""
    telemetry: Annotated[tuple[Telemetry, ...], Meta(max_length=3)] = ()


class Plan(Struct, frozen=True):
    steps: Annotated[tuple[Line, ...], Meta(min_length=1, max_length=MAX_ITEMS)]
    summary: Note = ""
    tools: Lines = ()
    estimate: Note = ""
    confidence: Confidence | None = None


class PlanProposed(Plan, frozen=True, tag_field="message_type", tag=MessageType.PLAN_PROPOSED.value):
    plan_path: Note = ""

    @property
    def plan(self) -> Plan:
        """The plan of a run."""
        return Plan(**{name: getattr(self, name) for name in Plan.__struct_fields__})


class PlanFeedback(Body, frozen=True, tag=MessageType.PLAN_FEEDBACK.value):
    risk: Risk
    notes: Lines = ()
    checks: Lines = ()
    alternative: Plan | None = None


class TestResult(Struct, frozen=True):
    """The result of a test command; `code` is None if it was killed.

    `claimed` means that the builder reported the result and CSP did not run the tests.
    """

    __test__ = False
    command: Note
    passed: bool
    code: int | None = None
    seconds: float = 0.0
    output: Long = ""
    timed_out: bool = False
    claimed: bool = False


class DiffFigures(Struct, frozen=True):
    """Statistics of a diff; `bytes` and `sha256` refer to the whole patch, which the journal has in part."""

    base: Word
    commit: Word
    files: int = 0
    insertions: int = 0
    deletions: int = 0
    bytes: int = 0
    sha256: Word = ""


class ExecutionUpdate(Body, frozen=True, tag=MessageType.EXECUTION_UPDATE.value):
    """A step of the builder; if `figures` is set, CSP itself produced the diff and the test result."""

    step: Line
    diff: Long = ""
    tests: TestResult | None = None
    final: bool = False
    # CSP adds its own metrics to the builder's, of which there are at most MAX_ITEMS.
    metrics: Annotated[dict[Word, float | str], Meta(max_length=2 * MAX_ITEMS)] = msgspec.field(
        default_factory=dict
    )
    figures: DiffFigures | None = None


class ExecutionAlert(Body, frozen=True, tag=MessageType.EXECUTION_ALERT.value):
    level: AlertLevel
    text: Line


class Finding(Struct, frozen=True):
    """A finding; the room sets `id`, and `resolved` is the cycle that resolved it, or 0 while it is open."""

    severity: Severity
    text: Line
    id: FindingId | None = None
    cycle: int = 0
    resolved: int = 0
    verdict: Verdict | None = None

    @property
    def is_open(self) -> bool:
        return not self.resolved

    @property
    def is_weighty(self) -> bool:
        """Whether the finding justifies a revision."""
        return self.severity is not Severity.MINOR


class Defect(Struct, frozen=True):
    """A defect in accepted work that its reviewer missed."""

    id: str
    severity: Severity
    text: str


class ReviewDecision(Body, frozen=True, tag=MessageType.REVIEW_DECISION.value):
    decision: Decision
    rationale: Note = ""
    findings: Annotated[tuple[Finding, ...], Meta(max_length=MAX_ITEMS)] = ()
    resolved: Annotated[tuple[FindingId, ...], Meta(max_length=1000 * MAX_ITEMS)] = ()


class SessionEnd(Body, frozen=True, tag=MessageType.SESSION_END.value):
    status: Word
    summary: Note = ""
    artifacts: Lines = ()


# fmt: off
AnyMessage = (
    SessionStart | SessionAck | PlanProposed | PlanFeedback
    | ExecutionUpdate | ExecutionAlert | ReviewDecision | SessionEnd
)
# fmt: on


def type_of_body(body: AnyMessage) -> MessageType:
    """Return the message type of a body."""
    return MessageType(str(body.__struct_config__.tag))


class RunMessageBody(Struct, frozen=True):
    """A message with its envelope."""

    schema_version: Annotated[str, Meta(pattern=r"^0\.1\Z", examples=[SCHEMA_VERSION])]
    timestamp: Annotated[str, Meta(min_length=1, max_length=64, examples=["2025-10-06T13:00:00Z"])]
    sender: RunRole
    run_id: RunId
    message_type: MessageType
    body: dict[str, Any]


def read_body(message_type: MessageType, fields: dict[str, Any]) -> AnyMessage:
    """Decode a body, or raise BadInput with the name of the invalid field."""
    try:
        body: AnyMessage = msgspec.convert(fields | {"message_type": message_type.value}, AnyMessage)
    except msgspec.ValidationError as exc:
        raise BadInput(f"{message_type}: {str(exc)[:1].lower()}{str(exc)[1:]}", "see /openapi.json") from exc
    return body


def write_message(run_id: str, role: RunRole, ts: float, body: AnyMessage) -> RunMessageBody:
    """Return a message in its external form."""
    fields = msgspec.to_builtins(body)
    message_type = MessageType(fields.pop("message_type"))
    return RunMessageBody(
        schema_version=SCHEMA_VERSION,
        timestamp=datetime.fromtimestamp(ts, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        sender=role,
        run_id=run_id,
        message_type=message_type,
        body=fields,
    )


# --- a run -----------------------------------------------------------------------------------------


class RunTerms(Struct, frozen=True, kw_only=True):
    """The terms of a run."""

    run_id: RunId | None = None
    test: Note = ""
    test_timeout_s: Annotated[float, Meta(gt=0, le=7200)] = 600.0
    on_accept: OnAccept = OnAccept.BRANCH
    #: Whether a person must approve every plan, regardless of its risk.
    approve: bool = False
    dir: Annotated[str, Meta(max_length=4096)] = ""


class RunBody(RunTerms, frozen=True):
    """A run to start: goal, builder and reviewer; `mailbox` is the role that is played through files.

    `on_limit` is the action at an agent's usage limit.
    """

    goal: Text
    builder: Name
    reviewer: Name
    max_revisions: Annotated[int, Meta(ge=0, le=100)] = MAX_REVISIONS
    thread: Thread | None = None
    on_limit: OnLimit | None = None
    id: OwnId | None = None


class RunActionBody(Struct, frozen=True):
    """A person's action on a run; the action determines the fields that are used."""

    plan: Plan | None = None
    decision: Decision | None = None
    rationale: Note = ""
    findings: Annotated[tuple[Finding, ...], Meta(max_length=MAX_ITEMS)] = ()
    finding: FindingId | None = None
    verdict: Verdict | None = None
    defect: Line | None = None
    severity: Severity = Severity.MAJOR
    id: OwnId | None = None


class FinalDecision(Struct, frozen=True):
    """How a run ended, with the reviewer's last verdict."""

    schema_version: Word
    run_id: RunId
    reason: EndReason
    ended_at: float
    cycle: int
    revisions: int
    decision: Decision | None = None
    rationale: Note = ""
    findings: tuple[Finding, ...] = ()


class RunSummary(Struct, frozen=True):
    """A summary of a run."""

    id: str
    session_id: str
    thread: str
    goal: str
    builder: str
    reviewer: str
    phase: RunPhase
    waits_for: str
    cycle: int
    revisions: int
    max_revisions: int
    started_at: float
    #: The start time of its phase.
    since: float = 0.0
    why: str = ""
    ended_at: float | None = None
    reason: EndReason | None = None
    branch: str = ""


class RunDetail(Struct, frozen=True):
    """A run with all its details."""

    run: RunSummary
    expects: tuple[MessageType, ...] = ()
    plan: Plan | None = None
    risk: Risk | None = None
    notes: tuple[str, ...] = ()
    telemetry: tuple[Telemetry, ...] = ()
    findings: tuple[Finding, ...] = ()
    update: ExecutionUpdate | None = None
    decision: ReviewDecision | None = None
    context: RunContext | None = None
    summary: str = ""
    folder: str = ""
    defects: tuple[Defect, ...] = ()


class ReviewerStats(Struct, frozen=True):
    """A reviewer's statistics over the remembered runs."""

    reviewer: str
    runs: int
    accepted: int
    accepted_at_once: int
    accepted_after_revision: int
    aborted: int
    escalated: int
    alerts: int
    findings: dict[str, int]
    confirmed: int
    rejected: int
    #: The share of judged findings that were correct; None if none was judged.
    precision: float | None = None
    #: The number of missed defects, and their share of all defects.
    missed: int = 0
    accepted_with_defects: int = 0
    miss_rate: float | None = None


class RunsView(Struct, frozen=True):
    items: tuple[RunSummary, ...]
    stats: tuple[ReviewerStats, ...] = ()


class RunStartedView(Struct, frozen=True):
    success: bool
    run: RunSummary


class RunSaidView(Struct, frozen=True):
    """`repeated` means that the same message was accepted before, so it had no effect."""

    success: bool
    run: RunSummary
    repeated: bool = False
