"""The folder of a run: files that are generated from its events."""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from csp.errors import BadInput, Broken
from csp.fast_start.atomic_files import read_plain, replace_file
from csp.protocol.codec import encode, parse, parse_request
from csp.protocol.events import KnownEvent, RunChecked, RunEnded, RunSaid
from csp.protocol.review_messages import (
    SCHEMA_VERSION,
    ExecutionUpdate,
    FinalDecision,
    Plan,
    ReviewDecision,
    RunRole,
    is_run_id,
    write_message,
)
from csp.review.run_git import Git
from csp.room.runs.run_commands import is_plan_open
from csp.room.runs.run_state import ReviewRun
from csp.room.runs.run_views import run_detail

STATE: Final = "run.json"
PLAN: Final = "plan.json"
MAX_PLAN_BYTES: Final = 1024 * 1024
LOGS: Final = {RunRole.BUILDER: "builder-log.jsonl", RunRole.REVIEWER: "reviewer-log.jsonl"}


class _State(msgspec.Struct):
    """The part of the state file that is read back."""

    plan: Plan | None = None


class _Seen(msgspec.Struct):
    """The progress of a folder."""

    seq: int


class RunFolders:
    """The folders of all runs of a room, below `root`."""

    def __init__(self, root: Path, git: Git) -> None:
        self._root = root
        self._git = git

    def path(self, run_id: str) -> Path:
        """Return the folder of a run, whose name was checked when it was started."""
        return self._root / run_id

    def names(self) -> list[str]:
        """Return the runs that have a folder."""
        try:
            return sorted(name for name in os.listdir(self._root) if is_run_id(name))
        except OSError:
            return []

    def seen(self, run_id: str) -> int:
        """Return the last event that a folder contains, 0 for none."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            return msgspec.json.decode(read_plain(self.path(run_id) / STATE), type=_Seen).seq
        return 0

    def write(self, run: ReviewRun, events: Sequence[KnownEvent]) -> str:
        """Update the folder from all events of the run; return a notice for people, if any."""
        folder = self.path(run.id)
        for name in ("diffs", "decisions"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for role, name in LOGS.items():
            _put(folder / name, b"".join(_log(events, role)))
        note = self._write_plan(folder, run)
        self._write_patches(folder, run, events)
        self._write_decisions(folder, run, events)
        # Last, because it says that all other files are complete.
        detail = msgspec.to_builtins(run_detail(run, str(folder)))
        _put(folder / STATE, _pretty({"seq": run.seq, **detail}))
        return note

    def _write_plan(self, folder: Path, run: ReviewRun) -> str:
        """Write the plan; a person's late change is kept under another name."""
        if run.plan is None:
            return ""
        path, own = folder / PLAN, _pretty(msgspec.to_builtins(run.plan))
        before = self._plan_before(folder)
        if not _is_edited(path, (own, before), run.plan):
            _put(path, own)
            return ""
        if before == own and is_plan_open(run):
            return ""
        aside = folder / f"plan.edited-{run.seq}.json"
        os.replace(path, aside)
        _put(path, own)
        what = f"plan.json was changed, but not while the plan was open; the change is kept as {aside.name}"
        return f"{what}. To change a plan, halt the run before execution or start it with --approve"

    def _plan_before(self, folder: Path) -> bytes:
        """Return the plan as it was last written to the folder."""
        with contextlib.suppress(OSError, BadInput):
            state = parse(_State, read_plain(folder / STATE))
            return _pretty(msgspec.to_builtins(state.plan)) if state.plan else b""
        return b""

    def _write_patches(self, folder: Path, run: ReviewRun, events: Sequence[KnownEvent]) -> None:
        context = run.context
        for event in events:
            figures = event.update.figures if isinstance(event, RunChecked) and event.update.final else None
            if not isinstance(event, RunChecked) or figures is None or context is None:
                continue
            path = folder / "diffs" / f"cycle-{event.cycle}.patch"
            if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == figures.sha256:
                continue
            with contextlib.suppress(Broken):
                patch = self._git.patch(Path(context.repository), figures.base, figures.commit)
                replace_file(path, patch)

    def _write_decisions(self, folder: Path, run: ReviewRun, events: Sequence[KnownEvent]) -> None:
        for event in events:
            if isinstance(event, RunSaid) and isinstance(event.body, ReviewDecision):
                message = write_message(run.id, event.role, event.ts, event.body)
                path = folder / "decisions" / f"decision-{event.seq}.json"
                _put(path, _pretty(msgspec.to_builtins(message)))
            if isinstance(event, RunEnded):
                final = FinalDecision(
                    schema_version=SCHEMA_VERSION,
                    run_id=run.id,
                    reason=event.reason,
                    ended_at=event.ts,
                    cycle=run.cycle,
                    revisions=run.revisions,
                    decision=run.decision.decision if run.decision else None,
                    rationale=run.decision.rationale if run.decision else "",
                    findings=run.findings,
                )
                _put(folder / "decisions" / "final.json", _pretty(msgspec.to_builtins(final)))
                _put(folder / "summary.md", f"{event.text}\n".encode())

    def edited_plan(self, run_id: str) -> Plan | None:
        """Return the plan in the file, which a person may have changed; None without a file."""
        path = self.path(run_id) / PLAN
        try:
            data = read_plain(path, MAX_PLAN_BYTES + 1)
        except OSError:
            return None
        if len(data) > MAX_PLAN_BYTES:
            raise BadInput(f"{path}: it has more than {MAX_PLAN_BYTES} bytes", "give the plan with --plan")
        try:
            return parse_request(Plan, data)
        except BadInput as exc:
            raise BadInput(f"{path}: {exc.message}", "fix the file, or give the plan with --plan") from exc


def _log(events: Iterable[KnownEvent], role: RunRole) -> Iterable[bytes]:
    """Yield the messages of a role as lines; updates include the diff and the tests of CSP."""
    listed = list(events)
    for at, event in enumerate(listed):
        if isinstance(event, RunSaid) and event.role is role:
            body = event.body
            if isinstance(body, ExecutionUpdate):
                body = checked_body(listed[at + 1 :], body)
            yield encode(write_message(event.run, role, event.ts, body)) + b"\n"


def checked_body(later: Iterable[KnownEvent], body: ExecutionUpdate) -> ExecutionUpdate:
    """Return an update as CSP has checked it, if it has: before the builder's next message."""
    for event in later:
        if isinstance(event, RunChecked):
            return event.update
        if isinstance(event, RunSaid) and event.role is RunRole.BUILDER:
            break
    return body


def _is_edited(path: Path, written: tuple[bytes, ...], plan: Plan) -> bool:
    """Return whether a person changed the plan in a file."""
    try:
        data = read_plain(path)
    except OSError:
        return False
    with contextlib.suppress(BadInput):
        return data not in written and parse(Plan, data) != plan
    return True


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _put(path: Path, data: bytes) -> None:
    """Write a file unless it has this content already."""
    with contextlib.suppress(OSError):
        if read_plain(path) == data:
            return
    replace_file(path, data)
