"""Start, watch and decide the runs of a builder and its reviewer."""

import json
import os
import time
from collections.abc import Callable
from typing import Any, Final

from csp.cli.output import duration, put_json, put_lines, talk
from csp.cli.subcommands import ANY, Form, do_form
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, NotFound
from csp.http_client import Object, field, segment

_START: Final = (
    "builder",
    "reviewer",
    "test",
    "test_timeout",
    "max_revisions",
    "on_accept",
    "approve",
    "dir",
)


def review(call: VerbCall) -> int:
    """Run the form that the first word names."""
    return do_form(call, "review", _FORMS, "list")


# --- beginning, looking ----------------------------------------------------------------------------


def _start(call: VerbCall, words: list[str]) -> int:
    args = vars(call.args)
    if not words or not args["builder"] or not args["reviewer"]:
        example = "for example: csp review start 'fix the parser' --builder claude --reviewer codex"
        raise BadInput("expected a goal, --builder and --reviewer", example)
    body: dict[str, Any] = {"goal": " ".join(words)}
    names = {"test_timeout": "test_timeout_s"}
    for name in (*_START, "run_id", "thread"):
        # Zero revisions are something that was said.
        if args[name] is not None and args[name] is not False:
            body[names.get(name, name)] = args[name]
    body["dir"] = os.path.abspath(call.cwd / (args["dir"] or "."))
    answer = call.gateway.post_once("/runs", body)
    run = field(answer, "run", dict)
    who = f"{run.get('builder')} builds, {run.get('reviewer')} reviews"
    return _answer(call, answer, f"began {run.get('id')}: {who}")


def _list(call: VerbCall, words: list[str]) -> int:
    answer = call.gateway.get("/runs")
    if call.is_json:
        put_json(answer)
        return 0
    runs = field(answer, "items", list)
    put_lines(_row(run) for run in runs)
    if not runs:
        talk("no runs yet; begin one with: csp review start")
    return 0


def _row(run: Object) -> str:
    state = f"{run.get('phase')}, waits for {run.get('waits_for')}{_since(run)}"
    if run.get("reason"):
        state = f"ended ({run['reason']})"
    goal = " ".join(str(run.get("goal")).split())[:60]
    return f"{run.get('id')}  {state}  cycle {run.get('cycle')}  {goal}"


def _since(run: Object) -> str:
    """Return how long a run has been in its phase."""
    since = run.get("since")
    if run.get("reason") or not since:
        return ""
    return f" for {duration(max(0.0, time.time() - float(since)))}"


def _show(call: VerbCall, words: list[str]) -> int:
    detail: Object = call.gateway.get(f"/runs/{segment(_run_id(call, words))}")
    if call.is_json:
        put_json(detail)
        return 0
    put_lines(_lines(detail))
    return 0


def _lines(detail: Object) -> list[str]:
    run = field(detail, "run", dict)
    lines = [
        f"run: {run.get('id')} ({run.get('session_id')})",
        f"goal: {run.get('goal')}",
        f"builder: {run.get('builder')}  reviewer: {run.get('reviewer')}",
        f"phase: {run.get('phase')}  cycle: {run.get('cycle')}",
        f"revisions: {run.get('revisions')} of {run.get('max_revisions')}",
        f"waits for: {run.get('waits_for') or '-'}",
    ]
    lines += [f"waits{_since(run)}"] if _since(run) else []
    lines += [f"why: {run['why']}"] if run.get("why") else []
    lines += [f"ended: {run['reason']}"] if run.get("reason") else []
    lines += [f"branch: {run['branch']}"] if run.get("branch") else []
    plan = detail.get("plan") or {}
    lines += [f"step {number}: {step}" for number, step in enumerate(plan.get("steps", ()), start=1)]
    lines += [f"risk: {detail['risk']}"] if detail.get("risk") else []
    for finding in detail.get("findings", ()):
        state = f"resolved in cycle {finding['resolved']}" if finding.get("resolved") else "open"
        verdict = f", {finding['verdict']}" if finding.get("verdict") else ""
        lines.append(f"{finding.get('id')} ({finding['severity']}, {state}{verdict}): {finding['text']}")
    for defect in detail.get("defects", ()):
        lines.append(f"{defect.get('id')} ({defect.get('severity')}, missed): {defect.get('text')}")
    context = detail.get("context") or {}
    lines += [f"worktree: {context['worktree']}"] if context.get("worktree") else []
    return [*lines, f"folder: {detail.get('folder')}"]


