import os
from pathlib import Path

import msgspec
import pytest

from csp.errors import Broken, StorageFull
from csp.journal import JsonlJournal, snapshots
from csp.journal.history import History
from csp.journal.history_query import HistoryQuery, text_of
from csp.journal.rewrite import Transform, discard, finish, prepare, pruning, redaction
from csp.journal.scrub import scrub
from csp.journal.search_index import SearchIndex
from csp.protocol.enums import ALL, SYSTEM, MessageId
from csp.protocol.events import MessageEvent, NoteAdded, PrunedBase, decode_event, encode_event
from tests.journal.making import (
    commit,
    concerns,
    delivered,
    encoded,
    lines_to,
    opened,
    read_all,
    run_python,
    said,
)
from tests.whiteboard.making import noted

SECRET = "xylophone"


def base_line(seq: int) -> bytes:
    return encode_event(
        PrunedBase(seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, ALL, "default", "", state=msgspec.Raw(b'{"a":1}'))
    )


def rewrite(journal: JsonlJournal, transform: Transform) -> None:
    finish(prepare(journal, transform))


def folder_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def secret_journal() -> list[bytes]:
    return encoded(
        [
            said(1),
            said(2, f"the {SECRET}", message_id="gone", task=f"play the {SECRET}"),
            delivered(3, "gone"),
            *(said(seq) for seq in range(4, 8)),
        ]
    )


# --- redaction -----------------------------------------------------------------------------------


def test_a_redacted_text_is_nowhere_in_the_folder(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, secret_journal())
        index = SearchIndex(journal)
        index.catch_up()
        snapshots.save(tmp_path, 3, f'"{SECRET}"'.encode())
        (tmp_path / "journal.torn").write_text(SECRET)
        rewrite(journal, redaction([MessageId("gone")]))
        index.catch_up()

        assert SECRET.encode() not in folder_bytes(tmp_path)
        assert not (tmp_path / "journal.torn").exists()
        assert snapshots.load(tmp_path, 99) is None
        index.close()
        assert SECRET.encode() not in folder_bytes(tmp_path)


def test_only_the_text_of_the_message_changes(tmp_path: Path) -> None:
    before = secret_journal()
    with opened(tmp_path) as journal:
        commit(journal, before)
        rewrite(journal, redaction([MessageId("gone")]))
        after = read_all(journal)
        event = decode_event(after[1])

        assert [line for line in after if line not in before] == [after[1]]
        assert isinstance(event, MessageEvent)
        assert (event.text, event.handoff, event.seq, event.id) == ("[redacted]", None, 2, "gone")
        assert scrub(journal.path, patience_s=0).problems == 0


def test_messages_that_only_name_a_redacted_one_keep_their_text(tmp_path: Path) -> None:
    answer = msgspec.structs.replace(said(2, "an answer to it"), reply_to=MessageId("gone"))
    with opened(tmp_path) as journal:
        commit(journal, encoded([said(1, "secret", message_id="gone"), answer]))
        rewrite(journal, redaction([MessageId("gone")]))

        assert [text_of(line) for line in read_all(journal)] == ["[redacted]", "an answer to it"]


def test_a_message_without_a_text_gets_none(tmp_path: Path) -> None:
    empty = msgspec.structs.replace(said(1, message_id="gone", task="a secret"), text="")
    with opened(tmp_path) as journal:
        commit(journal, encoded([empty]))
        rewrite(journal, redaction([MessageId("gone")]))
        (line,) = read_all(journal)

        assert text_of(line) == "" and b"secret" not in line


def test_most_of_the_new_file_is_on_the_disk_before_the_room_has_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("csp.journal.rewrite.sync_data", lambda fd: synced.append(os.fstat(fd).st_size))
    with opened(tmp_path) as journal:
        commit(journal, lines_to(3))
        prepare(journal, redaction([]))

        assert synced == [journal.view.end]


def test_tags_and_handoffs_go_with_a_redacted_text(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, encoded([noted(1, "a note", tags=(SECRET,)), said(2, "x", task=SECRET)]))
        rewrite(journal, redaction([MessageId("n-1"), MessageId("m-2")]))
        note, message = (decode_event(line) for line in read_all(journal))
        assert isinstance(note, NoteAdded) and isinstance(message, MessageEvent)

        assert SECRET.encode() not in folder_bytes(tmp_path)
        assert (note.text, note.seq, message.text) == ("[redacted]", 1, "[redacted]")


