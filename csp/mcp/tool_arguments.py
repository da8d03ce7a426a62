"""The types of each tool's arguments; clients see their JSON schemas."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from csp.protocol.enums import MAX_TEXT_BYTES, Id, Mode, Name, OwnId, ReportedAgentState, Thread
from csp.protocol.notes import BoardName
from csp.protocol.session_parts import OnHardLimit, OnLimit

#: The maximum wait for a collaboration, in seconds.
LONGEST_S = 1800

Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_BYTES)]
Said = Annotated[Text, Meta(description="the text to send")]
Key = Annotated[OwnId, Meta(description="an optional id; a message with the same id is sent only once")]
InThread = Annotated[Thread, Meta(description="thread; default: the room's own")]
Session = Annotated[Id, Meta(description="a session, such as s-12")]
OnBoard = Annotated[BoardName, Meta(description="the board of a session, such as s-12; default: the room's")]
TagWord = Annotated[str, Meta(min_length=1, max_length=64)]
Tags = Annotated[list[TagWord], Meta(max_length=16, description="single words for searches")]
Agents = Annotated[list[Name], Meta(max_length=1000, description="default: all online agents")]
Rounds = Annotated[int, Meta(ge=1, le=1000)]
Seq = Annotated[int, Meta(ge=0, le=2**53)]
WaitS = Annotated[float, Meta(ge=0, le=60, description="seconds to wait for new messages")]
Short = Annotated[str, Meta(max_length=2000)]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of all arguments."""


class Nothing(Arguments, frozen=True, forbid_unknown_fields=True):
    """The type of a call without arguments."""


class SendMessage(Arguments, frozen=True, forbid_unknown_fields=True):
    to: Annotated[Name, Meta(description="a participant's id, human, or all")]
    text: Said
    reply_to: Annotated[Id, Meta(description="the message to which this is a reply")] | None = None
    turn: Annotated[Id, Meta(description="your turn to which this is the reply, such as t-17")] | None = None
    urgent: Annotated[bool, Meta(description="interrupt what the recipient is doing")] = False
    thread: InThread | None = None
    id: Key | None = None


class Broadcast(Arguments, frozen=True, forbid_unknown_fields=True):
    text: Said
    thread: InThread | None = None
    id: Key | None = None


class ReadMessages(Arguments, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=200)] = 20
    after: Annotated[Seq, Meta(description="only messages after this seq")] | None = None
    wait: WaitS = 0


class SetStatus(Arguments, frozen=True, forbid_unknown_fields=True):
    state: ReportedAgentState
    detail: Annotated[Short, Meta(description="your current activity, in a few words")] = ""


class Working(Arguments, frozen=True, forbid_unknown_fields=True):
    note: Annotated[Short, Meta(description="the reason for the delay")] = ""


class HandOver(Arguments, frozen=True, forbid_unknown_fields=True):
    to: Annotated[Name, Meta(description="the agent to continue")]
    task: Annotated[str, Meta(min_length=1, max_length=500, description="one clear task")]
    session: Session | None = None


class Vote(Arguments, frozen=True, forbid_unknown_fields=True):
    label: Annotated[str, Meta(pattern=r"^[A-Za-z]{1,2}\Z", description="label of a proposal, such as B")]
    reason: Annotated[Short, Meta(description="why, in one sentence")] = ""
    session: Session | None = None


class BoardAdd(Arguments, frozen=True, forbid_unknown_fields=True):
    text: Annotated[Text, Meta(description="the note")]
    session: OnBoard | None = None
    tags: Tags | None = None
    id: Key | None = None


class BoardSearch(Arguments, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, Meta(min_length=1, max_length=1000, description="words or an exact name")]
    session: OnBoard | None = None
    author: Name | None = None
    kind: Literal["note", "reply", "summary"] | None = None
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    rerank: Annotated[bool, Meta(description="compare more closely: slower, but better by meaning")] = False


class QueryLog(Arguments, frozen=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=200)] = 20
    search: Annotated[str, Meta(max_length=1000, description="words that it must contain")] | None = None
    agent: Annotated[Name, Meta(description="only messages from or to this participant")] | None = None
    session: Session | None = None
    after: Seq | None = None
    before: Seq | None = None


