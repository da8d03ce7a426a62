"""What a terminal gets to see of an agent's text."""

import io
import sys

import pytest

from csp.cli.output import Progress, confirm, duration, put, talk
from csp.errors import BadInput
from csp.human.safe_text import visible


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nsecond line", "plain\ttext\nsecond line"),
        ("\x1b[2Jgone", "␛[2Jgone"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("over\rwritten", "over␍written"),
        ("a\x00b\x08c\x7fd", "a␀b␈c␡d"),
        ("\x9b31mred", "\\x9b31mred"),
        ("äöü 漢字 🙂", "äöü 漢字 🙂"),
        ("a\u202eb\u2028c\u2066d", "a\\u202eb\\u2028c\\u2066d"),
    ],
)
def test_control_characters_are_made_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_no_control_character_is_left() -> None:
    shown = visible("".join(map(chr, range(0x110))))

    assert {char for char in shown if not char.isprintable()} == {"\t", "\n", "\xa0", "\xad"}


def test_a_terminal_gets_visible_text_a_pipe_the_very_text(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, pipe = Screen(), io.StringIO()
    for stream in (screen, pipe):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "stderr", stream)
        put("\x1b[1m")
        talk("\x1b[2m")

    assert screen.getvalue() == "␛[1m\n␛[2m\n"
    assert pipe.getvalue() == "\x1b[1m\n\x1b[2m\n"


def test_progress_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    progress = Progress()
    progress.show("waiting")
    progress.show("waiting")
    progress.clear()
    progress.clear()

    assert screen.getvalue() == "\r\x1b[Kwaiting\r\x1b[K"


def test_progress_is_for_people_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    Progress().show("waiting")

    assert pipe.getvalue() == ""


@pytest.mark.parametrize(("answer", "is_yes"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False)])
def test_only_a_yes_confirms(monkeypatch: pytest.MonkeyPatch, answer: str, is_yes: bool) -> None:
    monkeypatch.setattr(sys, "stdin", Screen(answer))
    monkeypatch.setattr(sys, "stderr", Screen())

    assert confirm("really?") is is_yes


def test_off_a_terminal_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(BadInput) as caught:
        confirm("really?")

    assert caught.value.hint == "add --yes to proceed"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (86399, "23 h"),
        (86400, "1 d"),
        (200_000, "2 d"),
    ],
)
def test_a_span_of_time_is_told_in_its_largest_unit(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_line_that_was_interrupted_while_it_was_written_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Screen):
        def flush(self) -> None:
            raise KeyboardInterrupt

    progress = Progress()
    monkeypatch.setattr(sys, "stderr", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        progress.show("waiting")
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    progress.clear()

    assert screen.getvalue() == "\r\x1b[K"
