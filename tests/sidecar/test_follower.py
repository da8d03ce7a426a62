"""How a run is followed, step by step, on a clock that stands.

Whole runs are in test_transcripts_follow.py.
"""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.transcript_reader import Line
from csp.protocol.enums import Ending
from csp.sidecar.capture import follower as follow
from csp.sidecar.capture.file_tail import FileWatcher
from csp.sidecar.capture.follower import FollowedRun, Follower
from csp.terminal.reply_tracker import Asked, CapturedReply, Confirmed, Ended, Outcome, TurnState


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def time(self) -> float:
        return self.now


class Watcher(FileWatcher):
    """Notes what it is asked; a wait returns what the test has put there, then never."""

    def __init__(self) -> None:
        self.watched: list[str] = []
        self.unwatched: list[str] = []
        self.waits: list[float | None] = []
        self.wakes = 0
        self.is_closed = False

    def watch(self, path: Path) -> None:
        self.watched.append(str(path))

    def unwatch(self, path: Path) -> None:
        self.unwatched.append(str(path))

    async def wait(self, timeout_s: float | None = None) -> bool:
        self.waits.append(timeout_s)
        return False

    def wake(self) -> None:
        self.wakes += 1

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(follow, "time", clock)
    return clock


@pytest.fixture
def watcher(monkeypatch: pytest.MonkeyPatch) -> Watcher:
    watcher = Watcher()
    monkeypatch.setattr(follow, "FileWatcher", lambda: watcher)
    return watcher


@pytest.fixture
def open_file(tmp_path: Path) -> Iterator[Any]:
    """Let this process hold files open for writing, as a Codex does."""
    files = []

    def hold(name: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"type": "session_meta", "payload": {"source": "cli"}}\n')
        files.append(path.open("a"))
        return str(path)

    yield hold
    for file in files:
        file.close()


def run(tmp_path: Path, kind: str, hint: str = "", **fields: Any) -> FollowedRun:
    (tmp_path / "spool").mkdir(exist_ok=True)
    known: dict[str, Any] = {
        "child_pid": os.getpid(),
        "since": 500.0,
        "session_id": "one",
        "spool_dir": str(tmp_path / "spool"),
    }
    return FollowedRun(kind=kind, transcript_hint=hint or str(tmp_path / "one.jsonl"), **(known | fields))


def plain(tmp_path: Path, *records: dict[str, Any]) -> None:
    with (tmp_path / "one.jsonl").open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def turn(tag: int) -> list[dict[str, Any]]:
    prompt = f"[from human #{tag}]\nhello\n[end #{tag}]"
    return [{"type": "prompt", "text": prompt}, {"type": "text", "text": "Hi."}, {"type": "end"}]


def tags(outcomes: list[Outcome]) -> list[str | None]:
    return [one.tag for one in outcomes if isinstance(one, CapturedReply)]


def claude_line(path: Path, uuid: str, text: str, at: str = "1970-01-01T00:16:40Z") -> None:
    record = {"type": "user", "uuid": uuid, "timestamp": at, "promptId": uuid, "message": {"content": text}}
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def leave_hook(tmp_path: Path, name: str, at: float, path: Path, **fields: Any) -> None:
    file = tmp_path / "spool" / f"{name}-{at}.json"
    hook = {"hook_event_name": name, "session_id": path.stem, "transcript_path": str(path), **fields}
    file.write_text(json.dumps(hook))
    os.utime(file, (at, at))


# --- what is read --------------------------------------------------------------------------------


def test_a_transcript_that_is_named_is_read_from_the_first_line(tmp_path: Path) -> None:
    follower = Follower(run(tmp_path, "plain"))
    assert (follower.catch_up(), follower.files) == ([], [])
    plain(tmp_path, *turn(1), *turn(2))

    assert tags(follower.catch_up()) == ["1", "2"]
    assert follower.files == [str(tmp_path / "one.jsonl")]
    assert follower.catch_up() == []


def test_a_long_transcript_is_read_in_batches_of_many_lines(tmp_path: Path) -> None:
    follower = Follower(run(tmp_path, "plain"))
    plain(tmp_path, *(record for tag in range(700) for record in turn(tag)))
    first, has_news = follower._step()
    second, has_more = follower._step()

    assert (len(tags(first)), len(tags(second))) == (666, 34)
    assert has_news and has_more
    assert follower._step() == ([], False)


