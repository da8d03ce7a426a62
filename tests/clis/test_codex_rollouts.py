"""Which transcript belongs to which process."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from csp.clis.codex.rollouts import find_rollouts, newest_folders, process_family, written_files
from csp.clis.gemini.transcript import find_chat
from csp.clis.registry import find_adapter
from tests.waiting import wait_until_sync

#: Becomes as many generations as it is told; the last one holds the files open, and waits to be killed.
HOLDER = """
import subprocess, sys, time
code, generations, *names = sys.argv[1:]
if generations == "1":
    files = [open(name, "a") for name in names]
    print("open", flush=True)
    time.sleep(600)
else:
    subprocess.run([sys.executable, "-c", code, code, str(int(generations) - 1), *names])
"""


class Holder:
    """A process whose grandchild holds files open."""

    def __init__(self, *files: Path) -> None:
        command = [sys.executable, "-c", HOLDER, HOLDER, "3", *map(str, files)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout and self.process.stdout.readline() == b"open\n"

    def stop(self) -> None:
        os.killpg(self.process.pid, 9)
        self.process.communicate()


def open_rollouts(pid: int) -> set[Path]:
    return set(find_rollouts(Path("none"), pid).main)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "2026" / "11" / "16"
    folder.mkdir(parents=True)
    return folder


def rollout(folder: Path, name: str, source: object = "cli") -> Path:
    path = folder / f"rollout-{name}.jsonl"
    path.write_text(json.dumps({"type": "session_meta", "payload": {"source": source}}) + "\n{}\n")
    return path


@pytest.fixture
def holders() -> Iterator[list[Holder]]:
    started: list[Holder] = []
    yield started
    for holder in started:
        holder.stop()


def test_a_family_is_a_process_with_all_its_descendants(holders: list[Holder], tmp_path: Path) -> None:
    holders.append(Holder(tmp_path / "file"))
    pids = process_family(holders[0].process.pid)

    assert len(pids) == 3
    assert pids[0] == holders[0].process.pid


def test_a_family_that_is_gone_holds_nothing() -> None:
    process = subprocess.Popen(["true"])
    process.wait()

    assert written_files(process_family(process.pid)) == set()


def test_the_rollout_of_a_run_is_the_one_it_holds_open(holders: list[Holder], folder: Path) -> None:
    """Two in one directory are told apart, although they write into one folder."""
    first, second, stray = (rollout(folder, name) for name in ("first", "second", "stray"))
    holders += [Holder(first, folder / "other.txt"), Holder(second)]

    assert [open_rollouts(holder.process.pid) for holder in holders] == [{first}, {second}]
    assert stray.exists()


def test_all_sessions_of_a_run_are_its_own(holders: list[Holder], folder: Path) -> None:
    files = {rollout(folder, "before-new"), rollout(folder, "after-new")}
    holders.append(Holder(*files))

    assert open_rollouts(holders[0].process.pid) == files


def test_a_subagents_rollout_is_left_out(holders: list[Holder], folder: Path) -> None:
    main = rollout(folder, "main")
    sub = rollout(folder, "sub", {"subagent": {"thread_spawn": {"depth": 1}}})
    holders.append(Holder(main, sub))

    assert open_rollouts(holders[0].process.pid) == {main}


@pytest.mark.parametrize("text", ["", "{", '{"type": "session_meta"}\n', "[]\n"])
def test_a_rollout_without_its_first_line_has_to_wait(holders: list[Holder], folder: Path, text: str) -> None:
    path = folder / "rollout-new.jsonl"
    path.write_text(text)
    holders.append(Holder(path))
    before = open_rollouts(holders[0].process.pid)
    rollout(folder, "new")

    assert (before, open_rollouts(holders[0].process.pid)) == (set(), {path})


def test_looking_for_rollouts_is_cheap(holders: list[Holder], folder: Path) -> None:
    path = rollout(folder, "main")
    holders.append(Holder(path))

    def took() -> bool:
        start = time.process_time()
        open_rollouts(holders[0].process.pid)
        return time.process_time() - start < 0.01

    assert wait_until_sync(took, 60)


def test_the_newest_folders_are_those_of_today(tmp_path: Path, folder: Path) -> None:
    for name in ("2025/12/31", "2026/11/02", "2026/02/28", "2026/11/notes"):
        (tmp_path / name).mkdir(parents=True)

    assert newest_folders(tmp_path) == [tmp_path, folder.parent.parent, folder.parent, folder]


def test_the_newest_folders_are_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "2026").mkdir()

    assert newest_folders(tmp_path) == [tmp_path, tmp_path / "2026"]
    assert newest_folders(tmp_path / "none") == [tmp_path / "none"]


def test_a_chat_of_gemini_is_found_by_its_session(tmp_path: Path) -> None:
    chats = tmp_path / "project" / "chats"
    chats.mkdir(parents=True)
    mine = chats / "session-2026-11-16T10-12-22222222.jsonl"
    for path in (mine, chats / "session-2026-11-16T10-12-33333333.jsonl"):
        path.write_text("{}\n")

    assert find_chat(tmp_path, "22222222-1111-4111-8111-111111111111") == mine
    assert find_chat(tmp_path, "44444444-1111-4111-8111-111111111111") is None
    assert find_chat(tmp_path, "") is None
    gemini = find_adapter("gemini")
    assert gemini.find_transcripts(tmp_path, "22222222-1111-4111-8111-111111111111", 1).main == [mine]
    assert gemini.find_transcripts(tmp_path, "44444444-1111-4111-8111-111111111111", 1).main == []


def test_the_newest_of_two_chats_of_a_session_counts(tmp_path: Path) -> None:
    for at, project in enumerate(("new", "old"), start=1):
        chats = tmp_path / project / "chats"
        chats.mkdir(parents=True)
        path = chats / "session-2026-11-16T10-12-22222222.jsonl"
        path.touch()
        os.utime(path, (1000 - at, 1000 - at))

    found = find_chat(tmp_path, "22222222-1111-4111-8111-111111111111")
    assert found is not None and found.parent.parent.name == "new"


def test_a_rollout_that_is_only_read_belongs_to_another_run(folder: Path) -> None:
    path = rollout(folder, "of-another")
    with path.open("rb"):
        read = open_rollouts(os.getpid())
    with path.open("r+b"):
        written = open_rollouts(os.getpid())

    assert (read, written) == (set(), {path})


def test_what_only_looks_like_a_rollout_is_none(folder: Path) -> None:
    path = rollout(folder, "main")
    other = path.rename(path.with_suffix(".jsonl.bak"))
    with mock.patch("csp.clis.codex.rollouts.written_files", return_value={other}):
        assert open_rollouts(1) == set()


def test_without_proc_lsof_tells_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.clis.codex.rollouts.sys", SimpleNamespace(platform="darwin"))
    said = (
        "p7\nfcwd\na \nn/work\nf1\naw\nn->0x1\nf2\nau\nnpipe\n"
        "f3\naw\nn/a/rollout-1.jsonl\nf4\nau\nn/a/rollout-2.jsonl\n"
        "f5\nar\nn/a/rollout-of-another.jsonl\nftxt\nn/bin/codex\n"
    )
    with mock.patch.object(subprocess, "run", return_value=SimpleNamespace(stdout=said)) as ran:
        assert written_files([7, 8]) == {Path("/a/rollout-1.jsonl"), Path("/a/rollout-2.jsonl")}
    # Without -w its warnings would stand among the names.
    assert ran.call_args.args[0] == ["lsof", "-w", "-Fan", "-p", "7,8"]
    for failure in (FileNotFoundError(), subprocess.TimeoutExpired("lsof", 5)):
        with mock.patch.object(subprocess, "run", side_effect=failure):
            assert written_files([7]) == set()
