"""The demo agents as programs in a real terminal."""

import json
import os
import re
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from csp.clis.profile import load_profile_file
from csp.sidecar.emulator import make_emulator
from csp.terminal.screen import Screen
from csp.terminal.screen_reader import Reading, read_screen
from tests.clis.terminal import CTRL_C, ENTER, ESCAPE, CspTerminal, Terminal
from tests.forks import run as run_csp
from tests.waiting import wait_until_sync

ROOT: Final = Path(__file__).resolve().parents[2]
PROFILE: Final = ROOT / "csp" / "clis" / "demo" / "profile.toml"
PLACEHOLDER: Final = r"^❯ Say something to"
BUSY: Final = r"^[·✢✳✶✻✽] .*… \(\d+s · esc to interrupt\)$"
MESSAGE: Final = "[from human #418]\nShould we paint the bike shed green?\n[end #418]"
CTRL_D: Final = b"\x04"


class Demo:
    """One demo agent in its terminal, with its transcript."""

    def __init__(self, terminal: Terminal, transcript: Path, size: tuple[int, int]) -> None:
        self.terminal = terminal
        self._transcript = transcript
        self.size = size

    def events(self, kind: str = "") -> list[dict[str, Any]]:
        raw = self._transcript.read_bytes() if self._transcript.exists() else b""
        # What is being written has no end of line yet.
        lines = raw.split(b"\n")[:-1]
        return [event for event in map(json.loads, lines) if kind in ("", event["type"])]

    def say(self, text: str) -> None:
        self.terminal.paste(text)
        self.terminal.send(ENTER)

    def wait_ended(self, count: int = 1) -> list[dict[str, Any]]:
        wait_until_sync(lambda: len(self.events("end")) >= count, 60.0, f"{count} answers")
        return self.events()

    def composer(self) -> list[str]:
        """Return the rows between the two lines, without the sign."""
        rows = self.terminal.screen().split("\n")
        borders = [at for at, row in enumerate(rows) if re.match("─{4,}", row)]
        return [row[2:].rstrip() for row in rows[borders[-2] + 1 : borders[-1]]] if len(borders) > 1 else []

    def shown(self) -> Screen:
        """Return the screen as the sidecar draws it."""
        emulator = make_emulator(*self.size)
        emulator.feed(bytes(self.terminal.raw))
        return emulator.screen()

    def reading(self) -> Reading:
        """Return what the sidecar would read from the screen."""
        return read_screen(self.shown(), load_profile_file(PROFILE).rules)


Start = Callable[..., Demo]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:

        def started(
            persona: str = "ada", *, speed: str = "0", rows: int = 24, columns: int = 80, **env: str
        ) -> Demo:
            transcript = tmp_path / f"{persona}.jsonl"
            env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color", **env}
            env |= {"CSP_DEMO_SPEED": speed, "CSP_TRANSCRIPT": str(transcript)}
            terminal = stack.enter_context(
                CspTerminal(["demo", persona], env, tmp_path, rows=rows, columns=columns)
            )
            demo = Demo(terminal, transcript, (rows, columns))
            wait_until_sync(lambda: demo.events("start"), 60.0, "the first screen")
            terminal.wait_for(PLACEHOLDER)
            return demo

        yield started


# --- the first screen ----------------------------------------------------------------------------


@pytest.mark.parametrize("persona", ["ada", "bob", "cy", "conductor"])
def test_the_first_screen_says_that_there_is_no_model(start: Start, persona: str) -> None:
    screen = start(persona).terminal.screen()

    assert persona in screen
    assert "scripted demo agent" in screen
    assert "no model" in screen


def test_the_name_in_the_room_is_shown(start: Start) -> None:
    assert "Say something to ada-2" in start("ada", CSP_AGENT="ada-2").terminal.screen()


def test_the_sidecar_reads_an_empty_composer(start: Start) -> None:
    demo = start()
    reading = demo.reading()

    assert demo.shown().bracketed_paste
    assert reading.composer is not None
    assert reading.composer.is_empty
    assert not reading.is_busy


# --- prompts -------------------------------------------------------------------------------------


def test_a_pasted_message_is_answered_with_words_of_it(start: Start) -> None:
    demo = start()
    demo.say(MESSAGE)
    began, asked, said, usage, ended = demo.wait_ended()

    assert began["type"] == "start"
    assert (asked["type"], asked["text"]) == ("prompt", MESSAGE)
    assert (said["type"], "Should we paint the bike shed green" in said["text"]) == ("text", True)
    assert (usage["type"], usage["input"], usage["model"]) == ("usage", len(MESSAGE.split()), "demo")
    assert (ended["type"], ended["how"]) == ("end", "done")
    demo.terminal.wait_for('^● .*"Should we paint the bike shed')


