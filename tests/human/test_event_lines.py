"""What happens in the room, as lines for a person."""

import time
from datetime import datetime
from typing import Any

import pytest

from csp.human.event_lines import (
    indented,
    news_line,
    own_line,
    said_line,
    spoken_in,
    spoken_of,
)
from csp.human.safe_text import clock
from csp.human.theme import ASCII, UNICODE, Theme
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
    ],
)
def test_an_item_of_the_history_is_the_same_line(item: dict[str, Any], line: str) -> None:
    assert said_line(LOOK, spoken_in(HEAD | item)) == f"{AT} #7 {line}"


def test_parts_of_a_mode_are_strong_and_who_is_called_has_its_colour() -> None:
    look = Theme(UNICODE, has_colour=True)
    for code in HEADINGS:
        spoken = spoken_of(NoticePosted(**HEAD | {"text": "any words", "code": code}))
        assert spoken is not None and spoken.is_notice
        assert said_line(look, spoken).endswith("\x1b[1many words\x1b[0m"), code
    fields = HEAD | {"type": "system", "code": "your_turn", "params": {"agent": "bob"}}
    called = NoticePosted(**{name: value for name, value in fields.items() if name != "type"})
    for spoken in (spoken_of(called), spoken_in(fields)):
        assert spoken is not None
        assert said_line(look, spoken).endswith(f"@{look.name('bob')} - Your turn.")


@pytest.mark.parametrize("text", ["Mode: DEBATE", "@bob - Your turn."])
def test_a_notice_of_an_old_journal_is_plain(text: str) -> None:
    look = Theme(UNICODE, has_colour=True)
    spoken = spoken_of(NoticePosted(**HEAD | {"text": text}))
    assert spoken is not None

    assert said_line(look, spoken).endswith(f"· {text}")


def test_only_long_texts_are_folded_and_never_what_is_asked_for() -> None:
    spoken = spoken_of(said(text="\n".join(map(str, range(99)))))
    assert spoken is not None

    assert "more lines: /show 7)" in said_line(LOOK, spoken)
    assert "\n  50\n" in said_line(LOOK, spoken, is_whole=True)


def test_what_is_on_its_way_says_so() -> None:
    before = clock(time.time())
    line = own_line(LOOK, "all", "hi")
    assert line in {f"{at} you → all: hi …" for at in (before, clock(time.time()))}
    assert own_line(LOOK, "ada", "hi", urgent=True).endswith("you → ada (urgent): hi …")
    ascii = Theme(ASCII, has_colour=False)
    assert own_line(ascii, "ada", "\n".join("123456789")).endswith("9 ...")
    assert "more lines: it goes out whole)" in own_line(LOOK, "ada", "\n".join("123456789"))
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