async def test_search_and_memory_forget_a_redacted_text(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, secret_journal())
        index = SearchIndex(journal)
        index.catch_up()
        history = History(journal, index, 100, concerns)
        history.load_recent()
        found = await history.page(HistoryQuery(q=SECRET))
        rewrite(journal, redaction([MessageId("gone")]))

        assert len(found.lines) == 1
        assert (await history.page(HistoryQuery(q=SECRET))).lines == []
        assert SECRET.encode() not in b"".join((await history.page(HistoryQuery())).lines)
        index.catch_up()
        assert (await history.page(HistoryQuery(q=SECRET))).lines == []
        assert len((await history.page(HistoryQuery(q="redacted"))).lines) == 1
        index.close()


def test_damaged_lines_are_not_carried_over_but_counted(tmp_path: Path) -> None:
    lines = secret_journal()
    lines[1] = lines[1].replace(b"gone", b"gine")
    lines[6] = lines[6].replace(b"message", b"massage")
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with opened(tmp_path) as journal:
        rewrite(journal, redaction([MessageId("gone")]))

        assert SECRET.encode() not in folder_bytes(tmp_path)
        assert journal.last_seq == 7
    with opened(tmp_path) as journal:
        assert journal.last_seq == 7


# --- pruning -------------------------------------------------------------------------------------


def test_a_pruned_journal_begins_with_its_base(tmp_path: Path) -> None:
    lines = lines_to(9)
    with opened(tmp_path) as journal:
        commit(journal, lines)
        rewrite(journal, pruning(5, base_line(4)))

        assert read_all(journal) == [base_line(4), *lines[4:]]
        assert journal.last_seq == 9
        assert scrub(journal.path, patience_s=0).problems == 0
    with opened(tmp_path) as journal:
        assert journal.last_seq == 9
        commit(journal, encoded([said(10)]))
        assert read_all(journal, after=9) == encoded([said(10)])


def test_all_may_be_pruned_more_than_once(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(9))
        rewrite(journal, pruning(5, base_line(4)))
        rewrite(journal, pruning(10, base_line(9)))

        assert read_all(journal) == [base_line(9)]
    with opened(tmp_path) as journal:
        assert journal.last_seq == 9


def test_damaged_lines_are_pruned_by_the_seqs_they_stand_for(tmp_path: Path) -> None:
    lines = lines_to(9)
    for place in (2, 4, 8):
        lines[place] = lines[place].replace(b"message", b"massage")
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with opened(tmp_path) as journal:
        rewrite(journal, pruning(5, base_line(4)))

        assert read_all(journal) == [base_line(4), *lines[5:8]]
        assert journal.path.read_bytes().count(b"damaged\n") == 2
    with opened(tmp_path) as journal:
        assert journal.last_seq == 9


def test_a_base_of_another_seq_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Broken, match="must have seq 4"):
        pruning(5, base_line(5))


@pytest.mark.parametrize("before", [5, 9])
def test_a_journal_is_not_pruned_beyond_its_end(tmp_path: Path, before: int) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(3))

        with pytest.raises(Broken, match="beyond"):
            prepare(journal, pruning(before, base_line(before - 1)))


# --- while the room goes on ----------------------------------------------------------------------


def test_what_comes_meanwhile_is_in_the_new_file(tmp_path: Path) -> None:
    lines = lines_to(30)
    with opened(tmp_path) as journal:
        commit(journal, lines[:10])
        prepared = prepare(journal, pruning(5, base_line(4)))
        commit(journal, lines[10:20])
        finish(prepared)
        commit(journal, lines[20:])

        assert read_all(journal) == [base_line(4), *lines[4:]]
        assert journal.path.stat().st_size == journal.view.end
        assert journal.path.stat().st_mode & 0o777 == 0o600


def test_a_reader_goes_on_over_a_rewrite(tmp_path: Path) -> None:
    lines = lines_to(20)
    with opened(tmp_path) as journal:
        commit(journal, lines)
        chunk = journal.view.read_after(0, 1000)
        rewrite(journal, pruning(3, base_line(2)))
        rest = journal.view.read_after(chunk.last_seq, 1 << 20, chunk.cursor)

        assert chunk.lines + rest.lines == lines


