"""Commands for a review run: from scripts, people and CSP's own worker, and from its agents' texts."""

import math
import re
from typing import Final, NamedTuple

import msgspec

from csp.errors import BadInput, NotFound, Refused
from csp.protocol.enums import ALL
from csp.protocol.events import RunDefect, RunDelivered, RunEdited, RunJudged, RunPrepared
from csp.protocol.notices import NoticeCode
from csp.protocol.review_messages import (
    MAILBOX,
    MAX_ITEMS,
    SCHEMA_VERSION,
    AnyMessage,
    Decision,
    MessageType,
    RunAction,
    RunPhase,
    RunRole,
    read_body,
)
from csp.protocol.session_parts import Change, EndReason, Status
from csp.room.agent_names import nearest
from csp.room.chat_markdown import fenced_objects, first_lines, read_lines
from csp.room.commands import ActOnRun, CheckRun, DeliverRun, PrepareRun, SayInRun
from csp.room.room_draft import RoomDraft, SessionDraft
from csp.room.runs import run_protocol
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.session_end import end
from csp.room.sessions.session_engine import advance
from csp.room.sessions.session_state import cut

P = RunPhase
#: The end of a run that a person aborts in one of these phases.
_AT_ABORT: Final = {P.ESCALATED: EndReason.CAP_REACHED, P.HALTED: EndReason.HALTED}


def known_run(runs: dict[str, ReviewRun], run_id: str) -> ReviewRun:
    """Return a run if it is remembered; otherwise raise NotFound with the known runs."""
    found = runs.get(run_id)
    if found is None:
        hint = nearest(run_id, list(runs)) if runs else "start one with: csp review start"
        raise NotFound(f"unknown run {run_id[:80]!r}", hint)
    return found


def say(draft: RoomDraft, command: SayInRun) -> None:
    """Handle a message from a file or a request; a repeated message has no effect."""
    run = known_run(draft.room.runs.by_id, command.run)
    if command.key and command.key in run.keys:
        return
    _check_live(run)
    role = command.role
    if command.sender != MAILBOX:
        role = run.role_of(command.sender)
    if role is None:
        raise run_protocol.unknown_role(run, command.sender)
    if command.role is not None and command.role is not role:
        raise Refused(f"sender is {command.role}, but {command.sender} is the {role} of run {run.id}", "")
    session_draft = SessionDraft(draft, run.session)
    run_protocol.handle_message(session_draft, role, command.body, command.origin, command.key)
    advance(session_draft)


def _check_live(run: ReviewRun) -> None:
    if run.is_over:
        raise Refused(f"run {run.id} has ended: {run.reason}", "start a new one with: csp review start")


# --- results of CSP's worker -----------------------------------------------------------------------


def prepare(draft: RoomDraft, command: PrepareRun) -> None:
    """Record the run's working directory and start the run."""
    run = draft.room.runs.by_id.get(command.run)
    if run is None or run.phase is not P.SETUP or run.is_over:
        return
    session_draft = SessionDraft(draft, run.session)
    header = draft.run_header(run, command.context.worktree or command.context.dir)
    draft.emit(RunPrepared(*header, context=command.context))
    if command.context.note:
        session_draft.notice(NoticeCode.RUN_NOTE(run=run.id, note=command.context.note))
    run_protocol.announce(session_draft)
    advance(session_draft)


def check(draft: RoomDraft, command: CheckRun) -> None:
    """Record the diff and the tests of the last step, unless a newer step has replaced it."""
    run = draft.room.runs.by_id.get(command.run)
    if run is None or run.is_over or run.is_checked or run.update is None:
        return
    if (run.cycle, run.steps) != (command.cycle, command.step):
        return
    session_draft = SessionDraft(draft, run.session)
    run_protocol.record_check(session_draft, command.update, command.note)
    advance(session_draft)


