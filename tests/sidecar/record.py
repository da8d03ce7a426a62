"""Records what a real CLI writes down of a scripted conversation, as test data.

    python -m tests.sidecar.record claude blocks

A record has the hook events with the transcript lines in the order in which they could be read. What is
expected of it comes from the model server's log of what it sent, never from a reader. Paths are made up; long
attachments, which say nothing of a turn, are left out.
"""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from csp.clis.hook_spool import HookEvent
from csp.clis.transcript_reader import Line
from csp.terminal.reply_tracker import Item
from tests.clis.bringup import SetUp
from tests.clis.terminal import ENTER, ESCAPE
from tests.models.rules import Call, Endless, Fail, Pause, Rule, Shell, Text, slow
from tests.sidecar.wired import Room, WiredCli

DATA: Final = Path(__file__).parent.parent / "testdata" / "transcripts"
LONG: Final = "\n".join(f"{number}: 日本語 é 👍 line" for number in range(300))
TOUCH: Final = Shell(command="touch made.txt")
SUBAGENT: Final = {
    "claude": Call(
        name="Agent",
        arguments={"description": "d", "prompt": "sub task", "subagent_type": "general-purpose"},
    ),
    "gemini": Call(name="invoke_agent", arguments={"agent_name": "generalist", "prompt": "sub task"}),
    "codex": Call(namespace="multi_agent_v1", name="spawn_agent", arguments={"message": "sub task"}),
}
CLEAR: Final = {"claude": "/clear", "codex": "/new", "gemini": "/clear"}
COMPACT: Final = {"claude": "/compact", "codex": "/compact", "gemini": "/compress"}

