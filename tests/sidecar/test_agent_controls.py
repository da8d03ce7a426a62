"""Buttons: what is pressed in the pane for each, what proves it, what is said where it could not be."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from csp.errors import Refused, Unreachable
from csp.protocol.enums import ControlVerb
from csp.sidecar.brain.brain_init import BrainHandover
from tests.sidecar.virtual import Desk, changed_profile, desk, on_virtual_time, until

DIALOG = (
    "\x1b[2J\x1b[HBash command\r\n\r\n  touch x\r\n\r\nDo you want to proceed?\r\n"
    "❯ 1. Yes\r\n  2. No\r\n\r\nEsc to cancel"
).encode()


@pytest.mark.parametrize(
    ("verb", "key", "answer"),
    [(ControlVerb.APPROVE, b"\r", "approved"), (ControlVerb.DENY, b"\x1b", "denied")],
)
@on_virtual_time
async def test_a_dialog_is_answered(tmp_path: Path, verb: ControlVerb, key: bytes, answer: str) -> None:
    async with desk(tmp_path, "--dialog-at-start") as scene:
        await scene.wait_state("needs_approval")

        assert await scene.wait_control(scene.control(verb)) == ("confirmed", "")
        assert scene.typed == [key]
        assert len(scene.events(answer)) == 1


@on_virtual_time
async def test_a_choice_is_pressed_by_its_number(tmp_path: Path) -> None:
    async with desk(tmp_path, "--dialog-at-start") as scene:
        await scene.wait_state("needs_approval")
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE, choice=2))

        assert result == ("confirmed", "")
        assert scene.typed == [b"2"]


@pytest.mark.parametrize(
    ("choice", "why"), [(3, "there is no choice 3 (1-2)"), (10, "only choices 1 to 9 have a key")]
)
@on_virtual_time
async def test_a_choice_that_is_not_there_is_not_pressed(tmp_path: Path, choice: int, why: str) -> None:
    async with desk(tmp_path, "--dialog-at-start") as scene:
        await scene.wait_state("needs_approval")

        assert await scene.wait_control(scene.control(ControlVerb.APPROVE, choice=choice)) == ("failed", why)
        assert scene.typed == []


@contextlib.asynccontextmanager
async def asked_by_hook(folder: Path, command: str) -> AsyncIterator[Desk]:
    """Yield Claude with the dialog of `touch x`, whose hook says that it asks for `command`."""
    spool = folder / "spool"
    spool.mkdir()
    fields = {"spool": str(spool), "transcript": str(folder / "t.jsonl"), "session_id": "s"}
    async with desk(folder, has_tui=False, profile="claude", **fields) as scene:
        hook = {"hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "Bash"}
        text = json.dumps({**hook, "tool_input": {"command": command}})
        (spool / ".1.json").write_text(text, "utf-8")
        (spool / ".1.json").rename(spool / "1.json")
        scene.echo = lambda keys: b"\x1b[2J\x1b[Hdone\r\n"
        scene.write(DIALOG)
        await until(lambda: scene.room.states[-1][3] and scene.room.states[-1][3].tool == "Bash")
        yield scene


@pytest.mark.parametrize(
    ("about", "result", "typed"),
    [
        ("touch x", ("confirmed", ""), [b"1"]),
        ("touch y", ("failed", "the dialog does not show the command that the rule covers"), []),
        ("touch", ("failed", "the dialog does not show the command that the rule covers"), []),
    ],
)
@on_virtual_time
async def test_a_rule_approves_only_its_own_command(
    tmp_path: Path, about: str, result: tuple[str, str], typed: list[bytes]
) -> None:
    async with asked_by_hook(tmp_path, "touch x") as scene:
        _, _, _, dialog = await scene.wait_state("needs_approval")
        assert (dialog.runs, scene.room.asks[-1]) == ("touch x", "permission")

        assert await scene.wait_control(scene.control(ControlVerb.APPROVE, about=about)) == result
        assert scene.typed == typed


@on_virtual_time
async def test_a_rule_does_not_approve_the_dialog_of_another_command(tmp_path: Path) -> None:
    async with asked_by_hook(tmp_path, "pytest") as scene:
        control = scene.control(ControlVerb.APPROVE, about="pytest")

        assert (await scene.wait_control(control))[0] == "failed"
        assert scene.typed == []


@on_virtual_time
async def test_a_rule_does_not_approve_what_only_the_screen_says(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.write(DIALOG)
        _, _, _, dialog = await scene.wait_state("needs_approval")
        assert dialog.runs == ""

        state, _ = await scene.wait_control(scene.control(ControlVerb.APPROVE, about="touch x"))
        assert (state, scene.typed) == ("failed", [])


@on_virtual_time
async def test_without_a_dialog_nothing_is_pressed(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")

        assert await scene.wait_control(scene.control(ControlVerb.APPROVE)) == ("failed", "no dialog is open")
        assert scene.typed == []


class NumberedDialog:
    """A dialog of two numbered choices that reads its keys when a test lets it, in order."""

    def __init__(self) -> None:
        self.selected = 1
        #: How many answers it drops, as a dialog does that was only just drawn.
        self.drops = 0
        #: Whether a number that it drops is selected nevertheless.
        self.selects = False
        self.is_slow = False
        self.unread: list[bytes] = []
        self.answers: list[bytes] = []

    def draw(self) -> bytes:
        if self.answers:
            return b"\x1b[2J\x1b[Hdone\r\n"
        marks = ["❯" if number == self.selected else " " for number in (1, 2)]
        rows = DIALOG.decode().replace("❯ 1.", f"{marks[0]} 1.").replace("  2.", f"{marks[1]} 2.")
        return rows.encode()

    def press(self, keys: bytes) -> bytes:
        self.unread.append(keys)
        return b"" if self.is_slow else self.read()

    def read(self) -> bytes:
        for keys in self.unread:
            match keys:
                case b"\x1b[A":
                    self.selected = max(1, self.selected - 1)
                case b"\x1b[B":
                    self.selected = min(2, self.selected + 1)
                case _ if self.drops:
                    self.drops -= 1
                    self.selected = int(keys) if self.selects else self.selected
                case _:
                    self.answers.append(keys)
        self.unread.clear()
        return self.draw()


@contextlib.asynccontextmanager
async def asking(folder: Path, dialog: NumberedDialog) -> AsyncIterator[Desk]:
    async with desk(folder, has_tui=False, profile="claude") as scene:
        scene.echo = dialog.press
        scene.write(dialog.draw())
        await scene.wait_state("needs_approval")
        yield scene


@on_virtual_time
async def test_a_dialog_that_drops_the_first_key_is_pressed_again(tmp_path: Path) -> None:
    dialog = NumberedDialog()
    dialog.drops = 1
    async with asking(tmp_path, dialog) as scene:
        assert await scene.wait_control(scene.control(ControlVerb.APPROVE)) == ("confirmed", "")
        assert scene.typed == [b"1", b"\x1b[B", b"\x1b[A", b"1"]
        assert (dialog.answers, dialog.selected) == ([b"1"], 1)


@on_virtual_time
async def test_a_number_that_was_only_selected_is_pressed_again(tmp_path: Path) -> None:
    dialog = NumberedDialog()
    dialog.drops, dialog.selects = 1, True
    async with asking(tmp_path, dialog) as scene:
        assert await scene.wait_control(scene.control(ControlVerb.DENY)) == ("confirmed", "")
        assert scene.typed == [b"2", b"\x1b[A", b"\x1b[B", b"2"]
        assert dialog.answers == [b"2"]


@on_virtual_time
async def test_a_slow_cli_gets_one_answer_alone(tmp_path: Path) -> None:
    dialog = NumberedDialog()
    dialog.is_slow = True
    async with asking(tmp_path, dialog) as scene:
        control = scene.control(ControlVerb.APPROVE)
        await until(lambda: scene.typed == [b"1", b"\x1b[B"])
        scene.write(dialog.read())

        assert await scene.wait_control(control) == ("confirmed", "")
        assert dialog.answers == [b"1"]


@on_virtual_time
async def test_a_cli_that_reads_no_key_is_not_pressed_again(tmp_path: Path) -> None:
    dialog = NumberedDialog()
    dialog.is_slow = True
    async with asking(tmp_path, dialog) as scene:
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE))

        assert result == ("failed", "the dialog stayed open")
        assert scene.typed == [b"1", b"\x1b[B"]


@on_virtual_time
async def test_a_dialog_that_reads_keys_and_stays_is_given_up(tmp_path: Path) -> None:
    dialog = NumberedDialog()
    dialog.drops = 99
    async with asking(tmp_path, dialog) as scene:
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE))

        assert result == ("failed", "the dialog stayed open")
        assert scene.typed.count(b"1") == 2


@on_virtual_time
async def test_a_dialog_without_a_selection_is_pressed_once(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.write("\x1b[2J\x1b[HWell\r\n\r\n  Enter to stay in auto mode · Esc to cancel".encode())
        await scene.wait_state("needs_approval")
        result = await scene.wait_control(scene.control(ControlVerb.DENY))

        assert result == ("failed", "the dialog stayed open")
        assert scene.typed == [b"\x1b"]


@on_virtual_time
async def test_the_next_dialog_in_its_place_counts_as_answered(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.echo = lambda _: DIALOG.replace(b"to proceed", b"to go on")
        scene.write(DIALOG)
        await scene.wait_state("needs_approval")

        assert await scene.wait_control(scene.control(ControlVerb.APPROVE)) == ("confirmed", "")
        assert scene.typed == [b"\r"]


@on_virtual_time
async def test_a_profile_without_a_key_says_so(tmp_path: Path) -> None:
    profile = changed_profile(
        tmp_path, ('[keys.approve]\nkey = "\\r"\n', ""), ('interrupt = "\\u0003"', 'interrupt = ""')
    )
    async with desk(tmp_path, "--dialog-at-start", "--busy-s", "30", profile=profile) as scene:
        await scene.wait_state("needs_approval")
        approve = await scene.wait_control(scene.control(ControlVerb.APPROVE))
        interrupt = await scene.wait_control(scene.control(ControlVerb.INTERRUPT))

        assert approve == interrupt == ("failed", "profile generic has no key for that")
        assert scene.typed == []


@on_virtual_time
async def test_an_answer_is_stopped(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "30") as scene:
        await scene.wait_for(scene.send("one"), "submitted")

        assert await scene.wait_control(scene.control(ControlVerb.INTERRUPT)) == ("confirmed", "")
        assert len(scene.events("interrupted")) == 1


@on_virtual_time
async def test_a_turn_at_work_is_stopped(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "30", keeps_record=True) as scene:
        ask = scene.ask("crocuses", "t-1")
        await scene.wait_for(ask, "confirmed")

        assert await scene.wait_control(scene.control(ControlVerb.INTERRUPT, turn="t-1")) == ("confirmed", "")
        assert len(scene.events("interrupted")) == 1
        reply = await scene.reply_to(ask)
        assert (reply["turn"], reply["ending"]) == ("t-1", "interrupted")


@on_virtual_time
async def test_at_rest_there_is_nothing_to_stop(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")

        result = await scene.wait_control(scene.control(ControlVerb.INTERRUPT))
        assert result == ("failed", "nothing is running")
        assert scene.typed == []


@on_virtual_time
async def test_an_answer_that_goes_on_is_told(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.write(b"> ")
        await scene.wait_state("idle")
        scene.write(b"\rWorking (esc to interrupt)\r\n> ")
        await scene.wait_state("busy")
        began = asyncio.get_running_loop().time()
        result = await scene.wait_control(scene.control(ControlVerb.INTERRUPT))

        assert result == ("failed", "it is still working: the key had no visible effect")
        assert scene.typed == [b"\x03"]
        assert 7.9 < asyncio.get_running_loop().time() - began < 9


@pytest.mark.parametrize("verb", [ControlVerb.PAUSE, ControlVerb.RESUME])
@on_virtual_time
async def test_what_is_the_rooms_own_affair_is_confirmed(tmp_path: Path, verb: ControlVerb) -> None:
    async with desk(tmp_path) as scene:
        assert await scene.wait_control(scene.control(verb)) == ("confirmed", "")
        assert scene.typed == []


@on_virtual_time
async def test_a_control_that_a_brain_before_had_begun_is_not_pressed_again(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.write(DIALOG)
        await scene.wait_state("needs_approval")
        control = scene.control(ControlVerb.DENY)
        await until(lambda: scene.typed)
        found = BrainHandover.load(scene.note)
        assert found is not None and found.controls == (control,)
        await scene.replace_brain()

        assert await scene.wait_control(control) == ("failed", "unknown")
        assert scene.typed == [b"\x1b"]


@pytest.mark.parametrize("error", [Refused("expired"), Unreachable("gone")])
@on_virtual_time
async def test_a_room_that_does_not_want_the_result_does_no_harm(
    tmp_path: Path, error: Refused | Unreachable
) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        scene.room.refusals["control_done"] = [error]
        scene.control(ControlVerb.PAUSE)
        await until(lambda: not scene.room.refusals["control_done"])

        await scene.reply_to(scene.send("still there"))


@on_virtual_time
async def test_a_cli_that_does_not_end_for_a_restart_is_told(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        control = scene.control(ControlVerb.RESTART)
        await until(lambda: scene.restarts)
        message = scene.send("not now")
        await scene.wait_held(message, "starting")

        assert await scene.wait_control(control) == ("failed", "the CLI did not end")
        await scene.reply_to(message)


@on_virtual_time
async def test_why_a_cli_cannot_be_started_again_is_told(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        control = scene.control(ControlVerb.RESTART)
        await until(lambda: scene.restarts)
        scene.tell(b"P", b"not restarted: cannot execute '/bin/tui'")

        assert await scene.wait_control(control) == ("failed", "cannot execute '/bin/tui'")


@on_virtual_time
async def test_a_restart_in_the_middle_of_a_turn_ends_it(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "30", keeps_record=True) as scene:
        message = scene.send("one")
        await scene.wait_for(message, "confirmed")
        scene.control(ControlVerb.RESTART)
        reply = await scene.reply_to(message)

        assert reply["ending"] == "interrupted"


# --- lists without numbers -----------------------------------------------------------------------

LINE = "─" * 60


class Listing:
    """A start screen of Claude Code 2.1.326: arrows move the mark, Enter takes the marked choice."""

    def __init__(self, *labels: str, title: str = "Quick safety check: do you trust this folder?") -> None:
        self.labels, self.title = labels, title
        self.at = 0
        self.taken = ""
        self.is_frozen = False
        #: After a paste, Enter does nothing until an arrow has been pressed.
        self.is_locked = False

    def draw(self) -> bytes:
        rows = [LINE, f" {self.title}", ""]
        rows += [f" {'❯' if at == self.at else ' '} {label}" for at, label in enumerate(self.labels)]
        screen = "\r\n".join([*rows, "", " Enter to confirm · Esc to cancel"])
        return f"\x1b[2J\x1b[H{screen}\x1b[{self.at + 4};2H".encode()

    def press(self, keys: bytes) -> bytes:
        if self.is_frozen:
            return b""
        match keys:
            case b"\x1b[A":
                self.at, self.is_locked = max(0, self.at - 1), False
            case b"\x1b[B":
                self.at, self.is_locked = min(len(self.labels) - 1, self.at + 1), False
            case b"\r" if not self.is_locked:
                self.taken = self.labels[self.at]
                return b"\x1b[2J\x1b[Hgone"
        return self.draw()


@pytest.mark.parametrize(
    ("verb", "choice", "taken"),
    [
        (ControlVerb.APPROVE, None, "Yes, I trust this folder"),
        (ControlVerb.DENY, None, "No, exit"),
        (ControlVerb.APPROVE, 1, "No, exit"),
        (ControlVerb.APPROVE, 2, "Yes, I trust this folder"),
    ],
)
@pytest.mark.parametrize("start", [0, 1])
@on_virtual_time
async def test_a_list_is_answered_by_moving_to_the_choice(
    tmp_path: Path, verb: ControlVerb, choice: int | None, taken: str, start: int
) -> None:
    listing = Listing("No, exit", "Yes, I trust this folder")
    listing.at = start
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = listing.press
        scene.write(listing.draw())
        await scene.wait_state("needs_human")

        assert await scene.wait_control(scene.control(verb, choice=choice)) == ("confirmed", "")
        assert listing.taken == taken


@pytest.mark.parametrize(
    ("verb", "start", "taken"),
    [(ControlVerb.APPROVE, 1, "Yes, I trust this folder"), (ControlVerb.DENY, 0, "No, exit")],
)
@on_virtual_time
async def test_a_list_that_takes_no_enter_before_an_arrow_is_given_one(
    tmp_path: Path, verb: ControlVerb, start: int, taken: str
) -> None:
    listing = Listing("No, exit", "Yes, I trust this folder")
    listing.at, listing.is_locked = start, True
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = listing.press
        scene.write(listing.draw())
        await scene.wait_state("needs_human")

        assert await scene.wait_control(scene.control(verb)) == ("confirmed", "")
        assert listing.taken == taken


@on_virtual_time
async def test_a_list_that_reads_enter_late_gets_it_once(tmp_path: Path) -> None:
    listing = Listing("No, exit", "Yes, I trust this folder")
    listing.at = 1
    unread: list[bytes] = []

    def keep(keys: bytes) -> bytes:
        unread.append(keys)
        return b""

    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = keep
        scene.write(listing.draw())
        await scene.wait_state("needs_human")
        control = scene.control(ControlVerb.APPROVE)
        await until(lambda: len(unread) == 2)
        for keys in unread:
            scene.write(listing.press(keys) if not listing.taken else b"")

        assert await scene.wait_control(control) == ("confirmed", "")
        assert scene.typed == [b"\r", b"\x1b[A"]
        assert listing.taken == "Yes, I trust this folder"


@on_virtual_time
async def test_a_list_that_stays_is_given_up(tmp_path: Path) -> None:
    listing = Listing("No, exit", "Yes, I trust this folder")
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = lambda keys: listing.draw() if keys == b"\r" else listing.press(keys)
        scene.write(listing.draw())
        await scene.wait_state("needs_human")
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE))

        assert result == ("failed", "the dialog stayed open")


@on_virtual_time
async def test_a_list_that_changes_meanwhile_is_not_entered(tmp_path: Path) -> None:
    listing = Listing("No, exit", "Yes, I trust this folder")
    other = Listing("Yes, delete it", "No", title="Do you trust the files?")
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = lambda _: other.draw()
        scene.write(listing.draw())
        await scene.wait_state("needs_human")
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE))

        assert result == ("failed", "the dialog has changed")
        assert b"\r" not in scene.typed


@on_virtual_time
async def test_a_list_whose_mark_does_not_move_is_not_entered(tmp_path: Path) -> None:
    listing = Listing("No, exit", "Yes, I trust this folder")
    listing.is_frozen = True
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = listing.press
        scene.write(listing.draw())
        await scene.wait_state("needs_human")
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE))

        assert result == ("failed", "the choice 'Yes, I trust this folder' could not be selected")
        assert b"\r" not in scene.typed


@on_virtual_time
async def test_a_menu_in_which_nothing_says_yes_is_not_answered_by_guessing(tmp_path: Path) -> None:
    listing = Listing("Claude account", "Anthropic Console account", title="Select login method:")
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = listing.press
        scene.write(listing.draw())
        await scene.wait_state("needs_human")
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE))

        assert result == ("failed", "no choice of the dialog clearly matches; choose one by its number")
        assert scene.typed == []


@on_virtual_time
async def test_a_key_that_the_dialog_has_no_choice_for_is_not_pressed(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.write(b"\x1b[2J\x1b[HSettings\r\n\r\n  Esc to cancel")
        await scene.wait_state("needs_approval")
        result = await scene.wait_control(scene.control(ControlVerb.APPROVE))

        assert result == ("failed", "no choice of the dialog clearly matches; choose one by its number")
        assert scene.typed == []


@pytest.mark.parametrize(
    ("verb", "choice", "result", "typed"),
    [
        (ControlVerb.APPROVE, None, ("confirmed", ""), [b"\r"]),
        (ControlVerb.DENY, None, ("confirmed", ""), [b"\x1b"]),
        (ControlVerb.APPROVE, 1, ("failed", "there is no choice 1"), []),
    ],
)
@on_virtual_time
async def test_a_dialog_in_which_enter_means_yes_is_answered(
    tmp_path: Path, verb: ControlVerb, choice: int | None, result: tuple[str, str], typed: list[bytes]
) -> None:
    async with desk(tmp_path, has_tui=False, profile="claude") as scene:
        scene.echo = lambda _: b"\x1b[2J\x1b[Hgone"
        scene.write("\x1b[2J\x1b[HWell\r\n\r\n  Enter to stay in auto mode · Esc to cancel".encode())
        await scene.wait_state("needs_approval")

        assert await scene.wait_control(scene.control(verb, choice=choice)) == result
        assert scene.typed == typed