def deliver(draft: RoomDraft, command: DeliverRun) -> None:
    """Record the location of the accepted work."""
    run = draft.room.runs.by_id.get(command.run)
    if run is None or not run.owes_branch:
        return
    where = f"the accepted work is on branch {command.branch}" if command.branch else command.note
    draft.emit(RunDelivered(*draft.run_header(run, where), branch=command.branch, note=command.note))
    if command.branch:
        draft.notice(ALL, NoticeCode.RUN_BRANCH(run=run.id, branch=command.branch), thread=run.thread)
    else:
        draft.notice(ALL, NoticeCode.RUN_NOTE(run=run.id, note=command.note), thread=run.thread)


# --- actions of a person ---------------------------------------------------------------------------


def act(draft: RoomDraft, command: ActOnRun) -> None:
    """Perform a person's action."""
    run = known_run(draft.room.runs.by_id, command.run)
    # Findings can be judged and missed defects recorded even after the end of the run.
    if command.action is RunAction.FINDING:
        _judge(draft, run, command)
        return
    if command.action is RunAction.DEFECT:
        _record_defect(draft, run, command)
        return
    _check_live(run)
    session_draft = SessionDraft(draft, run.session)
    match command.action:
        case RunAction.GO:
            _go(session_draft, run, command)
        case RunAction.DECIDE:
            _decide(session_draft, run, command)
        case RunAction.HALT:
            if run.phase in (P.HALTED, P.SETUP):
                raise Refused(f"run {run.id} is in phase {run.phase}", "see: csp review show")
            why = command.rationale or f"halted by {command.sender}"
            run_protocol.halt(session_draft, why, by=command.sender)
        case RunAction.RESUME:
            _resume(session_draft, run, command)
        case _:
            # Only RunAction.ABORT remains.
            _abort(session_draft, run, command)
    advance(session_draft)


def _judge(draft: RoomDraft, run: ReviewRun, command: ActOnRun) -> None:
    known = [str(one.id) for one in run.findings]
    if command.finding not in known:
        hint = nearest(command.finding or "", known) if known else "it has none"
        raise NotFound(f"unknown finding {command.finding!r} of run {run.id}", hint)
    if command.verdict is None:
        raise BadInput("a verdict is missing", "give: confirmed or rejected")
    header = draft.run_header(run, f"{command.finding} {command.verdict}", by=command.sender)
    draft.emit(RunJudged(*header, finding=command.finding, verdict=command.verdict))


def _record_defect(draft: RoomDraft, run: ReviewRun, command: ActOnRun) -> None:
    """Record a defect that the reviewer missed; a repeated text has no effect."""
    text = (command.defect or "").strip()
    if not text:
        raise BadInput("a defect is missing", "describe it: csp review defect RUN TEXT")
    if run.reason is not EndReason.ACCEPTED:
        hint = "its findings are judged with: csp review finding"
        raise Refused(f"run {run.id} was not accepted, so its reviewer cannot have missed a defect", hint)
    if any(one.text == text for one in run.defects):
        return
    if len(run.defects) == MAX_ITEMS:
        raise Refused(f"run {run.id} has {MAX_ITEMS} defects, the maximum", "see: csp review show")
    header = draft.run_header(run, text, by=command.sender)
    draft.emit(RunDefect(*header, defect=f"d-{len(run.defects) + 1}", severity=command.severity))


