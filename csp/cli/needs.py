"""List the items that need a person, and answer them with approval rules and decisions."""

import shlex
from collections.abc import Iterator
from typing import Final

from csp.cli.arguments import JSON, takes, value
from csp.cli.output import duration, talk
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput
from csp.http_client import Object, field, objects, segment
from csp.human.safe_text import columns, one_line
from csp.human.status_lines import rule_lines
from csp.protocol.attention import AttentionKind

_DETAIL: Final = 200
#: The kinds of items whose title already says that they need you.
_NEEDS_SAID: Final = (AttentionKind.PLAN, AttentionKind.DECISION, AttentionKind.STUCK)
_AGENT: Final = value("agent", "AGENT", "the agent's id")
#: Answers that are possible only in a pane of the room.
_IN_THE_ROOM: Final = ("/focus", "@")


@takes(
    _AGENT,
    value(
        "words",
        "COMMAND",
        "first words of the command, or only and all of them; put -- before options",
        nargs="*",
    ),
    JSON,
    examples=("csp allow claude pytest", "csp allow claude -- only git status --short"),
)
def allow(call: VerbCall) -> int:
    """Allow an agent to run a command without approval until `csp unallow`."""
    if not call.args.words:
        raise BadInput("expected a command", f"csp allow {call.args.agent} pytest")
    body = {"agent": call.args.agent, "pattern": " ".join(call.args.words)}
    answer = call.gateway.post_once("/rules", body)
    rule = field(answer, "rule", dict)
    if rule.get("problem"):
        talk(str(rule["problem"]))
    return call.tell(
        answer, f"{rule.get('agent')} may run: {rule.get('pattern')} (rule #{rule.get('number')})"
    )


@takes(JSON, examples=("csp rules",))
def rules(call: VerbCall) -> int:
    """List the approval rules."""
    answer = call.gateway.get("/rules")
    items = objects(field(answer, "items", list))
    nothing = "" if items else "no rules yet; add one with: csp allow AGENT COMMAND"
    return call.show(answer, rule_lines(items), nothing)


@takes(value("number", "N", "number of the rule, see: csp rules"), JSON, examples=("csp unallow 52",))
def unallow(call: VerbCall) -> int:
    """Remove an approval rule."""
    answer = call.gateway.delete(f"/rules/{segment(call.args.number.removeprefix('#'))}")
    rule = field(answer, "rule", dict)
    return call.tell(answer, f"{rule.get('agent')} has to ask again for: {rule.get('pattern')}")


@takes(
    value("session", "SESSION", "id of the session"),
    value("choice", "CHOICE", "label of the winner, or none; for a limit: ok or end"),
    JSON,
    examples=("csp decide s-3 B", "csp decide s-3 none"),
)
def decide(call: VerbCall) -> int:
    """Decide a tie, or how to handle a limit."""
    path = f"/sessions/{segment(call.args.session)}/decide"
    answer = call.gateway.post_once(path, {"choice": call.args.choice})
    return call.tell(answer, f"decided {call.args.session}: {call.args.choice}")


def needs_lines(items: list[Object], now: float) -> Iterator[str]:
    """Yield the items that need a person, each with the commands that answer it."""
    for item in items:
        age = duration(max(0.0, now - field(item, "since", float)))
        what = str(item.get("title"))
        yield f"{what if item.get('kind') in _NEEDS_SAID else f'needs you: {what}'} ({age})"
        detail = one_line(str(item.get("detail") or ""), _DETAIL)
        if detail:
            yield f"    {detail}"
        rows = [
            [f"  {answer.get('label')}", shell_command(str(answer.get("line")), str(item.get("kind")))]
            for answer in objects(item.get("answers"))
        ]
        yield from (f"  {row}" for row in columns(rows))


def shell_command(line: str, kind: str = "") -> str:
    """Return the shell command with the same effect as a line typed in the room."""
    if line.startswith(_IN_THE_ROOM):
        return f"in the room: {line}"
    if line.startswith("/allow "):
        _, agent, command = line.split(" ", 2)
        return f"csp allow {agent} {shlex.quote(command)}"
    if kind == AttentionKind.ENDED and line.startswith("/restart "):
        return f"csp up --agents {line.removeprefix('/restart ')}"
    return f"csp {line.removeprefix('/')}"
