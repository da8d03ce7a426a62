"""The answer of a program that keeps no record is found on its screen, also by a brain that came later."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from csp.clis.profile import load_profile
from csp.sidecar.state.pane_state import PaneState
from csp.terminal.generic_screen import SCROLLED
from tests.sidecar.stage import Seat, Stage, tui
from tests.sidecar.virtual import body, desk, on_virtual_time, until
from tests.waiting import wait_until_sync

pytestmark = pytest.mark.timeout(180)


@pytest.mark.parametrize("kills", [1, 3])
@on_virtual_time
async def test_a_brain_that_is_replaced_in_a_turn_does_not_lose_its_answer(
    tmp_path: Path, kills: int
) -> None:
    reply = "answer {n}\\n" + "\\n".join(f"line {number}" for number in range(60)) + "\\nend"
    async with desk(tmp_path, "--busy-s", "4", "--reply", reply) as scene:
        first = scene.send("one")
        await scene.reply_to(first)
        second = scene.send("two")
        await scene.wait_for(second, "submitted")
        for _ in range(kills):
            await asyncio.sleep(0.5)
            await scene.replace_brain()
        text = (await scene.reply_to(second))["text"]
        third = scene.send("three")
        await scene.reply_to(third)

        lines = [line.strip("* ") for line in text.splitlines()]
        assert lines == ["answer 2", *(f"line {number}" for number in range(60)), "end"]
        assert [each["reply_to"] for each in scene.replies()] == [first, second, third]


@on_virtual_time
async def test_an_answer_that_was_written_between_two_brains_is_found(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "1.5", "--reply", "the answer") as scene:
        message = scene.send("one")
        await scene.wait_for(message, "submitted")
        await scene.kill_brain()
        await until(lambda: scene.events("replied"))
        await asyncio.sleep(1)
        await scene.start_brain()

        assert (await scene.reply_to(message))["text"].strip("* ") == "the answer"


@on_virtual_time
async def test_a_reply_without_any_text_ends_when_the_time_for_it_is_over(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False, injection_timeout_s=5.0) as scene:
        scene.echo = lambda keys: keys.replace(b"\r", b"\r\n> ")
        scene.write(b"> ")
        await scene.wait_state("idle")
        message = scene.send("one")
        await scene.wait_for(message, "submitted")
        await asyncio.sleep(3)
        early = scene.replies()
        reply = await scene.reply_to(message, within_s=6)

        assert early == []
        assert reply["text"] == "(no text)"


@on_virtual_time
async def test_the_next_prompt_ends_the_answer_before_it(tmp_path: Path) -> None:
    """A screen that never rests has no end of its own; what is pasted next belongs to another answer."""
    async with desk(tmp_path, "--chatter-ms", "50", "--reply", "answer {n}") as scene:
        first, second = scene.send("one"), scene.send("two")
        await scene.reply_to(second)

        assert [body(prompt) for prompt in scene.prompts()] == ["one", "two"]
        assert [each["reply_to"] for each in scene.replies()] == [first, second]
        assert "answer 1" in scene.replies()[0]["text"] and "answer 2" not in scene.replies()[0]["text"]
        assert "answer 2" in scene.replies()[1]["text"] and "answer 1" not in scene.replies()[1]["text"]


@on_virtual_time
async def test_a_sign_of_work_is_no_answer(tmp_path: Path) -> None:
    """A sign that stands still may be a leftover, so the next prompt is typed, unanswered or not."""
    async with desk(tmp_path, "--busy-s", "40", injection_timeout_s=3.0) as scene:
        first, second = scene.send("one"), scene.send("two")
        await scene.wait_for(second, "submitted")

        assert [(each["reply_to"], each["text"]) for each in scene.replies()] == [(first, "(no text)")]


@pytest.mark.parametrize("below", ["", "\r\n     ▣  Build · M1 · 2.1s"], ids=["copilot", "opencode"])
@on_virtual_time
async def test_what_is_drawn_around_an_answer_is_not_part_of_it(tmp_path: Path, below: str) -> None:
    """Copilot draws a scroll bar and the time beside the echo, opencode a line below the answer."""
    async with desk(tmp_path, has_tui=False) as scene:
        bar = "\x1b[120G┃\r\n".encode()
        scene.echo = lambda keys: b"\x1b[110G05:57" + bar + bar + b"> " if keys == b"\r" else keys
        scene.write(b"> ")
        await scene.wait_state("idle")
        message = scene.send("one")
        await scene.wait_for(message, "submitted")
        await asyncio.sleep(3)
        assert scene.replies() == []
        scene.write("\r● ok".encode() + bar + below.encode() + b"\r\n> ")

        assert (await scene.reply_to(message))["text"] == "ok"


def kill_brain(seat: Seat) -> None:
    pid = wait_until_sync(lambda: seat.brain, 60, "a brain")
    os.kill(pid, signal.SIGKILL)
    wait_until_sync(lambda: seat.brain not in (0, pid), 60, "another brain")


@pytest.mark.full
def test_a_brain_that_is_killed_in_a_turn_does_not_lose_its_answer(stage: Stage) -> None:
    kills = 3
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


def pane() -> PaneState:
    return PaneState(load_profile("generic"), 5, 20)


BEFORE = b"one\r\ntwo\r\n"
AFTER = b"three\r\nfour\r\n" * 10


@pytest.mark.parametrize("cut", range(len(BEFORE) + 5))
def test_the_history_is_remembered_at_its_mark_however_it_is_read(cut: int) -> None:
    later, data = pane(), BEFORE + AFTER
    later.remember_at(len(BEFORE))
    later.feed(data[:cut])
    later.feed(data[cut:])

    assert [line for line in later.remembered if line] == ["one", "two"]
    assert later.history()[:4] == ["one", "two", "three", "four"]
    assert later.written == len(data)


def test_a_mark_that_was_lost_has_nothing_before_it() -> None:
    later = pane()
    later.remember_at(100)
    later.feed(b"old\r\n")
    later.forget_screen(200)
    later.feed(b"new\r\n")

    assert [line for line in later.remembered if line] == []
    assert later.written == 210


def test_a_mark_behind_what_was_lost_is_found() -> None:
    later = pane()
    later.remember_at(105)
    later.forget_screen(100)
    later.feed(b"old\r\nnew\r\n")

    assert [line for line in later.remembered if line] == ["old"]


@on_virtual_time
async def test_an_answer_may_be_the_same_as_one_that_has_scrolled_off(tmp_path: Path) -> None:
    knobs = ("--alternate", "--frame", "rules", "--reply", "the same\\n\\nanswer")
    async with desk(tmp_path, *knobs) as scene:
        for number in range(6):
            text = "\n".join(f"{number} line {line}" for line in range(30))
            reply = await scene.reply_to(scene.send(text))

            assert [line.strip("* ") for line in reply["text"].split("\n")] == ["the same", "", "answer"]


@on_virtual_time
async def test_an_answer_that_is_longer_than_the_screen_says_so(tmp_path: Path) -> None:
    lines = [f"row {number}" for number in range(60)]
    knobs = ("--alternate", "--frame", "rules", "--busy-s", "3", "--reply", "\\n".join(lines))
    async with desk(tmp_path, *knobs) as scene:
        for text in ("one", "two", "three"):
            first, *rest = (await scene.reply_to(scene.send(text)))["text"].split("\n")

            assert first == SCROLLED
            assert len(rest) > 20
            assert [line.strip() for line in rest] == lines[-len(rest) :]


@on_virtual_time
async def test_what_stands_around_is_learnt_from_a_program_that_comes_up_late(tmp_path: Path) -> None:
    """Copilot writes a line, is pasted into, and only then takes over the screen."""
    late = ("--loading", "Package extraction took 6586 ms", "--start-ms", "12000", "--deaf-ms", "700")
    drawn = ("--alternate", "--frame", "rules", "--path", "~/project", "--reply", "the same\\n\\nanswer")
    async with desk(tmp_path, *late, *drawn) as scene:
        texts = [(await scene.reply_to(scene.send(text)))["text"] for text in ("one", "two", "three")]

    assert [[line.strip("* ") for line in text.split("\n")] for text in texts] == [
        ["the same", "", "answer"]
    ] * 3


@on_virtual_time
async def test_a_dialog_is_not_taken_for_the_answer_however_long_it_is_open(tmp_path: Path) -> None:
    knobs = ("--dialog-on", "one", "--dialog-command", "rm -rf build", "--reply", "done")
    async with desk(tmp_path, *knobs, injection_timeout_s=5.0) as scene:
        message = scene.send("one")
        await scene.wait_state("needs_approval")
        await asyncio.sleep(30)
        early = scene.replies()
        scene.press(b"1")
        reply = await scene.reply_to(message)

        assert early == []
        assert "Do you want to proceed?" not in reply["text"] and reply["text"].endswith("done")