def test_a_paste_stands_in_the_composer_until_enter(start: Start) -> None:
    demo = start()
    demo.terminal.paste(MESSAGE.replace("\n", "\r"))
    demo.terminal.wait_for(r"^  \[end #418\]$")

    assert demo.composer() == MESSAGE.split("\n")
    assert demo.events("prompt") == []
    composer = demo.reading().composer
    assert composer is not None and composer.holds(MESSAGE) and not composer.is_empty


def test_a_long_paste_shows_its_end(start: Start) -> None:
    demo = start(rows=16)
    text = "\n".join(["[from human #9]", *(f"line {number}" for number in range(200)), "[end #9]"])
    demo.terminal.paste(text)
    demo.terminal.wait_for(r"^  \[end #9\]$")
    composer = demo.reading().composer

    assert composer is not None and composer.text.endswith("line 199\n[end #9]")
    assert composer.first_row != composer.last_row
    demo.terminal.send(ENTER)
    assert demo.wait_ended()[1]["text"] == text


def test_a_paste_in_pieces_is_one_text(start: Start) -> None:
    demo = start()
    data = b"\x1b[200~one\rtwo \xe6\x97\xa5\xe6\x9c\xac\x1b[201~\r"
    for byte in data:
        demo.terminal.send(bytes([byte]))

    assert demo.wait_ended()[1]["text"] == "one\ntwo 日本"


def test_control_characters_in_a_paste_do_nothing(start: Start) -> None:
    demo = start()
    demo.say("tab\there \x1b]0;evil\x07 \x9b31m end")

    assert demo.wait_ended()[1]["text"] == "tab\there ]0;evil 31m end"


def test_answers_come_at_once_one_for_each_prompt_in_order(start: Start) -> None:
    demo = start()
    for number in range(30):
        demo.say(f"[from human #{number}]\nhello number {number} of many\n[end #{number}]")
    events = demo.wait_ended(30)

    prompts = [event["text"].split()[5] for event in events if event["type"] == "prompt"]
    assert prompts == [str(number) for number in range(30)]
    kinds = [event["type"] for event in events[1:]]
    assert kinds == ["prompt", "text", "usage", "end"] * 30


@pytest.mark.parametrize(("env", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_an_answer_has_the_agents_colour_unless_none_is_wanted(
    start: Start, env: dict[str, str], *, is_coloured: bool
) -> None:
    demo = start("bob", **env)
    demo.say(MESSAGE)
    demo.terminal.wait_for(r"^● .*paint")
    row = next(row for row in demo.shown().rows if row.text.startswith("●"))

    assert (row.runs[0].style.fg is not None) is is_coloured


# --- editing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (b"helo\x7f\x7fllo", "hello"),
        (b"wrong\x15right", "right"),
        (b"bc\x01a\x05d", "abcd"),
        (b"ac\x1b[Db", "abc"),
        (b"bc\x1b[H\x1b[3~a\x1b[C!", "ac!"),
        (b"one two\x17three", "one three"),
        (b"up\ndown\x1b[A\x05!", "up!\ndown"),
        (b"down\x1b\rup\x1b[A\x1b[B\x05!", "down\nup!"),
        (b"gone\x03kept", "kept"),
        ("größer".encode() + b"\x7f\x7f\xc3\xb6\xc3\x9f", "größöß"),
    ],
)
def test_editing_keys(start: Start, keys: bytes, text: str) -> None:
    demo = start()
    demo.terminal.send(keys)
    wait_until_sync(lambda: demo.composer() == text.split("\n"), what=f"{text!r}")
    demo.terminal.send(ENTER)

    assert demo.wait_ended()[1]["text"] == text


def test_up_brings_the_last_prompt_back(start: Start) -> None:
    demo = start()
    demo.say("first one here")
    demo.say("second one here")
    demo.wait_ended(2)
    demo.terminal.send(b"\x1b[A\x1b[A\x1b[B")
    wait_until_sync(lambda: demo.composer() == ["second one here"], what="the last prompt")


# --- busy ----------------------------------------------------------------------------------------


