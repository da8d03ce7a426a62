"""Whole lines of files that grow, are cut short, replaced, or come later."""

import asyncio
import errno
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from asyncinotify import Mask

from csp.sidecar.capture.file_tail import (
    MAX_LINE_BYTES,
    POLL_S,
    FileWatcher,
    Tail,
)
from tests.namespaces import has_user_namespaces
from tests.waiting import wait_until


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.jsonl"


def test_lines_come_once(path: Path) -> None:
    tail = Tail(path)
    path.write_bytes(b"one\ntwo\n")
    first = list(tail.read())
    append(path, b"three\n")

    assert (first, list(tail.read()), list(tail.read())) == ([b"one", b"two"], [b"three"], [])


def test_a_file_may_come_later(path: Path) -> None:
    tail = Tail(path)
    before = list(tail.read())
    path.write_bytes(b"one\n")

    assert (before, list(tail.read())) == ([], [b"one"])


def test_a_line_that_is_cut_in_the_middle_waits(path: Path) -> None:
    whole = '{"text": "日本語 👍"}\n'.encode()
    tail = Tail(path)
    got = []
    for at in range(len(whole)):
        append(path, whole[at : at + 1])
        got.append(list(tail.read()))

    assert got == [[]] * (len(whole) - 1) + [[whole[:-1]]]


def test_empty_lines_are_left_out(path: Path) -> None:
    path.write_bytes(b"\none\n\n\ntwo\n")

    assert list(Tail(path).read()) == [b"one", b"two"]


@pytest.mark.parametrize("seed", range(5))
def test_any_way_of_writing_gives_the_same_lines(path: Path, seed: int) -> None:
    chance = random.Random(seed)
    lines = [bytes(chance.choices(range(97, 123), k=chance.choice([1, 5, 70_000]))) for _ in range(40)]
    data = b"".join(line + b"\n" for line in lines)
    tail, got, at = Tail(path), [], 0
    while at < len(data):
        size = chance.choice([1, 7, 1000, 100_000])
        append(path, data[at : at + size])
        at += size
        got += list(tail.read())

    assert got == lines


def test_a_file_that_is_cut_short_is_read_from_its_start(path: Path) -> None:
    tail = Tail(path)
    path.write_bytes(b"one\ntwo\nthr")
    first = list(tail.read())
    path.write_bytes(b"new\n")

    assert (first, list(tail.read())) == ([b"one", b"two"], [b"new"])


def test_a_file_that_is_replaced_is_read_to_its_end_first(path: Path) -> None:
    tail = Tail(path)
    path.write_bytes(b"one\n")
    list(tail.read())
    append(path, b"two\nhalf")
    path.rename(path.with_suffix(".old"))
    path.write_bytes(b"three\n")

    assert list(tail.read()) == [b"two", b"three"]


def test_a_file_that_is_gone_may_come_again(path: Path) -> None:
    tail = Tail(path)
    path.write_bytes(b"one\n")
    first = list(tail.read())
    path.rename(path.with_suffix(".old"))
    gone = list(tail.read())
    path.write_bytes(b"two\n")

    assert (first, gone, list(tail.read())) == ([b"one"], [], [b"two"])


def test_another_tail_goes_on_at_the_position(path: Path) -> None:
    tail = Tail(path)
    path.write_bytes(b"one\ntwo\nhal")
    list(tail.read())
    offset, inode = tail.position
    tail.close()
    append(path, b"f\n")

    assert list(Tail(path, offset, inode).read()) == [b"half"]


def test_a_reader_that_stops_early_loses_nothing(path: Path) -> None:
    tail = Tail(path)
    path.write_bytes(b"one\ntwo\nthree\n")
    first = next(iter(tail.read()))

    assert (first, list(tail.read())) == (b"one", [b"two", b"three"])


