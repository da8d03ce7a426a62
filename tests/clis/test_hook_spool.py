"""What hooks leave behind, and how it is taken up."""

import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from csp.clis import hook_spool as spool_module
from csp.clis.hook_spool import HookSpool
from csp.clis.wiring_parts import hook_command


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a spool; $HOME"
    folder.mkdir()
    return folder


def run_hook(folder: Path, event: dict[str, object]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        hook_command(folder), shell=True, input=json.dumps(event).encode(), capture_output=True, check=False
    )


def names(spool: HookSpool) -> list[str]:
    return [event.hook.hook_event_name for event in spool.read_new()]


def leave(folder: Path, name: str, text: str, at: int) -> None:
    (folder / name).write_text(text, "utf-8")
    os.utime(folder / name, ns=(at, at))


def test_a_hook_leaves_its_input(folder: Path) -> None:
    prompt = "日本語 👍 '\"$HOME`date`\\\n" * 5000
    done = run_hook(folder, {"hook_event_name": "Stop", "prompt": prompt, "new": {"field": 1}})
    (event,) = HookSpool(folder).read_new()

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert event.hook.prompt == prompt
    assert abs(event.at - time.time()) < 60


def test_a_hook_succeeds_in_silence_without_its_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    done = run_hook(folder, {"hook_event_name": "Stop"})

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_only_the_owner_may_read_an_event(folder: Path) -> None:
    run_hook(folder, {"hook_event_name": "Stop"})

    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]


def test_hooks_at_once_leave_all_their_events(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: run_hook(folder, {"prompt_id": str(number)}), range(40)))

    assert sorted(int(event.hook.prompt_id) for event in HookSpool(folder).read_new()) == list(range(40))


def test_events_come_once_in_their_order(folder: Path) -> None:
    spool = HookSpool(folder)
    leave(folder, "9.json", '{"hook_event_name": "first"}', 10)
    leave(folder, "1.json", '{"hook_event_name": "second"}', 20)
    before = names(spool)
    leave(folder, "5.json", '{"hook_event_name": "third"}', 30)

    assert (before, names(spool), names(spool)) == (["first", "second"], ["third"], [])


def test_an_event_stays_until_it_is_settled(folder: Path) -> None:
    leave(folder, "1.json", '{"hook_event_name": "Stop"}', 10)
    spool = HookSpool(folder)
    spool.read_new()
    again = names(HookSpool(folder))
    spool.settle()

    assert again == ["Stop"]
    assert list(folder.iterdir()) == []
    assert spool.taken == ()


def test_what_an_earlier_reader_has_taken_is_left_out(folder: Path) -> None:
    leave(folder, "1.json", '{"hook_event_name": "old"}', 10)
    first = HookSpool(folder)
    first.read_new()
    leave(folder, "2.json", '{"hook_event_name": "new"}', 20)
    second = HookSpool(folder, first.taken)

    assert names(second) == ["new"]
    second.settle()
    assert list(folder.iterdir()) == []


def test_a_process_id_that_comes_again_is_not_settled_with_the_old_event(folder: Path) -> None:
    spool = HookSpool(folder)
    leave(folder, "1.json", '{"hook_event_name": "one"}', 10)
    spool.read_new()
    leave(folder, "1.json", '{"hook_event_name": "two"}', 20)
    spool.settle()

    assert names(spool) == ["two"]


def test_a_process_id_that_comes_again_is_another_event(folder: Path) -> None:
    spool = HookSpool(folder)
    leave(folder, "1.json", '{"hook_event_name": "one"}', 10)
    first = names(spool)
    leave(folder, "1.json", '{"hook_event_name": "two"}', 20)

    assert (first, names(spool)) == (["one"], ["two"])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"prompt": 7}', "\udcff", '{"prompt": "\udcff"}'])
def test_nonsense_is_left_out(folder: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "1.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    leave(folder, "2.json", '{"hook_event_name": "Stop"}', 10)

    assert names(HookSpool(folder)) == ["Stop"]
    assert "1.json" in str([getattr(record, "file", "") for record in caplog.records])


def test_what_is_not_yet_renamed_is_left_alone(folder: Path) -> None:
    spool = HookSpool(folder)
    (folder / ".77").write_text('{"hook_event_name": "whole"}')
    before = names(spool)
    (folder / ".77").rename(folder / "77.json")

    assert (before, names(spool)) == ([], ["whole"])


def test_an_event_that_is_too_long_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"hook_event_name": "Stop"}'
    leave(folder, "1.json", text, 10)
    leave(folder, "2.json", f"{text} ", 20)
    assert spool_module.MAX_EVENT_BYTES == 64 << 20
    monkeypatch.setattr(spool_module, "MAX_EVENT_BYTES", len(text))

    assert [event.at for event in HookSpool(folder).read_new()] == [10 / 1e9]


def test_a_spool_that_is_gone_is_empty(folder: Path) -> None:
    shutil.rmtree(folder)

    assert names(HookSpool(folder)) == []
