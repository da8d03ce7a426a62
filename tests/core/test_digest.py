"""The tests of what the room answers to a query."""

from hypothesis import given
from hypothesis import strategies as st

from csp.core.digest import log_text
from csp.events import AnyEvent, Noticed, Unknown
from csp.wire import AgentId, MessageId


def event(seq: int, text: str) -> AnyEvent:
    return Noticed(seq, 1.0, MessageId("x"), AgentId("human"), AgentId("claude"), "default", text)


def test_log_is_oldest_first_in_one_bracket() -> None:
    assert log_text([event(3, "one\n  two"), event(12, "three")]).split("\n") == [
        "[CSP: the last that concerns you, oldest first",
        "#3 human -> claude: one two",
        "#12 human -> claude: three]",
    ]


def test_empty_log_says_so() -> None:
    assert log_text([]) == "[CSP: nothing that concerns you has been said yet]"


def test_event_of_a_newer_version_is_left_out() -> None:
    assert log_text([Unknown(1, 1.0, "newer")]) == log_text([])


def test_long_text_is_cut() -> None:
    line = log_text([event(3, "x" * 1000)]).splitlines()[1]

    assert len(line) == 301
    assert line.endswith("x…]")


def test_short_text_is_not_cut() -> None:
    assert "…" not in log_text([event(3, "x" * 270)])


def test_text_of_spaces_that_goes_on_is_marked() -> None:
    assert "…" in log_text([event(3, " " * 300 + "x")])


def test_of_too_much_the_newest_is_told() -> None:
    text = log_text([event(seq, f"{seq} " + "x" * 250) for seq in range(100)])

    assert 1600 < len(text) <= 2000
    assert [line.split()[0] for line in text.splitlines()[1:]] == [f"#{seq}" for seq in range(93, 100)]


@given(st.lists(st.text(max_size=400), max_size=30))
def test_no_answer_is_too_long_or_can_begin_a_command(texts: list[str]) -> None:
    text = log_text([event(seq, said) for seq, said in enumerate(texts)])

    assert len(text) <= 2000
    assert text.startswith("[CSP: ") and text.endswith("]")
    assert all(line.startswith(("[CSP: ", "#")) for line in text.split("\n"))
