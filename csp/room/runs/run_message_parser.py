"""The message of a builder or reviewer, read out of what it wrote.

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
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from csp.errors import BadInput
from csp.protocol.review_messages import SCHEMA_VERSION, AnyMessage, MessageType, RunRole, read_body
from csp.room.agent_text.code_lines import fenced_objects, first_lines, read_lines
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
    texts = [whole] if whole.startswith("{") and whole.endswith("}") else fenced_objects(text)
    objects = [fields for fields in map(_object, texts) if fields is not None]
    if len(objects) > 1:
        raise BadInput("there are several messages", "send one")
    if objects:
        return _from_object(objects[0], role, run_id)
    entries = _entries(text)
    heads = [entry for entry in entries if entry.key in _HEADS[role]]
    if not heads:
        hint = f"write {_EXPECTED[role]}, or the JSON message in a fence"
        raise BadInput("there is no message in it", hint)
    # One that ends something is meant where a text has several.
    head = max(heads, key=lambda entry: list(_HEADS[role]).index(entry.key))
    message_type, read = _HEADS[role][head.key]
    return read_body(message_type, read(head, entries))


# --- JSON ------------------------------------------------------------------------------------------


def _object(text: str) -> Fields | None:
    """Return the fields of a JSON object that is meant as a message."""
    try:
        fields: Fields = msgspec.json.decode(text, type=Fields)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return fields if "message_type" in fields else None


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


def _step(head: _Entry, entries: list[_Entry]) -> Fields:
    text = "; ".join((head.text, *head.items) if head.text else head.items)
    return {"step": cut(text, MAX_LINE), "final": head.key == "DONE", "metrics": _metrics(entries)}


def _metrics(entries: list[_Entry]) -> dict[str, float | str]:
    metrics: dict[str, float | str] = {}
    for text in _texts(entries, "METRIC"):
        name, _, value = text.partition("=") if "=" in text else text.partition(":")
        number = _number(value.strip())
        metrics[cut(name.strip(), 200)] = cut(value.strip(), 200) if number is None else number
    return metrics


def _end(head: _Entry, entries: list[_Entry]) -> Fields:
    summary = "; ".join((head.text, *head.items) if head.text else head.items)
    return {"status": "done", "summary": cut(summary, MAX_LINE)}


def _ack(head: _Entry, entries: list[_Entry]) -> Fields:
    wanted = re.findall(r"[a-z]+", " ".join(_texts(entries, "SUBSCRIBE")).lower())
    return {"note": head.text, "telemetry": list(dict.fromkeys(one for one in wanted if one != "none"))}


def _risk(head: _Entry, entries: list[_Entry]) -> Fields:
    grade, rest = _graded(head.text)
    notes = [*([rest] if rest else []), *head.items, *_texts(entries, "NOTE")]
    fields: Fields = {"risk": grade, "notes": notes[:MAX_LINES], "checks": _texts(entries, "CHECK")}
    others = [entry for entry in entries if entry.key == "ALTERNATIVE"]
    if others:
        fields["alternative"] = _plan(others[-1], [])
    return fields


def _alert(head: _Entry, entries: list[_Entry]) -> Fields:
    level, text = _graded(head.text)
    return {"level": level, "text": text or level}


def _decision(head: _Entry, entries: list[_Entry]) -> Fields:
    word, rest = _graded(head.text)
    graded = map(_graded, _texts(entries, "FINDING"))
    findings = [{"severity": severity, "text": text} for severity, text in graded]
    rationale = " ".join([*([rest] if rest else []), *_texts(entries, "RATIONALE")])
    resolved = _ID.findall(" ".join(_texts(entries, "RESOLVED")).lower())
    return {
        "decision": word,
        "rationale": cut(rationale, MAX_LINE),
        "findings": findings,
        "resolved": list(dict.fromkeys(resolved)),
    }


def _graded(text: str) -> tuple[str, str]:
    """Return the word that a text begins with, in small letters, then the rest."""
    found = _GRADED.match(text)
    return (found[1].lower(), text[found.end() :].strip()) if found else ("", text)


#: For each role its keys, the weakest first: which message each begins, how that is read.
_HEADS: Final[dict[RunRole, dict[str, tuple[MessageType, Callable[[_Entry, list[_Entry]], Fields]]]]] = {
    RunRole.BUILDER: {
        "PLAN": (MessageType.PLAN_PROPOSED, _plan),
        "STEP": (MessageType.EXECUTION_UPDATE, _step),
        "DONE": (MessageType.EXECUTION_UPDATE, _step),
        "END": (MessageType.SESSION_END, _end),
    },
    RunRole.REVIEWER: {
        "ACK": (MessageType.SESSION_ACK, _ack),
        "RISK": (MessageType.PLAN_FEEDBACK, _risk),
        "ALERT": (MessageType.EXECUTION_ALERT, _alert),
        "DECISION": (MessageType.REVIEW_DECISION, _decision),
    },
}


def read_alert(text: str) -> AnyMessage | None:
    """Return the alert in words that nobody asked for, if there is one."""
    # Every word of an agent comes by here, and hardly any is one.
    entries = [entry for entry in _entries(text) if entry.key == "ALERT"] if "ALERT" in text else []
    if not entries:
        return None
    try:
        return read_body(MessageType.EXECUTION_ALERT, _alert(entries[-1], []))
    except BadInput:
        return None
