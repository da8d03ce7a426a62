"""What happens in the room, as lines for a person."""

import time
from datetime import datetime
from typing import Any

import pytest

from csp.human import message_text
from csp.human.event_lines import (
    SpokenLine,
    drawn_notice,
    history_lines,
    indented,
    news_line,
    own_line,
    said_line,
    spoken_in,
    spoken_of,
)
from csp.human.safe_text import clock
from csp.human.theme import UNICODE, Theme
from csp.protocol.enums import AgentState, Ending, JoinRole, ParticipantKind
from csp.protocol.events import (
    AgentResponse,
    HumanMessage,
    Joined,
    Left,
    NoticePosted,
    Redacted,
    StateChanged,
    TurnMoved,
    TurnSignal,
)
from csp.protocol.notices import HEADINGS
from csp.protocol.session_parts import TurnState

LOOK = Theme(UNICODE, has_colour=False)
#: Noon of the day that all of these tests are played on.
NOW = datetime(2026, 3, 4, 12).timestamp()
AT = "12:00"
HEAD: dict[str, Any] = {
    "seq": 7,
    "ts": NOW,
    "id": "m-1",
    "sender": "ada",
    "target": "human",
    "thread": "main",
    "text": "hi",
}

TURN: dict[str, Any] = HEAD | {
    "session_id": "s",
    "turn": "t",
    "agent": "bob",
    "state": TurnState.WORKING,
    "round": 0,
}


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it be that day, though it may be midnight outside."""
    local = time.localtime
    monkeypatch.setattr("csp.human.safe_text.time.localtime", lambda when=NOW: local(when))


def said(**more: Any) -> AgentResponse:
    return AgentResponse(**HEAD | {"recipients": ()} | more)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({}, "ada: hi"),
        ({"target": "all"}, "ada: hi"),
        ({"target": "bob"}, "ada → bob: hi"),
        ({"ending": Ending.INTERRUPTED}, "ada: (interrupted) hi"),
        ({"ending": Ending.FAILED, "text": ""}, "ada: (failed)"),
        ({"ending": Ending.LIMITED}, "ada: (reached a usage limit) hi"),
        ({"sealed": 1}, "ada (sealed): hi"),
        ({"late": True, "out_of_turn": True}, "ada (late, out of turn): hi"),
        ({"text": "a\nb\x1b"}, "ada: a\n  b␛"),
    ],
)
def test_what_an_agent_says_names_its_way_and_its_marks(more: dict[str, Any], line: str) -> None:
    spoken = spoken_of(said(**more))

    assert spoken is not None
    assert said_line(LOOK, spoken) == f"{AT} #7 {line}"


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ({"sender": "human", "target": "human"}, "human → human: hi"),
        ({"sender": "human", "target": "all"}, "human → all: hi"),
        ({"ending": "failed"}, "ada: (failed) hi"),
        ({"sealed": 1, "late": True}, "ada (late): hi"),
        ({"type": "system", "text": "@bob - Your turn."}, "· @bob - Your turn."),
        (
            {"type": "system", "text": "@bob - Your turn.", "code": "your_turn", "params": {"agent": "bob"}},
            "· @bob - Your turn.",
        ),
    ],
)
def test_an_item_of_the_history_is_the_same_line(item: dict[str, Any], line: str) -> None:
    assert said_line(LOOK, spoken_in(HEAD | item)) == f"{AT} #7 {line}"


@pytest.mark.parametrize("text", ["hi", "long " * 30])
def test_the_person_is_you_in_the_pane_and_human_in_a_script(text: str) -> None:
    spoken = spoken_in(HEAD | {"sender": "human", "target": "ada", "text": text})
    look = Theme(UNICODE, has_colour=False)
    assert "human → ada" in said_line(look, spoken)
    look.columns = lambda: 60

    assert "you → ada" in said_line(look, spoken)
    assert "human" not in said_line(look, spoken)


def test_parts_of_a_mode_are_strong_and_who_is_called_has_its_colour() -> None:
    look = Theme(UNICODE, has_colour=True)
    for code in HEADINGS:
        spoken = spoken_of(NoticePosted(**HEAD | {"text": "any words", "code": code}))
        assert spoken is not None and spoken.is_notice
        assert said_line(look, spoken).endswith("\x1b[1many words\x1b[0m"), code
    fields = HEAD | {"type": "system", "code": "your_turn", "params": {"agent": "bob"}}
    called = NoticePosted(**{name: value for name, value in fields.items() if name != "type"})
    look.columns = lambda: 80
    for spoken in (spoken_of(called), spoken_in(fields)):
        assert spoken is not None
        assert said_line(look, spoken).endswith("· bob's turn")


@pytest.mark.parametrize("text", ["Mode: DEBATE", "@bob - Your turn."])
def test_a_notice_of_an_old_journal_is_plain(text: str) -> None:
    look = Theme(UNICODE, has_colour=True)
    spoken = spoken_of(NoticePosted(**HEAD | {"text": text}))
    assert spoken is not None

    assert said_line(look, spoken).endswith(f"· {text}")


def test_only_long_texts_are_folded_and_never_what_is_asked_for() -> None:
    spoken = spoken_of(said(text="\n".join(map(str, range(99)))))
    assert spoken is not None

    assert said_line(LOOK, spoken).endswith("\n  28\n  ... 70 more lines, /show 7")
    assert "\n  50\n" in said_line(LOOK, spoken, is_whole=True)


def test_own_words_are_shown_as_those_of_others_are() -> None:
    before = clock(time.time())
    line = own_line(LOOK, "all", "hi")
    assert line in {f"{at} you → all: hi" for at in (before, clock(time.time()))}
    assert own_line(LOOK, "ada", "hi", urgent=True).endswith("you → ada (urgent): hi")
    assert own_line(LOOK, "ada", "\n".join("123456789")).endswith("\n  7\n  ... 2 more lines, sent whole")
    assert "more lines" not in own_line(LOOK, "ada", "\n".join("12345678"))


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Joined(**HEAD, name="Ada", kind=ParticipantKind.CLI, role=JoinRole.AGENT, epoch=1), "ada joined"),
        (Left(**HEAD, reason="left"), "ada left"),
        (Left(**HEAD, reason="silent for 60 s"), "ada left (silent for 60 s)"),
        (Left(**HEAD, reason="removed", removed=True), "ada was removed"),
        (Redacted(**HEAD | {"message": "m-9\x1b"}), "the text of m-9␛ was redacted"),
        (
            TurnSignal(**HEAD | {"target": "bob"}, recipients=(), is_repair=True),
            "bob is asked once more: the form of its answer was wrong",
        ),
        (
            TurnMoved(**TURN | {"reason": "tests"}),
            "bob is working: tests",
        ),
        (StateChanged(**HEAD, state=AgentState.LIMITED, until=NOW), f"ada reached a usage limit until {AT}"),
        (StateChanged(**HEAD, state=AgentState.LIMITED), "ada reached a usage limit"),
    ],
)
def test_news_are_one_line(event: Any, line: str) -> None:
    assert news_line(LOOK, event) == f"{AT} · {line}"


def test_most_events_are_not_news() -> None:
    quiet: list[Any] = [
        StateChanged(**HEAD, state=AgentState.BUSY),
        TurnSignal(**HEAD, recipients=()),
        TurnMoved(**TURN),
        HumanMessage(**HEAD, recipients=()),
    ]

    assert [news_line(LOOK, event) for event in quiet] == [""] * 4
    assert spoken_of(quiet[0]) is None and spoken_of(quiet[1]) is None


def test_further_lines_stand_further_in() -> None:
    assert indented("a\nb\r") == "a\n  b␍"


# --- on a screen ---------------------------------------------------------------------------------


def screen(rows: int, columns: int) -> Theme:
    look = Theme(UNICODE, has_colour=False)
    look.rows, look.columns = (lambda: rows), (lambda: columns)
    return look


def spoken_by(sender: str, text: str, **more: Any) -> SpokenLine:
    return SpokenLine(seq=52, ts=NOW, sender=sender, target="all", text=text, **more)


def test_a_short_message_is_one_row() -> None:
    assert said_line(screen(24, 80), spoken_by("ada", "hi")) == f"{AT} #52 ada: hi"


def test_a_longer_one_stands_below_its_head_and_ends_with_its_sender() -> None:
    rows = said_line(screen(24, 40), spoken_by("ada", "one two three four five six seven eight")).split("\n")

    assert rows == [f"{AT} #52 ada", "  one two three four five six seven", "  eight  — ada"]


@pytest.mark.parametrize(("rows", "columns"), [(8, 120), (24, 80), (50, 90), (6, 30)])
def test_three_long_answers_fit_the_screen_and_each_says_whose_it_is(rows: int, columns: int) -> None:
    look = screen(rows, columns)
    text = "\n".join(f"line {number} of an answer" for number in range(30))
    shown = [said_line(look, spoken_by(name, text)).split("\n") for name in ("ada", "bob", "cy")]

    assert sum(map(len, shown)) <= max(rows - 2, 6)
    for name, answer in zip(("ada", "bob", "cy"), shown, strict=True):
        assert name in answer[0] and answer[1].startswith("  line 0")
        assert f"more lines from {name}, /show 52" in answer[-1]


def test_a_huge_text_is_laid_out_no_further_than_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[int] = []

    def body_rows(look: Theme, text: str, width: int, **more: bool) -> list[str]:
        laid_out.append(len(text))
        return message_text.body_rows(look, text, width, **more)

    monkeypatch.setattr("csp.human.event_lines.body_rows", body_rows)
    lines = said_line(screen(24, 80), spoken_by("ada", "a line\n" * 100_000)).split("\n")
    word = said_line(screen(24, 80), spoken_by("ada", "x" * 900_000)).split("\n")

    assert max(laid_out) <= 20_000
    assert lines[-1] == "  … 99995 more lines from ada, /show 52"
    assert word[-1] == "  … more from ada, /show 52"


def test_what_is_asked_for_is_whole_on_any_screen() -> None:
    text = "\n".join(map(str, range(99)))

    assert len(said_line(screen(8, 80), spoken_by("ada", text), is_whole=True).split("\n")) == 100


def test_the_way_of_a_message_has_the_colour_of_its_sender() -> None:
    look = Theme(UNICODE, has_colour=True)
    look.columns = lambda: 80
    spoken = SpokenLine(seq=1, ts=NOW, sender="ada", target="bob,cy", text="hi")
    line = said_line(look, spoken)

    assert look.of("ada", "ada → bob, cy") in line


SUMMARY: dict[str, Any] = {
    "session": "s-69",
    "mode": "round_robin",
    "reason": "superseded",
    "replies": 1,
    "about": "",
    "tokens": 3214,
    "output": 12,
    "cached": 0,
    "seconds": 62.4,
    "details": "\nCost: 0.5 USD (ada 0.5).\n- ada: what it said\nVotes: A (ada) 1.",
}


@pytest.mark.parametrize(
    ("code", "params", "mode", "text"),
    [
        ("your_turn", {"agent": "bob"}, "", "bob's turn"),
        ("ended_stopped_by_user", {}, "DEBATE", "Debate stopped (Allstop)."),
        ("ended_stopped_by_user", {}, "", "Session stopped (Allstop)."),
        ("ended_canceled", {}, "debate", "Debate canceled."),
        (
            "session_summary",
            SUMMARY,
            "",
            "Round robin summary (replaced after 1 reply): 3,214 new tokens, 62 s.\nCost: 0.5 USD (ada 0.5).",
        ),
        ("session_summary", {"mode": "debate"}, "", "the text of the room"),
        ("suggests_finish", {"agent": "ada"}, "", "ada suggests finishing; Allstop ends the session."),
        ("", {}, "", "the text of the room"),
    ],
)
def test_a_notice_is_drawn_by_its_code(code: str, params: dict[str, Any], mode: str, text: str) -> None:
    spoken = spoken_by("system", "the text of the room", is_notice=True, code=code, params=params)

    assert drawn_notice(spoken, mode) == text


@pytest.mark.parametrize(
    ("code", "text", "drawn"),
    [
        (
            "loop_held",
            "m-52 is held. Release it with: csp continue m-52",
            "#52 is held. Release it with: /continue #52",
        ),
        ("run_needs_person", "run-4 needs you: csp review go run-4", "run-4 needs you: /review go run-4"),
        (
            "votes_counted",
            "Votes: A (cy) 2.\nWinner: A (cy).\n- bob voted A: short.\n- cy voted A (its own)\nAll of x.",
            "Votes: A (cy) 2.\nWinner: A (cy).\nAll of x.",
        ),
        ("journal_damaged", "see m-52: csp doctor --journal", "see m-52: csp doctor --journal"),
    ],
)
def test_a_notice_names_numbers_and_what_can_be_typed_here(code: str, text: str, drawn: str) -> None:
    assert drawn_notice(spoken_by("system", text, is_notice=True, code=code)) == drawn


def test_an_approval_by_a_rule_names_what_ends_it_here_and_leaves_the_command_alone() -> None:
    text = "ada: approved by rule #7 (csp): csp down. To stop this: csp unallow 7"
    spoken = spoken_by(
        "system", text, is_notice=True, code="approved_by_rule", params={"remedy": "csp unallow 7"}
    )

    assert drawn_notice(spoken) == "ada: approved by rule #7 (csp): csp down. To stop this: /unallow 7"


def test_in_a_history_the_end_of_a_mode_names_it() -> None:
    def notice(code: str, **params: str) -> dict[str, Any]:
        return {"seq": 1, "ts": NOW, "type": "system", "sender": "system", "text": "", "code": code} | {
            "params": params
        }

    end = notice("ended_stopped_by_user")
    lines = history_lines(screen(24, 80), [end, notice("mode", mode="DEBATE"), end])
    assert [line.rpartition(" · ")[2] for line in lines] == [
        "Session stopped (Allstop).",
        "",
        "Debate stopped (Allstop).",
    ]


def test_a_text_whose_blank_rows_are_left_out_still_ends_with_its_sender() -> None:
    rows = said_line(screen(12, 50), spoken_by("ada", "one\n\ntwo\n\nthree", is_notice=False)).split("\n")

    assert rows[1:] == ["  one", "  two", "  three  — ada"]


def test_a_long_notice_is_wrapped_and_folded_as_well() -> None:
    look = screen(8, 50)
    spoken = spoken_by("system", "word " * 20 + "\n- one\n- two\n- three", is_notice=True)
    rows = said_line(look, spoken).split("\n")

    assert rows[0].startswith(f"{AT} #52 · word word") and rows[1].startswith(" " * 12 + "word")
    assert max(map(len, rows)) <= 50 and rows[-1].endswith("2 more lines, /show 52")
