import os
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import msgspec
import pytest

from csp.journal import snapshots
from csp.journal.scrub import ScrubReport, scrub
from csp.protocol.enums import ALL, SYSTEM, MessageId
from csp.protocol.events import PrunedBase, encode_event
from tests.journal.making import encoded, lines_to, run_python, said, write_journal


def report_on(folder: Path, lines: list[bytes]) -> ScrubReport:
    return scrub(write_journal(folder, b"".join(line + b"\n" for line in lines)), patience_s=0)


def problems(report: ScrubReport) -> list[str]:
    return [damage.problem for damage in report.damaged]


def base_line(seq: int) -> bytes:
    return encode_event(
        PrunedBase(seq, 1.0, MessageId(f"e-{seq}"), SYSTEM, ALL, "default", "", state=msgspec.Raw(b"{}"))
    )


def test_a_good_journal_has_nothing_to_report(tmp_path: Path) -> None:
    report = report_on(tmp_path, lines_to(50))

    assert report == ScrubReport(checked=50, problems=0, damaged=[])


def test_an_empty_journal_is_good(tmp_path: Path) -> None:
    assert report_on(tmp_path, []) == ScrubReport(checked=0, problems=0, damaged=[])


def flipped(whole: bytes, place: int, bit: int) -> bytes:
    return whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]


def unnoticed(path: Path, whole: bytes, flips: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the (place, bit) whose flip is not reported."""
    missed = []
    for place, bit in flips:
        path.write_bytes(flipped(whole, place, bit))
        if not scrub(path, patience_s=0).problems:
            missed.append((place, bit))
    return missed


def test_a_flipped_bit_of_each_byte_is_found(tmp_path: Path) -> None:
    whole = b"".join(line + b"\n" for line in lines_to(2))

    assert unnoticed(tmp_path / "journal.jsonl", whole, ((at, at % 8) for at in range(len(whole)))) == []


@pytest.mark.full
def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    whole = b"".join(line + b"\n" for line in lines_to(3))

    assert unnoticed(tmp_path / "journal.jsonl", whole, product(range(len(whole)), range(8))) == []


def test_damage_is_placed(tmp_path: Path) -> None:
    lines = lines_to(5)
    lines[2] = lines[2].replace(b"message", b"massage")
    report = report_on(tmp_path, lines)

    (damage,) = report.damaged
    assert (damage.line_number, damage.after_seq) == (3, 2)
    assert damage.offset == len(lines[0]) + len(lines[1]) + 2


def test_a_gap_is_found(tmp_path: Path) -> None:
    lines = lines_to(9)
    del lines[3:5]

    assert problems(report_on(tmp_path, lines)) == ["seqs 4 to 5 are missing"]


def test_a_damaged_line_does_not_excuse_a_later_gap(tmp_path: Path) -> None:
    lines = lines_to(9)
    lines[1:2] = [lines[1], b"blank"]
    del lines[6]

    assert problems(report_on(tmp_path, lines)) == [
        "line does not match its checksum",
        "seqs 6 to 6 are missing",
    ]


def test_a_repeated_seq_is_found(tmp_path: Path) -> None:
    assert problems(report_on(tmp_path, [*lines_to(3), *encoded([said(3), said(4)])])) == [
        "seq 3 is not above 3"
    ]


def test_a_falling_seq_is_found(tmp_path: Path) -> None:
    assert "seq 2 is not above 4" in problems(report_on(tmp_path, [*lines_to(4), *encoded([said(2)])]))


def test_a_pruned_journal_starts_at_its_base(tmp_path: Path) -> None:
    assert report_on(tmp_path, [base_line(41), *encoded([said(42), said(43)])]).problems == 0


def test_a_journal_without_its_beginning_is_found(tmp_path: Path) -> None:
    assert problems(report_on(tmp_path, encoded([said(42)]))) == ["journal starts at seq 42 without a base"]


def test_a_missing_newline_at_the_end_is_found(tmp_path: Path) -> None:
    path = write_journal(tmp_path, b"\n".join(lines_to(2)))

    assert problems(scrub(path, patience_s=0)) == ["the last line lacks its newline"]


def test_a_line_being_written_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b"".join(line + b"\n" for line in lines_to(2))
    path = write_journal(tmp_path, whole[:-30])
    pauses: list[float] = []

    def write_on(seconds: float) -> None:
        pauses.append(seconds)
        with path.open("ab") as file:
            file.write(whole[-30:])

    monkeypatch.setattr("csp.journal.scrub.time.sleep", write_on)

    assert scrub(path, patience_s=60) == ScrubReport(checked=2, problems=0, damaged=[])
    assert len(pauses) == 1


def test_a_line_that_never_ends_is_waited_for_no_longer_than_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [5.0]
    monkeypatch.setattr("csp.journal.scrub.time.monotonic", lambda: now[0])
    monkeypatch.setattr("csp.journal.scrub.time.sleep", lambda seconds: now.append(now.pop() + seconds))
    path = write_journal(tmp_path, b"\n".join(lines_to(2)))

    assert problems(scrub(path)) == ["the last line lacks its newline"]
    assert 6.0 <= now[0] < 6.1


def test_the_list_is_bounded_the_count_is_not(tmp_path: Path) -> None:
    report = report_on(tmp_path, [b"garbage"] * 1500)

    assert (report.checked, report.problems, len(report.damaged)) == (1500, 1500, 1000)


def test_damaged_snapshots_are_found(tmp_path: Path) -> None:
    snapshots.save(tmp_path, 2, b"{}")
    (path,) = snapshots.snapshot_files(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"{}", b"[]"))

    assert problems(report_on(tmp_path, lines_to(3))) == [
        "snapshot-0000000000000002.json: snapshot does not match its checksum"
    ]


def test_memory_stays_flat(tmp_path: Path) -> None:
    path = write_journal(tmp_path, b"".join(line + b"\n" for line in lines_to(60_000)))
    code = (
        "import resource, sys; from pathlib import Path; from csp.journal.scrub import scrub;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "assert scrub(Path(sys.argv[1])).checked == 60_000;"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = run_python(code, path)

    assert int(done.stdout) < 6_000, done.stderr


def test_a_snapshot_that_goes_while_it_is_read_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_journal(tmp_path, b"")
    snapshots.save(tmp_path, 1, b"{}")

    def gone(path: Path) -> snapshots.Snapshot:
        raise FileNotFoundError(path)

    monkeypatch.setattr("csp.journal.scrub.read_snapshot", gone)
    assert scrub(path).problems == 0


def test_the_file_is_closed_afterwards(tmp_path: Path) -> None:
    path = write_journal(tmp_path, b"")
    before = len(os.listdir("/proc/self/fd"))
    scrub(path)

    assert len(os.listdir("/proc/self/fd")) <= before
