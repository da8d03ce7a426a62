"""The work that runs need, by itself: what is due, what is done about it, what becomes of mail."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from csp.errors import BadInput, Broken, CspError, StorageFailed
from csp.gateway import run_worker as hands_module
from csp.gateway.run_worker import RunWorker, _test_place, measured, need_of
from csp.protocol.enums import ALL, SYSTEM, AgentId, MessageId, SessionId
from csp.protocol.events import RunChecked, RunSaid, RunStarted, encode_event
from csp.protocol.notices import NoticeCode
from csp.protocol.review_messages import (
    MAILBOX,
    DiffFigures,
    ExecutionUpdate,
    OnAccept,
    RunContext,
    RunPhase,
    RunRole,
    RunTerms,
    SessionAck,
    TestResult,
)
from csp.protocol.session_parts import EndReason
from csp.review.mailbox import InvalidMailboxFile, MailboxMessage
from csp.review.run_git import WorktreeState
from csp.room.commands import CheckRun, DeliverRun, Notice, PrepareRun, SayInRun
from csp.room.runs.run_state import ReviewRun

FIGURES = DiffFigures(base="a", commit="c0ffee", files=2, insertions=3, deletions=1)
TESTS = TestResult(command="make", passed=True, seconds=0.5)
UPDATE = ExecutionUpdate(step="done", final=True, metrics={"speed": 2.0})
RUN = ReviewRun(
    id="run-1",
    session=SessionId("s-1"),
    thread="default",
    goal="mend it",
    builder=AgentId("codex"),
    reviewer=AgentId("claude"),
    started_at=1.0,
    first_seq=3,
    seq=9,
    context=RunContext(dir="/work", worktree="/tree"),
)
CHECKS = msgspec.structs.replace(RUN, phase=RunPhase.CHECKS, update=UPDATE, cycle=2, steps=3)


class FakeGateway:
    """Notes what the room is asked for; the history is what the test says."""

    def __init__(self, folder: Path, *runs: ReviewRun) -> None:
        self.folder = folder
        self.commands: list[Any] = []
        self.error: CspError | None = None
        self.lines: list[bytes] = []
        self.spawned: list[str] = []
        room = SimpleNamespace(runs=SimpleNamespace(by_id={run.id: run for run in runs}))
        self.writer = SimpleNamespace(room=room, safe_seq=50, settle=self._settle, submit=self.submit)
        self.history = SimpleNamespace(page=self._page)
        self.asked: list[Any] = []

    async def submit(self, command: Any) -> None:
        if self.error is not None:
            raise self.error
        self.commands.append(command)

    def spawn(self, work: Any) -> None:
        self.spawned.append(work.__qualname__)
        work.close()

    async def _settle(self) -> None:
        return

    async def _page(self, query: Any) -> SimpleNamespace:
        self.asked.append(query)
        return SimpleNamespace(lines=self.lines, next=None)


def hands_of(folder: Path, *runs: ReviewRun) -> tuple[RunWorker, FakeGateway]:
    gateway = FakeGateway(folder, *runs)
    parts: Any = (folder, gateway.writer, gateway.history, ("the room's token",), gateway.spawn)
    return RunWorker(*parts), gateway


# --- what is due ---------------------------------------------------------------------------------


def changed(**fields: Any) -> ReviewRun:
    return msgspec.structs.replace(RUN, **fields)


@pytest.mark.parametrize(
    ("run", "need"),
    [
        (changed(context=None), "place"),
        (changed(), ""),
        (changed(phase=RunPhase.PLAN, context=None), ""),
        (CHECKS, "check"),
        (msgspec.structs.replace(CHECKS, is_checked=True), ""),
        (changed(phase=RunPhase.HALTED, back=RunPhase.CHECKS), "check"),
        (changed(phase=RunPhase.HALTED, back=RunPhase.PLAN), ""),
        (changed(phase=RunPhase.ENDED, reason=EndReason.ACCEPTED), "branch"),
        (changed(phase=RunPhase.ENDED, reason=EndReason.ACCEPTED, is_delivered=True), ""),
        (changed(phase=RunPhase.ENDED, reason=EndReason.ABORTED), ""),
        (
            changed(
                phase=RunPhase.ENDED, reason=EndReason.ACCEPTED, terms=RunTerms(on_accept=OnAccept.NOTHING)
            ),
            "",
        ),
    ],
)
def test_what_a_run_waits_for(run: ReviewRun, need: str) -> None:
    assert need_of(run) == need


def test_each_piece_of_work_is_begun_once_at_a_time(tmp_path: Path) -> None:
    hands, gateway = hands_of(tmp_path, CHECKS, msgspec.structs.replace(RUN, id="run-2"))
    hands._look()
    hands._look()
    begun = list(gateway.spawned)
    hands._busy.clear()
    hands._look()

    assert begun == ["RunWorker._do"]
    assert gateway.spawned == ["RunWorker._do"] * 2


@pytest.mark.parametrize("error", [None, Broken("no disk")])
async def test_work_that_is_over_or_has_failed_may_be_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Broken | None
) -> None:
    hands, _ = hands_of(tmp_path, CHECKS)
    done: list[str] = []

    async def check(run: ReviewRun) -> None:
        done.append(run.id)
        if error is not None:
            raise error

    monkeypatch.setattr(hands, "_check", check)
    key = ("run-1", "check", 2, 3)
    hands._busy.add(key)
    await hands._do(CHECKS, key)

    assert (done, hands._busy) == (["run-1"], set())
    assert caplog.messages == ([] if error is None else ["work on a run failed"])


def test_only_events_of_runs_are_news(tmp_path: Path) -> None:
    hands, _ = hands_of(tmp_path)
    common = (9, 1.0, MessageId("e-9"), SYSTEM, ALL, "default", "goal", SessionId("s-1"), "run-1")
    hands.observe([])
    before = hands._news.is_set()
    hands.observe([RunStarted(*common, builder=MAILBOX, reviewer=MAILBOX, max_revisions=1)])

    assert (before, hands._news.is_set()) == (False, True)


# --- places, checks, branches --------------------------------------------------------------------


class FakeGit:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[Any] = []
        self.note = "one file is too large"

    def _answer(self, what: tuple[Any, ...], answer: Any) -> Any:
        self.asked.append(what)
        if self.error is not None:
            raise self.error
        return answer

    def prepare(self, dir: Path, place: Path) -> RunContext:
        return self._answer(("prepare", dir, place), RunContext(dir=str(dir)))  # type: ignore[no-any-return]

    def look(self, context: RunContext, ref: str, message: str) -> WorktreeState:
        return self._answer(("look", ref, message), WorktreeState(FIGURES, "the diff", b"", self.note))  # type: ignore[no-any-return]

    def branch(self, context: RunContext, name: str, commit: str) -> str:
        return self._answer(("branch", name, commit), name)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("told", "of_gateway", "used"), [("/told", "/here", "/told"), ("", "/here", "/here"), ("", None, None)]
)
async def test_a_run_works_where_it_was_told_or_where_the_gateway_was_started(
    tmp_path: Path, told: str, of_gateway: str | None, used: str | None
) -> None:
    hands, gateway = hands_of(tmp_path)
    git = hands._git = FakeGit()  # type: ignore[assignment]  # it has what is used
    hands.dir = Path(of_gateway) if of_gateway else None
    await hands._prepare(changed(terms=RunTerms(dir=told)))
    (command,) = gateway.commands

    assert isinstance(command, PrepareRun) and command.run == "run-1"
    if used is None:
        assert (git.asked, command.context.note) == ([], "no directory is known, so there is no diff")
    else:
        assert git.asked == [("prepare", Path(used), tmp_path / "worktrees" / "run.run-1")]
        assert command.context == RunContext(dir=used)


@pytest.mark.parametrize("error", [Broken("no git"), OSError("no room"), ValueError("odd")])
async def test_a_place_that_cannot_be_made_is_told(tmp_path: Path, error: Exception) -> None:
    hands, gateway = hands_of(tmp_path)
    hands._git = FakeGit(error)  # type: ignore[assignment]  # it has what is used
    hands.dir = tmp_path
    await hands._prepare(RUN)

    assert gateway.commands[0].context.note == f"the worktree could not be created: {error}"


async def check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: ReviewRun, error: Exception | None = None
) -> tuple[CheckRun, FakeGit, list[Any]]:
    hands, gateway = hands_of(tmp_path)
    git, tested = FakeGit(error), list[Any]()

    async def run_tests(
        command: str, place: Path, timeout_s: float, env: object, secrets: object
    ) -> TestResult:
        tested.append((command, place, timeout_s, secrets))
        return TESTS

    monkeypatch.setattr(hands_module, "run_tests", run_tests)
    hands._git = git  # type: ignore[assignment]  # it has what is used
    await hands._check(run)
    return gateway.commands[0], git, tested


async def test_a_step_is_looked_at_and_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = msgspec.structs.replace(CHECKS, terms=RunTerms(test="make", test_timeout_s=9.0))
    command, git, tested = await check(tmp_path, monkeypatch, run)

    assert git.asked == [("look", "refs/csp/runs/run-1/2-3", "mend it\n\nRun run-1, cycle 2.")]
    assert tested == [("make", Path("/tree"), 9.0, ("the room's token",))]
    assert (command.run, command.cycle, command.step) == ("run-1", 2, 3)
    assert command.note == "one file is too large"
    assert (command.update.diff, command.update.figures, command.update.tests) == ("the diff", FIGURES, TESTS)
    assert command.update.metrics["csp.files"] == 2.0 and command.update.metrics["speed"] == 2.0


async def test_a_step_without_tests_or_a_worktree_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = msgspec.structs.replace(UPDATE, final=False)
    run = msgspec.structs.replace(CHECKS, update=step, context=RunContext(), terms=RunTerms(test="make"))
    command, git, tested = await check(tmp_path, monkeypatch, run)
    there = msgspec.structs.replace(CHECKS, update=step)
    seen, _, untested = await check(tmp_path, monkeypatch, there)

    assert (command.update, command.note, git.asked, tested) == (step, "", [], [])
    assert (untested, seen.update.tests, seen.update.metrics) == ([], None, {"speed": 2.0})


@pytest.mark.parametrize("error", [Broken("no git"), OSError("no room")])
async def test_a_diff_that_cannot_be_taken_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    command, _, _ = await check(tmp_path, monkeypatch, CHECKS, error)

    assert command.note == f"the diff could not be created: {error}"
    assert command.update.figures is None


@pytest.mark.parametrize(
    ("run", "error", "expected"),
    [
        (CHECKS, None, DeliverRun(run="run-1", note="no branch was created: there is no diff")),
        (
            changed(update=msgspec.structs.replace(UPDATE, figures=FIGURES)),
            None,
            DeliverRun(run="run-1", branch="csp/run-1"),
        ),
        (
            changed(update=msgspec.structs.replace(UPDATE, figures=FIGURES)),
            Broken("it is there"),
            DeliverRun(run="run-1", note="no branch was created: it is there"),
        ),
    ],
)
async def test_accepted_work_is_put_on_a_branch(
    tmp_path: Path, run: ReviewRun, error: Exception | None, expected: DeliverRun
) -> None:
    hands, gateway = hands_of(tmp_path)
    git = hands._git = FakeGit(error)  # type: ignore[assignment]  # it has what is used
    await hands._make_branch(run)

    assert gateway.commands == [expected]
    assert git.asked == [("branch", "csp/run-1", "c0ffee")] * bool(run.update and run.update.figures)


def test_tests_run_in_the_place_of_the_worktree_that_the_run_began_in(tmp_path: Path) -> None:
    (tmp_path / "tree" / "inside").mkdir(parents=True)
    tree, repository = str(tmp_path / "tree"), str(tmp_path / "repository")
    places = [
        _test_place(RunContext(dir=dir, worktree=worktree, repository=repository))
        for dir, worktree in (
            (f"{repository}/inside", tree),
            (f"{repository}/gone", tree),
            ("/elsewhere", ""),
        )
    ]

    assert places == [tmp_path / "tree" / "inside", tmp_path / "tree", Path("/elsewhere")]


def test_only_what_was_measured_is_added() -> None:
    claimed = msgspec.structs.replace(TESTS, claimed=True)
    whole = measured(msgspec.structs.replace(UPDATE, figures=FIGURES, tests=TESTS))

    assert measured(msgspec.structs.replace(UPDATE, tests=claimed)).metrics == {"speed": 2.0}
    assert whole.metrics == {
        "speed": 2.0,
        "csp.files": 2.0,
        "csp.insertions": 3.0,
        "csp.deletions": 1.0,
        "csp.tests_passed": 1.0,
        "csp.tests_seconds": 0.5,
    }


# --- files ---------------------------------------------------------------------------------------


def said(seq: int, body: Any, role: RunRole = RunRole.BUILDER) -> RunSaid:
    common = (seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, ALL, "default", "", SessionId("s-1"), "run-1")
    return RunSaid(*common, role=role, body=body)


def checked(seq: int, update: ExecutionUpdate = UPDATE) -> RunChecked:
    common = (seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, ALL, "default", "", SessionId("s-1"), "run-1")
    return RunChecked(*common, cycle=1, update=update)


class Files:
    """The folders and the mailbox of a gateway, as calls."""

    def __init__(self, hands: RunWorker) -> None:
        self.done: list[Any] = []
        self.seen_seq = 0
        self.note = ""
        self.error: OSError | None = None
        self.root = Path("/nowhere")
        hands.folders = hands.mailbox = self  # type: ignore[assignment]  # it has what is used

    def seen(self, run: str) -> int:
        return self.seen_seq

    def make(self) -> None:
        return

    def post(self, seq: int, run: str, role: RunRole, ts: float, body: Any) -> None:
        self.done.append((seq, role, body))

    def write(self, run: ReviewRun, events: list[Any]) -> str:
        if self.error is not None:
            raise self.error
        self.done.append(("write", run.id, [event.seq for event in events]))
        return self.note


async def test_what_was_said_lies_in_the_inbox_before_the_folder_says_so(tmp_path: Path) -> None:
    hands, gateway = hands_of(tmp_path, RUN)
    files = Files(hands)
    ack = SessionAck(note="ready")
    step = msgspec.structs.replace(UPDATE, diff="the diff")
    events: list[RunSaid | RunChecked] = [
        *(said(4, ack), said(5, ack, RunRole.REVIEWER), said(6, UPDATE)),
        *(checked(7, step), said(60, ack)),
    ]
    gateway.lines = [encode_event(event) for event in events]
    files.seen_seq = 4
    for _ in range(2):
        await hands._write_files()
    (query,) = gateway.asked

    # A step is passed on once it is checked, in the name of who said it.
    assert files.done == [
        (5, RunRole.REVIEWER, ack),
        (7, RunRole.BUILDER, step),
        ("write", "run-1", [4, 5, 6, 7]),
    ]
    assert (query.after, query.session) == (2, "s-1")
    assert hands._written == {"run-1": 9}


async def test_the_events_of_a_run_are_remembered_while_it_lives(tmp_path: Path) -> None:
    hands, gateway = hands_of(tmp_path)
    gateway.lines = [encode_event(said(4, SessionAck()))]
    first = list(await hands._events_of(RUN))
    gateway.lines = [encode_event(said(6, SessionAck()))]
    then = list(await hands._events_of(RUN))
    gateway.lines = []
    over = list(await hands._events_of(changed(reason=EndReason.DONE)))

    assert [[event.seq for event in found] for found in (first, then, over)] == [[4], [4, 6], [4, 6]]
    assert [query.after for query in gateway.asked] == [2, 4, 6]
    assert hands._events == {}


async def test_what_is_not_committed_or_was_pruned_is_not_written(tmp_path: Path) -> None:
    early, gone = changed(seq=51), changed(id="run-2")
    hands, _ = hands_of(tmp_path, early, gone)
    files = Files(hands)
    await hands._write_files()

    assert files.done == []
    assert hands._written == {"run-2": 9}


async def test_a_folder_that_cannot_be_written_is_tried_again_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hands, gateway = hands_of(tmp_path, RUN)
    files = Files(hands)
    files.error, files.note = OSError("no room"), "the plan was lost"
    gateway.lines = [encode_event(said(4, SessionAck()))]
    lags = []
    for _ in range(2):
        await hands._write_files()
        lags.append(hands._lags)
    files.error = None
    await hands._write_files()

    assert (lags, hands._lags) == ([True, True], False)
    assert caplog.messages == ["cannot write the folder of a run"]
    assert gateway.commands == [
        Notice(words=NoticeCode.RUN_NOTE(run="run-1", note="the plan was lost"), target=ALL)
    ]


async def test_old_runs_are_forgotten_with_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = {"reason": EndReason.DONE, "seq": 5}
    hands, _ = hands_of(
        tmp_path,
        changed(id="live", seq=5),
        changed(id="old", **over),
        changed(id="new", reason=EndReason.DONE),
    )
    kept: list[Any] = []

    def forget_runs(folders: object, mailbox: object, before: int, live: list[str]) -> list[str]:
        kept.append((before, live))
        return ["old"]

    monkeypatch.setattr(hands_module, "forget_runs", forget_runs)
    hands._written = {"old": 5, "new": 9}
    hands._events = {"old": []}
    await hands.forget(9)

    assert kept == [(9, ["live", "new"])]
    assert (hands._written, hands._events) == ({"new": 9}, {})

    def fail(*given: object) -> list[str]:
        raise OSError("no way")

    monkeypatch.setattr(hands_module, "forget_runs", fail)
    with pytest.raises(StorageFailed, match="cannot remove the files of old runs"):
        await hands.forget(9)


# --- mail ----------------------------------------------------------------------------------------


class Mail:
    """A mailbox that notes where each file was put."""

    def __init__(self, hands: RunWorker, *, is_copy: bool = False) -> None:
        self.put: list[Any] = []
        self._is_copy = is_copy
        hands.mailbox = self  # type: ignore[assignment]  # it has what is used

    def is_copy(self, letter: MailboxMessage) -> bool:
        return self._is_copy

    def handled(self, letter: MailboxMessage) -> None:
        self.put.append("handled")

    def refused(self, letter: MailboxMessage | InvalidMailboxFile, why: str) -> None:
        self.put.append(why)


def letter(sender: RunRole = RunRole.BUILDER, key: str = "k") -> MailboxMessage:
    path, ack = Path("/box/builder/a.json"), SessionAck(note="ready")
    return MailboxMessage(path, (1, 2, 3), RunRole.BUILDER, key, "run-1", sender, ack)


async def test_a_letter_is_said_in_the_run_and_put_away(tmp_path: Path) -> None:
    hands, gateway = hands_of(tmp_path, RUN)
    mail = Mail(hands)
    await hands._accept(letter())

    assert gateway.commands == [
        SayInRun(
            sender=MAILBOX,
            run="run-1",
            body=SessionAck(note="ready"),
            role=RunRole.BUILDER,
            origin="mailbox",
            key="k",
        )
    ]
    assert mail.put == ["handled"]


async def test_a_letter_in_the_folder_of_the_other_role_is_refused(tmp_path: Path) -> None:
    hands, gateway = hands_of(tmp_path, RUN)
    mail = Mail(hands)
    await hands._accept(letter(RunRole.REVIEWER))
    (notice,) = gateway.commands

    wrong = "sender is reviewer, but the file is in the folder of the builder"
    assert mail.put == [f"{wrong} (write to the folder of your role)"]
    assert notice.words.text.startswith("Mailbox: a.json from the builder was refused: sender is reviewer")


async def test_what_is_no_letter_is_refused(tmp_path: Path) -> None:
    hands, _ = hands_of(tmp_path, RUN)
    mail = Mail(hands)
    await hands._accept(
        InvalidMailboxFile(Path("/box/a.json"), (1, 2, 3), RunRole.BUILDER, BadInput("it is empty"))
    )

    assert mail.put == ["it is empty"]


@pytest.mark.parametrize("is_copy", [True, False])
async def test_words_that_are_known_are_said_once(tmp_path: Path, is_copy: bool) -> None:
    hands, gateway = hands_of(tmp_path, changed(keys=("k",)))
    mail = Mail(hands, is_copy=is_copy)
    await hands._accept(letter())
    (notice,) = gateway.commands

    assert isinstance(notice, Notice)
    # A copy is a mistake of its writer; after a crash the same file is seen twice.
    assert (
        mail.put[0].startswith("a message with the same fields was accepted before")
        if is_copy
        else mail.put == ["handled"]
    )


@pytest.mark.parametrize("error", [Broken("no disk"), BadInput("not now")])
async def test_a_letter_stays_while_the_journal_cannot_grow(tmp_path: Path, error: CspError) -> None:
    hands, gateway = hands_of(tmp_path, RUN)
    mail, refused = Mail(hands), list[str]()

    async def refuse(of: object, exc: CspError) -> None:
        refused.append(exc.message)

    hands._refuse = refuse  # type: ignore[method-assign, assignment]  # for this test
    gateway.error = error
    if isinstance(error, Broken):
        with pytest.raises(Broken):
            await hands._accept(letter())
    else:
        await hands._accept(letter())

    assert (mail.put, refused) == ([], [] if isinstance(error, Broken) else ["not now"])


async def test_one_letter_that_fails_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hands, _ = hands_of(tmp_path, RUN)
    taken: list[str] = []

    async def news() -> Any:
        yield None

    async def take(one: MailboxMessage) -> None:
        taken.append(one.key)
        if one.key == "b":
            raise OSError("no room")

    letters = [letter(key=key) for key in "abc"]
    hands.mailbox = SimpleNamespace(news=news, letters=lambda: letters)  # type: ignore[assignment]  # it is enough
    monkeypatch.setattr(hands, "_accept", take)
    hands._lags = True
    hands._is_open.set()
    await hands._read_mail()

    assert (taken, caplog.messages) == (["a", "b", "c"], ["mailbox file not archived"])
    # What lags is tried again with the next look.
    assert hands._news.is_set()


@pytest.mark.parametrize(("runs", "has_box"), [((RUN,), False), ((), True), ((), False)])
async def test_a_room_that_never_had_a_run_has_no_mailbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: tuple[ReviewRun, ...], has_box: bool
) -> None:
    hands, _ = hands_of(tmp_path, *runs)
    if has_box:
        (tmp_path / "mailbox").mkdir()
    looks: list[bool] = []

    async def write_files() -> None:
        return

    monkeypatch.setattr(hands, "_write_files", write_files)
    monkeypatch.setattr(hands, "_look", lambda: looks.append(True))
    working = asyncio.ensure_future(hands.work())
    try:
        async with asyncio.timeout(60):
            while not looks:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        working.cancel()

    assert hands._is_open.is_set() is bool(runs or has_box)
    assert (tmp_path / "mailbox" / "builder" / "inbox").exists() is bool(runs or has_box)