def test_at_the_end_of_a_cli_all_that_is_on_the_disk_is_read(tmp_path: Path) -> None:
    """However long it is, and in whichever transcript it stands."""
    follower = Follower(run(tmp_path, "plain"))
    plain(tmp_path, *(record for tag in range(700) for record in turn(tag)))
    assert len(tags(follower.catch_up())) == 700
    two = tmp_path / "two.jsonl"
    switching = Follower(run(tmp_path, "claude"))
    leave_hook(tmp_path, "SessionStart", 1001.0, two)
    claude_line(two, "a", "[from human #1]\nx\n[end #1]", at="1970-01-01T00:16:41Z")

    assert Confirmed(tag="1") in switching.catch_up()


def test_another_follower_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    follower = Follower(run(tmp_path, "plain"))
    plain(tmp_path, *turn(1), turn(2)[0])
    first = follower.catch_up()
    heir = Follower(run(tmp_path, "plain"), follower.dump())
    assert heir.files == follower.files
    plain(tmp_path, *turn(2)[1:])

    assert tags(first) == ["1"]
    assert tags(heir.catch_up()) == ["2"]


def test_hook_events_are_taken_once_and_stay_until_they_are_settled(tmp_path: Path) -> None:
    path, spool = tmp_path / "one.jsonl", tmp_path / "spool"
    follower = Follower(run(tmp_path, "claude"))
    leave_hook(tmp_path, "PermissionRequest", 600.0, path, tool_name="Bash")
    assert follower.catch_up() == [Asked(tool="Bash", arguments="")]
    heir = Follower(run(tmp_path, "claude"), follower.dump())

    assert heir.catch_up() == []
    assert len(list(spool.iterdir())) == 1
    heir.settle()
    assert list(spool.iterdir()) == []


def test_a_transcript_that_is_left_and_entered_again_goes_on_where_it_was(
    tmp_path: Path, watcher: Watcher
) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    follower = Follower(run(tmp_path, "claude", since=0.0))
    follower._watcher = watcher
    claude_line(one, "a", "[from human #1]\nx\n[end #1]")
    first = follower.catch_up()
    left = follower._tails[str(one)]
    leave_hook(tmp_path, "SessionStart", 1001.0, two)
    follower.catch_up()
    assert left._fd == -1
    assert json.loads(follower.dump())["files"][str(one)][0] == one.stat().st_size
    assert (watcher.watched, watcher.unwatched) == ([str(two)], [str(one)])
    assert list(follower._tails) == [str(two)]
    heir = Follower(follower.run, follower.dump())
    leave_hook(tmp_path, "SessionStart", 900.0, one)
    claude_line(one, "b", "[from human #2]\ny\n[end #2]")
    again = heir.catch_up()

    assert Confirmed(tag="1") in first
    assert [one for one in again if isinstance(one, Confirmed)] == [Confirmed(tag="2")]


def test_what_no_record_says_may_be_told(tmp_path: Path) -> None:
    one = tmp_path / "one.jsonl"
    follower = Follower(run(tmp_path, "claude", since=0.0))
    claude_line(one, "a", "[from human #1]\nx\n[end #1]")
    leave_hook(tmp_path, "Stop", 900.0, one, prompt_id="a", last_assistant_message="Hi.")
    follower.catch_up()
    assert follower._pause_s() is not None
    told = follower.feed(Ended(how=Ending.INTERRUPTED))
    assert follower._pause_s() is None
    claude_line(one, "b", "[from human #2]\ny\n[end #2]")
    next_one = follower.catch_up()

    assert tags(told) == ["1"]
    assert tags(next_one) == []
    assert TurnState(is_open=True) in next_one


def test_of_gemini_the_chat_of_its_session_is_found(tmp_path: Path) -> None:
    chats = tmp_path / "tmp" / "project" / "chats"
    chats.mkdir(parents=True)
    follower = Follower(run(tmp_path, "gemini", str(tmp_path / "tmp"), session_id="12345678-rest"))
    assert follower.catch_up() == []
    chat = chats / "session-2026-12345678.jsonl"
    chat.write_text("{}\n")
    follower.catch_up()

    assert follower.files == [str(chat)]
    assert not follower._needs_looks()


