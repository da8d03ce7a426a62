"""The open transcript: what its lines mean, what becomes of strange ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csp.clis.plain.transcript import PlainReader
from csp.clis.transcript_reader import Line
from csp.protocol.enums import Ending
from csp.protocol.requests import Usage
from csp.terminal.reply_tracker import (
    CapturedActivity,
    CapturedReply,
    Confirmed,
    Counted,
    Ended,
    Item,
    Outcome,
    Prompted,
    Started,
    ToolCalled,
    Tracker,
    TurnState,
    Wrote,
)

SINCE = 1000.0


def line(kind: str, ts: float | None = 1001.0, **fields: Any) -> bytes:
    timed = {} if ts is None else {"ts": ts}
    return json.dumps({"type": kind, **timed, **fields}).encode()


def read(*data: bytes, reader: PlainReader | None = None) -> list[Item]:
    reader = reader or PlainReader(SINCE)
    return reader.read((), [Line(path="t.jsonl", data=one) for one in data], 0.0)


def outcomes(*data: bytes) -> Iterator[Outcome]:
    tracker = Tracker()
    for item in read(*data):
        yield from tracker.feed(item)


def prompt(tag: str, ts: float | None = 1001.0) -> bytes:
    return line("prompt", ts, text=f"[from human #{tag}]\nhello\n[end #{tag}]")


def test_each_line_is_one_item() -> None:
    items = read(
        line("start"),
        line("prompt", text="hello"),
        line("tool", name="run", arguments={"command": "ls"}),
        line("text", text="Hi."),
        line("usage", input=9, output=4, model="m"),
        line("end", how="done"),
    )

    match items:
        case [
            Started(),
            Prompted() as asked,
            ToolCalled() as called,
            Wrote() as wrote,
            Counted() as counted,
            Ended(),
        ]:
            assert asked.text == "hello"
            assert (called.tool, json.loads(called.arguments)) == ("run", {"command": "ls"})
            assert wrote.text == "Hi."
            assert counted.usage == Usage(input=9, output=4, model="m")
        case _:
            pytest.fail(repr(items))


def test_a_prompt_is_proven_then_answered() -> None:
    found = list(outcomes(prompt("7"), line("text", text="Hi."), line("usage", output=1), line("end")))

    match found:
        case [
            Confirmed(tag="7"),
            TurnState(is_open=True),
            CapturedReply() as reply,
            TurnState(is_open=False),
        ]:
            assert (reply.text, reply.tag, reply.how, reply.usage) == (
                "Hi.",
                "7",
                Ending.DONE,
                Usage(output=1, calls=1),
            )
        case _:
            pytest.fail(repr(found))


def test_text_before_a_tool_is_activity_all_after_it_the_answer() -> None:
    found = list(
        outcomes(
            prompt("7"),
            line("text", text="I look first."),
            line("tool", name="look", arguments="here"),
            line("text", text="One."),
            line("text", text="Two."),
            line("end"),
        )
    )

    activities = [(one.text, one.tool, one.arguments) for one in found if isinstance(one, CapturedActivity)]
    assert activities == [("I look first.", "look", "here")]
    assert [one.text for one in found if isinstance(one, CapturedReply)] == ["One.\n\nTwo."]


@pytest.mark.parametrize("how", list(Ending))
def test_an_answer_ends_as_the_tool_says(how: Ending) -> None:
    (ended,) = read(line("end", how=how.value, text="because"))

    assert ended == Ended(how=how, text="because")


def test_an_unknown_ending_is_a_failure() -> None:
    assert read(line("end", how="exploded")) == [Ended(how=Ending.FAILED)]


def test_a_limit_says_how_long_it_lasts() -> None:
    in_words, by_field = (
        read(line("end", how="limited", text="Out of tokens. Try again at 5 pm."))[0],
        read(line("end", how="limited", until="tomorrow"))[0],
    )

    assert isinstance(in_words, Ended) and in_words.until == "5 pm"
    assert isinstance(by_field, Ended) and by_field.until == "tomorrow"


def test_what_is_older_than_the_run_is_passed_over() -> None:
    items = read(
        prompt("1", ts=900.0), line("text", None, text="old"), prompt("2"), line("text", None, text="new")
    )

    assert [one.text for one in items if isinstance(one, Wrote)] == ["new"]
    assert len(items) == 2


def test_a_transcript_without_times_is_read_whole() -> None:
    assert len(read(prompt("1", ts=None), line("end", None))) == 2


def test_numbers_that_begin_again_after_a_restart_do_no_harm() -> None:
    found = list(
        outcomes(
            *(prompt("1"), line("text", id="1", text="one"), line("end")),
            *(line("start"), prompt("2"), line("text", id="1", text="two"), line("end")),
        )
    )

    assert [one.text for one in found if isinstance(one, CapturedReply)] == ["one", "two"]


@pytest.mark.parametrize(
    "strange",
    [b"", b"{", b"[]", b"3", b"null", b'"text"', b"\xff\xfe", b'{"type": 7}', b'{"type": "text", "text": 5}'],
)
def test_a_strange_line_is_passed_over(strange: bytes) -> None:
    items = read(strange, line("unheard-of", text="x"), line("text", text="good", more=[1]))

    assert [one.text for one in items if isinstance(one, Wrote)] == ["good"]
    assert len(items) == 1


def test_counts_that_the_room_would_refuse_are_made_to_fit() -> None:
    (counted,) = read(line("usage", input=-5, output=3, model="m" * 500))

    assert isinstance(counted, Counted)
    assert counted.usage == Usage(input=0, output=3, model="m" * 128)


def test_a_reader_that_takes_over_gives_the_same_items() -> None:
    lines = [
        prompt("1"),
        line("text", None, text="a"),
        line("end", None),
        prompt("2", 1002.0),
        line("text", text="b"),
    ]
    expected = read(*lines)

    for cut in range(len(lines) + 1):
        first, second = PlainReader(SINCE), PlainReader(0.0)
        before = read(*lines[:cut], reader=first)
        second.load(first.dump())
        assert before + read(*lines[cut:], reader=second) == expected


def test_the_demo_writes_what_is_read(tmp_path: Path) -> None:
    from csp.agents.demo.demo_program import Record

    record = Record(str(tmp_path / "t.jsonl"))
    record.write("prompt", text="über\nzwei Zeilen")
    record.write("end", how="interrupted")
    record.close()
    asked, ended = read(*(tmp_path / "t.jsonl").read_bytes().splitlines())

    assert isinstance(asked, Prompted) and asked.text == "über\nzwei Zeilen"
    assert ended == Ended(how=Ending.INTERRUPTED)
    assert (tmp_path / "t.jsonl").stat().st_mode & 0o777 == 0o600
