"""csp history and csp export without a room."""

import time
from typing import Any

import pytest

from csp.cli import history
from csp.cli.history import json_lines, markdown_lines
from csp.errors import BadInput, Unreachable
from tests.cli.recording import Recorded, Several, run


def item(seq: int, **fields: Any) -> dict[str, Any]:
    known = {"seq": seq, "ts": 0.0, "id": f"m-{seq}", "type": "agent_response", "sender": "ann"}
    return known | {"target": "all", "text": f"text {seq}"} | fields


def pages(*items: dict[str, Any]) -> Recorded:
    return Recorded({"/history": Several({"items": list(items)}, {"items": []}), "/health": {"seq": 40}})


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), {"limit": 50}),
        (("--limit", "7"), {"limit": 7}),
        (("--search", "red", "--agent", "ann", "--types", "vote"), {"limit": 50, "q": "red", "agent": "ann"}),
        (("--before", "9"), {"limit": 50, "before": 9}),
        (("--after", "3", "--before", "9"), {"limit": 500, "after": 3, "before": 9}),
    ],
)
def test_every_filter_reaches_the_room(words: tuple[str, ...], asked: dict[str, Any]) -> None:
    gateway = pages()
    run(gateway, "history", *words)

    assert gateway.bodies[0] == asked | ({"types": "vote"} if "--types" in words else {})


def test_behind_after_come_the_first_ones_as_many_as_are_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = pages(*(item(seq) for seq in range(4, 10)))
    run(gateway, "history", "--after", "3", "--limit", "2")

    assert [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()] == ["text 4", "text 5"]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({}, "ann: text 5"),
        ({"target": "bob"}, "ann -> bob: text 5"),
        ({"target": ""}, "ann: text 5"),
        ({"text": "a\nb"}, "ann: a\n    b"),
        ({"ending": "failed"}, "ann: (failed) text 5"),
        ({"ending": "failed", "text": ""}, "ann: (failed)"),
        ({"text": "", "type": "vote", "label": "A", "v": 1, "crc": "x"}, "ann: vote label=A"),
    ],
)
def test_an_item_is_a_line(fields: dict[str, Any], shown: str) -> None:
    clock = time.strftime("%H:%M:%S", time.localtime(0.0))

    assert history.line_of(item(5, **fields)) == f"#5 {clock} {shown}"


@pytest.mark.parametrize(
    ("words", "before", "said"),
    [
        (("--before", "2"), 2, "removed all events before #2\n"),
        (("--keep", "39"), 2, "removed all events before #2\n"),
        (("--keep", "1"), 40, "removed all events before #40\n"),
        (("--keep", "40"), None, "nothing to prune\n"),
        (("--before", "1"), None, "nothing to prune\n"),
    ],
)
def test_prune_removes_what_is_before_and_keeps_the_rest(
    words: tuple[str, ...], before: int | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = Recorded({"/health": {"seq": 40}, "/history/prune": {"success": True}})

    assert run(gateway, "history", "prune", "--yes", *words) == 0
    assert capsys.readouterr().err == said
    pruned = [what for method, path, what in gateway.asked if path == "/history/prune"]
    assert pruned == ([] if before is None else [{"before": before}])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("prune", "--before", "9"), "nothing was removed\n"),
        (("redact", "m-1"), "nothing was redacted\n"),
    ],
)
def test_who_says_no_loses_nothing(
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []

    def says_no(question: str) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr(history, "confirm", says_no)
    gateway = Recorded({})

    assert run(gateway, "history", *words) == 1
    assert (gateway.asked, len(asked)) == ([], 1)
    assert capsys.readouterr().err == said


def test_redact_names_the_message_in_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded({"/messages/m%2F1/redact": {"success": True}})

    assert run(gateway, "history", "redact", "m/1", "--yes", "--json") == 0
    assert gateway.asked == [("POST", "/messages/m%2F1/redact", {})]
    assert capsys.readouterr().out == '{"success": true}\n'


def test_follow_goes_on_behind_what_was_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[tuple[int, dict[str, Any]]] = []

    def follow(connect: Any, after: int, tell: Any, **query: Any) -> Any:
        begun.append((after, query))
        yield item(60)

    monkeypatch.setattr(history, "follow", follow)
    for words in ((), ("--after", "3"), ("--search", "red")):
        run(pages(item(2), item(4)), "history", "--follow", *words)
    run(pages(item(41)), "history", "--follow")

    assert [after for after, _ in begun] == [40, 4, 40, 41]
    assert begun[2][1]["q"] == "red"
    assert capsys.readouterr().out.count("text 60") == 4


def test_follow_takes_no_before() -> None:
    with pytest.raises(BadInput, match="--before cannot be combined with --follow"):
        run(pages(), "history", "--follow", "--before", "3")


def test_a_gateway_that_is_away_is_asked_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def follow(connect: Any, after: int, tell: Any, **query: Any) -> Any:
        tell(Unreachable("gone"))
        tell(None)
        yield item(60)

    monkeypatch.setattr("csp.cli.history.time.sleep", slept.append)
    monkeypatch.setattr(history, "follow", follow)
    run(pages(item(2)), "history", "--follow")

    assert slept == [0.5]


# --- export --------------------------------------------------------------------------------------


def test_an_export_is_one_json_array() -> None:
    assert list(json_lines([])) == ["[]"]
    assert list(json_lines([{"a": 1}])) == ['[{"a": 1}', "]"]
    assert list(json_lines([{"a": 1}, {"a": 2}])) == ['[{"a": 1}', ',{"a": 2}', "]"]


def test_an_export_has_a_heading_for_each_day() -> None:
    noon = 1_700_000_000.0
    items = [item(1, ts=noon), item(2, ts=noon + 1, target="bob", text="a\n\nb"), item(3, ts=noon + 86400)]
    whole = "\n".join(markdown_lines("den", items))

    assert whole.startswith("# Room den\n\n## 2023-11-1")
    assert whole.count("\n## ") == 2
    assert "**ann** to bob · " in whole and "\n> a\n>\n> b" in whole and "· #3\n" in whole


def test_no_text_gets_out_of_its_quote_in_an_export() -> None:
    lines = list(markdown_lines("den", [item(1, ts=0.0, text="a\r**bob** · now\r\nb")]))

    assert lines[-3:] == ["> a", "> **bob** · now", "> b"]


@pytest.mark.parametrize(
    ("words", "asked"), [((), {"after": 0, "limit": 500}), (("--limit", "2"), {"limit": 2})]
)
def test_export_reads_all_or_the_newest(words: tuple[str, ...], asked: dict[str, Any]) -> None:
    gateway = pages()
    run(gateway, "export", "--format", "json", *words)

    assert gateway.bodies[0] == asked
