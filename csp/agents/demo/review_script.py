"""Compute a demo agent's actions as builder or reviewer in a run, with fixed rules and without a model.

The builder writes one small file. The text that the revision adds is missing at first, so a test for it fails
first and passes afterwards.
"""

from pathlib import Path
from typing import Final, NamedTuple

from csp.protocol.review_messages import RunDetail, RunPhase

FILE: Final = "csp-demo.txt"
#: The text that the second try adds; `grep -q fixed csp-demo.txt` is a test that fails at first.
FIXED: Final = "fixed"
_ANSWERS: Final = {
    RunPhase.START: "ACK: ready to look at it",
    RunPhase.PLAN: f"PLAN: write a small file\n1. write {FILE}\n2. look at it\nCONFIDENCE: 0.8",
    RunPhase.FEEDBACK: "RISK: low\nNOTE: it is one small file",
    RunPhase.CLOSING: f"END: {FILE} is there, as the goal wanted it",
}


class Work(NamedTuple):
    """A file for the builder to write."""

    path: Path
    text: str


def answer(run: RunDetail) -> str:
    """Return the reply of the demo agent that has the turn in a run."""
    if run.run.phase is RunPhase.EXECUTION:
        tried = "second try, with what was missing" if _open(run) else "first try"
        return f"DONE: wrote {FILE}, {tried}\nMETRIC: files = 1"
    if run.run.phase is not RunPhase.DECISION:
        return _ANSWERS.get(run.run.phase, "NOOP")
    tests, resolved = run.update.tests if run.update else None, _open(run)
    if not (tests.passed if tests else run.run.cycle > 1):
        what = "the tests do not pass" if tests else f"{FILE} does not say that it is {FIXED}"
        return f"DECISION: revise\nFINDING: major - {what}\nRATIONALE: looked at the diff"
    lines = ["DECISION: accept", "RATIONALE: it does what the goal wants"]
    return "\n".join(lines + ([f"RESOLVED: {', '.join(resolved)}"] if resolved else []))


def work_of(run: RunDetail) -> Work | None:
    """Return the file that the builder must write now, or None."""
    place = run.context.worktree or run.context.dir if run.context else ""
    if run.run.phase is not RunPhase.EXECUTION or not place:
        return None
    lines = ["a demo agent wrote this"] + ([FIXED] if _open(run) else [])
    return Work(Path(place) / FILE, "\n".join(lines) + "\n")


def _open(run: RunDetail) -> list[str]:
    """Return the open findings that a revision addresses."""
    return [str(one.id) for one in run.findings if one.is_open and one.is_weighty]
