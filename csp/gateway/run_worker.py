"""Background worker for review runs: worktrees, diffs, tests, branches, files and mailboxes.

Pending work is computed from the room's state after every commit and after a start, so a crash loses
nothing. All work is idempotent.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from csp.errors import Broken, CspError
from csp.fast_start.process_environment import process_environment
from csp.gateway.room_writer import RoomWriter
from csp.journal.history import History
from csp.journal.history_query import HistoryQuery
from csp.journal.jsonl_journal import storage_error
from csp.protocol.enums import ALL
from csp.protocol.events import AnyEvent, KnownEvent, RunChecked, RunEvent, RunSaid, decode_event
from csp.protocol.notices import NoticeCode, NoticeWords
from csp.protocol.review_messages import MAILBOX, OWN_METRICS, ExecutionUpdate, RunContext, RunPhase
from csp.review.mailbox import InvalidMailboxFile, Mailbox, MailboxMessage, shown
from csp.review.run_folders import RunFolders, forget_runs
from csp.review.run_git import Git, WorktreeState
from csp.review.test_command import run_tests
from csp.room.commands import CheckRun, DeliverRun, Notice, PrepareRun, SayInRun
from csp.room.runs.run_state import ReviewRun

log = logging.getLogger(__name__)

RUN_TYPES: Final = frozenset(str(kind.__struct_config__.tag) for kind in RunEvent.__subclasses__())
_PAGE: Final = 500


class RunWorker:
    """Performs the pending work of one room's runs."""

    def __init__(
        self,
        folder: Path,
        writer: RoomWriter,
        history: History,
        secrets: tuple[str, ...],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._folder = folder
        self._writer = writer
        self._history = history
        self._secrets = secrets
        self._spawn = spawn
        self._env = process_environment()
        self._git = Git(self._env)
        self.folders = RunFolders(folder / "runs", self._git)
        self.mailbox = Mailbox(folder / "mailbox")
        #: The directory for runs that specify none: the gateway's working directory at its start.
        self.dir: Path | None = None
        #: All events of each run, starting with its first one; filled since the start of the gateway.
        self._events: dict[str, list[KnownEvent]] = {}
        #: The last event written to the folder of each run.
        self._written: dict[str, int] = {}
        self._busy: set[tuple[str, str, int, int]] = set()
        #: Whether writing a folder failed and must be retried.
        self._lags = False
        self._news = asyncio.Event()
        self._is_open = asyncio.Event()

    def observe(self, events: Iterable[AnyEvent]) -> None:
        """Trigger a check for new work after run events."""
        if any(isinstance(event, RunEvent) for event in events):
            self._news.set()

    async def work(self) -> None:
        """Work until cancelled."""
        if self._runs or self.mailbox.root.exists():
            await self._open()
        self._spawn(self._read_mail())
        while True:
            self._news.clear()
            await self._write_files()
            self._look()
            await self._news.wait()

    async def _open(self) -> None:
        """Create the mailbox folders, which a room without runs does not have."""
        if not self._is_open.is_set():
            await asyncio.to_thread(self.mailbox.make)
            self._is_open.set()

    @property
    def _runs(self) -> dict[str, ReviewRun]:
        return self._writer.room.runs.by_id

    # --- work on a run ------------------------------------------------------------------------------

    def _look(self) -> None:
        """Start all due work that is not already running."""
        for run in self._runs.values():
            need = need_of(run)
            key = (run.id, need, run.cycle, run.steps)
            if need and key not in self._busy:
                self._busy.add(key)
                self._spawn(self._do(run, key))

    async def _do(self, run: ReviewRun, key: tuple[str, str, int, int]) -> None:
        try:
            await {"place": self._prepare, "check": self._check, "branch": self._make_branch}[key[1]](run)
        except Broken:
            # The journal cannot be written now; the next commit or the next start tries again.
            log.exception("work on a run failed", extra={"run": run.id, "need": key[1]})
        finally:
            self._busy.discard(key)

    async def _prepare(self, run: ReviewRun) -> None:
        dir = Path(run.terms.dir) if run.terms.dir else self.dir
        if dir is None:
            context = RunContext(note="no directory is known, so there is no diff")
        else:
            place = self._folder / "worktrees" / f"run.{run.id}"
            try:
                context = await asyncio.to_thread(self._git.prepare, dir, place)
            except (Broken, OSError, ValueError) as exc:
                context = RunContext(note=f"the worktree could not be created: {exc}")
        await self._writer.submit(PrepareRun(run=run.id, context=context))

    async def _check(self, run: ReviewRun) -> None:
        """Create the diff, then run the tests on the same files."""
        update, context, notes = run.update, run.context or RunContext(), []
        assert update is not None
        seen: WorktreeState | None = None
        if context.worktree:
            ref = f"refs/csp/runs/{run.id}/{run.cycle}-{run.steps}"
            message = f"{run.goal[:500]}\n\nRun {run.id}, cycle {run.cycle}."
            try:
                seen = await asyncio.to_thread(self._git.look, context, ref, message)
            except (Broken, OSError) as exc:
                notes.append(f"the diff could not be created: {exc}")
        if seen is not None:
            update = msgspec.structs.replace(update, diff=seen.text, figures=seen.figures)
            notes += [seen.note] if seen.note else []
        if run.terms.test and (context.worktree or context.dir):
            place = _test_place(context)
            tests = await run_tests(run.terms.test, place, run.terms.test_timeout_s, self._env, self._secrets)
            update = msgspec.structs.replace(update, tests=tests)
        update = measured(update) if update.final else update
        command = CheckRun(run=run.id, cycle=run.cycle, step=run.steps, update=update, note="; ".join(notes))
        await self._writer.submit(command)

    async def _make_branch(self, run: ReviewRun) -> None:
        figures = run.update.figures if run.update else None
        if run.context is None or figures is None:
            await self._writer.submit(DeliverRun(run=run.id, note="no branch was created: there is no diff"))
            return
        try:
            name = await asyncio.to_thread(self._git.branch, run.context, f"csp/{run.id}", figures.commit)
            command = DeliverRun(run=run.id, branch=name)
        except Broken as exc:
            command = DeliverRun(run=run.id, note=f"no branch was created: {exc.message}")
        await self._writer.submit(command)

    # --- files -------------------------------------------------------------------------------------

    async def _write_files(self) -> None:
        """Write committed events to the inboxes and to the runs' folders."""
        await self._writer.settle()
        has_lagged, self._lags = self._lags, False
        safe = self._writer.safe_seq
        for run in list(self._runs.values()):
            if run.seq > safe:
                continue
            seen = self._written.get(run.id)
            if seen is None:
                seen = self._written[run.id] = await asyncio.to_thread(self.folders.seen, run.id)
            if seen >= run.seq:
                continue
            events = await self._events_of(run)
            if not events:
                # This run's events were removed from the journal, so its files must not reappear.
                self._written[run.id] = run.seq
                continue
            try:
                await self._open()
                await asyncio.to_thread(self.mailbox.make)
                # Post first: the folder's progress is recorded afterwards, so no inbox can miss a message.
                await asyncio.to_thread(self._post, events, seen)
                note = await asyncio.to_thread(self.folders.write, run, events)
                self._written[run.id] = run.seq
                if note:
                    await self._tell(NoticeCode.RUN_NOTE(run=run.id, note=note))
            except OSError as exc:
                self._lags = True
                if not has_lagged:
                    extra = {"run": run.id, "problem": str(exc)}
                    log.warning("cannot write the folder of a run", extra=extra)

    async def _events_of(self, run: ReviewRun) -> list[KnownEvent]:
        """Return all events of a run; they remain in memory until it ends."""
        known = self._events.setdefault(run.id, [])
        after = known[-1].seq if known else run.first_seq - 1
        while True:
            query = HistoryQuery(limit=_PAGE, after=after, session=run.session, types=RUN_TYPES)
            page = await self._history.page(query)
            found = [decode_event(line) for line in page.lines]
            known += [event for event in found if isinstance(event, RunEvent) and event.seq <= run.seq]
            if len(page.lines) < _PAGE:
                break
            after = page.next or after
        if run.is_over:
            self._events.pop(run.id, None)
        return known

    def _post(self, events: list[KnownEvent], seen: int) -> None:
        """Write new messages to the other role's inbox; an execution update only after its check."""
        for event in events:
            if event.seq <= seen:
                continue
            if isinstance(event, RunSaid) and not isinstance(event.body, ExecutionUpdate):
                self.mailbox.post(event.seq, event.run, event.role, event.ts, event.body)
            elif isinstance(event, RunChecked):
                # The message that contains the checked execution update.
                before = [one for one in events if isinstance(one, RunSaid) and one.seq < event.seq]
                said = next(one for one in reversed(before) if isinstance(one.body, ExecutionUpdate))
                self.mailbox.post(event.seq, event.run, said.role, event.ts, event.update)

    async def forget(self, before: int) -> None:
        """Delete the files of runs that ended before event `before`."""
        live = [run.id for run in self._runs.values() if not run.is_over or run.seq >= before]
        try:
            gone = await asyncio.to_thread(forget_runs, self.folders, self.mailbox, before, live)
        except OSError as exc:
            raise storage_error("remove the files of old runs", exc) from exc
        for name in gone:
            self._written.pop(name, None)
            self._events.pop(name, None)

    # --- mail --------------------------------------------------------------------------------------

    async def _read_mail(self) -> None:
        await self._is_open.wait()
        async for _ in self.mailbox.news():
            self._look()
            if self._lags:
                self._news.set()
            for letter in await asyncio.to_thread(list, self.mailbox.letters()):
                try:
                    await self._accept(letter)
                except (Broken, OSError) as exc:
                    # The file stays in place, but must not block the next ones.
                    extra = {"file": shown(letter.path), "why": str(exc)}
                    log.warning("mailbox file not archived", extra=extra)

    async def _accept(self, letter: MailboxMessage | InvalidMailboxFile) -> None:
        """Submit a file to the room, then archive it; after a crash in between, its key is already known."""
        if isinstance(letter, InvalidMailboxFile):
            await self._refuse(letter, letter.error)
            return
        run = self._runs.get(letter.run)
        if run is not None and letter.key in run.keys:
            # The message was submitted before. A copy is refused, but a file left behind by a crash is not.
            if await asyncio.to_thread(self.mailbox.is_copy, letter):
                what = "a message with the same fields was accepted before"
                await self._refuse(letter, CspError(what, "to send it again, change its timestamp"))
                return
            await self._tell(NoticeCode.MAILBOX_SKIPPED(file=shown(letter.path), role=letter.role))
            await asyncio.to_thread(self.mailbox.handled, letter)
            return
        try:
            if letter.sender is not letter.role:
                wrong = f"sender is {letter.sender}, but the file is in the folder of the {letter.role}"
                raise CspError(wrong, "write to the folder of your role")
            say = SayInRun(
                sender=MAILBOX,
                run=letter.run,
                body=letter.body,
                role=letter.role,
                origin="mailbox",
                key=letter.key,
            )
            await self._writer.submit(say)
        except Broken:
            raise
        except CspError as exc:
            await self._refuse(letter, exc)
            return
        await asyncio.to_thread(self.mailbox.handled, letter)

    async def _refuse(self, letter: MailboxMessage | InvalidMailboxFile, error: CspError) -> None:
        why = f"{error.message} ({error.hint})" if error.hint else error.message
        await self._tell(NoticeCode.MAILBOX_REFUSED(file=shown(letter.path), role=letter.role, why=why))
        await asyncio.to_thread(self.mailbox.refused, letter, why)

    async def _tell(self, words: NoticeWords) -> None:
        await self._writer.submit(Notice(words=words, target=ALL))


def need_of(run: ReviewRun) -> str:
    """Return the pending work of a run: "place", "check", "branch", or an empty string."""
    if run.phase is RunPhase.SETUP and run.context is None:
        return "place"
    at = run.back if run.phase is RunPhase.HALTED else run.phase
    if at is RunPhase.CHECKS and not run.is_checked:
        return "check"
    return "branch" if run.owes_branch else ""


def _test_place(context: RunContext) -> Path:
    """Return the directory in the worktree that matches the run's start directory, if it exists."""
    if not context.worktree:
        return Path(context.dir)
    inside = os.path.relpath(os.path.realpath(context.dir), os.path.realpath(context.repository))
    place = Path(context.worktree) / inside
    return place if place.is_dir() else Path(context.worktree)


def measured(update: ExecutionUpdate) -> ExecutionUpdate:
    """Add the metrics measured by CSP to the builder's metrics."""
    own: dict[str, float | str] = {}
    if update.figures is not None:
        names = ("files", "insertions", "deletions")
        own |= {name: float(getattr(update.figures, name)) for name in names}
    if update.tests is not None and not update.tests.claimed:
        own["tests_passed"] = float(update.tests.passed)
        own["tests_seconds"] = update.tests.seconds
    own = {OWN_METRICS + name: value for name, value in own.items()}
    return msgspec.structs.replace(update, metrics=update.metrics | own)
