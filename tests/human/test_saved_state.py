"""What the pane remembers from one run to the next."""

import os
from pathlib import Path

import pytest

from csp.human.saved_state import MAX_TYPED, SavedState


def test_what_was_seen_is_remembered(tmp_path: Path) -> None:
    assert SavedState(tmp_path / "human").last_seen() is None
    SavedState(tmp_path / "human").save_seen(41)
    SavedState(tmp_path / "human").save_seen(42)

    assert SavedState(tmp_path / "human").last_seen() == 42
    assert SavedState(tmp_path / "other").last_seen() is None


def test_what_was_typed_is_remembered_line_breaks_and_all(tmp_path: Path) -> None:
    for text in ("one", "two\nlines", "ümlaut \u2028"):
        SavedState(tmp_path / "human").add_typed(text)

    assert SavedState(tmp_path / "human").typed() == ["one", "two\nlines", "ümlaut \u2028"]


def test_the_memory_is_cut(tmp_path: Path) -> None:
    memory = SavedState(tmp_path / "human")
    for number in range(2 * MAX_TYPED + 1):
        memory.add_typed(f"line {number}")
    kept = memory.typed()

    assert (len(kept), kept[-1]) == (MAX_TYPED, f"line {2 * MAX_TYPED}")
    assert len((tmp_path / "human" / "typed").read_bytes().splitlines()) == MAX_TYPED


def test_the_files_are_for_their_user_alone(tmp_path: Path) -> None:
    memory = SavedState(tmp_path / "state" / "human")
    memory.save_seen(1)
    memory.add_typed("secret")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "state").rglob("*")}

    assert modes == {"human": 0o700, "seen": 0o600, "typed": 0o600}


def test_where_nothing_can_be_written_nothing_is_remembered(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    memory = SavedState(tmp_path / "file" / "human")
    memory.save_seen(1)
    memory.add_typed("text")

    assert (memory.last_seen(), memory.typed()) == (None, [])


def test_damage_is_skipped(tmp_path: Path) -> None:
    memory = SavedState(tmp_path / "human")
    memory.add_typed("good")
    memory.save_seen(1)
    folder = tmp_path / "human"
    with (folder / "typed").open("ab") as file:
        file.write(b'\xff\xfe\n{"a": 1}\n"half' + os.linesep.encode())
    (folder / "seen").write_bytes(b"\xff")

    assert (memory.typed(), memory.last_seen()) == (["good"], None)


def test_what_was_seen_may_go_back_with_the_room(tmp_path: Path) -> None:
    memory = SavedState(tmp_path / "human")
    for seq in (1234, 5):
        memory.save_seen(seq)

    assert memory.last_seen() == 5
    assert [path.name for path in (tmp_path / "human").iterdir()] == ["seen"]


def test_the_same_is_not_written_twice(tmp_path: Path) -> None:
    memory = SavedState(tmp_path / "human")
    memory.save_seen(7)
    (tmp_path / "human" / "seen").write_text("8")
    memory.save_seen(7)

    assert memory.last_seen() == 8


def test_of_a_huge_file_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.human.saved_state._MAX_BYTES", 20)
    memory = SavedState(tmp_path / "human")
    for number in range(10):
        memory.add_typed(f"line {number}")

    assert memory.typed() == ["line 8", "line 9"]


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    memory = SavedState(tmp_path / "human")
    memory.add_typed("one")
    foreign = tmp_path / "foreign"
    foreign.write_text("")
    (tmp_path / "human" / "typed").unlink()
    (tmp_path / "human" / "typed").symlink_to(foreign)
    memory.add_typed("two")

    assert foreign.read_text() == ""
