"""One event of every kind, with every field set."""

from typing import Final

import msgspec

from csp.events import (
    Activity,
    AgentCall,
    AgentResponse,
    Base,
    ControlSent,
    Delivered,
    HumanMessage,
    Joined,
    Kept,
    KnownEvent,
    Late,
    Left,
    Noticed,
    Pruned,
    Queried,
    Redacted,
    StateChanged,
    Told,
)
from csp.wire import (
    AgentId,
    AgentState,
    Choice,
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
}
_JOINED: Final = {
    "name": "Claude",
    "kind": Kind.API,
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
    _build(Kept, _SPEECH),
    _build(Told, _SPEECH | {"query": MessageId("e-6")}),
    _build(Queried, {"count": 5, "reply_to": MessageId("m-3"), "hops": 2}),
    _build(Noticed, {}),
    _build(
        Delivered,
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
    _build(ControlSent, {"control": ControlVerb.APPROVE, "expires": 1700000030.0, "choice": 2}),
    _build(Late, {"turn": "t-5"}),
    _build(Redacted, {"message": MessageId("m-3")}),
    _build(Pruned, {"before": 5}),
    _build(Base, {"state": msgspec.Raw(b'{"seq":7,"ts":1700000000.25}')}),
)
