"""The id of a room is in the first line of its journal, or follows from it."""

from pathlib import Path
from uuid import UUID
from zlib import crc32

from csp.journal import JsonlJournal
from csp.journal.rewrite import finish, prepare, pruning, redaction
from csp.protocol.enums import MessageId
from csp.protocol.events import encode_event, room_id_in
from tests.journal.log_stores import base_line
from tests.journal.making import commit, encoded, lines_to, opened, said, write_journal

ID = "11111111-2222-4333-8444-555555555555"


def id_of(folder: Path) -> str:
    with opened(folder) as journal:
        return journal.room_id


def old_journal(folder: Path, lines: list[bytes]) -> Path:
    return write_journal(folder, b"".join(line + b"\n" for line in lines))


def begin(journal: JsonlJournal) -> None:
    """Write the first two lines, as the writer of a room does."""
    first = encode_event(said(1), journal.room_id)
    commit(journal, [first, *lines_to(2)[1:]])


def test_a_new_room_gets_an_id_that_its_first_line_has_to_state(tmp_path: Path) -> None:
    with opened(tmp_path) as journal:
        known = journal.room_id
        stating = journal.stating_seq
        begin(journal)

    assert str(UUID(known)) == known
    assert stating == 1
    with opened(tmp_path) as journal:
        assert (journal.room_id, journal.stating_seq) == (known, 0)
    assert room_id_in((tmp_path / "journal.jsonl").read_bytes().splitlines()[0]) == known


def test_two_new_rooms_have_different_ids(tmp_path: Path) -> None:
    assert id_of(tmp_path / "one") != id_of(tmp_path / "two")


def test_a_journal_of_an_earlier_version_keeps_the_id_that_follows_from_its_first_line(
    tmp_path: Path,
) -> None:
    old_journal(tmp_path, lines_to(3))
    with opened(tmp_path) as journal:
        known, stating = journal.room_id, journal.stating_seq
        commit(journal, lines_to(4)[3:])

    assert (str(UUID(known)), stating) == (known, 0)
    assert id_of(tmp_path) == known
    # It is the same wherever and whenever it is derived.
    assert known == "0eb35920-403a-5558-94e4-40bbd035f16b"


def test_other_first_lines_give_other_ids(tmp_path: Path) -> None:
    events = [said(1), said(1, sender="codex"), said(1, message_id="x"), said(2)]
    for number, event in enumerate(events):
        old_journal(tmp_path / str(number), encoded([event]))

    assert len({id_of(tmp_path / str(number)) for number in range(len(events))}) == len(events)


def test_a_redaction_of_the_first_line_changes_no_id(tmp_path: Path) -> None:
    with opened(tmp_path / "new") as journal:
        begin(journal)
    old_journal(tmp_path / "old", lines_to(2))
    for folder in (tmp_path / "new", tmp_path / "old"):
        known = id_of(folder)
        with opened(folder) as journal:
            finish(prepare(journal, redaction([MessageId("m-1")])))
        assert b"message number 1" not in (folder / "journal.jsonl").read_bytes()
        assert id_of(folder) == known


def test_a_base_that_states_the_id_keeps_it(tmp_path: Path) -> None:
    old_journal(tmp_path, lines_to(4))
    known = id_of(tmp_path)
    with opened(tmp_path) as journal:
        finish(prepare(journal, pruning(3, base_line(2, journal.room_id))))

    assert id_of(tmp_path) == known


def test_a_damaged_first_line_still_states_the_id(tmp_path: Path) -> None:
    line = encode_event(said(1), ID)
    old_journal(tmp_path, [line.replace(b"number 1", b"number 7"), *lines_to(3)[1:]])

    assert id_of(tmp_path) == ID


def test_a_first_line_that_is_lost_gives_way_to_the_next(tmp_path: Path) -> None:
    old_journal(tmp_path / "damaged", [b"x" * 80, *lines_to(3)[1:]])
    old_journal(tmp_path / "short", lines_to(3)[1:])

    assert id_of(tmp_path / "damaged") == id_of(tmp_path / "short")


def test_a_journal_without_a_readable_line_gets_a_new_id(tmp_path: Path) -> None:
    old_journal(tmp_path, [b"x" * 80, b"y" * 80])
    with opened(tmp_path) as journal:
        known, stating = journal.room_id, journal.stating_seq
        commit(journal, [encode_event(said(stating), known)])

    assert stating == 3
    assert room_id_in((tmp_path / "journal.jsonl").read_bytes().splitlines()[-1]) == known


def test_no_text_can_state_an_id(tmp_path: Path) -> None:
    tail = f',"room_id":"{ID}","crc":"00000000"}}'
    old_journal(tmp_path / "one", encoded([said(1, tail)]))
    old_journal(tmp_path / "two", encoded([said(1, "else")]))

    assert id_of(tmp_path / "one") == id_of(tmp_path / "two") != ID


def test_a_first_line_in_another_form_gives_an_id_too(tmp_path: Path) -> None:
    line = encode_event(said(1)).replace(b'"ts":', b'"time":').replace(b'"sender":"', b'"sender":7,"was":"')
    body = line[: line.rindex(b',"crc"')]
    old_journal(tmp_path, [b'%b,"crc":"%08x"}' % (body, crc32(body))])

    assert id_of(tmp_path) == id_of(tmp_path) != ""