def test_an_old_view_still_reads_the_old_file(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        view = journal.view
        rewrite(journal, pruning(5, base_line(4)))

        assert view.read_after(1, 1, None).lines == lines_to(2)[1:]


def test_uncommitted_lines_forbid_the_swap(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        prepared = prepare(journal, redaction([]))
        journal.append(encoded([said(6)]), 6)

        with pytest.raises(Broken, match="changed under its rewrite"):
            finish(prepared)
        assert not (tmp_path / "journal.jsonl.new").exists()


def test_two_rewrites_do_not_overwrite_each_other(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, secret_journal())
        prepared = prepare(journal, pruning(2, base_line(1)))
        rewrite(journal, redaction([MessageId("gone")]))

        with pytest.raises(Broken, match="changed under its rewrite"):
            finish(prepared)
        assert SECRET.encode() not in folder_bytes(tmp_path)


def test_a_discarded_rewrite_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        discard(prepare(journal, pruning(5, base_line(4))))

        assert read_all(journal) == lines_to(5)
        assert not (tmp_path / "journal.jsonl.new").exists()


def test_a_full_disk_leaves_the_old_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: memoryview, offset: int) -> int:
        raise OSError(28, "No space left on device")

    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            with pytest.raises(StorageFull):
                prepare(journal, redaction([]))

        assert read_all(journal) == lines_to(5)
        assert not (tmp_path / "journal.jsonl.new").exists()


def test_the_new_file_is_on_the_disk_before_it_takes_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def noting(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object) -> object:
            calls.append(name)
            return real(*arguments)

        monkeypatch.setattr(os, name, call)

    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        prepared = prepare(journal, redaction([]))
        commit(journal, encoded([said(6)]))
        for name in ("pwrite", "fdatasync", "replace", "fsync"):
            noting(name)
        finish(prepared)

        assert calls == ["pwrite", "fdatasync", "replace", "fsync"]


# --- crashes -------------------------------------------------------------------------------------

#: A process of its own for all steps: it forks one for each, which dies after so many calls of the system.
CRASH = """
import os, sys
from pathlib import Path
from csp.journal import JsonlJournal
from csp.journal.rewrite import finish, prepare, pruning, redaction
from csp.protocol.enums import MessageId
from tests.journal.test_rewrite import base_line, old_folder

root, verb = Path(sys.argv[1]), sys.argv[2]
transform = {"redact": redaction([MessageId("gone")]), "prune": pruning(4, base_line(3))}[verb]

def dying(real):
    def call(*arguments, **keywords):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return real(*arguments, **keywords)
    return call

def crash_after(folder):
    journal = JsonlJournal.open(folder)
    for name in ("open", "pwrite", "fdatasync", "fsync", "unlink", "replace"):
        setattr(os, name, dying(getattr(os, name)))
    finish(prepare(journal, transform))

for left in range(100):
    folder = old_folder(root / str(left))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            crash_after(folder)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    print(left, os.waitstatus_to_exitcode(status), flush=True)
    if os.waitstatus_to_exitcode(status) == 0:
        break
"""


def old_folder(folder: Path) -> Path:
    """Make the folder of a room whose secret is in its journal and beside it."""
    with opened(folder) as journal:
        commit(journal, secret_journal())
    snapshots.save(folder, 3, f'"{SECRET}"'.encode())
    (folder / "journal.torn").write_text(SECRET)
    return folder


@pytest.mark.parametrize("verb", ["redact", "prune"])
def test_a_crash_at_any_step_leaves_one_whole_journal(tmp_path: Path, verb: str) -> None:
    old = secret_journal()
    done = run_python(CRASH, tmp_path, verb)
    codes = {int(step): int(code) for step, code in map(str.split, done.stdout.splitlines())}
    assert done.returncode == 0 and set(codes.values()) == {0, 9}, done.stderr
    assert len(codes) > 9 and list(codes.values()).index(0) == len(codes) - 1

    for step in codes:
        folder = tmp_path / str(step)
        with opened(folder) as journal:
            lines = read_all(journal)
            assert journal.last_seq == 7
        if lines != old:
            # The journal is new: then nothing beside it may be old.
            assert SECRET.encode() not in folder_bytes(folder)
            assert len(lines) == (7 if verb == "redact" else 5)
        assert scrub(folder / "journal.jsonl", patience_s=0).problems == 0
        assert not (folder / "journal.jsonl.new").exists()
    assert lines != old