class StartMode(Arguments, frozen=True, forbid_unknown_fields=True):
    mode: Mode
    topic: Text | None = None
    agents: Agents | None = None
    rounds: Rounds | None = None
    steps: Rounds | None = None
    first: Name | None = None
    synth: Annotated[Name, Meta(description="the agent that writes the synthesis")] | None = None
    ballot: Annotated[bool, Meta(description="for a debate: vote at the end")] | None = None
    respect_final: bool | None = None
    on_limit: Annotated[OnLimit, Meta(description="at an agent's usage limit")] | None = None
    on_hard_limit: Annotated[OnHardLimit, Meta(description="at the session's own limit")] | None = None
    thread: InThread | None = None
    own_thread: Annotated[bool, Meta(description="start it in a new thread, alongside running work")] = False


class ModeStatus(Arguments, frozen=True, forbid_unknown_fields=True):
    thread: InThread | None = None
    session: Session | None = None


class Stop(Arguments, frozen=True, forbid_unknown_fields=True):
    thread: InThread | None = None
    all: Annotated[bool, Meta(description="in every thread")] = False


_Models = Annotated[list[Name], Meta(min_length=1, max_length=1000)]
_Goal = Annotated[Text, Meta(description="the task to solve together; required to start")]
_Handle = Annotated[Id, Meta(description="a collaboration to continue, or a name for a new one")]
_Guidance = Annotated[str, Meta(max_length=MAX_TEXT_BYTES, description="guidance for the next steps")]
_LEADS = Meta(description="round_robin, the default, or orchestrator: the first of models leads")
_Steps = Annotated[int, Meta(ge=1, le=1000, description="the maximum number of turns, by default 10")]
_Parallel = Annotated[int, Meta(ge=1, le=100, description="how many agents work at once, by default 1")]
_StepS = Annotated[float, Meta(gt=0, le=LONGEST_S, description="seconds allowed for a turn, by default 300")]
_Usd = Annotated[float, Meta(gt=0, le=1e9, description="calls that could exceed this are not made")]
_NOTES = Meta(ge=2, le=1_000_000, description="number of notes before a summary, by default 50")
_END_S = Meta(ge=0, le=LONGEST_S, description="seconds to wait for the end; 0 returns the handle immediately")


class ChatterCollaborate(Arguments, frozen=True, forbid_unknown_fields=True):
    """The terms of a collaboration; one that continues keeps the values of omitted fields."""

    objective: _Goal | None = None
    models: Annotated[_Models, Meta(description="the participants; required to start")] | None = None
    session_id: _Handle | None = None
    user_input: _Guidance | None = None
    mode: Annotated[Literal["round_robin", "orchestrator"], _LEADS] | None = None
    max_steps: _Steps | None = None
    parallel: _Parallel | None = None
    timeout_per_step: _StepS | None = None
    cost_limit_usd: _Usd | None = None
    summarization_threshold: Annotated[int, _NOTES] | None = None
    wait: Annotated[float, _END_S] = LONGEST_S


class ChatterPoll(Arguments, frozen=True, forbid_unknown_fields=True):
    handle: Annotated[Id, Meta(description="the handle returned by chatter_collaborate")]
    wait: Annotated[float, Meta(ge=0, le=LONGEST_S, description="seconds to wait for the end")] = 0
    stop: Annotated[bool, Meta(description="stop the collaboration instead")] = False


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, simple enough for every client."""
    (top,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    found: dict[str, Any] = _plain(parts[top["$ref"]], parts)
    found.pop("description", None)
    return {"properties": {}, **found}


def _plain(value: Any, parts: dict[str, Any]) -> Any:
    """Return a schema with all references inlined and without parts that a caller does not need."""
    if isinstance(value, list):
        return [_plain(one, parts) for one in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _plain(parts[value["$ref"]] | {key: value[key] for key in value if key != "$ref"}, parts)
    if "anyOf" in value:
        # An optional argument can be omitted, so null is not listed.
        (only,) = [one for one in value["anyOf"] if one != {"type": "null"}]
        return _plain(only, parts)
    found = {key: _plain(one, parts) for key, one in value.items() if key not in ("title", "examples")}
    if "enum" in found:
        found["type"] = "string"
    if isinstance(found.get("pattern"), str):
        # JavaScript has no \Z.
        found["pattern"] = found["pattern"].replace(r"\Z", "$")
    return found
