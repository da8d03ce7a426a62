"""What is reported of a message under the generic profile is what truly happened, however a program draws."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.sidecar.stage import Stage, tui
from tests.sidecar.virtual import Desk, desk, on_virtual_time, until

pytestmark = pytest.mark.timeout(180)

SHAPES = {
    "arrow": ("--prompt-sign", "❯ "),
    "quote": ("--prompt-sign", "› "),
    "dollar": ("--prompt-sign", "$ "),
    "box": ("--frame", "box", "--placeholder", "Type your message", "--plain-placeholder"),
    "bar": ("--frame", "bar", "--placeholder", 'Ask anything… "Fix a bug"', "--plain-placeholder"),
    "rules": ("--frame", "rules", "--alternate", "--no-echo"),
    "at the top": ("--at-top",),
    "drawn caret": ("--frame", "rules", "--drawn-caret", "--placeholder", "  Type your message or @path"),
    "no caret": ("--frame", "rules", "--no-caret"),
    "marker": ("--collapse", "2"),
    "marker of its own": ("--collapse", "2", "--marker", "<clip>"),
    "slow": ("--echo-ms", "700"),
    "cleared": ("--clear-on-submit", "--no-echo"),
    "blank": ("--blank-ms", "5000", "--alternate", "--frame", "bar"),
}
#: What a change is always tried with; the others are for the long run.
_FEW = ("box", "bar", "at the top", "drawn caret", "no caret", "marker of its own", "blank")
MOST = pytest.mark.parametrize(
    "shape", [pytest.param(name, marks=() if name in _FEW else pytest.mark.full) for name in SHAPES]
)


def words(scene: Desk) -> list[str]:
    """Return what stood between our lines in each prompt that was submitted."""
    return [prompt.partition("]")[2].partition("[end")[0].strip() for prompt in scene.prompts()]


@MOST
@on_virtual_time
async def test_what_is_submitted_was_submitted_once(tmp_path: Path, shape: str) -> None:
    async with desk(tmp_path, *SHAPES[shape]) as scene:
        for text in ("one", "two"):
            await scene.wait_for(scene.send(text), "submitted", within_s=90)

        assert words(scene) == ["one", "two"]


@on_virtual_time
async def test_a_program_without_pastes_gets_one_line(tmp_path: Path) -> None:
    async with desk(tmp_path, "--no-paste") as scene:
        for text in ("one", "two"):
            await scene.wait_for(scene.send(text), "submitted", within_s=90)

        assert words(scene) == ["one", "two"]


@MOST
@on_virtual_time
async def test_an_enter_that_is_swallowed_for_ever_is_never_submitted(tmp_path: Path, shape: str) -> None:
    async with desk(tmp_path, *SHAPES[shape], "--swallow-ms", "-1") as scene:
        message = scene.send("one")
        reason = await scene.wait_for(message, "failed", within_s=120)

        assert "swallowed" in reason
        assert "submitted" not in scene.room.states_of(message)
        assert scene.prompts() == []


@MOST
@on_virtual_time
async def test_an_enter_that_is_swallowed_for_a_while_submits_once(tmp_path: Path, shape: str) -> None:
    async with desk(tmp_path, *SHAPES[shape], "--swallow-ms", "1500") as scene:
        await scene.wait_for(scene.send("one"), "submitted", within_s=90)

        assert words(scene) == ["one"]


@pytest.mark.parametrize("shape", ["arrow", "box", "bar", "at the top", "drawn caret"])
@on_virtual_time
async def test_an_enter_that_breaks_the_line_is_pressed_again(tmp_path: Path, shape: str) -> None:
    async with desk(tmp_path, *SHAPES[shape], "--break-first", "1") as scene:
        await scene.wait_for(scene.send("one"), "submitted", within_s=90)

        assert words(scene) == ["one"]


@pytest.mark.parametrize("shape", ["arrow", "box", "bar", "drawn caret"])
@on_virtual_time
async def test_an_enter_that_only_breaks_lines_is_never_submitted(tmp_path: Path, shape: str) -> None:
    async with desk(tmp_path, *SHAPES[shape], "--break-first", "-1") as scene:
        message = scene.send("one")
        await scene.wait_for(message, "failed", within_s=120)

        assert "submitted" not in scene.room.states_of(message)
        assert scene.prompts() == []


@on_virtual_time
async def test_a_blank_screen_is_not_ready(tmp_path: Path) -> None:
    async with desk(tmp_path, "--start-ms", "40000") as scene:
        message = scene.send("one")
        await scene.wait_held(message, "starting")
        await scene.wait_for(message, "submitted", within_s=90)

        assert scene.room.states_of(message).count("typed") == 1


#: A program that writes a line, comes up, draws an empty composer, and shows only then what it had read.
COMES_UP = ("--loading", "Package extraction took 5672 ms", "--alternate", "--frame", "rules")


@pytest.mark.parametrize(
    ("start_ms", "deaf_ms"),
    [(6000, 700), pytest.param(500, 3000, marks=pytest.mark.full), (3000, 20000), (12000, 6000)],
)
@on_virtual_time
async def test_what_a_program_reads_before_it_shows_it_is_typed_once(
    tmp_path: Path, start_ms: int, deaf_ms: int
) -> None:
    slow = ("--start-ms", str(start_ms), "--deaf-ms", str(deaf_ms))
    async with desk(tmp_path, *COMES_UP, *slow) as scene:
        message = scene.send("one")
        await scene.wait_for(message, "submitted", within_s=120)

        assert words(scene) == ["one"]
        assert scene.room.states_of(message).count("typed") == 1


@on_virtual_time
async def test_what_a_program_has_not_shown_may_have_arrived(tmp_path: Path) -> None:
    async with desk(tmp_path, *COMES_UP, "--start-ms", "6000", "--deaf-ms", "600000") as scene:
        message = scene.send("one")
        reason = await scene.wait_for(message, "failed", within_s=120)

        assert "may still have arrived" in reason
        assert scene.room.states_of(message).count("typed") == 1


@on_virtual_time
async def test_a_program_that_shows_nothing_gets_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        message = scene.send("one")
        await scene.wait_held(message, "starting")
        scene.write(b"\x1b[2J\x1b[H   \r\n")
        await until(lambda: scene.room.states, 60)

        assert (scene.room.state_of(message), scene.typed) == ("held", [])


@on_virtual_time
async def test_a_draft_behind_which_a_person_has_typed_is_no_placeholder(tmp_path: Path) -> None:
    async with desk(tmp_path, *SHAPES["box"]) as scene:
        await scene.wait_for(scene.send("one"), "submitted")
        scene.press(b"my own words")
        message = scene.send("two")
        await scene.wait_held(message, "draft")
        scene.press(b"\x15")
        await scene.wait_for(message, "submitted")

        assert words(scene) == ["one", "two"]


def test_a_swallowed_enter_over_a_real_terminal(stage: Stage) -> None:
    log = stage.folder / "log"
    stage.seat("tui", tui(log, *SHAPES["drawn caret"], "--swallow-ms", "-1"))
    reason = stage.wait_for(stage.send("tui", "hello"), "tui", "failed", "submitted", "confirmed")

    assert "swallowed" in (reason or "")
    assert '"submitted"' not in log.read_text()


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-q"],
        ["sh", "-c", "echo ready; exec cat"],
        ["sh", "-c", "printf 'name: '; read line; sleep 300"],
    ],
    ids=["repl", "cat", "silent"],
)
def test_programs_that_read_lines_get_theirs(stage: Stage, command: list[str]) -> None:
    found = shutil.which(command[0], path=os.environ["PATH"])
    assert found
    stage.seat("prog", [found, *command[1:]], "--profile", "generic")

    stage.wait_for(stage.send("prog", "hello"), "prog", "submitted", "confirmed")
