"""The folder of a run, which contains files generated from its events."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

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
from csp.review.mailbox import Mailbox, write_changed
from csp.review.run_git import Git
from csp.room.runs.run_commands import is_plan_open
from csp.room.runs.run_protocol import run_detail
from csp.room.runs.run_state import ReviewRun

STATE: Final = "run.json"
PLAN: Final = "plan.json"
MAX_PLAN_BYTES: Final = 1024 * 1024
LOGS: Final = {RunRole.BUILDER: "builder-log.jsonl", RunRole.REVIEWER: "reviewer-log.jsonl"}


class _Reached(msgspec.Struct):
    """The last event that a folder contains, as recorded in its state file."""

    seq: int = 0


class _State(_Reached):
    """The part of the state file that is read back: the last event in the folder and the plan as written."""

    plan: Plan | None = None


_AnyState = TypeVar("_AnyState", bound=_Reached)


class RunFolders:
    """The folders of a room's runs, inside `root`."""

    def __init__(self, root: Path, git: Git) -> None:
        self._root = root
        self._git = git

    def path(self, run_id: str) -> Path:
        """Return the folder of a run, whose id was validated when it started."""
        return self._root / run_id

    def names(self) -> list[str]:
        """Return the ids of the runs that have a folder."""
        return sorted(path.name for path in self._root.glob("*") if is_run_id(path.name))

    def seen(self, run_id: str) -> int:
        """Return the seq of the last event in a run's folder, or 0 if there is none."""
        return self._state(self.path(run_id), _Reached).seq

    def _state(self, folder: Path, kind: type[_AnyState]) -> _AnyState:
        with contextlib.suppress(OSError, BadInput):
            return parse(kind, read_plain(folder / STATE))
        return kind()

    def write(self, run: ReviewRun, events: Sequence[KnownEvent]) -> str:
        """Update the folder from all events of the run; return a notice for people, or an empty string."""
        folder = self.path(run.id)
        for name in ("diffs", "decisions"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for role, name in LOGS.items():
            lines = []
            for at, said in enumerate(events):
                if isinstance(said, RunSaid) and said.role is role:
                    body = said.body
                    if isinstance(body, ExecutionUpdate):
                        # Includes CSP's own diff and test results.
                        body = checked_body(events[at + 1 :], body)
                    lines.append(encode(write_message(said.run, role, said.ts, body)) + b"\n")
            write_changed(folder / name, b"".join(lines))
        note = self._write_plan(folder, run)
        for event in events:
            self._write_event(folder, run, event)
        # Written last, because its presence marks the other files as complete.
        detail = msgspec.to_builtins(run_detail(run, str(folder)))
        write_changed(folder / STATE, _pretty({"seq": run.seq, **detail}))
        return note

    def _write_plan(self, folder: Path, run: ReviewRun) -> str:
        """Write the plan; keep a person's late change under another name."""
        if run.plan is None:
            return ""
        path, own, written = folder / PLAN, _pretty(run.plan), self._state(folder, _State).plan
        before = _pretty(written) if written else b""
        try:
            data = read_plain(path)
            is_edited = data not in (own, before) and parse(Plan, data) != run.plan
        except OSError:
            is_edited = False
        except BadInput:
            is_edited = True
        if not is_edited:
            write_changed(path, own)
            return ""
        if before == own and is_plan_open(run):
            return ""
        aside = folder / f"plan.edited-{run.seq}.json"
        os.replace(path, aside)
        write_changed(path, own)
        what = f"plan.json was changed, but not while the plan was open; the change is kept as {aside.name}"
        return f"{what}. To change a plan, halt the run before execution or start it with --approve"

    def _write_event(self, folder: Path, run: ReviewRun, event: KnownEvent) -> None:
        """Write the patch of a finished step, a decision, or the end of the run."""
        match event:
            case RunChecked(update=ExecutionUpdate(final=True, figures=figures)) if figures and run.context:
                path = folder / "diffs" / f"cycle-{event.cycle}.patch"
                if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == figures.sha256:
                    return
                with contextlib.suppress(Broken):
                    patch = self._git.patch(Path(run.context.repository), figures.base, figures.commit)
                    replace_file(path, patch)
            case RunSaid(body=ReviewDecision()):
                message = write_message(run.id, event.role, event.ts, event.body)
                write_changed(folder / "decisions" / f"decision-{event.seq}.json", _pretty(message))
            case RunEnded():
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
                write_changed(folder / "decisions" / "final.json", _pretty(final))
                write_changed(folder / "summary.md", f"{event.text}\n".encode())

    def edited_plan(self, run_id: str) -> Plan | None:
        """Return the plan from its file, which a person may have edited; None if there is no file."""
        path = self.path(run_id) / PLAN
        try:
            data = read_plain(path, MAX_PLAN_BYTES + 1)
        except OSError:
            return None
        if len(data) > MAX_PLAN_BYTES:
            raise BadInput(f"{path}: it has more than {MAX_PLAN_BYTES} bytes", "pass the plan with --plan")
        try:
            return parse_request(Plan, data)
        except BadInput as exc:
            raise BadInput(f"{path}: {exc.message}", "fix the file, or pass the plan with --plan") from exc


def checked_body(later: Iterable[KnownEvent], body: ExecutionUpdate) -> ExecutionUpdate:
    """Return an update with the result of CSP's check, if there is one before the builder's next message."""
    for event in later:
        if isinstance(event, RunChecked):
            return event.update
        if isinstance(event, RunSaid) and event.role is RunRole.BUILDER:
            break
    return body


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def forget_runs(folders: RunFolders, mailbox: Mailbox, before: int, keep: Iterable[str]) -> list[str]:
    """Delete the folders and mail of runs whose last event is older than `before`, except those in `keep`."""
    kept = set(keep)
    old = [name for name in folders.names() if name not in kept and folders.seen(name) < before]
    mailbox.forget(old)
    for name in old:
        shutil.rmtree(folders.path(name))
    return old
