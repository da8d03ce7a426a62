"""A realistic turn, read from each CLI's own record: 12 tool calls, 38,000 cached tokens each."""

import json
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from csp.client import Client
from csp.clis.claude.transcript import ClaudeReader
from csp.clis.codex.transcript import CodexReader
from csp.clis.gemini.transcript import GeminiReader
from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.profile import load_profile
from csp.clis.transcript_reader import Line, TranscriptReader
from csp.protocol.requests import Usage
from csp.sidecar.brain.state_reporter import Meter
from csp.sidecar.brain_socket import RelayPort
from csp.sidecar.capture.follower import FollowedRun, Follower
from csp.sidecar.inject.message_progress import MessageProgress, SentPrompt
from csp.sidecar.state.cli_state import CliState
from csp.sidecar.state.pane_state import PaneState
from csp.terminal.reply_tracker import CapturedReply, Counted, Tracker

SINCE: Final = 1_000_000.0
CALLS: Final = 13
CACHED: Final = 38_000
#: Of each call: input that is new to the cache, input that is just new, output.
WRITTEN, FRESH, OUTPUT = 1_500, 338, 200
TURN: Final = Usage(
    input=CALLS * (CACHED + WRITTEN + FRESH),
    output=CALLS * OUTPUT,
    cache_read=CALLS * CACHED,
    cache_write=CALLS * WRITTEN,
    model="m",
    calls=CALLS,
)
PATHS: Final = {
    "claude": "/one.jsonl",
    "codex": "/rollout-2026-11-16T10-09-54-019a8c3e-1111-7222-8333-444455556666.jsonl",
    "gemini": "/chats/session-1.jsonl",
}


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


