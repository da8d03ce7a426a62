"""One event of every kind, with every field set."""

from typing import Final

import msgspec

from csp.protocol.enums import (
    AgentId,
    AgentState,
    ControlVerb,
    DeliveryState,
    Ending,
    JoinRole,
    MessageId,
    Mode,
    ParticipantKind,
    SessionId,
    TurnId,
)
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    BoardChanged,
    CallRecorded,
    ControlSent,
    DeliveryMoved,
    HumanMessage,
    Joined,
    KeptPrivate,
    KnownEvent,
    LateReply,
    Left,
    LogRequested,
    ModeChanged,
    NoteAdded,
    NoticePosted,
    Pruned,
    PrunedBase,
    Redacted,
    RunChecked,
    RunDefect,
    RunDelivered,
    RunEdited,
    RunEnded,
    RunJudged,
    RunMoved,
    RunPrepared,
    RunReminded,
    RunSaid,
    RunStarted,
    StateChanged,
    SystemReply,
    TurnMoved,
    TurnSignal,
    UsageSeen,
    Voted,
)
from csp.protocol.notes import BoardChange, NoteKind, Provider, Source
from csp.protocol.requests import Choice, Dialog, Handoff, Usage
from csp.protocol.review_messages import (
    Decision,
    ExecutionUpdate,
    Finding,
    OnAccept,
    Plan,
    ReviewDecision,
    RunContext,
    RunPhase,
    RunRole,
    RunTerms,
    Severity,
    Verdict,
)
from csp.protocol.session_parts import (
    Candidate,
    Change,
    EndReason,
    Limits,
    PhaseKind,
    Setup,
    Stage,
    TurnState,
)

HEAD: Final = {
    "seq": 7,
    "ts": 1700000000.25,
    "id": MessageId("x-7"),
    "sender": AgentId("claude"),
    "target": AgentId("codex"),
    "thread": "parser",
    "text": 'fïx "it"\n\t\\ 😀',
}
_SPEECH: Final = {
    "recipients": (AgentId("codex"), AgentId("gemini")),
    "reply_to": MessageId("m-3"),
    "hops": 9,
    "urgent": True,
    "held": "loop",
    "expires": 1700000100.5,
    "turn": "t-5",
    "handoff": Handoff(to="codex", task="look"),
    "final": True,
    "usage": Usage(input=1, output=2, cost_usd=0.25, model="large"),
    "ending": Ending.INTERRUPTED,
    "session_id": SessionId("s-4"),
    "round": 2,
    "max_rounds": 3,
    "sealed": 1,
    "waits": (AgentId("gemini"),),
    "out_of_turn": True,
    "late": True,
    "malformed": True,
    "idx": 3,
}
_ASKED: Final = {
    "current_agent": AgentId("codex"),
    "waiting_for": (AgentId("codex"), AgentId("gemini")),
    "is_repair": True,
}
_MODE: Final = {
    "session_id": SessionId("s-4"),
    "change": Change.PHASE,
    "setup": Setup(
        mode=Mode.DEBATE,
        agents=(AgentId("claude"), AgentId("codex")),
        topic="tabs",
        rounds=3,
        lead=AgentId("claude"),
        synth=AgentId("codex"),
        ballot=True,
        respect_final=True,
        soft_turns=True,
        limits=Limits(turns=5, tokens=6, minutes=7.5, cost=0.5),
    ),
    "stage": Stage(
        number=2,
        kind=PhaseKind.BALLOT,
        name="ballot",
        row=1,
        cycle=2,
        round=2,
        is_sealed=True,
        is_again=True,
        candidates=(Candidate(label="A", agent=AgentId("codex")),),
    ),
    "agent": AgentId("codex"),
    "reason": EndReason.TIE,
    "rounds": 2,
    "minutes": 1.5,
    "sealed": 2,
}
_TURN: Final = {
    "session_id": SessionId("s-4"),
    "turn": TurnId("t-5"),
    "agent": AgentId("codex"),
    "state": TurnState.WORKING,
    "round": 2,
    "reason": "running late",
    "warned": True,
}
_VOTE: Final = {
    "session_id": SessionId("s-4"),
    "turn": TurnId("t-5"),
    "label": "B",
    "reason": "it is short",
    "sealed": 2,
}
_RUN: Final[dict[str, object]] = {"session_id": SessionId("s-4"), "run": "run-5"}
_TERMS: Final = RunTerms(run_id="run-5", test="true", on_accept=OnAccept.NOTHING, approve=True, dir="d")
_DECISION: Final = ReviewDecision(
    decision=Decision.REVISE,
    rationale="r",
    findings=(Finding(severity=Severity.MAJOR, text="t", id="f-1"),),
    resolved=("f-2",),
)
_NOTE: Final = {
    "idx": 4,
    "session_id": SessionId("s-4"),
    "kind": NoteKind.SUMMARY,
    "tags": ("parser",),
    "stands_for": (MessageId("n-3"),),
    "source": Source(seq=6, type="agent_response", id=MessageId("m-6")),
    "key": "own-1",
}
_BOARD: Final[dict[str, object]] = {
    "change": BoardChange.ASKED,
    "session_id": SessionId("s-4"),
    "message": MessageId("m-3"),
    "by": AgentId("codex"),
    "stands_for": (MessageId("n-3"),),
    "provider": Provider.OPENAI,
    "store": "vs_1",
    "upto": 3,
    "freed": 12,
}
_JOINED: Final = {
    "name": "Claude",
    "kind": ParticipantKind.API,
    "role": JoinRole.ORCHESTRATOR,
    "epoch": 2,
    "capabilities": {"a": 1, "b": "x", "c": None, "d": 0.5, "e": True},
}
_STATE: Final = {
    "state": AgentState.LIMITED,
    "detail": "resets at five",
    "until": 1700000500.0,
    "paused": True,
    "share": False,
    "dialog": Dialog(
        tool="Bash", arguments="ls", question="May I?", choices=(Choice(number=1, label="Yes"),)
    ),
}


