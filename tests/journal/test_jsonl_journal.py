import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from csp.errors import Broken, JournalLocked, StorageFailed, StorageFull
from csp.journal import Cursor, JsonlJournal, load_secret
from csp.protocol.events import is_intact
from tests.journal.making import commit, encoded, lines_to, opened, read_all, run_python, said, write_journal


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def damaged(line: bytes) -> bytes:
    return line.replace(b"message", b"massage")


# --- writing -------------------------------------------------------------------------------------


def test_what_was_committed_is_there_after_reopening(tmp_path: Path) -> None:
    lines = lines_to(5)
    with opened(tmp_path / "room") as journal:
        commit(journal, lines[:2])
        commit(journal, lines[2:])
        journal.sync()
    with opened(tmp_path / "room") as journal:
        assert read_all(journal) == lines
        assert journal.last_seq == 5
        assert journal.warnings == []


def test_an_appended_line_is_safe_once_it_is_committed(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.append(lines_to(1), 1)
        appended = journal.last_seq, journal.view.seq
        journal.commit()

        assert (appended, journal.view.seq) == ((1, 0), 1)


def test_only_the_owner_may_read(tmp_path: Path) -> None:
    folder = tmp_path / "history" / "room"
    with opened(folder):
        assert mode_of(folder) == 0o700
        assert mode_of(folder / "journal.jsonl") == 0o600
        assert mode_of(folder / "journal.lock") == 0o600


def test_readers_see_only_what_is_committed(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.append(lines_to(2), 1)
        before = read_all(journal)
        journal.commit()

        assert before == []
        assert read_all(journal) == lines_to(2)
        assert journal.view.end == (tmp_path / "journal.jsonl").stat().st_size


@pytest.mark.parametrize("first_seq", [0, 2, 4, 5])
def test_a_batch_at_another_place_is_refused(tmp_path: Path, first_seq: int) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(2))

        with pytest.raises(Broken, match="journal is at seq 2"):
            journal.append(lines_to(1), first_seq)


def test_an_empty_batch_changes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        journal.append([], 1)

        assert journal.last_seq == 0 and journal.is_settled


def test_rollback_takes_back_what_is_not_committed(tmp_path: Path) -> None:
    lines = lines_to(6)
    with opened(tmp_path) as journal:
        commit(journal, lines[:2])
        journal.append(lines[2:4], 3)
        journal.append(lines[4:], 5)
        journal.rollback()
        commit(journal, lines[2:3])

        assert journal.last_seq == 3
        assert (tmp_path / "journal.jsonl").read_bytes().splitlines() == lines[:3]


def test_short_writes_are_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite

    def short(fd: int, data: memoryview, offset: int) -> int:
        return real(fd, data[:7], offset)

    with opened(tmp_path) as journal:
        monkeypatch.setattr(os, "pwrite", short)
        commit(journal, lines_to(3))

        assert read_all(journal) == lines_to(3)


def failing(error: int, after_bytes: int = 0) -> Callable[..., int]:
    real = os.pwrite
    budget = [after_bytes]

    def write(fd: int, data: memoryview, offset: int) -> int:
        if not budget[0]:
            raise OSError(error, os.strerror(error))
        taken = real(fd, data[: budget[0]], offset)
        budget[0] -= taken
        return taken

    return write


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EFBIG, StorageFull),
        (errno.EIO, StorageFailed),
    ],
)
def test_a_failed_write_leaves_nothing_of_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, raised: type[Broken]
) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(2))
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", failing(error, after_bytes=50))
            with pytest.raises(raised):
                journal.append(encoded([said(3)]), 3)
        size = (tmp_path / "journal.jsonl").stat().st_size

        assert size == journal.view.end
        assert journal.last_seq == 2


@pytest.mark.parametrize(("error", "raised"), [(errno.ENOSPC, StorageFull), (errno.EIO, StorageFailed)])
def test_a_failed_sync_is_told_by_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, raised: type[Broken]
) -> None:
    def fail(fd: int) -> None:
        raise OSError(error, os.strerror(error))

    with opened(tmp_path) as journal:
        journal.append(lines_to(1), 1)
        monkeypatch.setattr(os, "fdatasync", fail)

        with pytest.raises(raised):
            journal.sync()