def _go(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    _check_phase(run, command.action, P.APPROVAL)
    _edit(draft, run, command)
    run_protocol.enter_phase(draft, P.EXECUTION, by=command.sender)


def _edit(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    """Accept a plan that a person has edited."""
    if command.plan is not None and command.plan != run.plan:
        header = draft.run_header(f"plan of {len(command.plan.steps)} steps", by=command.sender)
        draft.room_draft.emit(RunEdited(*header, plan=command.plan))
        draft.notice(NoticeCode.RUN_PLAN_CHANGED(run=run.id, agent=command.sender))


def is_plan_open(run: ReviewRun) -> bool:
    """Return whether a person may still edit the plan: it exists, and work on it has not started."""
    at = run.back if run.phase is P.HALTED else run.phase
    return run.plan is not None and at in (P.FEEDBACK, P.APPROVAL)


def _resume(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    is_paused = draft.session.status is Status.PAUSED
    if is_paused:
        draft.change(Change.RESUMED, "resumed", by=command.sender)
    if run.phase is P.HALTED:
        if is_plan_open(run):
            _edit(draft, run, command)
        if run.back is P.CHECKS and run.is_checked:
            run_protocol.after_checks(draft)
        else:
            run_protocol.enter_phase(draft, run.back or P.EXECUTION, command.rationale, by=command.sender)
    elif not is_paused:
        raise Refused(f"run {run.id} is not halted, it is in phase {run.phase}", "see: csp review show")


def _abort(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    if not command.rationale.strip():
        raise BadInput("an abort needs a rationale", "give a reason: csp review abort RUN WHY")
    end(draft, _AT_ABORT.get(run.phase, EndReason.ABORTED), by=command.sender, note=command.rationale)


def _decide(draft: SessionDraft, run: ReviewRun, command: ActOnRun) -> None:
    if command.decision is None:
        raise BadInput("a decision is missing", "give: accept, revise or abort")
    if command.decision is Decision.ABORT:
        _abort(draft, run, command)
        return
    _check_phase(run, command.action, P.APPROVAL, P.ESCALATED, P.HALTED)
    by, why = command.sender, command.rationale
    match run.phase, command.decision:
        case P.APPROVAL, Decision.ACCEPT:
            _go(draft, run, command)
        case P.APPROVAL, _:
            run_protocol.enter_phase(draft, P.PLAN, why or "a person requests another plan", by=by)
        case P.ESCALATED, Decision.ACCEPT:
            run_protocol.enter_phase(draft, P.CLOSING, why, by=by)
        case P.ESCALATED, _:
            run_protocol.revise(draft, why, by=by)
        case _, Decision.ACCEPT:
            _resume(draft, run, command)
        case _:
            run_protocol.enter_phase(draft, P.EXECUTION if run.plan else P.PLAN, why, by=by)


def _check_phase(run: ReviewRun, action: RunAction, *phases: RunPhase) -> None:
    if run.phase not in phases:
        wanted = " or ".join(phases)
        what = f"run {run.id} is in phase {run.phase}, {action} is for {wanted}"
        raise Refused(what, "see: csp review show")


# --- the message in an agent's text ---------------------------------------------------------------
#
# The message is JSON, in a fence or as the whole text, or it consists of lines with keys in capitals,
# outside code and at the start of the line:
#
#     PLAN: summary           then a list with one step per line; TOOLS: ESTIMATE: CONFIDENCE:
#     STEP: what was done     an intermediate step; METRIC: name = value
#     DONE: what was done     the submission; METRIC: name = value
#     END: summary
#     ACK: note               SUBSCRIBE: steps, diffs, tests
#     RISK: low|medium|high   NOTE: CHECK: ALTERNATIVE: summary, then its steps as a list
#     ALERT: critical - text
#     DECISION: accept|revise|abort   FINDING: major - text   RESOLVED: f-1, f-2   RATIONALE: text


MAX_LINE: Final = 1900
MAX_LINES: Final = 50
#: More than a person would read; every line takes a few microseconds during which the whole room waits.
MAX_LINES_READ: Final = 3_000
_KEYS: Final = (
    *("PLAN", "STEP", "DONE", "END", "ACK", "RISK", "ALERT", "DECISION"),
    *("TOOLS", "ESTIMATE", "CONFIDENCE", "METRIC"),
    *("SUBSCRIBE", "NOTE", "CHECK", "ALTERNATIVE", "FINDING", "RESOLVED", "RATIONALE"),
)
_KEY: Final = re.compile(rf"(?:\*\*)?({'|'.join(_KEYS)})(?::(?:\*\*)?|(?:\*\*)?:|(?:\*\*)?[ \t]*\Z)[ \t]*")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?=\S)")
_GRADED: Final = re.compile(r"[\[(*`]*([A-Za-z]+)[\])*`]*[ \t]*(?:[-–—:][ \t]*)?")
_ID: Final = re.compile(r"f-[1-9][0-9]{0,5}")
_EXPECTED: Final = {
    RunRole.BUILDER: "a line that begins with PLAN:, STEP:, DONE: or END:",
    RunRole.REVIEWER: "a line that begins with ACK:, RISK:, ALERT: or DECISION:",
}
#: Each role's keys, lowest precedence first, with the message that each key starts.
_MESSAGES: Final[dict[RunRole, dict[str, MessageType]]] = {
    RunRole.BUILDER: {
        "PLAN": MessageType.PLAN_PROPOSED,
        "STEP": MessageType.EXECUTION_UPDATE,
        "DONE": MessageType.EXECUTION_UPDATE,
        "END": MessageType.SESSION_END,
    },
    RunRole.REVIEWER: {
        "ACK": MessageType.SESSION_ACK,
        "RISK": MessageType.PLAN_FEEDBACK,
        "ALERT": MessageType.EXECUTION_ALERT,
        "DECISION": MessageType.REVIEW_DECISION,
    },
}
#: The fields of a message, as written; `read_body` validates them.
Fields = dict[str, object]


class _Entry(NamedTuple):
    """A key with its text and the list items below it."""

    key: str
    text: str
    items: tuple[str, ...]


def read_message(text: str, role: RunRole, run_id: str) -> AnyMessage:
    """Return the message in `text`; raise BadInput with the reason if there is no valid one."""
    whole = text.strip()
    texts = (whole,) if whole.startswith("{") and whole.endswith("}") else fenced_objects(text)
    objects: list[Fields] = []
    for one in texts:
        try:
            fields = msgspec.json.decode(one, type=Fields)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            continue
        if "message_type" in fields:
            objects.append(fields)
    if len(objects) > 1:
        raise BadInput("it contains several messages", "send one")
    if objects:
        return _from_object(objects[0], role, run_id)
    entries, known = _entries(text), _MESSAGES[role]
    heads = [entry for entry in entries if entry.key in known]
    if not heads:
        hint = f"write {_EXPECTED[role]}, or the JSON message in a fence"
        raise BadInput("it contains no message", hint)
    # If a text has several messages, one that ends a phase takes precedence.
    head = max(heads, key=lambda entry: list(known).index(entry.key))
    return read_body(known[head.key], _fields(head, entries))


def _from_object(fields: Fields, role: RunRole, run_id: str) -> AnyMessage:
    """Parse a message from JSON; its envelope fields other than the type are optional, but must be valid."""
    given = {"schema_version": SCHEMA_VERSION, "sender": role.value, "run_id": run_id}
    for name, right in given.items():
        if fields.get(name, right) != right:
            raise BadInput(f"{name} is {str(fields[name])[:80]!r}, expected {right!r}", "send it again")
    message_type = str(fields["message_type"])
    if message_type not in set(MessageType):
        hint = f"expected one of: {', '.join(MessageType)}"
        raise BadInput(f"unknown message_type {message_type[:80]!r}", hint)
    body = fields.get("body", {})
    if not isinstance(body, dict):
        raise BadInput("body is not an object", "send a JSON object as the body")
    return read_body(MessageType(message_type), body)


# --- messages written as lines ---------------------------------------------------------------------


def _entries(text: str) -> list[_Entry]:
    entries: list[_Entry] = []
    for line in read_lines(first_lines(text, MAX_LINES_READ)[0]):
        found = None if line.is_code else _KEY.match(line.text)
        if found:
            entries.append(_Entry(found[1], cut(line.text[found.end() :].strip(), MAX_LINE), ()))
        elif entries and not line.is_code and (item := _ITEM.match(line.text)):
            last = entries[-1]
            one = cut(line.text[item.end() :].strip(), MAX_LINE)
            entries[-1] = last._replace(items=(*last.items, one)[:MAX_LINES])
    return entries


def _texts(entries: list[_Entry], key: str) -> list[str]:
    """Return the texts after a key, from all lines with that key."""
    found = [text for one in entries if one.key == key for text in (one.text, *one.items) if text]
    return found[:MAX_LINES]


def _fields(head: _Entry, entries: list[_Entry]) -> Fields:
    """Return the fields of the message that a line starts."""
    said = cut("; ".join((head.text, *head.items) if head.text else head.items), MAX_LINE)
    grade, rest = _graded(head.text)
    match head.key:
        case "PLAN":
            return _plan(head, entries)
        case "STEP" | "DONE":
            metrics: dict[str, float | str] = {}
            for text in _texts(entries, "METRIC"):
                name, _, value = text.partition("=") if "=" in text else text.partition(":")
                number = _number(value.strip())
                metrics[cut(name.strip(), 200)] = cut(value.strip(), 200) if number is None else number
            return {"step": said, "final": head.key == "DONE", "metrics": metrics}
        case "END":
            return {"status": "done", "summary": said}
        case "ACK":
            wanted = re.findall(r"[a-z]+", " ".join(_texts(entries, "SUBSCRIBE")).lower())
            telemetry = list(dict.fromkeys(one for one in wanted if one != "none"))
            return {"note": head.text, "telemetry": telemetry}
        case "RISK":
            notes = [*([rest] if rest else []), *head.items, *_texts(entries, "NOTE")][:MAX_LINES]
            fields: Fields = {"risk": grade, "notes": notes, "checks": _texts(entries, "CHECK")}
            others = [entry for entry in entries if entry.key == "ALTERNATIVE"]
            return fields | {"alternative": _plan(others[-1], [])} if others else fields
        case "ALERT":
            return {"level": grade, "text": rest or grade}
        case _:
            graded = map(_graded, _texts(entries, "FINDING"))
            rationale = " ".join([*([rest] if rest else []), *_texts(entries, "RATIONALE")])
            resolved = _ID.findall(" ".join(_texts(entries, "RESOLVED")).lower())
            return {
                "decision": grade,
                "rationale": cut(rationale, MAX_LINE),
                "findings": [{"severity": severity, "text": text} for severity, text in graded],
                "resolved": list(dict.fromkeys(resolved)),
            }


def _plan(head: _Entry, entries: list[_Entry]) -> Fields:
    steps = head.items or ((head.text,) if head.text else ())
    fields: Fields = {"steps": steps, "summary": head.text}
    if tools := _texts(entries, "TOOLS"):
        fields["tools"] = [one.strip() for text in tools for one in text.split(",") if one.strip()]
    if estimate := _texts(entries, "ESTIMATE"):
        fields["estimate"] = estimate[-1]
    confidence = _number(" ".join(_texts(entries, "CONFIDENCE")[-1:]))
    return fields if confidence is None else fields | {"confidence": confidence}


def _number(text: str) -> float | None:
    """Parse a text as a number; reject infinity and NaN, which JSON does not support."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _graded(text: str) -> tuple[str, str]:
    """Return the first word of a text in lower case, and the rest."""
    found = _GRADED.match(text)
    return (found[1].lower(), text[found.end() :].strip()) if found else ("", text)


def read_alert(text: str) -> AnyMessage | None:
    """Return the alert in an unprompted text, if there is one."""
    # This runs for every text of an agent, and hardly any contains an alert.
    entries = [entry for entry in _entries(text) if entry.key == "ALERT"] if "ALERT" in text else []
    if not entries:
        return None
    try:
        return read_body(MessageType.EXECUTION_ALERT, _fields(entries[-1], []))
    except BadInput:
        return None
