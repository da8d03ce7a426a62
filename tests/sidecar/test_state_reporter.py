"""What the room is told of an agent's state."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from csp.errors import Refused, Unreachable
from csp.protocol.enums import JoinRole, ParticipantKind
from csp.protocol.events import Joined
from csp.sidecar.brain.state_reporter import (
    MAX_COMMAND,
    MAX_DETAIL,
    MAX_TOOL,
    StateReporter,
    _cut,
    _to_minute,
)
from csp.terminal.reply_tracker import Asked, CapturedActivity, CapturedReply, Returned
from csp.terminal.screen_reader import DialogChoice as Shown
from csp.terminal.screen_reader import ScreenDialog
from tests.sidecar.virtual import changed_profile, desk, on_virtual_time, said_by, until


def names(states: list[tuple[Any, ...]]) -> list[str]:
    return [state[0] for state in states]


@on_virtual_time
async def test_a_turn_is_starting_idle_busy_idle(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "3") as scene:
        await scene.wait_state("idle")
        await scene.reply_to(scene.send("one"))
        await scene.wait_state("idle")

        assert [name for name in names(scene.room.states) if name != "starting"][-2:] == ["busy", "idle"]
        assert names(scene.room.states)[0] == "starting"


@on_virtual_time
async def test_a_state_that_does_not_last_is_not_told(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.write(b"> ")
        await scene.wait_state("idle")
        told = len(scene.room.states)
        scene.write(b"\r\x1b[2J\x1b[HWorking (esc to interrupt)\r\n> ")
        await asyncio.sleep(0.05)
        scene.write(b"\x1b[2J\x1b[H> ")
        await asyncio.sleep(0.05)
        assert scene.room.states[told:] == []


@on_virtual_time
async def test_a_question_is_told_with_its_words_and_choices(tmp_path: Path) -> None:
    async with desk(tmp_path, "--dialog-at-start") as scene:
        _, detail, until_, dialog = await scene.wait_state("needs_approval")

        assert detail == dialog.question == "Do you want to proceed?"
        assert [(one.number, one.label) for one in dialog.choices] == [(1, "Yes"), (2, "No")]
        assert until_ is None


def test_of_two_permissions_at_once_none_is_told_as_a_command() -> None:
    pane = SimpleNamespace(is_asking=False)
    reporter = StateReporter(cast("Any", SimpleNamespace(pane=pane)), cast("Any", None))
    reporter.note_asked(Asked(tool="Bash", arguments="{}", command="rm x"))
    pane.is_asking = True
    assert reporter.asked_command == "rm x"

    reporter.note_asked(Asked(tool="Bash", arguments="{}", command="pytest"))
    assert reporter.asked_command == ""


@pytest.mark.parametrize(
    ("subject", "command", "told"),
    [
        ("$ touch a", "touch a", "touch a"),
        ("Reason: it is needed\n\n$ touch a", "touch a", "touch a"),
        ("$ touch a b", "touch a", ""),
        ("edit a file", "touch a", ""),
        ("$ touch a", "", ""),
    ],
)
def test_a_call_that_the_dialog_shows_is_the_command_it_asks_for(
    subject: str, command: str, told: str
) -> None:
    dialog = ScreenDialog(kind="permission", question="Run it?", subject=subject, choices=())
    pane = SimpleNamespace(is_asking=False, reading=SimpleNamespace(dialog=dialog))
    cli = SimpleNamespace(pane=pane, tracker=SimpleNamespace(open_command=command))
    reporter = StateReporter(cast("Any", cli), cast("Any", None))
    assert reporter.asked_command == told

    pane.reading = SimpleNamespace(dialog=None)
    assert reporter.asked_command == ""


def test_a_command_that_would_be_cut_is_not_told_as_one() -> None:
    pane = SimpleNamespace(is_asking=True)
    reporter = StateReporter(cast("Any", SimpleNamespace(pane=pane)), cast("Any", None))
    reporter.note_asked(Asked(tool="Bash", arguments="{}", command="x" * (MAX_COMMAND + 1)))

    assert reporter.asked_command == ""


@on_virtual_time
async def test_a_bare_question_is_told_with_the_rows_above_it(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False, profile="generic") as scene:
        scene.write(b"> ")
        await scene.wait_state("idle")
        scene.write(
            "\x1b[2J\x1b[HShell command\r\n\r\n  rm -rf build\r\n\r\nDo you want to proceed?\r\n"
            "❯ 1. Yes\r\n  2. No\r\n".encode()
        )
        _, _, _, dialog = await scene.wait_state("needs_approval")

        assert dialog.arguments == "Shell command\n\nrm -rf build"
        assert dialog.runs == ""


@on_virtual_time
async def test_a_room_that_may_have_forgotten_us_is_told_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        told = len(scene.room.states)
        for sender in ("somebody", scene.agent):
            scene.room.items.put_nowait(joined(sender))
            await asyncio.sleep(1)
            if sender == "somebody":
                assert scene.room.states[told:] == []

        assert names(scene.room.states[told:]) == ["idle"]


def joined(sender: str) -> Joined:
    fields = {"name": sender, "kind": ParticipantKind.CLI, "role": JoinRole.AGENT, "epoch": 1}
    return Joined(**said_by(sender, **fields))


@on_virtual_time
async def test_a_state_that_is_refused_is_no_end(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        scene.room.refusals["state"] = [Refused("not now")]
        await until(lambda: not scene.room.refusals["state"])
        await scene.reply_to(scene.send("one"))


@on_virtual_time
async def test_a_room_that_is_gone_ends_the_brain(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        scene.room.refusals["state"] = [Unreachable("gone")]
        with pytest.raises(Unreachable):
            await scene.wait_brain()


@on_virtual_time
async def test_a_stopped_program_needs_a_person(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        scene.tell(b"P", b"stopped")
        _, detail, _, _ = await scene.wait_state("needs_human")
        message = scene.send("one")
        await scene.wait_held(message, "paused")

        assert detail == "the program is stopped"
        scene.tell(b"P", b"continued")
        await scene.reply_to(message)


@on_virtual_time
async def test_a_screen_that_blocks_is_named(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.write(
            "─────────────────\r\n Select login method:\r\n\r\n ❯ 1. Claude account\r\n   2. API\r\n".encode()
        )
        _, detail, _, _ = await scene.wait_state("needs_human")

        assert detail.startswith("login: ")


# --- limits --------------------------------------------------------------------------------------


class FakePane:
    is_asking = False

    def __init__(self, limit: object) -> None:
        self.reading = SimpleNamespace(limit=limit, blocked=None, dialog=None)


class FakeSight:
    is_paused = False

    def __init__(self, limit: object) -> None:
        self.pane = FakePane(limit)

    def observe(self) -> None:
        """Nothing changes."""


def reporter(limit: object = None) -> StateReporter:
    return StateReporter(FakeSight(limit), None)  # type: ignore[arg-type]  # only its pane is asked


def holding_limit(one: StateReporter) -> tuple[str, float | None] | None:
    one.observe()
    return one.holding_limit


def test_a_limit_that_the_cli_told_holds_until_its_end() -> None:
    one = reporter()
    one.limit = ("Out of tokens", time.time() + 60)
    holds = holding_limit(one)
    one.limit = ("Out of tokens", time.time() - 1)

    assert holds is not None and holds[0] == "Out of tokens"
    assert holding_limit(one) is None
    one.limit = ("Out of tokens", None)
    assert holding_limit(one) == ("Out of tokens", None)


def test_the_end_of_a_limit_on_the_screen_is_reckoned_once() -> None:
    one = reporter(SimpleNamespace(text="limit reached", until_text="in 2h"))
    first = holding_limit(one)
    time.sleep(0.002)

    assert first is not None and first[1] is not None
    assert abs(first[1] - time.time() - 7200) < 60
    assert holding_limit(one) == first


def test_the_clis_own_word_of_a_limit_goes_before_the_screen() -> None:
    one = reporter(SimpleNamespace(text="the screen's", until_text=""))
    one.limit = ("the CLI's", None)

    assert holding_limit(one) == ("the CLI's", None)


def test_what_the_cli_itself_asked_goes_before_what_the_screen_shows() -> None:
    one = reporter()
    dialog = ScreenDialog(
        kind="permission", question="Proceed?", subject="rm x",
        choices=tuple(Shown(number=number, label="y" * 600, is_selected=False) for number in range(1, 41)),
    )  # fmt: skip
    one.asked = Asked(tool="Bash" * 200, arguments="z" * 9000)
    by_screen = one._question(dialog)
    FakePane.is_asking = True
    try:
        by_word = one._question(dialog)
    finally:
        FakePane.is_asking = False

    assert (by_screen.tool, by_screen.arguments, by_screen.question) == ("", "rm x", "Proceed?")
    assert (by_word.tool, by_word.arguments) == (("Bash" * 200)[:500], "z" * 8000)
    assert len(by_word.choices) == 30 and len(by_word.choices[0].label) == 500


def test_a_busy_agent_tells_the_tool_that_it_has_called_last_and_how_it_ended() -> None:
    one = reporter()
    assert one.doing == ""
    one.note_tool(
        CapturedActivity(
            id="1", text="Let me see.", tag=None, tool="Bash", arguments='{"command": "pytest\\n -q"}'
        )
    )
    assert one.doing == "Bash: pytest -q"
    one.note_returned(Returned(id="1", ending="exit 1"))
    one.note_tool(CapturedActivity(id="2", text="It fails.", tag=None))
    assert one.doing == "Bash: pytest -q: exit 1"
    one.note_tool(CapturedActivity(id="3", text="", tag=None, tool="Wait", arguments="{}"))
    assert one.doing == "Wait"
    one.note_tool(CapturedActivity(id="4", text="", tag=None, tool="Read", arguments="x" * 9000))
    assert one.doing == ("Read: " + "x" * 9000)[:MAX_TOOL]
    one.note_reply(CapturedReply(id="5", text="done", tag=None))
    assert one.doing == ""


def test_an_idle_agent_tells_how_the_last_tool_of_its_last_reply_ended() -> None:
    one = reporter()
    called = CapturedActivity(id="1", text="", tag=None, tool="Bash", arguments='{"command": "pytest"}')
    one.note_tool(called)
    one.note_returned(Returned(id="1", ending="exit 127"))
    one.note_reply(CapturedReply(id="2", text="done", tag=None))
    assert one.last_tool == "last: Bash: pytest: exit 127"
    one.note_returned(Returned(id="unknown", ending="exit 0"))
    one.note_reply(CapturedReply(id="3", text="hello", tag=None))
    assert one.last_tool == ""


def test_a_detail_is_cut_to_what_the_room_takes() -> None:
    assert _cut("x" * MAX_DETAIL) == "x" * MAX_DETAIL
    assert _cut("x" * (MAX_DETAIL + 1)) == "x" * (MAX_DETAIL - 1) + "…"


def test_a_time_is_told_to_the_minute() -> None:
    assert _to_minute(None) is None
    assert _to_minute(119.0) == 120.0
    assert _to_minute(61.0) == 120.0
    assert _to_minute(60.0) == 60.0


@on_virtual_time
async def test_a_limit_on_the_screen_is_told_with_its_end(tmp_path: Path) -> None:
    profile = changed_profile(
        tmp_path,
        (
            "[[screen.overlays]]",
            "[[screen.limits]]\nplace = \"above\"\npattern = 'limit reached, resets (?P<until>.+)'\n"
            "\n[[screen.overlays]]",
        ),
    )
    async with desk(tmp_path, has_tui=False, profile=profile) as scene:
        scene.write(b"limit reached, resets in 2h\r\n> ")
        _, detail, at, _ = await scene.wait_state("limited")

        assert detail == "limit reached, resets in 2h"
        assert at is not None and at % 60 == 0 and abs(at - time.time() - 7200) < 90
