"""The answer of a program that keeps no record is found on its screen, also by a brain that came later."""

import os
import signal

import pytest

from csp.sidecar.pane import Pane
from csp.sidecar.profile import load_profile
from tests.sidecar.stage import Seat, Stage, tui
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(120)


def kill_brain(seat: Seat) -> None:
    pid = wait_until_sync(lambda: seat.brain, 30, "a brain")
    os.kill(pid, signal.SIGKILL)
    wait_until_sync(lambda: seat.brain not in (0, pid), 30, "another brain")


@pytest.mark.parametrize("kills", [1, 3])
def test_a_brain_that_is_killed_in_a_turn_does_not_lose_its_answer(stage: Stage, kills: int) -> None:
    reply = "answer {n}\\n" + "\\n".join(f"line {number}" for number in range(60)) + "\\nend"
    seat = stage.seat("tui", tui(stage.folder / "log", "--busy-s", "4", "--reply", reply))
    first = stage.send("tui", "one")
    stage.reply_to(first, "tui")
    second = stage.send("tui", "two")
    stage.wait_for(second, "tui", "submitted")
    for _ in range(kills):
        kill_brain(seat)
    text = stage.reply_to(second, "tui")["text"]
    third = stage.send("tui", "three")
    stage.reply_to(third, "tui")

    lines = [line.strip("* ") for line in text.splitlines()]
    assert lines == ["answer 2", *(f"line {number}" for number in range(60)), "end"]
    assert [each["replyTo"] for each in stage.replies("tui")] == [first, second, third]


def test_an_answer_that_was_written_between_two_brains_is_found(stage: Stage) -> None:
    seat = stage.seat("tui", tui(stage.folder / "log", "--busy-s", "1.5", "--reply", "the answer"))
    message = stage.send("tui", "one")
    stage.wait_for(message, "tui", "submitted")
    os.kill(seat.brain, signal.SIGSTOP)
    wait_until_sync(lambda: "the answer" in seat.screen(), what="the answer in the pane")
    kill_brain(seat)

    assert stage.reply_to(message, "tui")["text"].strip("* ") == "the answer"


def pane() -> Pane:
    return Pane(load_profile("generic"), 5, 20)


BEFORE = b"one\r\ntwo\r\n"
AFTER = b"three\r\nfour\r\n" * 10


@pytest.mark.parametrize("cut", range(len(BEFORE) + 5))
def test_the_history_is_remembered_at_its_mark_however_it_is_read(cut: int) -> None:
    later, data = pane(), BEFORE + AFTER
    later.remember_at(len(BEFORE))
    later.take_output(data[:cut])
    later.take_output(data[cut:])

    assert [line for line in later.remembered if line] == ["one", "two"]
    assert later.history()[:4] == ["one", "two", "three", "four"]
    assert later.written == len(data)


def test_a_mark_that_was_lost_has_nothing_before_it() -> None:
    later = pane()
    later.remember_at(100)
    later.take_output(b"old\r\n")
    later.forget_screen(200)
    later.take_output(b"new\r\n")

    assert [line for line in later.remembered if line] == []
    assert later.written == 210


def test_a_mark_behind_what_was_lost_is_found() -> None:
    later = pane()
    later.remember_at(105)
    later.forget_screen(100)
    later.take_output(b"old\r\nnew\r\n")

    assert [line for line in later.remembered if line] == ["old"]