Story = Callable[["Stage"], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A reply that the model sent: the texts of its last step, or a part of them if it was broken off."""

    tag: str | None
    text: str
    how: str = "done"
    also: tuple[str, ...] = ()
    is_part: bool = False


class Stage:
    """One CLI under record."""

    def __init__(self, room: Room, run: WiredCli) -> None:
        self.room, self.run = room, run
        self.name = run.cli.name
        self.expected: list[Expected] = []
        self.events: list[HookEvent] = []

    async def ask(
        self, tag: str, text: str, *texts: str, how: str = "done", also: tuple[str, ...] = ()
    ) -> None:
        """Send a message, wait for its reply; `texts` are what the model is told to send in its last step."""
        await self.run.say(tag, text)
        await self.run.reply(tag)
        await self.run.idle()
        self.expect(tag, *texts, how=how, also=also)

    def expect(
        self,
        tag: str | None,
        *texts: str,
        how: str = "done",
        also: tuple[str, ...] = (),
        is_part: bool = False,
    ) -> None:
        # Gemini writes all text of one answer as one.
        joined = ("" if self.name == "gemini" else "\n\n").join(texts)
        self.expected.append(Expected(tag=tag, text=joined, how=how, also=also, is_part=is_part))

    async def person(self, text: str) -> None:
        """Type as a person does, who sees whether Enter was taken."""
        await self.run.type(text)
        for _ in range(5):
            await asyncio.sleep(0.5)
            composer = "\n".join(self.run.terminal.screen().rstrip().splitlines()[-6:])
            if not re.search(rf"^ ?[>❯›!].{{0,2}}{re.escape(text[:12])}", composer, re.MULTILINE):
                return
            self.run.terminal.send(ENTER)

    async def shown(self, pattern: str) -> None:
        await asyncio.to_thread(self.run.terminal.wait_for, pattern)
        # What is drawn does not yet take keys.
        await asyncio.sleep(0.7)


async def _blocks(stage: Stage) -> None:
    await stage.ask("1", "hello", "Hi there.")
    await stage.ask("2", "tools please", "Final one.\n\nSecond paragraph.", "And a second block.")
    await stage.ask("t-3", "long please", LONG)


async def _interrupt(stage: Stage) -> None:
    for tag, text in (("1", "endless"), ("3", "sleepy tool")):
        await stage.run.say(tag, text)
        await stage.shown(r"tick tick" if text == "endless" else r"sleep 30")
        if text == "sleepy tool" and stage.name != "claude":
            await stage.shown(r"1\. (Yes|Allow)")
            stage.run.terminal.send(b"1")
            await asyncio.sleep(1.0)
        stage.run.terminal.send(ESCAPE)
        await stage.run.reply(tag)
        await stage.run.idle()
        stage.expect(tag, "tick " * 1000 if text == "endless" else "Wait.", how="interrupted", is_part=True)
    await stage.ask("5", "hello", "Hi there.")


async def _early(stage: Stage) -> None:
    await stage.run.say("1", "never answer")
    await asyncio.sleep(1.0)
    stage.run.terminal.send(ESCAPE)
    await asyncio.sleep(1.0)
    if stage.name == "claude":
        stage.run.tell_interrupted()
        # Claude has put the prompt back into its composer.
        stage.run.terminal.send(b"\x03")
        await asyncio.sleep(0.5)
    await stage.run.reply("1")
    stage.expect("1", "", how="interrupted")
    await stage.ask("2", "hello", "Hi there.")


async def _deny(stage: Stage) -> None:
    await stage.run.say("1", "touch please")
    await stage.shown(r"1\. (Yes|Allow)")
    stage.run.terminal.send(b"3")
    await stage.run.reply("1")
    stage.expect("1", "", how="interrupted")
    # Gemini loses what is pasted right after.
    await asyncio.sleep(1.0)
    await stage.ask("2", "hello", "Hi there.")
    await stage.run.say("3", "touch please")
    await stage.shown(r"1\. (Yes|Allow)")
    stage.run.terminal.send(b"1")
    await stage.run.reply("3")
    stage.expect("3", "Touched.")
    await stage.run.idle()


async def _fail(stage: Stage) -> None:
    await stage.ask("1", "fail please", "", how="failed")
    await stage.ask("2", "hello", "Hi there.")


async def _limit(stage: Stage) -> None:
    await stage.ask("1", "limit please", "", how="limited")


async def _queue(stage: Stage) -> None:
    await stage.run.say("1", "slow please")
    if stage.name == "codex":
        await stage.run.reply("1")
    else:
        await stage.person("typed by a person")
    await stage.run.reply("1")
    stage.expect("1", SLOW)
    if stage.name != "codex":
        await stage.run.reply(None)
        stage.expect(None, "ok")
    await stage.run.idle()
    await stage.ask("2", "hello", "Hi there.")


async def _overlap(stage: Stage) -> None:
    """Two prompts of which Gemini takes one from its queue, when it is ready, and one from its composer.

    That needs luck: record again, on a busy machine, until the story holds.
    """
    terminal = stage.run.terminal
    await asyncio.sleep(1.0)
    terminal.paste("[from human #1]\nhello\n[end #1]")
    await asyncio.sleep(0.6)
    terminal.send(ENTER)
    for key in (b"o", b"k"):
        terminal.send(key)
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.04)
    terminal.send(ENTER)
    await stage.run.reply("1")
    await stage.run.reply(None)
    await stage.run.idle()
    hooks = [event.hook.hook_event_name for event in stage.events]
    assert hooks.count("BeforeAgent") == 2
    assert hooks.index("AfterAgent") == hooks.index("BeforeAgent") + 2
    for reply in stage.run.replies():
        stage.expect(reply.tag, "Hi there." if reply.tag else "ok")
    await stage.ask("2", "hello", "Hi there.")


async def _unhooked(stage: Stage) -> None:
    """Two prompts that Gemini gives the same number, so that the second one has no hook.

    That needs luck too: record again until the story holds.
    """
    terminal = stage.run.terminal
    await stage.ask("1", "hello", "Hi there.")
    terminal.paste("[from human #2]\nhello\n[end #2]")
    await asyncio.sleep(1.0)
    with _slowed(terminal.process.pid):
        terminal.send(ENTER)
        await asyncio.sleep(random.choice((0.01, 0.03)))
        for key in b"ok then":
            terminal.send(bytes([key]))
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.25)
        terminal.send(ENTER)
        await asyncio.sleep(0.3)
    await stage.run.reply("2")
    await stage.run.reply(None, 20.0)
    await stage.run.idle()
    assert [event.hook.hook_event_name for event in stage.events].count("BeforeAgent") == 2
    stage.expect("2", "Hi there.")
    stage.expect(None, "ok")
    await stage.ask("3", "hello", "Hi there.")


@contextmanager
def _slowed(pid: int) -> Iterator[None]:
    """Let a process run for a few milliseconds now and then, as on a machine with much else to do."""
    is_over = threading.Event()

    def slow_down() -> None:
        while not is_over.is_set():
            os.kill(pid, signal.SIGSTOP)
            is_over.wait(0.04)
            os.kill(pid, signal.SIGCONT)
            is_over.wait(0.004)

    brake = threading.Thread(target=slow_down)
    brake.start()
    try:
        yield
    finally:
        is_over.set()
        brake.join()


async def _joined(stage: Stage) -> None:
    """Prompts that are taken in the midst of a turn, which only Claude does."""
    await stage.run.say("1", "tools please, slowly")
    await stage.shown(r"sleep 2")
    await stage.person("a word of a person")
    await stage.run.reply("1")
    stage.expect("1", "Final one.\n\nSecond paragraph.", "And a second block.")
    await stage.run.idle()


async def _clear(stage: Stage) -> None:
    await stage.ask("1", "hello", "Hi there.")
    await stage.person(CLEAR[stage.name])
    await asyncio.sleep(1.5)
    await stage.ask("2", "hello", "Hi there.")


async def _resume(stage: Stage) -> None:
    await stage.ask("1", "hello", "Hi there.")
    first = stage.run.sessions()[-1]
    await stage.person(CLEAR[stage.name])
    await asyncio.sleep(1.5)
    await stage.ask("2", "tools please", "Final one.\n\nSecond paragraph.", "And a second block.")
    if stage.name == "claude":
        await stage.person(f"/resume {first}")
    else:
        await stage.person("/resume")
        await asyncio.sleep(1.5)
        stage.run.terminal.send(b"\x1b[B")
        await asyncio.sleep(0.5)
        stage.run.terminal.send(b"\r")
    await asyncio.sleep(2.0)
    await stage.ask("3", "long please", LONG)


async def _compact(stage: Stage) -> None:
    await stage.ask("1", "hello", "Hi there.")
    await stage.ask("2", "tools please", "Final one.\n\nSecond paragraph.", "And a second block.")
    await stage.person(COMPACT[stage.name])
    await asyncio.sleep(4.0)
    await stage.ask("3", "long please", LONG)


async def _subagent(stage: Stage) -> None:
    await stage.run.say("1", "delegate please")
    await stage.run.reply("1")
    await stage.run.idle()
    # Codex may tell the model that its helper has ended, and the model then answers again.
    said = [text for one in stage.room.server.exchanges(stage.name, "main") for text in one.blocks]
    stage.expect("1", *(text for text in said if text == "The helper is done."))
    await stage.ask("2", "hello", "Hi there.")


async def _bang(stage: Stage) -> None:
    await stage.ask("1", "hello", "Hi there.")
    stage.run.terminal.send(b"!")
    await asyncio.sleep(0.5)
    await stage.person("echo hi")
    await asyncio.sleep(3.0)
    if stage.name == "claude":
        # The model's last prompt is still the one before.
        await stage.run.reply(None)
        stage.expect(None, "Hi there.")
    await stage.ask("2", "hello", "Hi there.")


async def _hooks(stage: Stage) -> None:
    """A hook of the user's sends Claude back to work, another one refuses a prompt."""
    await stage.ask("1", "hello", "Hi there.")
    await stage.run.wait(lambda: len(stage.run.replies()) == 2)
    await stage.run.idle()
    stage.expect("1", "I went on.")
    await stage.ask("2", "forbidden", "", how="failed")
    await stage.ask("3", "hello", "Hi there.")


def _own_hooks(folder: Path) -> str:
    once = folder / "once"
    stop = f"test -e {once} && exit 0; touch {once}; echo keep going >&2; exit 2"
    refuse = "grep -q forbidden || exit 0; echo not allowed >&2; exit 2"
    commands = {"Stop": stop, "UserPromptSubmit": refuse}
    hooks = {event: [{"hooks": [{"type": "command", "command": text}]}] for event, text in commands.items()}
    return json.dumps({"hooks": hooks})


STORIES: Final[dict[str, Story]] = {
    "blocks": _blocks,
    "interrupt": _interrupt,
    "early": _early,
    "deny": _deny,
    "fail": _fail,
    "limit": _limit,
    "queue": _queue,
    "overlap": _overlap,
    "unhooked": _unhooked,
    "joined": _joined,
    "clear": _clear,
    "resume": _resume,
    "compact": _compact,
    "subagent": _subagent,
    "bang": _bang,
    "hooks": _hooks,
}
SLOW: Final = "\n".join(f"slow line {number}" for number in range(20))


def rules(name: str) -> list[Rule]:
    parts = [Text(text="Final one.\n\nSecond paragraph."), Text(text="And a second block.")]
    return [
        Rule(match=r"#\S+\]\nhello", reply=[Text(text="Hi there.")]),
        Rule(match="keep going", reply=[Text(text="I went on.")]),
        Rule(
            match="tools please",
            reply=[Text(text="A look first."), Shell(command="echo hi", escalate=False), *parts],
        ),
        Rule(
            match="slowly",
            reply=[Text(text="A look first."), Shell(command="sleep 2", escalate=False), *parts],
        ),
        Rule(match="long please", reply=[Text(text=LONG, chunk_chars=500)]),
        Rule(match="endless", reply=[Endless()]),
        Rule(
            match="sleepy tool",
            reply=[Text(text="Wait."), Shell(command="sleep 30"), Text(text="Never said.")],
        ),
        Rule(match="never answer", reply=[Pause(seconds=60)]),
        Rule(match="touch please", reply=[Text(text="May I?"), TOUCH, Text(text="Touched.")]),
        Rule(match="fail please", reply=[Fail(kind="invalid")]),
        Rule(match="limit please", reply=[Fail(kind="limit", until=time.time() + 3600)]),
        Rule(match="slow please", reply=[slow(SLOW, 4)]),
        Rule(
            match="delegate please",
            reply=[Text(text="I ask a helper."), SUBAGENT[name], Text(text="The helper is done.")],
        ),
        Rule(match="sub task", kind="sub", reply=[Text(text="The helper's own words.")]),
    ]


class Recorder:
    """Notes each batch that a reader is given."""

    def __init__(self, run: WiredCli, seen: list[HookEvent]) -> None:
        self.entries: list[dict[str, Any]] = []
        self._seen = seen
        self._spool = Path(run.wired.spool_dir)
        self._reader = run.follower._reader
        self._read, self._reader.read = self._reader.read, self.read  # type: ignore[method-assign]  # listens in

    def read(self, events: Sequence[HookEvent], lines: Sequence[Line], now: float) -> list[Item]:
        self._seen += events
        if events or lines:
            hooks = {path.stat().st_mtime_ns / 1e9: path for path in self._spool.glob("*.json")}
            self.entries.append(
                {
                    "now": now,
                    "hooks": [[event.at, json.loads(hooks[event.at].read_text())] for event in events],
                    "lines": [[line.path, line.data.decode()] for line in lines],
                }
            )
        return self._read(events, lines, now)


async def record(name: str, case: str, folder: Path) -> None:
    with Room(rules(name)[::-1], folder) as room:
        env = {"CLAUDE_CODE_MAX_RETRIES": "0"}
        arguments = ("--settings", _own_hooks(folder)) if case == "hooks" else ()
        is_subscriber = case == "limit" and name == "claude"
        cli = room.bring_up(name, SetUp(env=env, is_subscriber=is_subscriber, arguments=arguments))
        async with WiredCli(cli, folder) as run:
            stage = Stage(room, run)
            recorder = Recorder(run, stage.events)
            try:
                await STORIES[case](stage)
                # Claude still writes down that the turn is over.
                await asyncio.sleep(1.0)
            finally:
                for outcome in run.outcomes:
                    print(str(outcome)[:300])
                print("expected", [(one.tag, one.how) for one in stage.expected])
            got = [one for one in run.replies() if one.tag or one.how == "done"]
            assert [(one.tag, one.how) for one in got] == [(one.tag, one.how) for one in stage.expected]
            _check(stage)
            _write(DATA / name / case, run, recorder, stage, folder)


def _check(stage: Stage) -> None:
    """See that what is expected is what the server has sent."""
    sent = [text for one in stage.room.server.exchanges(stage.name, "main") for text in one.blocks]
    for one in stage.expected:
        if one.how == "done":
            assert one.text.replace("\n\n", "") in "".join(sent).replace("\n\n", ""), one
    prompts = "\n".join(stage.room.server.prompts(stage.name))
    for one in stage.expected:
        assert one.tag is None or f"#{one.tag}]" in prompts or one.how != "done", one


def _write(target: Path, run: WiredCli, recorder: Recorder, stage: Stage, folder: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    lines = [json.dumps(_trimmed(entry), ensure_ascii=False) for entry in recorder.entries]
    text = (
        "\n".join(lines).replace(str(folder), "/home/ann").replace(str(folder).replace("/", "-"), "-home-ann")
    )
    (target / "record.jsonl").write_text(text + "\n", "utf-8")
    meta = {
        "since": run.since,
        "session": run.wired.session_id,
        "hint": run.wired.transcript_hint.replace(str(folder), "/home/ann").replace(
            str(folder).replace("/", "-"), "-home-ann"
        ),
        "replies": [asdict(one) for one in stage.expected],
    }
    (target / "expected.json").write_text(json.dumps(meta, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _trimmed(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "lines": [[path, _cut(line)] for path, line in entry["lines"] if not _is_noise(line)]}


def _is_noise(line: str) -> bool:
    return len(line) > 1500 and any(
        mark in line
        for mark in (
            '"type":"world_state"',
            '"type":"compacted"',
            '"role":"developer"',
            "<environment_context>",
        )
    )


def _cut(line: str) -> str:
    """Shorten what is long in a line, and says nothing of a turn."""
    found = json.loads(line)
    payload, attachment = found.get("payload"), found.get("attachment")
    if isinstance(payload, dict):
        for key in (
            "base_instructions",
            "permission_profile",
            "sandbox_policy",
            "thread_settings",
            "dynamic_tools",
        ):
            if key in payload:
                payload[key] = "..."
    elif isinstance(attachment, dict) and attachment.get("type") != "queued_command":
        found["attachment"] = {"type": attachment.get("type")}
    else:
        return line
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    where = Path("/var/tmp") / f"csp-record-{sys.argv[1]}-{sys.argv[2]}"
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir(parents=True)
    try:
        asyncio.run(record(sys.argv[1], sys.argv[2], where))
    finally:
        shutil.rmtree(where, ignore_errors=True)
