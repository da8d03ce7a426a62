"""Records of real conversations give the replies that the model sent.

What is expected was written by the model server, see tests/sidecar/record.py. A new version of a CLI is a new
folder of records, not a new `if`.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from csp.clis.gemini.transcript import GeminiReader
from csp.clis.hook_spool import Hook, HookEvent
from csp.clis.registry import find_adapter
from csp.clis.transcript_reader import Line, TranscriptReader, seconds, until
from csp.terminal.reply_tracker import (
    Asked,
    CapturedActivity,
    CapturedReply,
    Confirmed,
    Outcome,
    Returned,
    Switched,
    Tracker,
    TurnState,
)
from tests.sidecar.record import DATA

RECORDS = sorted(path.parent for path in DATA.glob("*/*/record.jsonl"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    now: float
    events: list[HookEvent]
    lines: list[Line]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    kind: str
    batches: list[Batch]
    since: float
    session: str
    path: str
    replies: list[dict[str, Any]]

    def reader(self, since: float | None = None) -> TranscriptReader:
        since = self.since if since is None else since
        return find_adapter(self.kind).new_reader(since, self.session, self.path)


def load(folder: Path) -> Record:
    meta = json.loads((folder / "expected.json").read_text("utf-8"))
    batches = [
        Batch(
            now=entry["now"],
            events=[HookEvent(at=at, hook=msgspec.convert(hook, Hook)) for at, hook in _raw(entry["hooks"])],
            lines=[Line(path=path, data=line.encode()) for path, line in entry["lines"]],
        )
        for entry in map(json.loads, (folder / "record.jsonl").read_text("utf-8").splitlines())
    ]
    kind = folder.parent.name
    return Record(
        kind=kind,
        batches=batches,
        since=meta["since"],
        session=meta["session"],
        path=meta["hint"] if kind == "claude" else "",
        replies=meta["replies"],
    )


def _raw(hooks: Iterable[tuple[float, dict[str, Any]]]) -> Iterator[tuple[float, dict[str, Any]]]:
    """Give the parts of a hook that are kept as text the form they have in a file."""
    for at, hook in hooks:
        fields = ("tool_input", "details")
        yield (
            at,
            {**hook, **{key: msgspec.Raw(json.dumps(hook[key]).encode()) for key in fields if key in hook}},
        )


def each(*kinds: str, is_one_file: bool = False) -> pytest.MarkDecorator:
    """Run a test for each record of these kinds."""
    chosen = [
        path
        for path in RECORDS
        if path.parent.name in kinds and not (is_one_file and path.name in ("clear", "resume"))
    ]
    return pytest.mark.parametrize(
        "record", [load(path) for path in chosen], ids=[f"{path.parent.name}-{path.name}" for path in chosen]
    )


def play(record: Record, batches: Iterable[Batch], since: float | None = None) -> list[Outcome]:
    reader, tracker, outcomes = record.reader(since), Tracker(), list[Outcome]()
    now = 0.0
    for batch in batches:
        now = batch.now
        for item in reader.read(batch.events, batch.lines, now):
            outcomes += tracker.feed(item)
    # Whatever still waits for lines has waited long enough.
    return outcomes + [one for item in reader.read([], [], now + 60) for one in tracker.feed(item)]


def check(record: Record, outcomes: list[Outcome]) -> None:
    replies = [one for one in outcomes if isinstance(one, CapturedReply)]
    got = [(one.tag, one.how, one.also) for one in replies]
    assert got == [(one["tag"], one["how"], tuple(one["also"])) for one in record.replies]
    for reply, expected in zip(replies, record.replies, strict=True):
        sent = expected["text"]
        assert sent.startswith(reply.text) if expected["is_part"] else reply.text == sent
    assert len({reply.id for reply in replies}) == len(replies)
    tags = [one.tag for one in outcomes if isinstance(one, Confirmed)]
    assert tags == list(dict.fromkeys(one["tag"] for one in record.replies if one["tag"]))
    turns = [one.is_open for one in outcomes if isinstance(one, TurnState)]
    assert turns == [True, False] * (len(turns) // 2)


def one_by_one(batches: Iterable[Batch]) -> Iterator[Batch]:
    for batch in batches:
        for line in batch.lines:
            yield Batch(now=batch.now, events=[], lines=[line])
        for event in batch.events:
            yield Batch(now=batch.now, events=[event], lines=[])


@each("claude", "codex", "gemini")
def test_the_replies_are_those_that_the_model_sent(record: Record) -> None:
    check(record, play(record, record.batches))


@each("claude", "codex", "gemini", is_one_file=True)
def test_all_at_once_gives_the_same_replies(record: Record) -> None:
    """As after a brain that was away for the whole conversation."""
    events = [event for batch in record.batches for event in batch.events]
    lines = [line for batch in record.batches for line in batch.lines]
    check(record, play(record, [Batch(now=record.batches[-1].now, events=events, lines=lines)]))


@each("claude", "codex")
def test_a_line_at_a_time_gives_the_same_replies(record: Record) -> None:
    check(record, play(record, one_by_one(record.batches)))


@each("claude")
def test_hooks_that_come_late_change_nothing(record: Record) -> None:
    late: list[Batch] = []
    waiting: list[HookEvent] = []
    for batch in record.batches:
        ends = [event for event in batch.events if event.hook.hook_event_name in ("Stop", "StopFailure")]
        others = [event for event in batch.events if event not in ends]
        late.append(Batch(now=batch.now, events=[*waiting, *others], lines=batch.lines))
        waiting = ends
    late.append(Batch(now=record.batches[-1].now, events=waiting, lines=[]))
    check(record, play(record, late))


@each("claude")
def test_lines_in_the_wrong_order_are_put_right(record: Record) -> None:
    """As Claude writes the first lines of a session on a busy machine."""
    check(
        record,
        play(
            record,
            [Batch(now=one.now, events=one.events, lines=one.lines[::-1]) for one in record.batches],
        ),
    )


@each("claude", "codex", is_one_file=True)
def test_without_hooks_the_transcript_is_enough(record: Record) -> None:
    check(record, play(record, [Batch(now=one.now, events=[], lines=one.lines) for one in record.batches]))


@each("claude", "codex", "gemini")
def test_a_reader_that_takes_over_goes_on_as_the_old_one_would(record: Record) -> None:
    reader, tracker, outcomes = record.reader(), Tracker(), list[Outcome]()
    for batch in record.batches:
        heir = record.reader()
        heir.load(reader.dump())
        reader, tracker = heir, Tracker.load(tracker.dump())
        outcomes += [
            one for item in reader.read(batch.events, batch.lines, batch.now) for one in tracker.feed(item)
        ]

    assert outcomes == play(record, record.batches)[: len(outcomes)]


@each("claude", "codex", "gemini")
def test_lines_that_are_read_again_give_nothing_new(record: Record) -> None:
    reader, tracker, outcomes = record.reader(), Tracker(), list[Outcome]()
    for batch in record.batches:
        for lines in (batch.lines, batch.lines[: len(batch.lines) // 2]):
            events = batch.events if lines is batch.lines else []
            outcomes += [one for item in reader.read(events, lines, batch.now) for one in tracker.feed(item)]
    ids = [(one.id, one.text) for one in outcomes if isinstance(one, CapturedReply | CapturedActivity)]
    known = [
        (one.id, one.text)
        for one in play(record, record.batches)
        if isinstance(one, CapturedReply | CapturedActivity)
    ]

    assert ids == known


@each("claude", "codex", "gemini")
def test_history_gives_nothing(record: Record) -> None:
    lines = [Batch(now=one.now, events=[], lines=one.lines) for one in record.batches]

    assert play(record, lines, since=record.batches[-1].now + 10) == []


@each("claude", "codex", "gemini")
def test_nonsense_is_left_out(record: Record) -> None:
    noise = [b"", b"{", b"[]", b"7", b'{"type": 7}', b"\xff", b'{"type": "user"}', b'{"type": "event_msg"}']
    path = record.batches[-1].lines[-1].path if record.batches[-1].lines else record.path
    noisy = [
        Batch(
            now=one.now,
            events=[*one.events, HookEvent(at=one.now, hook=Hook())],
            lines=[*one.lines, *(Line(path=path, data=data) for data in noise)],
        )
        for one in record.batches
    ]
    check(record, play(record, noisy))


def recorded(kind: str, case: str) -> list[Outcome]:
    record = load(DATA / kind / case)
    return play(record, record.batches)


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_text_before_a_tool_call_is_activity_once(kind: str) -> None:
    activity = [one for one in recorded(kind, "blocks") if isinstance(one, CapturedActivity)]

    assert [(one.text, one.tag) for one in activity] == [("A look first.", "2")]
    assert "echo hi" in activity[0].arguments


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_a_subagents_words_never_appear(kind: str) -> None:
    assert "own words" not in str(recorded(kind, "subagent"))


@pytest.mark.parametrize("kind", ["claude", "gemini"])
def test_a_question_is_told_with_its_tool_and_answered(kind: str) -> None:
    outcomes = recorded(kind, "deny")
    asked = [one for one in outcomes if isinstance(one, Asked)]
    refused = [one.is_refused for one in outcomes if isinstance(one, Returned)]

    assert len(asked) == 2
    assert all("touch made.txt" in one.arguments and one.tool for one in asked)
    assert refused[0]
    assert not refused[-1]


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_limit_says_until_when(kind: str) -> None:
    (reply,) = [one for one in recorded(kind, "limit") if isinstance(one, CapturedReply)]

    assert reply.until is not None
    assert reply.until in reply.reason


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_a_failure_says_why(kind: str) -> None:
    reply = next(one for one in recorded(kind, "fail") if isinstance(one, CapturedReply))

    assert reply.reason


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_tokens_are_those_of_the_whole_turn(kind: str) -> None:
    hello, tools, *_ = [one.usage for one in recorded(kind, "blocks") if isinstance(one, CapturedReply)]

    assert hello is not None
    assert tools is not None
    assert hello.model
    assert tools.input > hello.input * 1.5
    assert 0 < hello.output < tools.output


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_another_session_is_told(kind: str) -> None:
    switched = [one.session for one in recorded(kind, "resume") if isinstance(one, Switched)]
    sessions = switched if kind == "codex" else [load(DATA / kind / "resume").session, *switched[-2:]]

    assert len(sessions) == 3
    assert sessions[0] == sessions[2] != sessions[1]


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("You've hit your session limit · resets 11:37am (UTC)", "11:37am (UTC)"),
        ("You’ve hit your usage limit. Upgrade to Pro or try again at 11:16 AM.", "11:16 AM"),
        ("limit reached, resets in 3 hours\nmore", "3 hours"),
        ("no limit at all", None),
    ],
)
def test_the_end_of_a_limit_is_read_from_its_text(text: str, when: str | None) -> None:
    assert until(text) == when


def test_times_are_read_with_their_zone() -> None:
    assert seconds("2026-11-16T10:06:32.953Z") == seconds("2026-11-16T10:06:32.953") == 1794823592.953
    assert seconds("yesterday") == seconds("") == 0.0


OURS = "[from human #35]\nwhat now?\n[end #35]"


@pytest.mark.parametrize("hook_ms", [401, 403])
def test_a_prompt_that_gemini_took_in_the_midst_of_a_turn_has_an_answer_of_its_own(hook_ms: int) -> None:
    """The hook of the second prompt is stamped just before or just after its line; none tells of an end."""
    hooks = [(100, "BeforeAgent", OURS), (hook_ms, "BeforeAgent", "person"), (500, "AfterAgent", "person")]
    lines: list[tuple[int, str, Any]] = [
        (100, "user", [{"text": OURS}]),
        (400, "gemini", "an answer"),
        (402, "user", [{"text": "person"}]),
        (440, "gemini", "ok"),
    ]
    events = [
        HookEvent(at=0.0, hook=msgspec.convert({"hook_event_name": name, "prompt": text} | _at(ms), Hook))
        for ms, name, text in hooks
    ]
    records = [{"id": f"r{ms}", "type": kind, "content": content} | _at(ms) for ms, kind, content in lines]
    read = [Line(path="chat", data=json.dumps(record).encode()) for record in records]
    tracker = Tracker()
    outcomes = [one for item in GeminiReader(0.0).read(events, read, 0.0) for one in tracker.feed(item)]

    replies = [(one.tag, one.text) for one in outcomes if isinstance(one, CapturedReply)]
    assert replies == [("35", "an answer"), (None, "ok")]


def _at(milliseconds: int) -> dict[str, str]:
    return {"timestamp": f"2026-11-16T10:00:00.{milliseconds}Z"}
