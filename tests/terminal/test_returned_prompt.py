"""Which text in a composer is a prompt of ours that the CLI has put back."""

import re

import pytest

from csp.terminal.gates import DraftTracker
from csp.terminal.returned_prompt import PastedPrompt, returned_tag

MARKER = re.compile(r"\[Pasted text #\d+(?: \+(?P<breaks>\d+) lines?)?\]")
OURS = PastedPrompt(tag="7", line_breaks=16, pasted_at=10.0)
PLAIN = "[from human #7]\nhello\n[end #7]"
COLLAPSED = "[Pasted text #8 +16 lines]"


def tag_of(text: str, *keys: tuple[float, bytes], marker: re.Pattern[str] | None = MARKER) -> str | None:
    """Return whose prompt a text is after a stop at 20.0; the person has pressed these keys before."""
    ledger = DraftTracker()
    for at, data in keys:
        ledger.feed(data, at)
    return returned_tag(text, marker, [OURS], ledger, stopped_at=20.0)


@pytest.mark.parametrize(
    "text", [PLAIN, "hello\n[end #7]", COLLAPSED, f" {COLLAPSED}\n", "[Pasted text\n#12 +16 lines]"]
)
def test_a_prompt_is_ours_whole_or_scrolled_or_collapsed(text: str) -> None:
    assert tag_of(text) == "7"
    assert tag_of(text, (5.0, b"\x1b[200~pasted before\x1b[201~"), (20.0, b"\x1b")) == "7"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a draft",
        f"a draft\n{PLAIN}",
        f"{COLLAPSED} and more",
        f"my {COLLAPSED}",
        f"{COLLAPSED}{COLLAPSED}",
        "[Pasted text #8 +15 lines]",
        "[Pasted text #8]",
    ],
)
def test_another_text_is_a_persons(text: str) -> None:
    assert tag_of(text) is None


@pytest.mark.parametrize("text", [PLAIN, COLLAPSED])
@pytest.mark.parametrize("keys", [b"x", b"\x7f", b"\x1b[A", b"\x1b[200~x\x1b[201~"])
def test_what_a_person_has_edited_since_the_stop_is_theirs(text: str, keys: bytes) -> None:
    assert tag_of(text, (21.0, keys)) is None


@pytest.mark.parametrize("keys", [b"\x1b", b"\x03", b"\x1b\x1b", b"\x1b[27u"])
def test_a_person_may_stop_the_turn_themselves(keys: bytes) -> None:
    assert tag_of(COLLAPSED, (20.0, keys), (20.1, keys)) == "7"


@pytest.mark.parametrize(
    "keys", [b"\x1b[200~a\x1b[201~", b"\x1b[A", b"\x10", b"\x13", b"\x19", b"x" * 65, b"a\nb"]
)
def test_a_marker_may_be_of_a_person_who_has_inserted_something_during_the_turn(keys: bytes) -> None:
    assert tag_of(COLLAPSED, (15.0, keys)) is None
    assert tag_of(PLAIN, (15.0, keys)) == "7"


def test_who_only_types_makes_no_marker() -> None:
    typed = "später".encode()

    assert (
        tag_of(COLLAPSED, (15.0, b"half a th"), (15.5, b"\x7f\x7f\x08"), (16.0, typed), (16.5, b"\r")) == "7"
    )


def test_a_marker_that_names_no_lines_is_of_nobody() -> None:
    assert tag_of("[Pasted text]", marker=re.compile(r"\[Pasted text\]")) is None
    assert tag_of(COLLAPSED, marker=None) is None
