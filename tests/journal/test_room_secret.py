"""The secret of a room: the same ever after, or said to be damaged."""

import os
from pathlib import Path

import pytest

from csp.errors import Broken
from csp.journal.room_secret import load_secret


def test_a_secret_stays_the_same_and_is_private(tmp_path: Path) -> None:
    made = load_secret(tmp_path)

    assert len(made) == 32 and made == load_secret(tmp_path)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_secret_of_before_has_no_checksum(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"x" * 32)

    assert load_secret(tmp_path) == b"x" * 32


@pytest.mark.parametrize("size", [0, 31, 33, 39, 41])
def test_a_secret_of_another_size_is_damaged(tmp_path: Path, size: int) -> None:
    load_secret(tmp_path)
    path = tmp_path / "secret"
    path.write_bytes((path.read_bytes() * 2)[:size])
    with pytest.raises(Broken, match=r"secret .* is damaged"):
        load_secret(tmp_path)

    assert path.stat().st_size == size


@pytest.mark.parametrize("at", [0, 31, 32, 39])
def test_a_flipped_bit_in_a_secret_is_damage(tmp_path: Path, at: int) -> None:
    load_secret(tmp_path)
    path = tmp_path / "secret"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)

    with pytest.raises(Broken, match=r"secret .* is damaged"):
        load_secret(tmp_path)


def test_a_folder_that_is_made_for_a_secret_is_private(tmp_path: Path) -> None:
    load_secret(tmp_path / "room")

    assert (tmp_path / "room").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("kind", ["a pipe", "a folder", "a link to itself"])
def test_a_secret_that_cannot_be_read_is_said_to_be_so(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "secret"
    match kind:
        case "a pipe":
            os.mkfifo(path)
        case "a folder":
            path.mkdir()
        case _:
            path.symlink_to("secret")

    with pytest.raises(Broken, match=r"secret .* cannot be read"):
        load_secret(tmp_path)


def test_a_secret_that_cannot_be_written_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("csp.fast_start.atomic_files.write_all", fail)

    with pytest.raises(Broken, match=r"secret .* cannot be written: No space left"):
        load_secret(tmp_path)