def _stats(call: VerbCall, words: list[str]) -> int:
    stats = call.gateway.get("/runs").get("stats") or []
    if call.is_json:
        put_json(stats)
        return 0
    put_lines(map(_stat_line, stats))
    if not stats:
        talk("no run has ended yet")
    return 0


def _stat_line(one: Object) -> str:
    counts = ", ".join(f"{number} {grade}" for grade, number in field(one, "findings", dict).items())
    precision = one.get("precision")
    judged = "none judged" if precision is None else f"{precision:.0%} of the judged were right"
    return (
        f"{one.get('reviewer')}: {one.get('runs')} runs, {one.get('accepted')} accepted "
        f"({one.get('accepted_after_revision')} after a revision), {one.get('aborted')} aborted, "
        f"{one.get('escalated')} escalated, {one.get('alerts')} alerts; findings: {counts}; "
        f"{one.get('confirmed')} confirmed, {one.get('rejected')} rejected, {judged}; {_misses(one)}"
    )


def _misses(one: Object) -> str:
    """Return what a reviewer has missed."""
    rate = one.get("miss_rate")
    if rate is None:
        return "no defects known"
    runs = f"{one.get('accepted_with_defects')} of {one.get('accepted')} accepted runs"
    return f"{one.get('missed')} defects missed in {runs}, {rate:.0%} of those known"


# --- deciding --------------------------------------------------------------------------------------


def _go(call: VerbCall, words: list[str]) -> int:
    body: dict[str, Any] = {}
    if call.args.plan:
        try:
            body["plan"] = json.loads((call.cwd / call.args.plan).read_bytes())
        except (OSError, ValueError) as exc:
            raise BadInput(f"the plan {call.args.plan!r} cannot be read: {exc}") from exc
    return _act(call, _run_id(call, words), "go", body)


def _decide(call: VerbCall, words: list[str]) -> int:
    if len(words) < 2:
        raise BadInput("expected a run and a decision", "csp review decide RUN accept|revise|abort [WHY]")
    body = {"decision": words[1], "rationale": " ".join(words[2:])}
    return _act(call, words[0], "decide", body)


def _finding(call: VerbCall, words: list[str]) -> int:
    if len(words) != 3:
        raise BadInput(
            "expected a run, a finding, a verdict", "csp review finding RUN f-1 confirmed|rejected"
        )
    return _act(call, words[0], "finding", {"finding": words[1], "verdict": words[2]})


def _defect(call: VerbCall, words: list[str]) -> int:
    if len(words) < 2:
        raise BadInput(
            "expected a run and what was wrong",
            "csp review defect RUN TEXT [--severity minor|major|critical]",
        )
    body = {"defect": " ".join(words[1:])}
    body |= {"severity": call.args.severity} if call.args.severity else {}
    return _act(call, words[0], "defect", body)


def _with_reason(action: str) -> Callable[[VerbCall, list[str]], int]:
    def act(call: VerbCall, words: list[str]) -> int:
        run_id = words[0] if words else _run_id(call, words)
        return _act(call, run_id, action, {"rationale": " ".join(words[1:])})

    return act


def _act(call: VerbCall, run_id: str, action: str, body: dict[str, Any]) -> int:
    answer = call.gateway.post_once(f"/runs/{segment(run_id)}/{action}", body)
    run = field(answer, "run", dict)
    return _answer(call, answer, _row(run))


def _run_id(call: VerbCall, words: list[str]) -> str:
    """Return the named run, else the only one that is running."""
    if words:
        return words[0]
    live = [run for run in field(call.gateway.get("/runs"), "items", list) if not run.get("reason")]
    if len(live) != 1:
        names = ", ".join(str(run.get("id")) for run in live) or "none goes on"
        raise NotFound("which run is meant?", f"name one: {names}")
    return str(live[0].get("id"))


def _answer(call: VerbCall, answer: Object, text: str) -> int:
    if call.is_json:
        put_json(answer)
    else:
        talk(text)
    return 0


_FORMS: Final = {
    "start": Form(_start, ANY, (*_START, "run_id", "thread")),
    "list": Form(_list),
    "show": Form(_show, 1),
    "go": Form(_go, 1, ("plan",)),
    "decide": Form(_decide, ANY),
    "halt": Form(_with_reason("halt"), ANY),
    "resume": Form(_with_reason("resume"), ANY),
    "abort": Form(_with_reason("abort"), ANY),
    "finding": Form(_finding, 3),
    "defect": Form(_defect, ANY, ("severity",)),
    "stats": Form(_stats),
}