def test_of_codex_the_rollouts_that_it_holds_open_are_read(
    tmp_path: Path, watcher: Watcher, open_file: Any
) -> None:
    follower = Follower(run(tmp_path, "codex", str(tmp_path / "sessions")))
    follower._watcher = watcher
    two, one = (
        open_file("sessions/2026/11/16/rollout-2.jsonl"),
        open_file("sessions/2026/11/16/rollout-1.jsonl"),
    )
    follower.catch_up()

    assert list(follower._tails) == [one, two]
    assert follower._needs_looks()
    day = tmp_path / "sessions" / "2026" / "11" / "16"
    folders = [str(folder) for folder in (tmp_path / "sessions", day.parent.parent, day.parent, day)]
    assert watcher.watched == [one, two, *folders]
    record = {"type": "event_msg", "timestamp": "1970-01-01T00:16:40Z", "payload": {"type": "task_started"}}
    with open(two, "a") as file:
        file.write(json.dumps(record) + "\n")

    assert TurnState(is_open=True) in follower.catch_up()
    assert list(follower._tails) == [one, two]


@pytest.mark.parametrize(("kind", "count"), [("claude", 2), ("gemini", 1), ("codex", 4)])
def test_events_are_parted_behind_the_one_that_leads_elsewhere(tmp_path: Path, kind: str, count: int) -> None:
    follower = Follower(run(tmp_path, kind))
    paths = [str(tmp_path / "one.jsonl"), "/two.jsonl", "/two.jsonl", None]
    events = [HookEvent(at=1.0, hook=Hook(transcript_path=path)) for path in paths]

    assert follower._until_switch(events) == (events[:count], events[count:])
    assert follower._until_switch(events[3:]) == (events[3:], [])


@pytest.mark.parametrize(
    ("timestamp", "kept", "held"), [("1970-01-01T00:01:00Z", [50, 59, 60], [61]), ("", [50], [59, 60, 61])]
)
def test_lines_that_came_after_a_session_was_left_are_for_later(
    tmp_path: Path, timestamp: str, kept: list[int], held: list[int]
) -> None:
    follower = Follower(run(tmp_path, "claude"))
    lines = {
        at: Line(
            path=str(tmp_path / "one.jsonl"),
            data=json.dumps({"timestamp": datetime.fromtimestamp(at, UTC).isoformat()}).encode(),
        )
        for at in (50, 59, 60, 61)
    }
    switch = HookEvent(at=50.0, hook=Hook(timestamp=timestamp))

    assert follower._hold_back([*lines.values()], switch) == [lines[at] for at in kept]
    assert follower._gather([]) == ([], [lines[at] for at in held])
    assert follower._gather([]) == ([], [])


# --- when it looks -------------------------------------------------------------------------------


def test_a_look_is_soon_five_times_then_once_a_second(tmp_path: Path, clock: Clock, watcher: Watcher) -> None:
    follower = Follower(run(tmp_path, "codex", str(tmp_path)))
    follower._watcher = watcher
    follower.look()
    assert watcher.wakes == 1
    pauses = []
    for _ in range(7):
        pauses.append(follower._pause_s())
        clock.now = follower._look_at
        follower._locate()

    assert pauses == pytest.approx([0.02] * 5 + [1.0] * 2)


def test_at_rest_nothing_is_looked_for_but_what_the_reader_waits_for(tmp_path: Path, clock: Clock) -> None:
    follower = Follower(run(tmp_path, "claude"))
    assert follower._pause_s() is None
    leave_hook(tmp_path, "Stop", 900.0, tmp_path / "one.jsonl", prompt_id="p", last_assistant_message="Hi.")
    follower.catch_up()
    assert follower._pause_s() == 3.0
    clock.now += 5

    assert follower._pause_s() == 0.0
    assert tags(follower.catch_up()) == [None]
    assert follower._pause_s() is None


async def test_a_follower_watches_its_files_and_lets_go_of_them(tmp_path: Path, watcher: Watcher) -> None:
    follower = Follower(run(tmp_path, "plain"))
    plain(tmp_path, *turn(1))
    outcomes = follower.outcomes()
    assert tags(await anext(outcomes)) == ["1"]
    assert watcher.watched == [str(tmp_path / "spool"), str(tmp_path / "one.jsonl")]
    plain(tmp_path, *turn(2))
    assert tags(await anext(outcomes)) == ["2"]
    await outcomes.aclose()  # type: ignore[attr-defined]  # it is a generator

    assert watcher.is_closed
    assert follower._watcher is None
    assert [tail._fd for tail in follower._tails.values()] == [-1]
    assert set(watcher.waits) <= {None}
