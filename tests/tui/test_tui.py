"""The scripted TUI behaves like one: its log says what truly happened."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.clis.terminal import CTRL_C, ENTER, ESCAPE
from tests.tui.driving import run_tui
from tests.tui.keys import Key, Keyboard
from tests.waiting import wait_until_sync

TEXT = "first line\n\tsecond; 日本語 👩‍👩‍👧\nlast"
EMPTY = r"^>\s*$"


def test_a_paste_with_enter_is_submitted_exactly(tmp_path: Path) -> None:
    with run_tui(tmp_path) as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.paste(TEXT)
        tui.terminal.wait_for("last")
        tui.terminal.send(ENTER)
        tui.wait_event("replied")

        assert tui.texts() == [TEXT]
        assert tui.texts("replied") == ["reply to: first line"]
        tui.terminal.wait_for(r"^\* reply to: first line")


def test_typed_keys_make_a_draft_that_can_be_mended(tmp_path: Path) -> None:
    with run_tui(tmp_path) as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"helpx\x7flo\x1b[C" + ENTER)
        tui.wait_event("submitted")

        assert tui.texts() == ["helplo"]


def test_enter_on_nothing_submits_nothing(tmp_path: Path) -> None:
    with run_tui(tmp_path) as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(ENTER * 3 + b"x" + ENTER)
        tui.wait_event("submitted")

        assert tui.texts() == ["x"]


def test_enter_is_swallowed_for_a_time_after_a_paste(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--swallow-ms", "300") as tui:
        tui.terminal.wait_for(EMPTY)
        # In one write, so that nothing can come between the paste and the Enter.
        tui.terminal.send(b"\x1b[200~hello\x1b[201~" + ENTER)
        tui.wait_event("swallowed")

        def pressed_on() -> list[str]:
            tui.terminal.send(ENTER)
            return tui.texts()

        wait_until_sync(pressed_on, what="an Enter that works")
        pasted, submitted = tui.wait_event("swallowed")["at"], tui.wait_event("submitted")["at"]

    assert tui.texts() == ["hello"]
    assert submitted >= pasted


def test_enter_may_be_swallowed_for_ever_until_the_composer_is_cleared(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--swallow-ms", "-1") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.paste("hello")
        tui.terminal.send(ENTER * 5)
        tui.wait_event("swallowed", 5)
        tui.terminal.send(CTRL_C)
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"typed" + ENTER)
        tui.wait_event("submitted")

        assert tui.texts() == ["typed"]


def test_the_first_enters_may_be_swallowed(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--swallow-first", "2") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.paste("hello")
        tui.terminal.send(ENTER * 3)
        tui.wait_event("submitted")

        assert len(tui.events("swallowed")) == 2


def test_a_dialog_takes_a_paste_with_enter_as_approval(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--dialog-at-start") as tui:
        tui.terminal.wait_for(r"Do you want to proceed\?")
        tui.terminal.paste("hello")
        tui.terminal.send(ENTER)
        tui.wait_event("approved")
        tui.terminal.wait_for(EMPTY)

        assert tui.texts() == []
        assert tui.texts("lost") == ["hello"]


@pytest.mark.parametrize(
    ("key", "answer"), [(b"1", "approved"), (ENTER, "approved"), (b"2", "denied"), (ESCAPE, "denied")]
)
def test_a_dialog_is_answered_by_key(tmp_path: Path, key: bytes, answer: str) -> None:
    with run_tui(tmp_path, "--dialog-on", "tool", "--dialog-command", "rm x") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"use a tool" + ENTER)
        tui.terminal.wait_for(r"❯ 1\. Yes")
        tui.terminal.send(b"yn")
        tui.wait_event("lost", 2)
        assert not tui.events("approved") + tui.events("denied")
        tui.terminal.send(key)

        assert tui.wait_event(answer)["command"] == "rm x"
        tui.terminal.wait_for(EMPTY)
        assert tui.texts("replied") == (["reply to: use a tool"] if answer == "approved" else [])


def test_a_dialog_may_open_after_the_idle_sign(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--title", "--dialog-after-idle-ms", "70") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"go" + ENTER)
        asked = tui.wait_event("asked")

        assert asked["at"] - tui.wait_event("replied")["at"] >= 0.06
        titles = re.findall(rb"\x1b\]0;([^\x07]*)\x07", bytes(tui.terminal.raw))
        assert titles[:3] == [b"ready", b"* working", b"ready"]


def test_a_dialog_may_open_after_a_time(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--dialog-after-s", "0.2") as tui:
        asked = tui.wait_event("asked")
        tui.terminal.wait_for(r"Do you want to proceed\?")

        assert asked["at"] - tui.wait_event("started")["at"] >= 0.2


def test_a_busy_turn_queues_what_is_entered(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--busy-s", "0.3") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"one" + ENTER)
        wait_until_sync(lambda: b"esc to interrupt" in tui.terminal.raw, what="the busy sign")
        tui.terminal.send(b"two" + ENTER)
        tui.wait_event("replied", 2)

        kinds = [event["event"] for event in tui.events()][1:]
        assert kinds == ["submitted", "replied", "submitted", "replied"]


def test_a_busy_turn_may_be_aborted_by_enter(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--busy-s", "60", "--busy-enter", "abort") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"one" + ENTER)
        tui.terminal.wait_for("esc to interrupt")
        tui.terminal.send(b"two" + ENTER)
        tui.wait_event("submitted", 2)

        assert tui.texts("aborted") == ["one"]


def test_escape_interrupts_a_turn(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--busy-s", "60") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"one" + ENTER)
        tui.terminal.wait_for("esc to interrupt")
        tui.terminal.send(ESCAPE)
        tui.wait_event("interrupted")
        tui.terminal.wait_for(EMPTY)

        assert tui.events("replied") == []


@pytest.mark.parametrize(("screen", "sign"), [("trust", "Do you trust"), ("login", "Not logged in")])
def test_a_start_screen_stands_before_the_composer(tmp_path: Path, screen: str, sign: str) -> None:
    with run_tui(tmp_path, "--blocked", screen) as tui:
        tui.terminal.wait_for(sign)
        tui.terminal.paste("lost")
        tui.terminal.send(ENTER)
        tui.terminal.wait_for(EMPTY)

        assert tui.wait_event("passed")["screen"] == screen
        assert tui.texts() == []


def test_a_draft_stands_from_the_start_and_is_merged_with_a_paste(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--draft", "half a ") as tui:
        tui.terminal.wait_for("^> half a")
        tui.terminal.paste("sentence")
        tui.terminal.send(ENTER)
        tui.wait_event("submitted")

        assert tui.texts() == ["half a sentence"]


def test_a_placeholder_is_shown_but_never_sent(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--placeholder", "Ask me") as tui:
        tui.terminal.wait_for("^> Ask me")
        tui.terminal.send(b"x" + ENTER)
        tui.wait_event("submitted")

        assert tui.texts() == ["x"]


@pytest.mark.parametrize("knob", ["--alternate", "--no-paste", ""])
def test_modes_of_the_terminal_are_set_as_asked(tmp_path: Path, knob: str) -> None:
    with run_tui(tmp_path, *filter(None, [knob])) as tui:
        tui.terminal.wait_for(EMPTY)
        raw = bytes(tui.terminal.raw)

    assert (b"\x1b[?1049h" in raw) == (knob == "--alternate")
    assert (b"\x1b[?2004h" in raw) == (knob != "--no-paste")


def test_a_long_paste_is_drawn_as_a_marker(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--collapse", "5") as tui:
        tui.terminal.wait_for(EMPTY)
        text = "\n".join(f"line {number}" for number in range(60))
        tui.terminal.paste(text)
        tui.terminal.wait_for(r"^> \[Pasted text #1 \+59 lines\]")
        tui.terminal.send(ENTER)
        tui.wait_event("submitted")

        assert tui.texts() == [text]


def test_it_ends_with_the_code_it_was_told(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--exit-on", "bye", "--exit-code", "7") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"bye" + ENTER)

        assert tui.terminal.process.wait(120) == 7


def test_it_may_crash(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--crash-after-s", "0.1") as tui:
        assert tui.terminal.process.wait(120) == -9
        assert tui.events("exited") == []


def test_a_slow_start_reads_nothing_before(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--start-ms", "200") as tui:
        tui.terminal.wait_for(EMPTY)

        assert tui.events("started")


def test_it_tells_its_hooks_and_its_transcript_in_claudes_form(tmp_path: Path) -> None:
    hooks = {
        event: [{"hooks": [{"type": "command", "command": f"cat >> {tmp_path}/{event}"}]}]
        for event in ("UserPromptSubmit", "Stop")
    }
    knobs = [
        "--settings",
        json.dumps({"hooks": hooks}),
        "--transcript",
        str(tmp_path / "t.jsonl"),
        "--resume",
    ]
    with run_tui(tmp_path, *knobs, "--session-id", "s-1") as tui:
        tui.terminal.wait_for(EMPTY)
        tui.terminal.send(b"hello" + ENTER)
        wait_until_sync(
            lambda: (tmp_path / "t.jsonl").exists() and "turn_duration" in (tmp_path / "t.jsonl").read_text(),
            what="the turn's end",
        )

    submitted = json.loads((tmp_path / "UserPromptSubmit").read_text())
    lines = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]
    assert (submitted["prompt"], submitted["session_id"]) == ("hello", "s-1")
    assert [line["type"] for line in lines] == ["user", "assistant", "system"]
    assert lines[0]["message"]["content"] == "hello"
    assert (lines[0]["promptSource"], lines[0]["promptId"]) == ("typed", submitted["prompt_id"])


def test_a_resize_draws_the_composer_anew(tmp_path: Path) -> None:
    with run_tui(tmp_path, "--draft", "x" * 100) as tui:
        tui.terminal.wait_for("^> x{70}")
        tui.terminal.resize(24, 120)
        tui.terminal.wait_for("^> x{100}$")


def test_keys_do_not_depend_on_where_reads_are_split() -> None:
    data = "a\x1b[200~日本\r\n\x1b[A\x1b[201~\x1b[Bé\r\x03".encode()
    expected = [
        Key(kind="text", text="a"),
        Key(kind="paste", text="日本\n\x1b[A"),
        Key(kind="sequence", text="\x1b[B"),
        Key(kind="text", text="é"),
        Key(kind="enter"),
        Key(kind="interrupt"),
    ]
    for cut in range(len(data) + 1):
        keyboard = Keyboard()

        assert keyboard.feed(data[:cut]) + keyboard.feed(data[cut:]) == expected


def test_a_lone_escape_is_a_key() -> None:
    keyboard = Keyboard()

    assert keyboard.feed(b"\x1b") == []
    assert keyboard.is_waiting
    assert keyboard.flush() == [Key(kind="escape")]


def test_it_leaves_no_process_behind(tmp_path: Path) -> None:
    with run_tui(tmp_path) as tui:
        pid = tui.terminal.process.pid
        tui.terminal.wait_for(EMPTY)

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