class Record:
    """What a CLI writes down, as its reader and the tracker take it."""

    def __init__(self, kind: str) -> None:
        kinds: dict[str, Any] = {"claude": ClaudeReader, "codex": CodexReader, "gemini": GeminiReader}
        self.kind, self.tracker = kind, Tracker()
        self.reader: TranscriptReader = kinds[kind](SINCE, "s", PATHS[kind] if kind != "codex" else "")
        self.at = SINCE + 1
        self.replies: list[CapturedReply] = []

    def take(self, *records: dict[str, Any], events: tuple[HookEvent, ...] = ()) -> None:
        lines = [Line(path=PATHS[self.kind], data=json.dumps(record).encode()) for record in records]
        for item in self.reader.read(events, lines, self.at):
            self.replies += [one for one in self.tracker.feed(item) if isinstance(one, CapturedReply)]

    def hook(self, name: str, **fields: Any) -> None:
        known = {"hook_event_name": name, "session_id": "s", "transcript_path": PATHS[self.kind]}
        hook = msgspec.convert(known | {"timestamp": moment(self.at)} | fields, Hook)
        self.take(events=(HookEvent(at=self.at, hook=hook),))

    def play(self, turn: str, calls: int = CALLS) -> None:
        """Ask for one turn, let the model call so many times, end it."""
        self.ask(turn)
        for number in range(calls):
            self.call(turn, number)
        self.end(turn)

    def ask(self, turn: str) -> None:
        self.at += 1
        text = f"[YOUR TURN #{turn}]"
        if self.kind == "claude":
            self.take(self._claude(f"{turn} p", "user", promptId=turn, message={"content": text}))
        elif self.kind == "codex":
            item = {"type": "UserMessage", "id": turn, "content": [{"text": text}]}
            self.take(self._codex("turn_context", model="m"), self._codex("event_msg", type="task_started"))
            self.take(self._codex("event_msg", type="item_completed", item=item))
        else:
            self.hook("BeforeAgent", prompt=text)

    def call(self, turn: str, number: int) -> None:
        self.at += 1
        name = f"{turn} {number}"
        if self.kind == "claude":
            self._claude_call(name)
        elif self.kind == "codex":
            self._codex_call(number)
        else:
            tokens = {"input": CACHED + WRITTEN + FRESH, "output": OUTPUT, "cached": CACHED}
            record = {"id": name, "timestamp": moment(self.at), "type": "gemini", "content": "", "model": "m"}
            self.take(record | {"tokens": tokens})
            self.take(record | {"tokens": tokens, "toolCalls": [{"id": f"c{name}", "name": "run"}]})

    def end(self, turn: str) -> None:
        self.at += 1
        if self.kind == "claude":
            said = {"id": f"{turn} end", "content": "done", "stop_reason": "end_turn", "model": "m"}
            self.take(self._claude(f"{turn} e", "assistant", message=said))
            self.hook("Stop", prompt_id=turn, last_assistant_message="done")
        elif self.kind == "codex":
            self.take(self._codex("event_msg", type="task_complete"))
        else:
            self.hook("AfterAgent", prompt=f"[YOUR TURN #{turn}]")

    def _claude(self, name: str, kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": kind, "uuid": name, "timestamp": moment(self.at), **fields}

    def _claude_call(self, name: str) -> None:
        """Write an answer as Claude does: a line for each block, each with the tokens of all of them."""
        usage = {
            "input_tokens": FRESH,
            "cache_creation_input_tokens": WRITTEN,
            "cache_read_input_tokens": CACHED,
        }
        message = {"id": f"msg {name}", "model": "m"}
        text = [{"type": "text", "text": "I look."}]
        tool = [{"type": "tool_use", "id": f"call {name}", "name": "Bash", "input": {}}]
        for at, (output, content) in enumerate(((1, text), (OUTPUT, tool))):
            body = message | {"usage": usage | {"output_tokens": output}, "content": content}
            self.take(self._claude(f"{name} {at}", "assistant", message=body))

    def _codex(self, kind: str, **payload: Any) -> dict[str, Any]:
        return {"type": kind, "timestamp": moment(self.at), "payload": payload}

    def _codex_call(self, number: int) -> None:
        """Write what a call used as Codex does: in a record of its own, then as an event, at times twice."""
        usage = {
            "input_tokens": CACHED + WRITTEN + FRESH,
            "cached_input_tokens": CACHED,
            "cache_write_input_tokens": WRITTEN,
            "output_tokens": OUTPUT,
        }
        total = {"total_tokens": int(self.at) * 1000}
        name = f"{self.at} {number}"
        record = self._codex("token_usage_record", usage=usage, response_id=name, thread_token_usage=total)
        info = {"last_token_usage": usage, "total_token_usage": total}
        event = self._codex("event_msg", type="token_count", info=info)
        self.take(*([record] if self.writes_records else []), event, event)

    #: Codex has not always written a record for each call.
    writes_records = True


@pytest.fixture(params=["claude", "codex", "gemini"])
def record(request: pytest.FixtureRequest) -> Record:
    return Record(request.param)


def expected(kind: str, calls: int = CALLS) -> Usage:
    """Return what so many calls use; Gemini does not tell what it writes to a cache."""
    return Usage(
        input=TURN.input // CALLS * calls,
        output=OUTPUT * calls,
        cache_read=CACHED * calls,
        cache_write=0 if kind == "gemini" else WRITTEN * calls,
        model="m",
        calls=calls,
        context=CACHED + WRITTEN + FRESH + OUTPUT,
    )


def test_a_realistic_turn_is_counted_call_by_call_and_each_once(record: Record) -> None:
    record.play("t-7")

    (reply,) = record.replies
    assert reply.usage == expected(record.kind)
    assert reply.usage is not None and reply.usage.new == CALLS * (WRITTEN + FRESH + OUTPUT)


def test_each_turn_has_its_own(record: Record) -> None:
    record.play("t-7", 3)
    record.play("t-8", 2)

    assert [reply.usage for reply in record.replies] == [expected(record.kind, 3), expected(record.kind, 2)]


def test_what_is_used_so_far_is_known_after_each_call(record: Record) -> None:
    record.ask("t-7")
    seen = []
    for number in range(3):
        record.call("t-7", number)
        seen.append(record.tracker.usage)

    assert seen == [expected(record.kind, calls) for calls in (1, 2, 3)]


def test_a_brain_that_takes_over_counts_nothing_twice(record: Record) -> None:
    record.ask("t-7")
    record.call("t-7", 0)
    heir = Record(record.kind)
    heir.reader.load(record.reader.dump())
    heir.tracker, heir.at = Tracker.load(record.tracker.dump()), record.at
    heir.call("t-7", 1)
    heir.end("t-7")

    assert [reply.usage for reply in heir.replies] == [expected(record.kind, 2)]


def test_what_a_resumed_record_has_of_earlier_runs_is_not_counted(record: Record) -> None:
    record.at = SINCE - 100
    if record.kind != "gemini":  # Hooks are never older than the run, and it has its prompts from them.
        record.ask("t-1")
        for number in range(3):
            record.call("t-1", number)
    record.at = SINCE + 1
    if record.kind == "codex":
        # The first event of a resumed session repeats what the last call of the earlier run had used.
        total = {"total_tokens": int(SINCE - 95) * 1000}
        info = {"last_token_usage": {"input_tokens": 9}, "total_token_usage": total}
        record.take(record._codex("event_msg", type="token_count", info=info))
    record.play("t-7", 2)

    assert [reply.usage for reply in record.replies] == [expected(record.kind, 2)]


def test_a_codex_that_writes_events_alone_is_counted_by_them() -> None:
    record = Record("codex")
    record.writes_records = False
    record.play("t-7", 3)

    assert [reply.usage for reply in record.replies] == [expected("codex", 3)]


def test_a_subagent_of_claude_in_the_same_record_is_counted_but_not_heard() -> None:
    record = Record("claude")
    record.ask("t-7")
    record.call("t-7", 0)
    message = {"id": "sub", "model": "m", "content": "psst", "usage": {"input_tokens": 70}}
    side = record._claude("s1", "assistant", message=message, isSidechain=True)
    record.take(side, side)
    record.end("t-7")

    (reply,) = record.replies
    usage = expected("claude", 1)
    assert (reply.text, reply.usage) == (
        "done",
        msgspec.structs.replace(usage, input=usage.input + 70, calls=2),
    )


# --- subagents with records of their own --------------------------------------------------------


def side_line(record: Record, at: float) -> Line:
    """Return a line of a subagent that has used 70 tokens of another model."""
    if record.kind == "claude":
        message = {"id": "sub", "model": "small", "content": "psst", "usage": {"input_tokens": 70}}
        fields = {"type": "assistant", "uuid": "s1", "message": message, "isSidechain": True}
    elif record.kind == "codex":
        usage = {"input_tokens": 70, "output_tokens": 0}
        fields = {"type": "token_usage_record", "payload": {"usage": usage, "response_id": "sub"}}
    else:
        fields = {"type": "gemini", "id": "sub", "content": "psst", "tokens": {"input": 70}, "model": "small"}
    fields |= {"timestamp": moment(at)}
    return Line(path="/side.jsonl", data=json.dumps(fields).encode(), is_side=True)


def test_a_subagent_is_counted_but_not_heard(record: Record) -> None:
    record.ask("t-7")
    record.call("t-7", 0)
    lines = [
        side_line(record, SINCE - 1),
        side_line(record, record.at),
        Line(path="/", data=b"{", is_side=True),
    ]
    items = record.reader.read([], lines, record.at)

    assert [type(item) for item in items] == [Counted]
    for item in items:
        record.tracker.feed(item)
    record.end("t-7")
    (reply,) = record.replies
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.calls) == (expected(record.kind, 1).input + 70, 2)