FULL_DISK = """
import resource, sys
from pathlib import Path
from csp.errors import StorageFull
from csp.journal import JsonlJournal
from tests.journal.making import lines_to, read_all

journal = JsonlJournal.open(Path(sys.argv[1]))
lines = lines_to(40)
journal.append(lines[:20], 1)
journal.commit()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (journal.view.end + 100, hard))
try:
    journal.append(lines[20:], 21)
    sys.exit("not full")
except StorageFull:
    pass
assert not journal.can_grow()
assert journal.path.stat().st_size == journal.view.end
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert journal.can_grow()
journal.append(lines[20:], 21)
journal.commit()
assert read_all(journal) == lines
assert sorted(path.name for path in journal.folder.iterdir()) == ["journal.jsonl", "journal.lock"]
journal.close()
"""


def test_a_full_disk_is_survived(tmp_path: Path) -> None:
    done = run_python(FULL_DISK, tmp_path)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_that_cannot_be_made_is_a_storage_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StorageFailed, match="cannot open the journal"):
        JsonlJournal.open(tmp_path / "file" / "room")


# --- the lock ------------------------------------------------------------------------------------

HOLDER = """
import sys
from pathlib import Path
from csp.journal import JsonlJournal

journal = JsonlJournal.open(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_another_process_keeps_us_out_until_it_dies(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        with pytest.raises(JournalLocked, match=f"process {holder.pid}"):
            JsonlJournal.open(tmp_path)
        holder.kill()
    with opened(tmp_path) as journal:
        assert journal.last_seq == 0


def test_the_lock_is_released_by_close(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        with pytest.raises(JournalLocked):
            JsonlJournal.open(tmp_path)
        journal.close()
        with opened(tmp_path) as again:
            assert again.last_seq == 0


# --- the tail ------------------------------------------------------------------------------------


def test_a_cut_at_every_byte_of_the_last_lines_keeps_whole_lines_only(tmp_path: Path) -> None:
    lines = lines_to(6)
    whole = b"".join(line + b"\n" for line in lines)
    start = len(b"".join(line + b"\n" for line in lines[:4]))
    for cut in range(start, len(whole) + 1):
        folder = tmp_path / str(cut)
        write_journal(folder, whole[:cut])
        pieces = whole[:cut].split(b"\n")
        kept = [piece for piece in pieces if is_intact(piece)]
        with opened(folder) as journal:
            assert read_all(journal) == kept
            assert journal.last_seq == len(kept)
            commit(journal, encoded([said(len(kept) + 1)]))
            assert read_all(journal)[-1] == encoded([said(len(kept) + 1)])[0]
        torn = folder / "journal.torn"
        lost = b"" if is_intact(pieces[-1]) else pieces[-1]
        assert (torn.read_bytes() if torn.exists() else b"") == (lost + b"\n" if lost else b"")


def test_a_torn_line_is_warned_about(tmp_path: Path) -> None:
    write_journal(tmp_path, b"\n".join(lines_to(3))[:-10])
    with opened(tmp_path) as journal:
        assert "torn" in journal.warnings[0]


def test_a_line_without_its_newline_is_kept(tmp_path: Path) -> None:
    write_journal(tmp_path, b"\n".join(lines_to(3)))
    with opened(tmp_path) as journal:
        assert journal.last_seq == 3
        assert journal.warnings
    assert (tmp_path / "journal.jsonl").read_bytes() == b"\n".join(lines_to(3)) + b"\n"


def test_a_damaged_last_newline_is_mended(tmp_path: Path) -> None:
    write_journal(tmp_path, b"\n".join(lines_to(3)) + b"\x0b")
    with opened(tmp_path) as journal:
        assert journal.last_seq == 3
    assert (tmp_path / "journal.jsonl").read_bytes() == b"\n".join(lines_to(3)) + b"\n"


def test_a_tail_of_zeros_longer_than_a_block_is_cut(tmp_path: Path) -> None:
    write_journal(tmp_path, b"\n".join(lines_to(2)) + b"\n" + bytes(700_000))
    with opened(tmp_path) as journal:
        assert read_all(journal) == lines_to(2)


@pytest.mark.parametrize("data", [b"", b"\x00\xff garbage"])
def test_a_file_without_a_line_is_an_empty_journal(tmp_path: Path, data: bytes) -> None:
    write_journal(tmp_path, data)
    with opened(tmp_path) as journal:
        assert journal.last_seq == 0
        assert read_all(journal) == []


def test_damaged_lines_at_the_end_keep_their_seqs(tmp_path: Path) -> None:
    lines = lines_to(5)
    write_journal(tmp_path, b"\n".join([*lines[:3], *map(damaged, lines[3:])]) + b"\n")
    with opened(tmp_path) as journal:
        assert journal.last_seq == 5
        assert "damaged" in journal.warnings[0]
        commit(journal, encoded([said(6)]))

        assert read_all(journal) == [*lines[:3], *encoded([said(6)])]
    assert damaged(lines[4]) in (tmp_path / "journal.jsonl").read_bytes()


def test_a_lost_newline_costs_two_seqs_not_one(tmp_path: Path) -> None:
    lines = lines_to(5)
    write_journal(tmp_path, b"\n".join(lines[:4]) + b" " + lines[4] + b"\n")
    with opened(tmp_path) as journal:
        assert journal.last_seq == 5


def test_leftovers_of_a_rewrite_are_removed(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl.new").write_bytes(b"half")
    with opened(tmp_path):
        assert not (tmp_path / "journal.jsonl.new").exists()


# --- reading -------------------------------------------------------------------------------------


def mixed_journal(tmp_path: Path) -> dict[int, bytes]:
    """Write a journal with short, long, damaged, blank lines; return its intact ones."""
    data: list[bytes] = []
    intact: dict[int, bytes] = {}
    for seq in range(1, 301):
        line = encoded([said(seq, "message " + "x" * (40_000 if seq % 97 == 0 else seq % 50))])[0]
        if seq % 7 == 0 or 100 <= seq < 140:
            data.append(damaged(line))
        else:
            data.append(line)
            intact[seq] = line
    data.insert(250, b"")
    write_journal(tmp_path, b"\n".join(data) + b"\n")
    return intact


def test_the_search_finds_the_line_after_every_seq(tmp_path: Path) -> None:
    intact = mixed_journal(tmp_path)
    whole = (tmp_path / "journal.jsonl").read_bytes()
    with opened(tmp_path) as journal:
        for seq in range(-1, 303):
            after = [line for here, line in intact.items() if here > seq]
            expected = whole.index(after[0]) if after else len(whole)
            assert journal.view.offset_after(seq) == expected, seq


@pytest.mark.parametrize("max_bytes", [1, 100, 1000, 1 << 18])
def test_reading_on_yields_every_intact_line_once(tmp_path: Path, max_bytes: int) -> None:
    intact = mixed_journal(tmp_path)
    with opened(tmp_path) as journal:
        assert read_all(journal, 0, max_bytes) == list(intact.values())
        assert read_all(journal, 120, max_bytes) == [line for seq, line in intact.items() if seq > 120]


def test_reading_without_a_cursor_goes_on_by_seq(tmp_path: Path) -> None:
    intact = mixed_journal(tmp_path)
    found: list[bytes] = []
    with opened(tmp_path) as journal:
        chunk = journal.view.read_after(0, 500)
        while chunk.lines:
            found += chunk.lines
            chunk = journal.view.read_after(chunk.last_seq, 500)

        assert found == list(intact.values())
        assert chunk.end


def test_reading_back_yields_every_intact_line_newest_first(tmp_path: Path) -> None:
    intact = mixed_journal(tmp_path)
    newest_first = sorted(intact.items(), reverse=True)
    with opened(tmp_path) as journal:
        assert list(journal.view.read_back()) == newest_first


# --- the secret ----------------------------------------------------------------------------------


def test_the_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "room"
    secret = load_secret(folder)

    assert len(secret) == 32
    assert load_secret(folder) == secret
    assert mode_of(folder / "secret") == 0o600
    assert [path.name for path in folder.iterdir()] == ["secret"]


# --- small things --------------------------------------------------------------------------------


def test_a_disk_is_probed_by_writing_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    real = os.fsync
    with opened(tmp_path) as journal:
        (tmp_path / "journal.probe").write_bytes(b"left by a crash")

        def noting(fd: int) -> None:
            synced.append(os.fstat(fd).st_size)
            real(fd)

        monkeypatch.setattr(os, "fsync", noting)

        assert journal.can_grow()
        assert synced == [256 * 1024]
        assert not (tmp_path / "journal.probe").exists()
        monkeypatch.setattr(os, "pwrite", failing(errno.ENOSPC))
        assert not journal.can_grow()
        assert not (tmp_path / "journal.probe").exists()


def test_settled_is_what_is_committed(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        assert journal.is_settled
        journal.append(lines_to(1), 1)
        assert (journal.is_settled, journal.view.seq, journal.last_seq) == (False, 0, 1)
        journal.commit()
        assert (journal.is_settled, journal.view.seq) == (True, 1)


def test_torn_lines_are_kept_one_after_the_other_for_their_owner(tmp_path: Path) -> None:
    for piece in (b'{"half', b'{"other'):
        with (tmp_path / "journal.jsonl").open("ab") as file:
            file.write(piece)
        with opened(tmp_path):
            pass

    assert (tmp_path / "journal.torn").read_bytes() == b'{"half\n{"other\n'
    assert mode_of(tmp_path / "journal.torn") == 0o600


def test_a_cursor_of_another_generation_is_worth_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        commit(journal, lines_to(5))
        chunk = journal.view.read_after(2, 1, Cursor(generation=99, offset=0))

        assert chunk.lines == lines_to(3)[2:]
        assert (chunk.last_seq, chunk.end) == (3, False)
        assert journal.view.read_after(0, 1, chunk.cursor).lines == lines_to(4)[3:]
        assert journal.view.read_after(5).end


def test_a_failed_opening_lets_go_of_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(fd: int, folder: Path) -> tuple[int, list[str]]:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr("csp.journal.jsonl_journal.repair_tail", broken)
    with pytest.raises(StorageFailed):
        JsonlJournal.open(tmp_path)
    monkeypatch.undo()

    with opened(tmp_path) as journal:
        assert journal.last_seq == 0


def test_a_probe_that_a_crash_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "journal.probe").write_bytes(bytes(10))
    with opened(tmp_path):
        assert not (tmp_path / "journal.probe").exists()


def test_a_new_journal_is_in_its_folder_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("csp.journal.jsonl_journal.sync_folder", synced.append)
    for _ in range(2):
        with opened(tmp_path):
            pass

    assert synced == [tmp_path]


def test_the_lock_names_its_holder_alone(tmp_path: Path) -> None:
    (tmp_path / "journal.lock").write_text("12345678901234567890 somebody else\n")
    with opened(tmp_path):
        assert (tmp_path / "journal.lock").read_text() == f"{os.getpid()}\n"


def test_what_a_killed_writer_left_is_synced_before_anybody_is_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_journal(tmp_path, b"\n".join(lines_to(3)) + b"\n")
    synced: list[int] = []

    def note(fd: int) -> None:
        synced.append(os.fstat(fd).st_ino)

    monkeypatch.setattr("csp.journal.jsonl_journal.sync_data", note)
    JsonlJournal.open(tmp_path).close()

    assert synced == [path.stat().st_ino]


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a folder"])
def test_a_journal_that_is_not_a_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "journal.jsonl"
    match kind:
        case "a pipe":
            os.mkfifo(path)
        case "a device":
            path.symlink_to("/dev/null")
        case _:
            path.mkdir()

    with pytest.raises(StorageFailed, match=r"cannot open the journal"):
        JsonlJournal.open(tmp_path)
