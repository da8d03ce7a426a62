"""Start, show and decide runs of a builder and a reviewer."""

import json
import os
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from csp.cli.arguments import ANY, JSON, SECONDS, THREAD, Forms, read_as, switch, takes, value
from csp.cli.output import duration
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, NotFound
from csp.http_client import Object, field, segment
from csp.setting_types import PORT

_START: Final = (
    *("builder", "reviewer", "test", "test_timeout", "max_revisions", "on_accept", "approve", "dir"),
    *("run_id", "thread", "on_limit"),
)
_FORMS: Final = Forms("review", default="list")


@takes(
    value(
        "form",
        "FORM",
        "start GOAL, list, show [RUN], go [RUN], decide RUN accept|revise|abort [WHY], halt RUN [WHY], "
        "resume RUN, abort RUN WHY, finding RUN f-1 confirmed|rejected, defect RUN TEXT or stats; "
        "default: list",
        nargs="*",
    ),
    value("--builder", "AGENT", "agent that does the work, or mailbox for a program that writes files"),
    value("--reviewer", "AGENT", "agent that checks it, or mailbox for a program that writes files"),
    value("--test", "CMD", "command that CSP runs after each step"),
    value("--test-timeout", "S", "time limit for the tests in seconds; default: 600", type=SECONDS),
    value("--max-revisions", "N", "revisions until a person is asked; default: 3", type=read_as(PORT)),
    value("--on-accept", "DO", "branch or nothing; default: branch", choices=("branch", "nothing")),
    value(
        "--on-limit",
        "DO",
        "at an agent's usage limit: wait, skip or stop; default: wait",
        choices=("wait", "skip", "stop"),
    ),
    switch("--approve", "require a person to approve every plan, regardless of its risk"),
    value("--run-id", "ID", "name of the run and of its folder"),
    value("--dir", "DIR", "directory of the work; default: the current one"),
    value("--plan", "FILE", "with go: the plan to follow; default: the run's plan.json"),
    value(
        "--severity",
        "GRADE",
        "with defect: minor, major or critical; default: major",
        choices=("minor", "major", "critical"),
    ),
    THREAD,
    JSON,
    examples=(
        "csp review start 'fix the parser' --builder claude --reviewer codex --test 'pytest -q'",
        "csp review show",
        "csp review go run-12",
        "csp review decide run-12 revise 'mind the tests'",
        "csp review abort run-12 'wrong goal'",
        "csp review finding run-12 f-1 confirmed",
        "csp review defect run-12 'tabs are lost at the end of a line'",
        "csp review stats",
    ),
)
def review(call: VerbCall) -> int:
    """Run the form named by the first word."""
    return _FORMS.do(call)


# --- starting and showing --------------------------------------------------------------------------


@_FORMS.form("start", ANY, _START)
def _start(call: VerbCall, words: list[str]) -> int:
    args = vars(call.args)
    if not words or not args["builder"] or not args["reviewer"]:
        example = "for example: csp review start 'fix the parser' --builder claude --reviewer codex"
        raise BadInput("expected a goal, --builder and --reviewer", example)
    body: dict[str, Any] = {"goal": " ".join(words)}
    names = {"test_timeout": "test_timeout_s"}
    for name in _START:
        # Zero revisions are an explicit choice.
        if args[name] is not None and args[name] is not False:
            body[names.get(name, name)] = args[name]
    body["dir"] = os.path.abspath(call.cwd / (args["dir"] or "."))
    answer = call.gateway.post_once("/runs", body)
    run = field(answer, "run", dict)
    who = f"{run.get('builder')} builds, {run.get('reviewer')} reviews"
    return call.tell(answer, f"started {run.get('id')}: {who}")


