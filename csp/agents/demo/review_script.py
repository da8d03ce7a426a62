"""What a demo agent does as builder or reviewer of a run: fixed rules, no model.

The builder writes one small file. Its first try leaves out what a revision then adds, so that a test for it
fails first, passes afterwards.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = "csp-demo.txt"
#: What the second try adds; `grep -q mended csp-demo.txt` is a test that fails first.
MENDED: Final = "mended"
_ROLE: Final = re.compile(r"^You are the (?P<role>builder|reviewer) of run ", re.MULTILINE)
_PLACE: Final = re.compile(r"^Work in this directory alone: (?P<place>/[^\n]+)$", re.MULTILINE)
_FINDING: Final = re.compile(r"^- (?P<id>f-\d+) \((?P<grade>\w+)\): ", re.MULTILINE)
_TESTS: Final = re.compile(
    r"^Tests, run by CSP: [^\n]* (?P<state>passed|timed out|FAILED \(exit [^)]*\))\.$", re.MULTILINE
)
_WORK_HEAD: Final = re.compile(r"^(?:Your work so far|The work, with the diff)", re.MULTILINE)
_CYCLE: Final = re.compile(r"has submitted its work, cycle (?P<cycle>\d+) of ")
#: How the prompt of each phase says what it wants, in the words of prompts/.
_WANTS: Final = {
    "Say with `ACK:`": "ACK: ready to look at it",
    "Propose a plan as `PLAN:`": f"PLAN: write a small file\n1. write {FILE}\n2. look at it\nCONFIDENCE: 0.8",
    "Say with `RISK:`": "RISK: low\nNOTE: it is one small file",
    "say so with `ALERT:`": "NOOP",
    "Close the run with `END:`": f"END: {FILE} is there, as the goal wanted it",
}
_WORK: Final = "Answer with `DONE:`"
_DECIDE: Final = "Decide with `DECISION:`"


class Work(NamedTuple):
    """A file that the builder writes."""

    path: Path
    text: str


def is_run(prompt: str) -> bool:
    """Tell whether a prompt asks for something in a run."""
    return prompt.startswith("[YOUR TURN") and _ROLE.search(prompt) is not None


def say(prompt: str) -> str:
    """Return what a demo agent answers in a run."""
    if _WORK in prompt:
        tried = "second try, with what was missing" if _open(prompt) else "first try"
        return f"DONE: wrote {FILE}, {tried}\nMETRIC: files = 1"
    if _DECIDE in prompt:
        return _decision(prompt)
    wanted = (words for asked, words in _WANTS.items() if asked in prompt)
    return next(wanted, "NOOP")


def work_of(prompt: str) -> Work | None:
    """Return what the builder has to write for a prompt, nothing for others."""
    place = _PLACE.search(prompt)
    if _WORK not in prompt or place is None:
        return None
    lines = ["a demo agent wrote this"] + ([MENDED] if _open(prompt) else [])
    return Work(Path(place["place"]) / FILE, "\n".join(lines) + "\n")


def _open(prompt: str) -> list[str]:
    """Return the findings that are open, as the prompt lists them before the work."""
    head = _WORK_HEAD.split(prompt, maxsplit=1)[0]
    return [found["id"] for found in _FINDING.finditer(head) if found["grade"] != "minor"]


def _decision(prompt: str) -> str:
    tests = _TESTS.search(prompt)
    cycle = _CYCLE.search(prompt)
    is_first = cycle is not None and cycle["cycle"] == "1"
    is_good = tests["state"] == "passed" if tests else not is_first
    resolved = _open(prompt)
    if not is_good:
        what = "the tests do not pass" if tests else f"{FILE} does not say that it is {MENDED}"
        return f"DECISION: revise\nFINDING: major - {what}\nRATIONALE: looked at the diff"
    lines = ["DECISION: accept", "RATIONALE: it does what the goal wants"]
    return "\n".join(lines + ([f"RESOLVED: {', '.join(resolved)}"] if resolved else []))
