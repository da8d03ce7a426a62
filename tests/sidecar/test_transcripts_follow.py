"""A run is followed over its files: hooks in a spool, transcripts that grow, brains that come and go."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import pytest

from csp.protocol.enums import Ending
from csp.sidecar.capture.follower import FollowedRun, Follower
from csp.terminal.reply_tracker import CapturedReply, Ended, Outcome, TurnState
from tests.sidecar.record import DATA
from tests.waiting import wait_until

WITHIN_S: Final = 60.0
RECORDS = sorted(path.parent for path in DATA.glob("*/*/record.jsonl"))


class Written:
    """A recorded run, written again below a folder; this process holds the files open, as the CLI does."""

    def __init__(self, record: Path, folder: Path) -> None:
        self.kind = record.parent.name
        self.folder = folder
        self.spool = folder / "spool"
        self.spool.mkdir()
        self.meta = json.loads(self._moved((record / "expected.json").read_text("utf-8")))
        text = self._moved((record / "record.jsonl").read_text("utf-8"))
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
        self._files: dict[str, IO[str]] = {}
        self._count = 0

    def _moved(self, text: str) -> str:
        return text.replace("/home/ann", str(self.folder))

    def run(self) -> FollowedRun:
        hint = {"codex": str(self.folder / "codex" / "codex" / "sessions"), "gemini": ""}
        return FollowedRun(
            kind=self.kind,
            child_pid=os.getpid(),
            since=self.meta["since"],
            session_id=self.meta["session"],
            transcript_hint=hint.get(self.kind, self.meta["hint"]),
            spool_dir=str(self.spool),
        )

    def write(self, entry: dict[str, Any]) -> None:
        """Write lines before hooks, as the CLIs do that write at once."""
        for path, line in entry["lines"]:
            if path not in self._files:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                self._files[path] = open(path, "a", encoding="utf-8")  # noqa: SIM115  # held open on purpose
            self._files[path].write(line + "\n")
            self._files[path].flush()
        for at, hook in entry["hooks"]:
            self._count += 1
            fresh = self.spool / f".{self._count}"
            fresh.write_text(json.dumps(hook), "utf-8")
            os.utime(fresh, (at, at))
            fresh.rename(self.spool / f"{self._count}.json")

    def is_read(self, follower: Follower) -> bool:
        """Tell whether a follower has read all that is written so far."""
        taken = {key.partition(" ")[2] for key in follower._spool.taken} if follower._spool else set()
        is_found = self.kind != "codex" or self._files.keys() <= follower._tails.keys()
        return (
            is_found
            and {path.name for path in self.spool.glob("*.json")} <= taken
            and all(
                not tail.path.exists() or tail.position[0] == tail.path.stat().st_size
                for tail in follower._tails.values()
            )
        )

    def close(self) -> None:
        for file in self._files.values():
            file.close()


#: Between them: /clear, /resume, a queue, a subagent, for each CLI what it does in its own way.
TYPICAL = {
    "claude-resume",
    "claude-joined",
    "codex-clear",
    "codex-subagent",
    "gemini-resume",
    "gemini-overlap",
}


def records(*, every: bool) -> list[Any]:
    """Return the recorded runs as parameters; if not `every`, most of them run with --full alone."""
    names = [f"{path.parent.name}-{path.name}" for path in RECORDS]
    marks = [() if every or name in TYPICAL else pytest.mark.full for name in names]
    return [
        pytest.param(path, id=name, marks=mark)
        for path, name, mark in zip(RECORDS, names, marks, strict=True)
    ]


@pytest.fixture
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Written]:
    written = Written(request.param, tmp_path)
    yield written
    written.close()


class Brain:
    """Follows a run until it is killed."""

    def __init__(self, written: Written, dumped: bytes = b"") -> None:
        self.follower = Follower(written.run(), dumped)
        self.outcomes: list[Outcome] = []
        self._task = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        async for outcomes in self.follower.outcomes():
            self.outcomes += outcomes

    async def kill(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def replies(self) -> list[CapturedReply]:
        return [one for one in self.outcomes if isinstance(one, CapturedReply)]


@contextlib.asynccontextmanager
async def following(written: Written, dumped: bytes = b"") -> AsyncIterator[Brain]:
    brain = Brain(written, dumped)
    yield brain
    await brain.kill()


def check(written: Written, replies: list[CapturedReply]) -> None:
    expected = written.meta["replies"]
    assert [(one.tag, one.how) for one in replies] == [(one["tag"], one["how"]) for one in expected]
    for reply, one in zip(replies, expected, strict=True):
        assert one["text"].startswith(reply.text) if one["is_part"] else reply.text == one["text"]


@pytest.mark.parametrize("written", records(every=False), indirect=True)
async def test_files_that_grow_give_the_replies_that_the_model_sent(written: Written) -> None:
    async with following(written) as brain:
        for entry in written.entries:
            written.write(entry)
            await wait_until(lambda: written.is_read(brain.follower), WITHIN_S)
        await wait_until(lambda: len(brain.replies()) == len(written.meta["replies"]), WITHIN_S)

        check(written, brain.replies())


@pytest.mark.parametrize("written", records(every=True), indirect=True)
async def test_files_that_are_there_give_the_replies_that_the_model_sent(written: Written) -> None:
    """As for a brain that was away for the whole of it, /clear or /resume included."""
    for entry in written.entries:
        written.write(entry)
    async with following(written) as brain:
        await wait_until(lambda: len(brain.replies()) == len(written.meta["replies"]), WITHIN_S)

        check(written, brain.replies())


@pytest.mark.parametrize("written", records(every=False), indirect=True)
async def test_a_brain_that_is_killed_again_and_again_loses_and_doubles_nothing(written: Written) -> None:
    replies: list[CapturedReply] = []
    dumped = b""
    for entry in [*written.entries, {"lines": [], "hooks": []}]:
        written.write(entry)
        brain = Brain(written, dumped)
        await wait_until(partial(written.is_read, brain.follower), WITHIN_S)
        await brain.kill()
        dumped = brain.follower.dump()
        brain.follower.settle()
        replies += brain.replies()
    if len(replies) < len(written.meta["replies"]):
        async with following(written, dumped) as last:
            await wait_until(lambda: len(replies + last.replies()) == len(written.meta["replies"]), WITHIN_S)
            replies += last.replies()

    check(written, replies)
    assert len(dumped) < 128 * 1024


@pytest.fixture
def early(tmp_path: Path) -> Iterator[Written]:
    written = Written(DATA / "claude" / "early", tmp_path)
    yield written
    written.close()


async def test_the_brain_may_say_what_the_record_does_not(early: Written) -> None:
    """Claude writes nothing of an interrupt before its first word."""
    async with following(early) as brain:
        for at, entry in enumerate(early.entries):  # noqa: B007  # used after the loop
            if any("#2]" in str(part) for part in entry.values()):
                break
            early.write(entry)
        await wait_until(lambda: TurnState(is_open=True) in brain.outcomes, WITHIN_S)
        told = brain.follower.feed(Ended(how=Ending.INTERRUPTED))
        for entry in early.entries[at:]:
            early.write(entry)
        await wait_until(lambda: brain.replies(), WITHIN_S)

        assert [(one.tag, one.how) for one in told if isinstance(one, CapturedReply)] == [
            ("1", Ending.INTERRUPTED)
        ]
        assert [(one.tag, one.text) for one in brain.replies()] == [("2", "Hi there.")]


async def test_hook_events_are_removed_when_they_are_settled(early: Written) -> None:
    for entry in early.entries:
        early.write(entry)
    async with following(early) as brain:
        await wait_until(lambda: len(brain.replies()) == 2, WITHIN_S)
        before = len(list(early.spool.iterdir()))
        brain.follower.settle()

        assert before > 0
        assert list(early.spool.iterdir()) == []


async def test_nothing_is_open_when_the_follower_ends(early: Written) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with following(early):
        pass

    await wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before, WITHIN_S)


async def test_a_run_without_hooks_or_hint_waits(tmp_path: Path) -> None:
    run = FollowedRun(
        kind="gemini", child_pid=os.getpid(), since=0.0, session_id="none", transcript_hint=str(tmp_path)
    )
    follower = Follower(run)
    follower.settle()
    task = asyncio.ensure_future(anext(follower.outcomes()))
    chats = tmp_path / "project" / "chats"
    chats.mkdir(parents=True)
    line = {"id": "u", "timestamp": "2026-11-16T10:00:00Z", "type": "user", "content": [{"text": "hello"}]}
    (chats / "session-2026-none.jsonl").write_text(json.dumps(line) + "\n")

    assert await asyncio.wait_for(task, 60) == [TurnState(is_open=True)]


async def test_a_follower_at_rest_does_not_look_again_and_again(early: Written) -> None:
    async with following(early) as brain:
        early.write(early.entries[0])
        await wait_until(lambda: early.is_read(brain.follower), WITHIN_S)
        # As after an Enter, or a change that brings nothing new.
        brain.follower.look()

        await wait_until(lambda: brain.follower._pause_s() is None, WITHIN_S)
