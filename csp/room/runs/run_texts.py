"""The texts of a run: what a role is told with its turn, the message in its answer, what the run came to.

Either the JSON message stands in a fence or is the whole text, or lines in capitals say the same, outside
code, at the start of a line:

    PLAN: summary           then one step a line, as a list; TOOLS: ESTIMATE: CONFIDENCE:
    STEP: what was done     a step on the way; METRIC: name = value
    DONE: what was done     the submission; METRIC: name = value
    END: summary
    ACK: note               SUBSCRIBE: steps, diffs, tests
    RISK: low|medium|high   NOTE: CHECK: ALTERNATIVE: summary, then its steps as a list
    ALERT: critical - text
    DECISION: accept|revise|abort   FINDING: major - text   RESOLVED: f-1, f-2   RATIONALE: text
"""

import math
import re
from typing import Final, NamedTuple

import msgspec

from csp.errors import BadInput
from csp.protocol.enums import AgentId
from csp.protocol.review_messages import (
    SCHEMA_VERSION,
    AnyMessage,
    MessageType,
    Plan,
    RunRole,
    Severity,
    Telemetry,
    read_body,
)
from csp.protocol.session_parts import EndReason
from csp.room.agent_text.chat_markdown import fenced_objects, first_lines, read_lines
from csp.room.runs.run_state import ReviewRun
from csp.room.sessions.cost_estimate import cut

MAX_LINE: Final = 1900
MAX_LINES: Final = 50
#: What a person could still read; every line takes a few microseconds of the whole room.
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
#: For each role its keys, the weakest first, with the message that each begins.
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
#: The fields of a message as they were written; `read_body` checks them.
Fields = dict[str, object]


class _Entry(NamedTuple):
    """What stands behind a key: its own text, the items of the list below it."""

    key: str
    text: str
    items: tuple[str, ...]


def read_message(text: str, role: RunRole, run_id: str) -> AnyMessage:
    """Return the message in `text`; raise BadInput that says what is wrong with it."""
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
        raise BadInput("there are several messages", "send one")
    if objects:
        return _from_object(objects[0], role, run_id)
    entries, known = _entries(text), _MESSAGES[role]
    heads = [entry for entry in entries if entry.key in known]
    if not heads:
        hint = f"write {_EXPECTED[role]}, or the JSON message in a fence"
        raise BadInput("there is no message in it", hint)
    # One that ends something is meant where a text has several.
    head = max(heads, key=lambda entry: list(known).index(entry.key))
    return read_body(known[head.key], _fields(head, entries))


def _from_object(fields: Fields, role: RunRole, run_id: str) -> AnyMessage:
    """Read a message; what it says of itself besides its type may be left out, but must not be wrong."""
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
        raise BadInput("body is no object", "send a JSON object as body")
    return read_body(MessageType(message_type), body)


# --- lines -----------------------------------------------------------------------------------------


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
    """Return all that stands behind a key, as often as it is there."""
    found = [text for one in entries if one.key == key for text in (one.text, *one.items) if text]
    return found[:MAX_LINES]