@_FORMS.form("list")
def _list(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.get("/runs")
    runs = field(answer, "items", list)
    nothing = "" if runs else "no runs yet; start one with: csp review start"
    return call.show(answer, map(run_line, runs), nothing)


def run_line(run: Object) -> str:
    """Return a run as one line."""
    state = f"{run.get('phase')}, waits for {run.get('waits_for')}{_since(run)}"
    if run.get("reason"):
        state = f"ended ({run['reason']})"
    goal = " ".join(str(run.get("goal")).split())[:60]
    return f"{run.get('id')}  {state}  cycle {run.get('cycle')}  {goal}"


def _since(run: Object) -> str:
    """Return how long a run has been in its phase, as text."""
    since = run.get("since")
    if run.get("reason") or not since:
        return ""
    return f" for {duration(max(0.0, time.time() - float(since)))}"


@_FORMS.form("show", 1)
def _show(call: VerbCall, words: list[str]) -> int:
    detail: Object = call.gateway.get(f"/runs/{segment(_run_id(call, words))}")
    return call.show(detail, detail_lines(detail))


def detail_lines(detail: Object) -> Iterator[str]:
    """Yield the lines for a run with its plan, its findings and the missed defects."""
    run = field(detail, "run", dict)
    yield f"run: {run.get('id')} ({run.get('session_id')})"
    yield f"goal: {run.get('goal')}"
    yield f"builder: {run.get('builder')}  reviewer: {run.get('reviewer')}"
    yield f"phase: {run.get('phase')}  cycle: {run.get('cycle')}"
    yield f"revisions: {run.get('revisions')} of {run.get('max_revisions')}"
    yield f"waits for: {run.get('waits_for') or '-'}"
    if since := _since(run):
        yield f"waits{since}"
    for name, key in (("why", "why"), ("ended", "reason"), ("branch", "branch")):
        if run.get(key):
            yield f"{name}: {run[key]}"
    for number, step in enumerate((detail.get("plan") or {}).get("steps", ()), start=1):
        yield f"step {number}: {step}"
    if detail.get("risk"):
        yield f"risk: {detail['risk']}"
    for finding in detail.get("findings", ()):
        state = f"resolved in cycle {finding['resolved']}" if finding.get("resolved") else "open"
        verdict = f", {finding['verdict']}" if finding.get("verdict") else ""
        yield f"{finding.get('id')} ({finding['severity']}, {state}{verdict}): {finding['text']}"
    for defect in detail.get("defects", ()):
        yield f"{defect.get('id')} ({defect.get('severity')}, missed): {defect.get('text')}"
    context = detail.get("context") or {}
    if context.get("worktree"):
        yield f"worktree: {context['worktree']}"
    yield f"folder: {detail.get('folder')}"


# --- deciding --------------------------------------------------------------------------------------


@_FORMS.form("go", 1, ("plan",))
def _go(call: VerbCall, words: list[str]) -> int:
    body: dict[str, Any] = {}
    if call.args.plan:
        try:
            body["plan"] = json.loads((call.cwd / call.args.plan).read_bytes())
        except (OSError, ValueError) as exc:
            raise BadInput(f"the plan {call.args.plan!r} cannot be read: {exc}") from exc
    return _act(call, _run_id(call, words), "go", body)


@_FORMS.form("decide", ANY)
def _decide(call: VerbCall, words: list[str]) -> int:
    if len(words) < 2:
        raise BadInput("expected a run and a decision", "csp review decide RUN accept|revise|abort [WHY]")
    body = {"decision": words[1], "rationale": " ".join(words[2:])}
    return _act(call, words[0], "decide", body)


def _with_reason(action: str, call: VerbCall, words: list[str]) -> int:
    return _act(call, _run_id(call, words), action, {"rationale": " ".join(words[1:])})


for _action in ("halt", "resume", "abort"):
    _FORMS.form(_action, ANY)(partial(_with_reason, _action))


@_FORMS.form("finding", 3)
def _finding(call: VerbCall, words: list[str]) -> int:
    if len(words) != 3:
        raise BadInput(
            "expected a run, a finding and a verdict", "csp review finding RUN f-1 confirmed|rejected"
        )
    return _act(call, words[0], "finding", {"finding": words[1], "verdict": words[2]})


@_FORMS.form("defect", ANY, ("severity",))
def _defect(call: VerbCall, words: list[str]) -> int:
    if len(words) < 2:
        raise BadInput(
            "expected a run and what was wrong",
            "csp review defect RUN TEXT [--severity minor|major|critical]",
        )
    body = {"defect": " ".join(words[1:])}
    body |= {"severity": call.args.severity} if call.args.severity else {}
    return _act(call, words[0], "defect", body)


def _act(call: VerbCall, run_id: str, action: str, body: dict[str, Any]) -> int:
    answer = call.gateway.post_once(f"/runs/{segment(run_id)}/{action}", body)
    run = field(answer, "run", dict)
    return call.tell(answer, run_line(run))


def _run_id(call: VerbCall, words: list[str]) -> str:
    """Return the named run, or else the only running one."""
    if words:
        return words[0]
    live = [run for run in field(call.gateway.get("/runs"), "items", list) if not run.get("reason")]
    if not live:
        raise NotFound("no review is running", "name one: csp review show run-12")
    if len(live) > 1:
        names = ", ".join(str(run.get("id")) for run in live)
        raise NotFound("several reviews are running", f"name one: {names}")
    return str(live[0].get("id"))


# --- statistics ------------------------------------------------------------------------------------


@_FORMS.form("stats")
def _stats(call: VerbCall, words: list[str]) -> int:
    stats = call.gateway.get("/runs").get("stats") or []
    return call.show(stats, map(stat_line, stats), "" if stats else "no run has ended yet")


def stat_line(one: Object) -> str:
    """Return a line on the defects that a reviewer has found and missed."""
    counts = ", ".join(f"{number} {grade}" for grade, number in field(one, "findings", dict).items())
    precision, miss_rate = one.get("precision"), one.get("miss_rate")
    judged = "none judged" if precision is None else f"{precision:.0%} of the judged ones were right"
    misses = "no defects known"
    if miss_rate is not None:
        runs = f"{one.get('accepted_with_defects')} of {one.get('accepted')} accepted runs"
        misses = f"{one.get('missed')} defects missed in {runs}, {miss_rate:.0%} of those known"
    return (
        f"{one.get('reviewer')}: {one.get('runs')} runs, {one.get('accepted')} accepted "
        f"({one.get('accepted_after_revision')} after a revision), {one.get('aborted')} aborted, "
        f"{one.get('escalated')} escalated, {one.get('alerts')} alerts; findings: {counts}; "
        f"{one.get('confirmed')} confirmed, {one.get('rejected')} rejected, {judged}; {misses}"
    )