def test_it_is_busy_then_streams_then_rests(start: Start) -> None:
    demo = start("cy", speed="1")
    demo.say(MESSAGE)

    # It draws its screen in several steps.
    wait_until_sync(lambda: demo.reading().is_busy and demo.events("text") == [], what="busy without a text")
    demo.terminal.wait_for(r"^● \S+")
    demo.wait_ended()
    demo.terminal.wait_gone(BUSY)
    assert not demo.reading().is_busy


def test_escape_interrupts_an_answer(start: Start) -> None:
    demo = start("ada", speed="0.2")
    demo.say(MESSAGE)
    demo.terminal.wait_for(BUSY)
    demo.terminal.send(ESCAPE)
    events = demo.wait_ended()

    assert [event["type"] for event in events] == ["start", "prompt", "usage", "end"]
    assert events[-1]["how"] == "interrupted"
    demo.terminal.wait_gone(BUSY)
    demo.terminal.wait_for("Interrupted by you")


def test_an_answer_that_streams_is_kept_as_far_as_it_came(start: Start) -> None:
    demo = start("bob", speed="1")
    demo.say("Give me a list of steps, each of them as long as you like, please.")
    demo.terminal.wait_for(r"^● \S+")
    demo.terminal.send(CTRL_C)
    events = demo.wait_ended()

    assert events[-1]["how"] == "interrupted"
    said = next(event["text"] for event in events if event["type"] == "text")
    assert said.startswith(demo.terminal.wait_for("Interrupted by you").partition("● ")[2][:8])


def test_what_is_sent_meanwhile_waits_its_turn(start: Start) -> None:
    demo = start("bob", speed="4")
    things = ["the first thing to do", "the second thing to do", "the third thing to do"]
    for thing in things:
        demo.say(thing)
    demo.terminal.wait_for("2 waiting")
    events = demo.wait_ended(3)[1:]

    assert [event["type"] for event in events] == ["prompt", "text", "usage", "end"] * 3
    assert [event["text"] for event in events if event["type"] == "prompt"] == things


def test_a_draft_may_be_written_during_an_answer(start: Start) -> None:
    demo = start("bob", speed="2")
    demo.say(MESSAGE)
    demo.terminal.wait_for(BUSY)
    demo.terminal.send(b"draft")
    demo.wait_ended()

    wait_until_sync(lambda: demo.composer() == ["draft"], what="the draft")


# --- size ----------------------------------------------------------------------------------------


def test_a_new_size_lays_everything_out_again(start: Start) -> None:
    demo = start()
    demo.say(MESSAGE)
    demo.wait_ended()
    demo.terminal.send(b"a draft that is longer than forty columns, surely")
    for rows, columns in ((20, 40), (30, 100), (12, 50)):
        demo.terminal.resize(rows, columns)
        demo.terminal.wait_for(rf"^─{{{columns}}}$")
        wait_until_sync(lambda: "".join(demo.composer()).endswith("surely"), what="the draft")
        screen = demo.terminal.screen()

        assert len(re.findall("─{4,}", screen)) == 2
        assert screen.count("❯") == 1
        assert "paint the bike" in screen


def test_a_resize_in_the_midst_of_an_answer_loses_no_word(start: Start) -> None:
    demo = start("cy", speed="1")
    demo.say("Please give me a list of ideas for a very small garden.")
    demo.terminal.wait_for(r"^  - \S+")
    demo.terminal.resize(30, 44)
    events = demo.wait_ended()
    said = next(event["text"] for event in events if event["type"] == "text")
    demo.terminal.wait_gone(BUSY)
    shown = demo.terminal.screen().rpartition("● ")[2]

    assert "".join(said.split()) in "".join(shown.split())


@pytest.mark.parametrize(("rows", "columns"), [(10, 80), (6, 30), (3, 20), (50, 200)])
def test_it_works_in_any_size(start: Start, rows: int, columns: int) -> None:
    demo = start(rows=rows, columns=columns)
    demo.say(MESSAGE)
    demo.say("and once more with feeling")
    demo.wait_ended(2)
    demo.terminal.send(CTRL_D)
    demo.terminal.wait_for("ada has left")
    history = demo.terminal.history()

    assert history.count("> and once more") == 1
    assert "".join(history.split()).count("andoncemore") == 2
    assert not re.search("❯|─{4,}", history)