def test_a_position_in_another_file_is_its_start(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    inode = path.stat().st_ino

    assert list(Tail(path, 4, inode + 1).read()) == [b"one", b"two"]


def test_a_line_that_is_too_long_is_left_out(path: Path) -> None:
    path.write_bytes(b"one\n" + b"x" * 300_000 + b"\ntwo\n")
    tail = Tail(path, max_line_bytes=100_000)

    assert list(tail.read()) == [b"one", b"two"]
    assert tail.position[0] == path.stat().st_size


def test_a_line_that_grows_too_long_is_not_kept(path: Path) -> None:
    tail = Tail(path, max_line_bytes=1000)
    got = []
    for _ in range(50):
        append(path, b"x" * 500)
        got += list(tail.read())
    append(path, b"\nshort\n")

    assert got + list(tail.read()) == [b"short"]


def test_a_line_may_be_as_long_as_the_bound() -> None:
    assert MAX_LINE_BYTES == 32 << 20


@pytest.mark.parametrize(("length", "is_given"), [(10, True), (11, False)])
def test_a_line_is_left_out_from_one_byte_more_than_the_bound(
    path: Path, length: int, is_given: bool
) -> None:
    tail = Tail(path, max_line_bytes=10)
    append(path, b"x" * length)
    assert list(tail.read()) == []
    append(path, b"\n")

    assert list(tail.read()) == [b"x" * length] * is_given


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_line_that_was_too_long_is_none_of_the_next_files(path: Path, is_replaced: bool) -> None:
    tail = Tail(path, max_line_bytes=10)
    append(path, b"x" * 20)
    assert list(tail.read()) == []
    if is_replaced:
        path.rename(path.with_suffix(".old"))
    path.write_bytes(b"new\n")

    assert list(tail.read()) == [b"new"]


WATCHERS: list[Callable[[], FileWatcher]] = [FileWatcher, partial(FileWatcher, notifies=False)]


@pytest.fixture(params=WATCHERS, ids=["inotify", "polling"])
async def watcher(request: pytest.FixtureRequest) -> AsyncIterator[FileWatcher]:
    watcher: FileWatcher = request.param()
    yield watcher
    watcher.close()


async def drain(watcher: FileWatcher) -> None:
    while await watcher.wait(0.12):
        pass


async def test_a_change_wakes(watcher: FileWatcher, path: Path) -> None:
    path.write_bytes(b"")
    watcher.watch(path)
    await drain(watcher)
    append(path, b"one\n")

    assert await watcher.wait(5.0)


async def test_nothing_wakes_but_time(watcher: FileWatcher, path: Path) -> None:
    path.write_bytes(b"")
    watcher.watch(path)
    await drain(watcher)

    assert not await watcher.wait(0.1)


async def test_a_watcher_can_be_woken_once(watcher: FileWatcher) -> None:
    watcher.wake()

    assert await watcher.wait(5.0)
    assert not await watcher.wait(0.1)


async def test_what_was_there_before_the_watch_is_told(watcher: FileWatcher, path: Path) -> None:
    path.write_bytes(b"one\n")
    watcher.watch(path)

    assert await watcher.wait(5.0)


async def test_a_file_in_folders_to_come_is_told(watcher: FileWatcher, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.jsonl"
    tail = Tail(path)
    watcher.watch(path)
    await drain(watcher)

    async def write() -> None:
        path.parent.mkdir(parents=True)
        await asyncio.sleep(0)
        append(path, b"one\n")
        await asyncio.sleep(0)
        append(path, b"two\n")

    task = asyncio.create_task(write())
    got: list[bytes] = []
    while len(got) < 2 and await watcher.wait(5.0):
        got += list(tail.read())
    await task

    assert got == [b"one", b"two"]


async def test_an_entry_of_a_folder_is_told(watcher: FileWatcher, tmp_path: Path) -> None:
    watcher.watch(tmp_path)
    await drain(watcher)
    (tmp_path / ".new").write_bytes(b"{}")
    (tmp_path / ".new").rename(tmp_path / "new.json")

    assert await watcher.wait(5.0)


async def test_a_replaced_file_is_watched_again(watcher: FileWatcher, path: Path) -> None:
    path.write_bytes(b"one\n")
    watcher.watch(path)
    await drain(watcher)
    path.rename(path.with_suffix(".old"))
    path.write_bytes(b"")
    await drain(watcher)
    append(path, b"two\n")

    assert await watcher.wait(5.0)


async def test_a_deleted_file_is_watched_when_it_comes_again(watcher: FileWatcher, path: Path) -> None:
    path.write_bytes(b"one\n")
    watcher.watch(path)
    await drain(watcher)
    path.unlink()
    await drain(watcher)
    path.write_bytes(b"")
    await drain(watcher)
    append(path, b"two\n")

    assert await watcher.wait(5.0)


async def test_what_is_unwatched_does_not_wake(watcher: FileWatcher, path: Path) -> None:
    path.write_bytes(b"one\n")
    watcher.watch(path)
    watcher.watch(path)
    await drain(watcher)
    watcher.unwatch(path)
    watcher.unwatch(path)
    await drain(watcher)
    append(path, b"two\n")

    assert not await watcher.wait(0.2)


async def test_two_paths_to_come_share_a_folder(watcher: FileWatcher, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    watcher.watch(first)
    watcher.watch(second)
    await drain(watcher)
    watcher.unwatch(first)
    second.write_bytes(b"one\n")

    assert await watcher.wait(5.0)


async def test_a_storm_of_lines_arrives_whole(watcher: FileWatcher, path: Path) -> None:
    tail, got = Tail(path), list[bytes]()
    watcher.watch(path)
    lines = [b"%d" % number for number in range(3000)]

    def write() -> None:
        for line in lines:
            append(path, line + b"\n")

    task = asyncio.create_task(asyncio.to_thread(write))
    while len(got) < len(lines) and await watcher.wait(5.0):
        got += list(tail.read())
    await task

    assert got == lines


async def test_the_kernel_wakes_within_milliseconds(path: Path) -> None:
    path.write_bytes(b"")
    watcher = FileWatcher()
    watcher.watch(path)
    await drain(watcher)
    took = []
    for _ in range(20):
        waiting = asyncio.create_task(watcher.wait(5.0))
        await asyncio.sleep(0)
        start = time.perf_counter()
        append(path, b"x\n")
        await waiting
        took.append(time.perf_counter() - start)
    watcher.close()

    # By polling no wait of many would be so short by chance.
    assert min(took) < POLL_S / 4


async def test_polling_stands_in_where_the_kernel_refuses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: Path
) -> None:
    monkeypatch.setattr("asyncinotify.Inotify", mock.Mock(side_effect=OSError(24, os.strerror(24))))
    watcher = FileWatcher()
    watcher.watch(path)
    await drain(watcher)
    path.write_bytes(b"x")

    assert await watcher.wait(60)
    assert caplog.messages == ["file notification failed, polling instead"]
    watcher.close()


WITHOUT_WATCHES = """
import asyncio, logging, pathlib, sys
from csp.sidecar.capture.file_tail import FileWatcher, Tail

async def main():
    watcher, spool, transcript = FileWatcher(), pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    tail = Tail(transcript)
    watcher.watch(spool)
    watcher.watch(transcript)
    print("watching", flush=True)
    lines, names = [], []
    while len(lines) < 2 or len(names) < 1:
        assert await watcher.wait(120), "no news"
        lines += [line.decode() for line in tail.read()]
        names = [path.name for path in spool.glob("*.json")]
        if "one" in lines and len(lines) == 1:
            print("read", flush=True)
    watcher.unwatch(spool)
    watcher.close()
    print(*lines, *names)

logging.basicConfig(format="%(levelname)s %(message)s")
asyncio.run(main())
"""

#: Gives out so many watches, then refuses as a kernel at its limit does.
REFUSING = """
import asyncinotify, errno, os
given, add_watch = [], asyncinotify.Inotify.add_watch
def add_or_refuse(self, *words):
    if len(given) == {watches}:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    given.append(words)
    return add_watch(self, *words)
asyncinotify.Inotify.add_watch = add_or_refuse
"""


@pytest.mark.parametrize("watches", [0, 1])
def test_without_a_watch_to_be_had_files_are_looked_at(tmp_path: Path, watches: int) -> None:
    """The kernel's limit is that of a namespace of its own; where there are none, its refusal is played."""
    (tmp_path / "spool").mkdir()
    transcript = tmp_path / "transcript.jsonl"
    command, program = [], WITHOUT_WATCHES
    if has_user_namespaces():
        limit = f"echo {watches} > /proc/sys/user/max_inotify_watches"
        command = ["unshare", "--user", "--map-root-user", "sh", "-c", f'{limit} && exec "$@"', "sh"]
    else:
        program = REFUSING.format(watches=watches) + program
    command += [sys.executable, "-c", program, str(tmp_path / "spool"), str(transcript)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as run:
        assert run.stdout
        assert run.stdout.readline() == "watching\n"
        append(transcript, b"one\n")
        assert run.stdout.readline() == "read\n"
        append(transcript, b"two\n")
        (tmp_path / "spool" / "1.json").write_text("{}")
        said, complaints = run.communicate(timeout=30)

    assert said.split()[-3:] == ["one", "two", "1.json"]
    assert complaints.splitlines() == ["WARNING file notification failed, polling instead"]


class Kernel:
    """The kernel's side of a watcher, which can refuse; notes what it is asked."""

    def __init__(self, watcher: FileWatcher) -> None:
        self._real: Any = watcher._inotify
        self.fd = self._real.fd
        self.close = self._real.close
        self.refused: dict[Path | None, int] = {}
        self.asked: list[tuple[Path, Mask]] = []
        self.removed = 0
        watcher._inotify = self

    def add_watch(self, path: Path, mask: Mask) -> object:
        self.asked.append((path, mask))
        if error := self.refused.get(path) or self.refused.get(None):
            raise OSError(error, os.strerror(error))
        return self._real.add_watch(path, mask)

    def rm_watch(self, watch: object) -> None:
        self.removed += 1
        self._real.rm_watch(watch)


@pytest.fixture
async def notified() -> AsyncIterator[FileWatcher]:
    watcher = FileWatcher()
    yield watcher
    watcher.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.ENOMEM])
async def test_a_path_is_looked_at_only_as_long_as_there_is_no_watch_for_it(
    notified: FileWatcher, tmp_path: Path, error: int, caplog: pytest.LogCaptureFixture
) -> None:
    kernel, paths = Kernel(notified), [tmp_path / "one", tmp_path / "two"]
    kernel.refused[None] = error
    for path in paths:
        notified.watch(path)
    assert (list(notified._polled), list(notified._paths)) == (paths, [])
    assert caplog.messages == ["file notification failed, polling instead"]
    kernel.refused.clear()
    assert await notified.wait(60)

    assert (list(notified._polled), list(notified._paths)) == ([], paths)
    await wait_until(lambda: notified._poll_timer is None)


def is_another(watcher: FileWatcher, timer: asyncio.TimerHandle | None) -> bool:
    return watcher._poll_timer is not timer


async def test_looking_goes_on_until_the_watcher_is_closed(path: Path) -> None:
    watcher = FileWatcher()
    Kernel(watcher).refused[None] = errno.ENOSPC
    watcher.watch(path)
    for text in (b"one", b"four"):
        await watcher.wait(0)
        before = watcher._poll_timer
        # At least one look finds nothing new.
        await wait_until(partial(is_another, watcher, before))
        path.write_bytes(text)
        assert await watcher.wait(60)
    timer = watcher._poll_timer
    watcher.close()

    assert POLL_S == 0.05
    assert timer is not None
    assert timer.cancelled()


async def test_a_path_that_may_not_be_watched_leaves_its_folder(
    notified: FileWatcher, path: Path, tmp_path: Path
) -> None:
    path.write_bytes(b"")
    Kernel(notified).refused[path] = errno.EACCES
    notified.watch(path)

    assert [target for target, _ in notified._paths.values()] == [tmp_path]
    assert notified._polled == {}


async def test_the_kernel_is_asked_for_all_that_may_happen_to_what_is_watched(
    notified: FileWatcher, path: Path
) -> None:
    path.write_bytes(b"")
    kernel, gone = Kernel(notified), Mask.MOVE_SELF | Mask.DELETE_SELF
    notified.watch(path)
    notified.watch(path.parent)
    assert kernel.removed == 0
    notified.unwatch(path)

    assert kernel.removed == 1
    assert kernel.asked == [
        (path, Mask.MODIFY | Mask.ATTRIB | gone),
        (path.parent, Mask.CREATE | Mask.MOVED_TO | gone),
    ]


async def test_a_closed_watcher_leaves_nothing_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    watcher = FileWatcher()
    watcher.watch(Path("/tmp"))
    watcher.close()

    await wait_until(lambda: len(os.listdir("/proc/self/fd")) == before)