def _fields(head: _Entry, entries: list[_Entry]) -> Fields:
    """Return the fields of the message that a line begins."""
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
    """Return the number that a text is; JSON knows none that is not finite."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _graded(text: str) -> tuple[str, str]:
    """Return the word that a text begins with, in small letters, then the rest."""
    found = _GRADED.match(text)
    return (found[1].lower(), text[found.end() :].strip()) if found else ("", text)


def read_alert(text: str) -> AnyMessage | None:
    """Return the alert in words that nobody asked for, if there is one."""
    # Every word of an agent comes by here, and hardly any is one.
    entries = [entry for entry in _entries(text) if entry.key == "ALERT"] if "ALERT" in text else []
    if not entries:
        return None
    try:
        return read_body(MessageType.EXECUTION_ALERT, _fields(entries[-1], []))
    except BadInput:
        return None


# --- a run in words --------------------------------------------------------------------------------

#: How much of a diff, of the output of tests a prompt holds; the files hold all of it.
MAX_DIFF: Final = 24_000
MAX_OUTPUT: Final = 4_000


def run_values(run: ReviewRun, agent: AgentId) -> dict[str, str]:
    """Return what the placeholders of a prompt stand for besides those of every session."""
    role = run.role_of(agent) or RunRole.BUILDER
    other = RunRole.REVIEWER if role is RunRole.BUILDER else RunRole.BUILDER
    return {
        "run": run.id,
        "role": role,
        "other": run.agent_of(other),
        "place": (run.context and (run.context.worktree or run.context.dir)) or "(your own directory)",
        "test": run.terms.test or "(none)",
        "plan": plan_text(run.plan),
        "feedback": _feedback(run),
        "findings": "\n".join(f"- {one.id} ({one.severity}): {one.text}" for one in run.open_findings)
        or "(none)",
        "work": _work(run, is_whole=True),
        "seen": _work(run, is_whole=False),
        "cycle": str(run.cycle),
        "cycles": str(run.max_revisions + 1),
        "why": f"Note of a person: {run.why}" if run.why else "",
    }


def plan_text(plan: Plan | None) -> str:
    """Return a plan as a list."""
    if plan is None:
        return "(no plan yet)"
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(plan.steps, start=1))
    return f"{plan.summary}\n{steps}".strip()


def _feedback(run: ReviewRun) -> str:
    said = run.feedback
    if said is None:
        return "(none)"
    lines = [f"Risk: {said.risk}", *(f"- {note}" for note in said.notes)]
    lines += [f"- check: {one}" for one in said.checks]
    if said.alternative is not None:
        lines.append(f"The reviewer proposes another plan:\n{plan_text(said.alternative)}")
    return "\n".join(lines)


def _work(run: ReviewRun, *, is_whole: bool) -> str:
    """Return the last step with its diff and its tests; of a step on the way, what was subscribed to."""
    update = run.update
    if update is None:
        return "(nothing yet)"
    parts = [f"{'Submitted' if update.final else 'Step'}: {update.step}"]
    tests, figures, diff = update.tests, update.figures, update.diff
    if is_whole or Telemetry.TESTS in run.telemetry:
        said = "Tests: none were run."
        if tests is not None:
            failed = "timed out" if tests.timed_out else f"FAILED (exit {tests.code})"
            by = "as the builder says" if tests.claimed else "run by CSP"
            said = f"Tests, {by}: `{tests.command}` {'passed' if tests.passed else failed}."
        output = tests.output[-MAX_OUTPUT:].strip() if tests is not None else ""
        parts.append(f"{said}\n\n{_fenced(output)}" if output else said)
    if is_whole or Telemetry.DIFFS in run.telemetry:
        said = "Diff, as the builder has it" if diff else "Diff: none is known"
        if figures is not None:
            counts = f"{figures.files} files, +{figures.insertions} -{figures.deletions}"
            said = f"Diff, taken by CSP from git ({counts})"
        parts.append(f"{said}:\n\n{_fenced(cut(diff, MAX_DIFF), 'diff')}" if diff else f"{said}.")
    return "\n\n".join(parts)


def _fenced(text: str, kind: str = "") -> str:
    """Put a text between fences that are longer than any in it."""
    longest = max((len(run) for run in text.split() if set(run) == {"`"}), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{kind}\n{text}\n{mark}"


def summary_of(run: ReviewRun, reason: EndReason) -> str:
    """Say what became of a run, what each role had to do with it."""
    done = run.update.step if run.update is not None else "nothing was done"
    counts = [f"{sum(one.severity is grade for one in run.findings)} {grade}" for grade in Severity]
    review = f"risk {run.risk}; " if run.risk else ""
    still_open = sum(one.is_open for one in run.findings)
    review += f"findings: {', '.join(counts)}, {still_open} open; {run.alerts} alerts"
    if run.decision is not None:
        why = f": {run.decision.rationale}" if run.decision.rationale else ""
        review += f"; decided {run.decision.decision}{why}"
    lines = [
        f"Run {run.id}: {reason} after {run.cycle} cycles, {run.revisions} revisions.",
        f"Goal: {run.goal or '-'}",
        f"Builder {run.builder}: {run.end.summary if run.end and run.end.summary else done}",
        f"Reviewer {run.reviewer}: {review}",
    ]
    if run.update is not None and run.update.tests is not None:
        tests = run.update.tests
        by = ", as the builder says" if tests.claimed else ""
        lines.append(f"Tests{by}: {'passed' if tests.passed else 'failed'}")
    if run.context is not None and run.context.worktree:
        lines.append(f"Worktree: {run.context.worktree}")
    return "\n".join(lines)