def _build(kind: type[KnownEvent], fields: dict[str, object]) -> KnownEvent:
    return kind(**(HEAD | fields))  # type: ignore[arg-type]  # the tables above are checked by decoding


EVENTS: Final[tuple[KnownEvent, ...]] = (
    _build(HumanMessage, _SPEECH),
    _build(AgentCall, _SPEECH),
    _build(AgentResponse, _SPEECH),
    _build(Activity, _SPEECH),
    _build(KeptPrivate, _SPEECH),
    _build(SystemReply, _SPEECH | {"query": MessageId("e-6")}),
    _build(TurnSignal, _SPEECH | _ASKED),
    _build(LogRequested, {"count": 5, "reply_to": MessageId("m-3"), "hops": 2}),
    _build(NoticePosted, {"session_id": SessionId("s-4")}),
    _build(ModeChanged, _MODE),
    _build(TurnMoved, _TURN),
    _build(
        UsageSeen,
        {
            "session_id": SessionId("s-4"),
            "turn": TurnId("t-9"),
            "usage": Usage(input=7, output=2, cache_read=5),
        },
    ),
    _build(Voted, _VOTE),
    _build(NoteAdded, _NOTE),
    _build(BoardChanged, _BOARD),
    _build(
        RunStarted,
        _RUN
        | {"builder": AgentId("claude"), "reviewer": AgentId("codex"), "max_revisions": 2, "terms": _TERMS},
    ),
    _build(RunPrepared, _RUN | {"context": RunContext(dir="d", worktree="w", base="b", note="n")}),
    _build(
        RunSaid,
        _RUN | {"role": RunRole.REVIEWER, "body": _DECISION, "origin": "mailbox", "key": "k"},
    ),
    _build(
        RunMoved,
        _RUN
        | {
            "phase": RunPhase.HALTED,
            "why": "critical",
            "cycle": 2,
            "revisions": 1,
            "back": RunPhase.EXECUTION,
        },
    ),
    _build(RunReminded, _RUN | {"number": 2}),
    _build(
        RunChecked,
        _RUN | {"cycle": 2, "update": ExecutionUpdate(step="s", diff="d", final=True), "note": "n"},
    ),
    _build(RunEdited, _RUN | {"plan": Plan(steps=("a",), summary="s", confidence=0.5)}),
    _build(RunJudged, _RUN | {"finding": "f-1", "verdict": Verdict.REJECTED}),
    _build(RunDefect, _RUN | {"defect": "d-1", "severity": Severity.CRITICAL}),
    _build(RunEnded, _RUN | {"reason": EndReason.ACCEPTED}),
    _build(RunDelivered, _RUN | {"branch": "csp/x", "note": "n"}),
    _build(
        DeliveryMoved,
        {
            "message": MessageId("m-3"),
            "agent": AgentId("claude"),
            "state": DeliveryState.HELD,
            "reason": "busy",
        },
    ),
    _build(Joined, _JOINED),
    _build(Left, {"reason": "removed", "removed": True}),
    _build(StateChanged, _STATE),
    _build(
        ControlSent,
        {"control": ControlVerb.APPROVE, "expires": 1700000030.0, "choice": 2, "turn": TurnId("t-5")},
    ),
    _build(LateReply, {"turn": "t-5", "session_id": SessionId("s-4")}),
    _build(CallRecorded, {"key": "k-1", "answer": "s-4"}),
    _build(Redacted, {"message": MessageId("m-3")}),
    _build(Pruned, {"before": 5}),
    _build(PrunedBase, {"state": msgspec.Raw(b'{"seq":7,"ts":1700000000.25}')}),
)
