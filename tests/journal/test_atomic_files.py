"""Small files, written so that a crash leaves the old one or the new one."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from csp.errors import Broken
from csp.journal.atomic_files import create_private, load_secret, replace_file, sync_data, write_all


def noting(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> list[str]:
    """Return a list that fills with the calls of these functions of the system, in their order."""
    calls: list[str] = []

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            calls.append(name)
            return real(*args)

        return call

    for name in names:
        monkeypatch.setattr(os, name, wrap(name, getattr(os, name)))
    return calls


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = noting(monkeypatch, ["pwrite", "fdatasync", "replace", "fsync"])
    replace_file(tmp_path / "a", b"new")

    assert calls == ["pwrite", "fdatasync", "replace", "fsync"]
    assert (tmp_path / "a").read_bytes() == b"new"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


def test_a_leftover_of_a_crash_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "a.tmp").write_bytes(b"half of something longer")
    replace_file(tmp_path / "a", b"new")

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"new")]


@pytest.mark.parametrize("step", ["pwrite", "fdatasync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def fail(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, fail)
        with pytest.raises(OSError, match="No space"):
            replace_file(tmp_path / "a", b"new")

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"old")]


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        replace_file(tmp_path / "a", b"new")

    assert (len(os.listdir("/proc/self/fd")) if before else 0) <= before


def test_what_is_there_is_not_opened_as_new(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")

    with pytest.raises(FileExistsError):
        create_private(tmp_path / "a")


def test_bytes_are_written_at_their_place_in_as_many_calls_as_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, bytes(data[:2]), at))
    fd = create_private(tmp_path / "a")
    write_all(fd, b"abcde", 3)
    os.close(fd)

    assert (tmp_path / "a").read_bytes() == b"\0\0\0abcde"


def test_data_is_synced_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    calls = noting(monkeypatch, ["fdatasync"])
    fd = create_private(tmp_path / "a")
    sync_data(fd)
    os.close(fd)

    assert calls == ["fdatasync"]


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

    monkeypatch.setattr("csp.journal.atomic_files.write_all", fail)

    with pytest.raises(Broken, match=r"secret .* cannot be written: No space left"):
        load_secret(tmp_path)