def test_a_subagent_of_codex_has_its_own_model() -> None:
    record = Record("codex")
    record.ask("t-7")
    context = {"type": "turn_context", "timestamp": moment(record.at), "payload": {"model": "small"}}
    begin = Line(path="/side.jsonl", data=json.dumps(context).encode(), is_side=True)
    none = Line(path="/side.jsonl", data=b"{}", is_side=True)
    (counted,) = record.reader.read([], [begin, none, side_line(record, record.at)], record.at)

    assert isinstance(counted, Counted) and counted.usage.model == "small"


@pytest.mark.parametrize(
    ("kind", "main", "side"),
    [
        ("claude", "one.jsonl", "one/subagents/agent-1.jsonl"),
        ("gemini", "session-2026-11-16T10-50-ae1a3db8.jsonl", "ae1a3db8-1234/sub.jsonl"),
    ],
)
def test_a_follower_finds_what_subagents_write(tmp_path: Path, kind: str, main: str, side: str) -> None:
    record = Record(kind)
    path, other = tmp_path / main, tmp_path / side
    path.touch()
    run = FollowedRun(kind=kind, child_pid=0, since=SINCE, session_id="s", transcript_hint=str(path))
    follower = Follower(run)
    follower._tail(str(path))
    if kind == "claude":
        prompt = {"content": "[YOUR TURN #t-7]"}
        told = record._claude("p", "user", promptId="p", message=prompt)
    else:
        content = [{"text": "[YOUR TURN #t-7]"}]
        told = {"id": "p", "timestamp": moment(record.at), "type": "user", "content": content}
    path.write_text(json.dumps(told) + "\n")
    follower.catch_up()
    if kind == "gemini":
        # Without hooks, an answer is what says that the prompt is under way.
        said = {"id": "a", "timestamp": moment(record.at + 1), "type": "gemini", "content": "I ask."}
        with path.open("a") as file:
            file.write(json.dumps(said) + "\n")
        follower.catch_up()
    other.parent.mkdir(parents=True)
    other.write_bytes(side_line(record, record.at + 2).data + b"\n")
    follower.catch_up()
    assert follower.tracker.usage == Usage(input=70, model="small", calls=1)
    heir = Follower(run, follower.dump())
    # It does not read them again from the start: they may be long, and many.
    assert {name: tail.position[0] for name, tail in heir._sides.items()} == {
        str(other): other.stat().st_size
    }
    heir.catch_up()

    assert heir.tracker.usage == Usage(input=70, model="small", calls=1)
    assert [str(other)] == list(heir._sides)


# --- told to the room ----------------------------------------------------------------------------


async def test_the_room_is_told_of_each_change_of_its_own_turns_once() -> None:
    profile, record = load_profile("claude"), Record("claude")
    with socket.socket() as line:
        port = RelayPort(line, lambda kind, payload: None)
        sight = CliState(profile, PaneState(profile, 24, 80), port, record.tracker)
        tags = MessageProgress({"t-7": SentPrompt("m7", "t-7"), "8": SentPrompt("m8")})
        meter = Meter(sight, Client("http://127.0.0.1:9", "room.token"), tags)
        assert meter.news() is None
        record.ask("t-7")
        assert meter.news() is None
        record.call("t-7", 0)
        assert meter.news() == ("t-7", expected("claude", 1))
        meter._reported = meter.news()
        assert meter.news() is None
        record.call("t-7", 1)
        assert meter.news() == ("t-7", expected("claude", 2))
        record.end("t-7")
        assert meter.news() is None
        record.take(record._claude("x", "user", promptId="x", message={"content": "[from human #8]"}))
        record.call("8", 0)
        assert meter.news() is None
