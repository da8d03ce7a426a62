"""Care for the journal: what a removal leaves behind, what a scrub reports, when notes are indexed."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from csp.config import Settings
from csp.errors import BadInput, Broken, CspError, NotFound, Refused, StorageFailed, StorageFull
from csp.gateway import journal_maintenance
from csp.gateway.gateway import Gateway
from csp.journal import rewrite
from csp.journal.jsonl_journal import REWRITE_NAME
from csp.journal.scrub import Damage, ScrubReport
from csp.protocol.enums import HUMAN, SYSTEM, AgentId, MessageId, SessionId
from csp.protocol.events import (
    AnyEvent,
    HumanMessage,
    NoteAdded,
    Pruned,
    Redacted,
    RunDelivered,
    RunStarted,
    encode_event,
)
from csp.protocol.notes import NoteKind
from csp.protocol.notices import NoticeCode
from csp.room.commands import Notice
from tests.gateway.served import ServedRoom
from tests.waiting import wait_until

CLAUDE = AgentId("claude")


# --- removal -------------------------------------------------------------------------------------


async def test_pruning_what_is_not_there_does_nothing(room: ServedRoom) -> None:
    await room.join("claude")

    assert await journal_maintenance.prune(room.gateway, 1) == 1
    assert room.gateway.writer.safe_seq == 1


async def test_a_removal_that_the_room_refuses_costs_no_work(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_maintenance, "_prepare", lambda *_: pytest.fail("the journal was copied"))
    await room.join("claude")
    with pytest.raises(CspError):
        await journal_maintenance.prune(room.gateway, 100)


async def test_a_removal_that_could_not_be_promised_leaves_nothing_behind(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    await room.join("claude")
    message = await room.send("claude", "hello")
    seen: list[bool] = []

    async def submit(command: object) -> None:
        seen.append((room.folder / "rewrite.json").exists() and (room.folder / REWRITE_NAME).exists())
        raise Refused("not now")

    monkeypatch.setattr(room.gateway, "submit", submit)
    with pytest.raises(Refused, match="not now"):
        await journal_maintenance.redact(room.gateway, message)

    assert seen == [True]
    assert not (room.folder / "rewrite.json").exists()
    assert not (room.folder / REWRITE_NAME).exists()


async def test_only_pruning_takes_away_the_files_of_old_runs(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = await room.join("claude")
    message = await room.send("claude", "hello")
    await room.post("/delivery", {"id": message, "state": "confirmed"}, claude.token)
    forgotten: list[int] = []

    async def forget(before: int) -> None:
        forgotten.append(before)

    monkeypatch.setattr(room.gateway.run_worker, "forget", forget)
    await journal_maintenance.redact(room.gateway, message)
    await journal_maintenance.prune(room.gateway, 3)

    assert forgotten == [3]
    assert not (room.folder / "rewrite.json").exists()


async def test_a_removal_that_was_promised_before_is_not_promised_again(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    await room.join("claude")
    message = await room.send("claude", "hello")

    async def keep_promise(gateway: object) -> journal_maintenance._Note:
        return journal_maintenance._Note(redact=message)

    monkeypatch.setattr(journal_maintenance, "_keep_promise", keep_promise)
    await journal_maintenance.redact(room.gateway, message)

    assert room.gateway.writer.safe_seq == 2


@pytest.mark.parametrize("error", [StorageFull("the disk is full"), Refused("not now")])
async def test_a_removal_that_is_put_off_does_not_stop_a_start(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: CspError
) -> None:
    async def fail(gateway: object) -> None:
        raise error

    monkeypatch.setattr(journal_maintenance, "_keep_promise", fail)
    await journal_maintenance.finish_rewrites(room.gateway)

    assert "removal postponed" in caplog.messages


@pytest.mark.parametrize("durability", ["none", "flush", "fsync"])
async def test_all_that_was_decided_is_in_the_journal_before_it_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
) -> None:
    gateway = Gateway(Settings(durability=durability), tmp_path / "room", time.time)
    seqs: list[int] = []

    def prepare(*given: object) -> None:
        raise Refused("enough")

    monkeypatch.setattr(journal_maintenance, "leave_note", lambda *_: seqs.append(gateway.writer.safe_seq))
    monkeypatch.setattr(journal_maintenance, "_prepare", prepare)
    waiting = gateway.submit(Notice(words=NoticeCode.JOURNAL_REPAIRED(warning="a moment ago"), target=HUMAN))
    with pytest.raises(Refused, match="enough"):
        await journal_maintenance._remove(gateway, journal_maintenance._Note(redact="m-1"))
    await waiting
    await gateway.close()

    assert seqs == [1]


@pytest.mark.parametrize(
    ("note", "forgotten"),
    [(journal_maintenance._Note(prune=7), [7]), (journal_maintenance._Note(redact="m-1"), [])],
)
async def test_a_removal_ends_with_nothing_of_it_in_memory(
    monkeypatch: pytest.MonkeyPatch, note: journal_maintenance._Note, forgotten: list[int]
) -> None:
    done: list[object] = []

    async def alone(action: Callable[[], None]) -> None:
        done.append("alone")
        action()

    async def forget(before: int) -> None:
        done.append(before)

    monkeypatch.setattr(rewrite, "finish", lambda prepared: done.append(prepared))
    gateway: Any = SimpleNamespace(
        writer=SimpleNamespace(alone=alone),
        history=SimpleNamespace(load_recent=lambda: done.append("loaded")),
        run_worker=SimpleNamespace(forget=forget),
    )
    prepared: Any = "the copy"
    await Gateway.replace_journal(gateway, prepared, note.prune)

    assert done == ["alone", "the copy", "loaded", *forgotten]


def test_a_promise_is_looked_for_after_the_note_was_left(monkeypatch: pytest.MonkeyPatch) -> None:
    common = (9, 1.0, MessageId("e-9"), SYSTEM, HUMAN, "default", "")
    events = {3: [Redacted(*common, message=MessageId("m-4"))], 9: []}
    monkeypatch.setattr(journal_maintenance, "events_after", lambda journal, seq: iter(events[seq]))
    journal: Any = None

    assert journal_maintenance.is_promised(journal, journal_maintenance._Note(redact="m-4", after=3))
    # The same message was redacted before; that is no promise of this removal.
    assert not journal_maintenance.is_promised(journal, journal_maintenance._Note(redact="m-4", after=9))


@pytest.mark.parametrize("is_promised", [True, False])
async def test_a_promise_is_kept_and_what_was_not_promised_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_promised: bool
) -> None:
    note, done = journal_maintenance._Note(redact="m-1", after=3), list[object]()

    async def finish(gateway: object, prepared: object, of: journal_maintenance._Note) -> None:
        done.append((prepared, of))

    monkeypatch.setattr(journal_maintenance, "is_promised", lambda journal, of: is_promised and of == note)
    monkeypatch.setattr(journal_maintenance, "_prepare", lambda journal, of: f"a copy of {journal}")
    monkeypatch.setattr(journal_maintenance, "_finish", finish)
    gateway: Any = SimpleNamespace(folder=tmp_path, writer=SimpleNamespace(journal="the journal"))
    nothing = await journal_maintenance._keep_promise(gateway)
    journal_maintenance.leave_note(tmp_path, note)
    kept = await journal_maintenance._keep_promise(gateway)

    assert (nothing, kept) == (None, note if is_promised else None)
    assert done == [("a copy of the journal", note)] * is_promised
    assert journal_maintenance.read_note(tmp_path) is None


@pytest.mark.parametrize(
    ("message_id", "note", "expected"),
    [
        ("m-1", None, ["m-1"]),
        ("n-1", None, ["n-1"]),
        ("n-1", (NoteKind.NOTE, None), ["n-1"]),
        ("n-1", (NoteKind.REPLY, "m-4"), ["m-4"]),
        ("n-1", (NoteKind.SUMMARY, "m-4"), ["m-4", "n-1"]),
    ],
)
async def test_a_note_that_was_taken_from_a_reply_goes_with_it(
    message_id: str, note: tuple[NoteKind, str | None] | None, expected: list[str]
) -> None:
    done: list[object] = []

    async def settle() -> None:
        done.append("settled")

    def get(note_id: str, audience: object) -> SimpleNamespace | None:
        done.append((note_id, audience))
        if note is None:
            return None
        return SimpleNamespace(kind=note[0], source=note[1] and SimpleNamespace(id=note[1]))

    gateway: Any = SimpleNamespace(writer=SimpleNamespace(settle=settle), board=SimpleNamespace(get=get))

    assert list(await journal_maintenance.messages_of(gateway, message_id)) == expected
    # What was acknowledged a moment ago is found, too.
    assert done == ([] if message_id == "m-1" else ["settled", ("n-1", None)])


async def test_what_is_redacted_is_there_belongs_to_no_run_and_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    common = (9, 1.0, MessageId("e-9"), SYSTEM, CLAUDE, "default", "")
    found: dict[str, Any] = {
        "m-1": said(CLAUDE, None),
        "n-2": NoteAdded(*common, idx=0),
        "e-3": RunDelivered(*common, session_id=SessionId("s-1"), run="run-1"),
        "e-4": Redacted(*common, message=MessageId("m-1")),
    }
    done: list[object] = []

    async def messages_of(gateway: object, message_id: str) -> tuple[str, ...]:
        return (message_id,)

    async def find(message_id: str) -> SimpleNamespace | None:
        return SimpleNamespace(event=found[message_id]) if message_id in found else None

    async def check_no_run(gateway: object, event: object) -> None:
        done.append(event)

    async def remove(gateway: Any, note: journal_maintenance._Note) -> None:
        assert gateway.rewrite_lock.locked()
        done.append(note)

    for name, fake in (("messages_of", messages_of), ("check_no_run", check_no_run), ("_remove", remove)):
        monkeypatch.setattr(journal_maintenance, name, fake)
    gateway: Any = SimpleNamespace(
        history=SimpleNamespace(find=find), rewrite_lock=asyncio.Lock(), writer=SimpleNamespace(safe_seq=50)
    )
    for message_id in ("m-1", "n-2", "e-3"):
        await journal_maintenance.redact(gateway, message_id)
        assert done[-2:] == [found[message_id], journal_maintenance._Note(redact=message_id, after=50)]
    for message_id in ("e-4", "m-9"):
        with pytest.raises(NotFound, match=f"unknown message '{message_id}'"):
            await journal_maintenance.redact(gateway, message_id)
    assert len(done) == 6


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        (journal_maintenance._Note(redact="m-4"), [True, False, False, False]),
        (journal_maintenance._Note(prune=7), [False, False, True, False]),
    ],
)
def test_only_its_own_event_promises_a_removal(note: journal_maintenance._Note, expected: list[bool]) -> None:
    common = (9, 1.0, MessageId("e-9"), SYSTEM, HUMAN, "default", "")
    events: list[AnyEvent] = [
        Redacted(*common, message=MessageId("m-4")),
        Redacted(*common, message=MessageId("m-5")),
        Pruned(*common, before=7),
        Pruned(*common, before=8),
    ]

    assert [note.is_promised_by(event) for event in events] == expected
    assert not note.is_promised_by(said(HUMAN, None))


@pytest.mark.parametrize("data", [b"{", b'{"redact": 7}', b"\xff"])
def test_a_note_that_cannot_be_read_is_no_removal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    missing = journal_maintenance.read_note(tmp_path)
    messages = list(caplog.messages)
    (tmp_path / "rewrite.json").write_bytes(data)

    assert (missing, messages) == (None, [])
    assert journal_maintenance.read_note(tmp_path) is None
    assert caplog.messages == ["removal note unreadable"]


def test_a_note_is_kept_until_it_is_dropped(tmp_path: Path) -> None:
    note = journal_maintenance._Note(prune=7, after=3)
    journal_maintenance.leave_note(tmp_path, note)
    kept = journal_maintenance.read_note(tmp_path)
    journal_maintenance._drop_note(tmp_path)
    journal_maintenance._drop_note(tmp_path)

    assert (kept, journal_maintenance.read_note(tmp_path)) == (note, None)
    with pytest.raises(StorageFailed, match="cannot note the removal"):
        journal_maintenance.leave_note(tmp_path / "nowhere", note)


def said(sender: AgentId, session: str | None) -> HumanMessage:
    at = SessionId(session) if session else None
    return HumanMessage(
        7, 1.0, MessageId("m-7"), sender, CLAUDE, "default", "text", recipients=(CLAUDE,), session_id=at
    )


@pytest.mark.parametrize(
    ("sender", "session", "is_over", "before"),
    [
        (HUMAN, "s-1", True, None),
        (CLAUDE, None, True, None),
        (CLAUDE, "s-2", True, None),
        (CLAUDE, "s-1", True, 31),
        (CLAUDE, "s-1", False, 8),
    ],
)
async def test_what_an_agent_said_in_a_run_goes_with_the_whole_run(
    sender: AgentId, session: str | None, is_over: bool, before: int | None
) -> None:
    run = RunStarted(
        *(3, 1.0, MessageId("e-3"), SYSTEM, CLAUDE, "default", "goal", SessionId("s-1"), "run-1"),
        builder=CLAUDE,
        reviewer=CLAUDE,
        max_revisions=1,
    )

    async def page(query: Any) -> SimpleNamespace:
        assert (query.limit, query.types) == (1, {"run.started"})
        return SimpleNamespace(lines=[encode_event(run)] if query.session == "s-1" else [])

    runs = {"run-1": SimpleNamespace(seq=30)} if is_over else {}
    room = SimpleNamespace(runs=SimpleNamespace(by_id=runs))
    gateway: Any = SimpleNamespace(history=SimpleNamespace(page=page), writer=SimpleNamespace(room=room))
    if before is None:
        await journal_maintenance.check_no_run(gateway, said(sender, session))
        return
    with pytest.raises(Refused, match="m-7 is part of run run-1") as refused:
        await journal_maintenance.check_no_run(gateway, said(sender, session))
    assert refused.value.hint.endswith(f"--before {before}")


# --- beside the room's work ----------------------------------------------------------------------


async def test_notes_that_lag_are_indexed_to_the_end_even_where_it_is_never_quiet(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def catch_up(max_lines: int) -> bool:
        # From now on a pause would last for ever.
        monkeypatch.setattr(journal_maintenance, "QUIET_S", 3600.0)
        calls.append(max_lines)
        return len(calls) == 3

    monkeypatch.setattr(journal_maintenance, "QUIET_S", 0.0)
    monkeypatch.setattr(journal_maintenance, "MOST_LAG_BYTES", -1)
    monkeypatch.setattr(room.gateway.board, "catch_up", catch_up)
    room.gateway.last_commit = time.monotonic() + 7200
    room.gateway.spawn(journal_maintenance.index_notes(room.gateway))
    await wait_until(lambda: len(calls) == 3)

    assert calls == [journal_maintenance.INDEX_LINES] * 3


async def test_a_quiet_room_indexes_many_lines_at_a_time_and_a_busy_one_few(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    is_quiet = [True, False, True]

    def catch_up(max_lines: int) -> int:
        # From now on a pause would last for ever.
        monkeypatch.setattr(journal_maintenance, "QUIET_S", 3600.0)
        calls.append(max_lines)
        return 3 - len(calls)

    monkeypatch.setattr(journal_maintenance, "QUIET_S", 0.0)
    monkeypatch.setattr(journal_maintenance, "MOST_LAG_BYTES", -1)
    monkeypatch.setattr(journal_maintenance, "_is_quiet", lambda gateway: is_quiet.pop(0))
    monkeypatch.setattr(room.gateway.index, "catch_up", catch_up)
    room.gateway.spawn(journal_maintenance.index_when_quiet(room.gateway))
    await wait_until(lambda: len(calls) == 3)

    assert calls == [
        journal_maintenance.INDEX_LINES,
        journal_maintenance.BUSY_LINES,
        journal_maintenance.INDEX_LINES,
    ]
    assert (journal_maintenance.INDEX_LINES, journal_maintenance.BUSY_LINES) == (1000, 200)


def test_a_room_is_quiet_a_moment_after_its_last_commit() -> None:
    now = time.monotonic()
    gateways: list[Any] = [SimpleNamespace(last_commit=now + 60), SimpleNamespace(last_commit=now - 60)]

    assert [journal_maintenance._is_quiet(gateway) for gateway in gateways] == [False, True]


def scrubbed(monkeypatch: pytest.MonkeyPatch, outcome: list[int] | Exception) -> None:
    async def scrub(journal: object) -> ScrubReport:
        if isinstance(outcome, Exception):
            raise outcome
        damaged = [Damage(line_number=number, offset=0, after_seq=0, problem="cut") for number in outcome]
        return ScrubReport(checked=9, problems=len(damaged), damaged=damaged)

    monkeypatch.setattr(journal_maintenance, "_scrub", scrub)


@pytest.mark.parametrize(
    "error", [OSError("no more processes"), msgspec.DecodeError("odd"), BadInput("no such journal")]
)
async def test_a_scrub_that_failed_says_so(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    scrubbed(monkeypatch, error)
    await journal_maintenance.scrub_journal(room.gateway)
    health = (await room.get("/health"))["journal"]

    assert (health["scrub"], health["writable"], health["damaged"]) == ("failed", True, [])


@pytest.mark.parametrize(("count", "where"), [(5, "1, 2, 3, 4, 5"), (6, "1, 2, 3, 4, 5, ...")])
async def test_a_scrub_names_the_first_damaged_lines(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, count: int, where: str
) -> None:
    scrubbed(monkeypatch, list(range(1, count + 1)))
    await journal_maintenance.scrub_journal(room.gateway)
    (notice,) = await room.history("?types=system")

    assert notice["text"].startswith(f"The journal is damaged in {count} places (line {where}).")
    assert notice["target"] == HUMAN
    assert (await room.get("/health"))["journal"]["checked"] == 9


class Scrubber:
    """A process that says what the test tells it to, or nothing until it is killed."""

    def __init__(self, out: bytes | None) -> None:
        self.out = out
        self.argv: tuple[str, ...] = ()
        self.done: list[str] = []

    async def start(self, *argv: str, **options: object) -> "Scrubber":
        self.argv = argv
        return self

    async def communicate(self) -> tuple[bytes, None]:
        if self.out is None:
            await asyncio.get_running_loop().create_future()
        return self.out or b"", None

    def kill(self) -> None:
        self.done.append("killed")

    async def wait(self) -> None:
        self.done.append("waited for")


async def test_a_scrub_runs_beside_the_room_with_the_least_priority(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cut = Damage(line_number=2, offset=7, after_seq=1, problem="cut")
    scrubber = Scrubber(msgspec.json.encode(ScrubReport(checked=3, problems=1, damaged=[cut])))
    monkeypatch.setattr(asyncio, "create_subprocess_exec", scrubber.start)
    report = await journal_maintenance._scrub_process(tmp_path / "default" / "journal.jsonl")

    assert (report.checked, [one.line_number for one in report.damaged]) == (3, [2])
    assert scrubber.argv[0] == "nice"
    assert scrubber.argv[2:] == (
        *("-P", "-m", "csp.cli", "doctor", "--journal", "--json"),
        *("--history", str(tmp_path), "--room", "default"),
    )
    assert scrubber.done == []


async def test_a_small_journal_is_scrubbed_without_a_process(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    scrubber = Scrubber(b"")
    monkeypatch.setattr(asyncio, "create_subprocess_exec", scrubber.start)
    await room.join("ada")
    lines = (room.folder / "journal.jsonl").read_bytes().splitlines()
    await journal_maintenance.scrub_journal(room.gateway)
    health = (await room.get("/health"))["journal"]

    assert (health["scrub"], health["checked"], health["damaged"]) == ("done", len(lines), [])
    assert len(lines) > 0 and scrubber.argv == ()


@pytest.mark.parametrize("snapshot", [0, 1])
async def test_a_large_journal_or_snapshot_is_scrubbed_by_a_process(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, snapshot: int
) -> None:
    await room.join("ada")
    size = (room.folder / "journal.jsonl").stat().st_size
    (room.folder / "snapshot-9.json").write_bytes(bytes(snapshot))
    monkeypatch.setattr(
        journal_maintenance, "snapshot_files", lambda folder: list(folder.glob("snapshot-9.json"))
    )
    monkeypatch.setattr(journal_maintenance, "MOST_SCRUBBED_HERE_BYTES", size - 1 + snapshot)
    scrubber = Scrubber(b'{"checked":3,"damaged":[],"problems":0}')
    monkeypatch.setattr(asyncio, "create_subprocess_exec", scrubber.start)
    await journal_maintenance.scrub_journal(room.gateway)

    assert (await room.get("/health"))["journal"]["checked"] == 3
    assert scrubber.argv[0] == "nice"


async def test_a_scrub_ends_with_its_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    scrubber = Scrubber(None)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", scrubber.start)
    scrubbing = asyncio.ensure_future(
        journal_maintenance._scrub_process(tmp_path / "default" / "journal.jsonl")
    )
    await asyncio.sleep(0)
    scrubbing.cancel()
    await asyncio.wait([scrubbing], timeout=60)

    assert (scrubbing.cancelled(), scrubber.done) == (True, ["killed", "waited for"])


async def test_a_sound_journal_is_told_to_nobody(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    scrubbed(monkeypatch, [])
    await journal_maintenance.scrub_journal(room.gateway)

    assert await room.history("?types=system") == []
    assert (await room.get("/health"))["journal"]["scrub"] == "done"


async def test_a_notice_that_cannot_be_posted_is_logged(
    room: ServedRoom, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def submit(command: Notice) -> None:
        raise Broken("no disk")

    monkeypatch.setattr(room.gateway, "submit", submit)
    monkeypatch.setattr(room.gateway.writer.journal, "warnings", ["a line was cut"])
    await journal_maintenance.report_mending(room.gateway)

    assert "notice not posted" in caplog.messages
