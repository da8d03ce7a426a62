"""Small files, written so that a crash leaves the old one or the new one."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from csp.fast_start.atomic_files import create_private, draft_of, replace_file, sync_data, write_all


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
    Path(draft_of(tmp_path / "a")).write_bytes(b"half of something longer")
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


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_file_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        replace_file(tmp_path / "a", b"new")
        fd = os.open(tmp_path / "open", os.O_CREAT | os.O_WRONLY, 0o644)
        os.close(fd)
        replace_file(tmp_path / "open", b"new")
    finally:
        os.umask(before)

    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "open")] == [0o600, 0o600]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_bytes(b"theirs")
    (tmp_path / "a").symlink_to(tmp_path / "theirs")
    Path(draft_of(tmp_path / "a")).symlink_to(tmp_path / "theirs")
    replace_file(tmp_path / "a", b"new")

    assert (tmp_path / "theirs").read_bytes() == b"theirs"
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "a").read_bytes() == b"new"


def test_two_processes_do_not_share_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = draft_of(tmp_path / "a")
    monkeypatch.setattr(os, "getpid", lambda: 1)

    assert draft_of(tmp_path / "a") != own


def test_what_need_not_be_durable_does_not_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = noting(monkeypatch, ["pwrite", "fdatasync", "replace", "fsync"])
    replace_file(tmp_path / "a", b"new", is_durable=False)

    assert calls == ["pwrite", "replace"]


def test_a_file_may_be_given_another_mode(tmp_path: Path) -> None:
    replace_file(tmp_path / "a", b"new", mode=0o640)

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_file_of_the_current_folder_needs_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replace_file("a", b"new")

    assert [path.name for path in tmp_path.iterdir()] == ["a"]