def test_a_long_conversation_goes_up_into_the_scrollback(start: Start) -> None:
    demo = start("bob", rows=12)
    for number in range(12):
        demo.say(f"remark number {number} in a row")
    demo.wait_ended(12)
    demo.terminal.wait_for('"remark number 11 in a row"')
    history = demo.terminal.history()

    assert [history.count(f"> remark number {number} in a row") for number in range(12)] == [1] * 12
    assert history.count("❯") == 1


# --- the end -------------------------------------------------------------------------------------


def modes(demo: Demo) -> list[Any]:
    return termios.tcgetattr(demo.terminal._master)[:4]


def leave_by(demo: Demo, *keys: bytes) -> int:
    for key in keys:
        demo.terminal.send(key)
    return demo.terminal.process.wait(60)


def test_ctrl_d_leaves_an_empty_composer(start: Start) -> None:
    demo = start()
    was_raw = not modes(demo)[3] & termios.ICANON

    assert was_raw
    assert leave_by(demo, CTRL_D) == 0
    assert modes(demo)[3] & termios.ICANON and modes(demo)[3] & termios.ECHO
    wait_until_sync(lambda: b"\x1b[?2004l" in demo.terminal.raw, what="the end of marked pastes")
    assert "ada has left." in demo.terminal.wait_for("has left")
    assert "❯" not in demo.terminal.screen()


def test_ctrl_d_in_a_draft_does_not_leave(start: Start) -> None:
    demo = start()
    demo.terminal.send(b"ab\x01" + CTRL_D)

    wait_until_sync(lambda: demo.composer() == ["b"], what="one character less")
    assert demo.terminal.process.poll() is None


def test_ctrl_c_clears_then_warns_then_leaves(start: Start) -> None:
    demo = start()
    demo.terminal.send(b"draft" + CTRL_C)
    demo.terminal.wait_for(PLACEHOLDER)
    demo.terminal.send(CTRL_C)
    demo.terminal.wait_for("press ctrl-c again to leave")

    assert demo.terminal.process.poll() is None
    assert leave_by(demo, CTRL_C) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_a_sane_terminal(start: Start, number: signal.Signals) -> None:
    demo = start(speed="0.2")
    demo.say(MESSAGE)
    demo.terminal.wait_for(BUSY)
    os.kill(demo.terminal.process.pid, number)

    assert demo.terminal.process.wait(60) == 128 + number
    assert modes(demo)[3] & termios.ICANON
    assert demo.wait_ended()[-1]["how"] == "interrupted"


def test_ctrl_z_with_nobody_above_goes_on(start: Start) -> None:
    demo = start()
    demo.terminal.send(b"\x1a")
    demo.say(MESSAGE)

    assert demo.wait_ended()[-1]["how"] == "done"
    assert not modes(demo)[3] & termios.ICANON


def test_a_stopped_agent_goes_on_where_it_was(start: Start) -> None:
    demo = start()
    demo.terminal.send(b"draft")
    wait_until_sync(lambda: demo.composer() == ["draft"], what="the draft")
    os.kill(demo.terminal.process.pid, signal.SIGSTOP)
    mode = termios.tcgetattr(demo.terminal._master)
    mode[3] |= termios.ICANON | termios.ECHO
    termios.tcsetattr(demo.terminal._master, termios.TCSANOW, mode)
    os.kill(demo.terminal.process.pid, signal.SIGCONT)

    wait_until_sync(lambda: not modes(demo)[3] & termios.ICANON, what="raw mode again")
    wait_until_sync(lambda: demo.composer() == ["draft"], what="the draft")


def run(tmp_path: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    home = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    return run_csp(["demo", *words], tmp_path, home | env)


def test_without_a_terminal_it_says_so_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "ada")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "csp: a demo agent needs a terminal (run it in a terminal or with csp sidecar)\n"


def test_an_unknown_persona_is_told_the_known_ones(tmp_path: Path) -> None:
    done = run(tmp_path, "eve")

    assert done.returncode == 2
    assert done.stderr == "csp: unknown persona 'eve', expected one of: ada, bob, cy, conductor\n"


@pytest.mark.parametrize("speed", ["fast", "-1", "nan", "inf"])
def test_a_bad_speed_is_refused(tmp_path: Path, speed: str) -> None:
    env = {"HOME": str(tmp_path), "CSP_DEMO_SPEED": speed}
    with CspTerminal(["demo", "ada"], env, tmp_path) as terminal:
        assert terminal.process.wait(60) == 2
        terminal.wait_for(re.escape(f"CSP_DEMO_SPEED is {speed!r}"))
