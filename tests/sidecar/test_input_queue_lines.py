"""A whole line typed in an agent's pane may be for the room: the CLI never gets it."""

from pathlib import Path

import pytest

from csp.sidecar.relay.input_queue import LineInterceptor
from tests.sidecar.stage import Stage, tui
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(180)


def words(*ours: bytes) -> LineInterceptor:
    found = LineInterceptor()
    found.ours = ours
    return found


@pytest.mark.parametrize(
    ("keys", "passed", "word"),
    [
        (b"/share\r", b"/share" + b"\x7f" * 6, b"/share"),
        (b"/sharp\x7fe\r", b"/sharp\x7fe" + b"\x7f" * 6, b"/share"),
        (b"/sharp\x08e\r", b"/sharp\x08e" + b"\x7f" * 6, b"/share"),
        (b"\x03/share\r", b"\x03/share" + b"\x7f" * 6, b"/share"),
        (b"x\x15/share\r", b"x\x15/share" + b"\x7f" * 6, b"/share"),
        (b"please /share\r", b"please /share\r", b""),
        (b"/share now\r", b"/share now\r", b""),
        (b"/resume\r", b"/resume\r", b""),
        (b"\x1b[A/share\r", b"\x1b[A/share\r", b""),
        (b"\x1b[200~/share\x1b[201~\r", b"\x1b[200~/share\x1b[201~\r", b""),
        ("é/share\r".encode(), "é/share\r".encode(), b""),
        (b"y" * 40 + b"\x7f" * 40 + b"/share\r", b"y" * 40 + b"\x7f" * 40 + b"/share\r", b""),
    ],
)
def test_only_a_line_that_is_nothing_else_is_taken(keys: bytes, passed: bytes, word: bytes) -> None:
    assert words(b"/share").feed(keys) == (passed, word)


def test_the_longest_word_of_ours_is_followed_and_no_more() -> None:
    longest = b"/" + b"w" * 31

    assert words(longest).feed(longest + b"\r") == (longest + b"\x7f" * 32, longest)
    assert words(longest + b"w").feed(longest + b"w\r") == (longest + b"w\r", b"")


def test_a_line_may_come_key_by_key_after_another() -> None:
    follower = words(b"/share")
    taken = [follower.feed(bytes([key])) for key in b"hello\r\x1b[A\r/share\r"]

    assert [word for _, word in taken if word] == [b"/share"]
    assert b"".join(passed for passed, _ in taken) == b"hello\r\x1b[A\r/share" + b"\x7f" * 6


def test_what_nobody_hears_goes_to_the_cli() -> None:
    assert words().feed(b"/share\r") == (b"/share\r", b"")
    assert words(b"/share").feed(b"/share\r", is_heard=False) == (b"/share\r", b"")


def test_a_word_for_the_room_works_in_the_agents_own_pane(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "tui.log"
    seat = stage.seat("tui", tui(log))
    # A sidecar that has delivered a message has claimed its words.
    stage.wait_for(stage.send("tui", "are you there?"), "tui", "submitted", "confirmed", timeout_s=90)
    seat.type("/share")
    seat.keys("Enter")

    wait_until_sync(lambda: stage.agent("tui")["share"], 60, what="the sharing")
    wait_until_sync(lambda: "/share" not in seat.screen(), 60, what="the empty composer")
    assert not [line for line in log.read_text().splitlines() if "/share" in line]
