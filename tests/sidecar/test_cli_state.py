"""What is known of a CLI as a whole: waiting for a change, the place of a prompt, what a profile asks for."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from csp.clis.profile import load_profile
from csp.protocol.enums import DeliverKind
from csp.protocol.responses import Deliver
from csp.sidecar.brain_socket import RelayPort
from csp.sidecar.state.cli_state import AWAITED_S, CliState
from csp.sidecar.state.pane_state import PaneState
from csp.terminal.generic_screen import PasteContext, PastePlace
from csp.terminal.prompt_builder import prompt_for
from csp.terminal.reply_tracker import Prompted, Tracker
from csp.terminal.submit_machine import SubmitRules
from tests.sidecar.virtual import on_virtual_time

RULE = "─" * 60
ITEM = Deliver(id="m", seq=7, kind=DeliverKind.MESSAGE, sender="human", text="hello", urgent=False)


@asynccontextmanager
async def sight(profile: str = "claude") -> AsyncIterator[CliState]:
    known = load_profile(profile)
    with socket.socket() as line:
        yield CliState(
            known, PaneState(known, 24, 80), RelayPort(line, lambda kind, payload: None), Tracker()
        )


def draw(seen: CliState, *rows: str) -> None:
    """Draw Claude Code with these rows in its composer."""
    inner = "\r\n".join(f"{'❯' if not at else ' '}\xa0{row}" for at, row in enumerate(rows))
    seen.pane.feed(f"\x1b[2J\x1b[H{RULE}\r\n{inner}\r\n{RULE}\x1b[{1 + len(rows)};3H".encode())
    seen.observe()


@on_virtual_time
async def test_a_cancellation_that_comes_with_a_change_is_not_lost() -> None:
    async with sight() as seen:

        async def wait_on() -> None:
            while True:
                await seen.wait(time.monotonic() + 100)

        task = asyncio.ensure_future(wait_on())
        await asyncio.sleep(0.1)
        seen.changed()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=5)

        assert task.cancelled()


@on_virtual_time
async def test_a_wait_ends_with_a_change_or_at_its_time() -> None:
    async with sight() as seen:
        began = time.monotonic()
        await seen.wait(began + 3)
        late = time.monotonic() - began
        waiting = asyncio.ensure_future(seen.wait(None))
        await asyncio.sleep(0)
        seen.drawn()
        seen.drawn()
        await waiting

        assert 3 <= late < 3.1
        assert 0.009 < time.monotonic() - began - late < 0.1


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([""], PastePlace.EMPTY),
        (["[from human #7]", "hello", "[end #7]"], PastePlace.HERE),
        (["[from human #7]", "hello", "[end #7; here: ada]"], PastePlace.HERE),
        (["[from human #7]", "hello", "[end #7"], PastePlace.OTHER),
        (["[from human #7]", "hello", "[end #7] and more"], PastePlace.OTHER),
        (["mine [from human #7]", "hello", "[end #7]"], PastePlace.OTHER),
        (["hello", "[end #7]"], PastePlace.HERE),
        (["hello [end #7]"], PastePlace.OTHER),
        (["[from human #6]", "x", "[end #6][from human #7]", "hello", "[end #7]"], PastePlace.OTHER),
        (["[from human #7]", "hello", "[end #71]"], PastePlace.OTHER),
        (["[Pasted text #1 +3 lines]"], PastePlace.HERE),
        (["mine [Pasted text #1 +3 lines]"], PastePlace.OTHER),
    ],
)
async def test_the_place_of_a_prompt(rows: list[str], place: PastePlace) -> None:
    async with sight() as seen:
        draw(seen, *rows)

        assert seen.place_of(prompt_for(ITEM), time.monotonic()) is place


@on_virtual_time
async def test_a_paste_that_a_person_may_have_added_to_is_not_ours() -> None:
    async with sight() as seen:
        draw(seen, "[Pasted text #1 +3 lines]")
        pasted_at = time.monotonic()
        await asyncio.sleep(1)
        seen.pane.count_keys(b"x")
        held = seen.place_of(prompt_for(ITEM), pasted_at)
        await asyncio.sleep(1)

        assert held is PastePlace.HERE
        assert seen.place_of(prompt_for(ITEM), pasted_at) is PastePlace.OTHER


async def test_without_a_composer_the_prompt_is_looked_for_at_the_cursor() -> None:
    async with sight() as seen:
        seen.pane.feed(b"[from human #7]\r\nhello\r\n[end #7]")
        seen.observe()
        assert seen.place_of(prompt_for(ITEM), time.monotonic()) is PastePlace.HERE
        seen.pane.feed(b" more")
        seen.observe()
        assert seen.place_of(prompt_for(ITEM), time.monotonic()) is PastePlace.UNSEEN


async def test_a_composer_that_came_after_the_paste_is_empty_until_enter() -> None:
    async with sight("generic") as seen:
        seen.pane.feed(b"\x1b[?25lloading")
        seen.observe()
        landing = seen.land(prompt_for(ITEM))
        assert landing is not None
        loading = seen.place_by(landing, PasteContext(), 0.0)
        seen.pane.feed(b"\r\n> \x1b[?25h")
        seen.observe()

        assert loading is PastePlace.EMPTY
        assert seen.place_by(landing, PasteContext(), 0.0) is PastePlace.EMPTY
        assert seen.place_by(landing, PasteContext(is_entered=True), 0.0) is PastePlace.GONE


async def test_the_rules_of_typing_are_the_profiles() -> None:
    async with sight("claude") as claude, sight("generic") as generic:
        size = len(prompt_for(ITEM).text)

        rules = claude.typing_rules(prompt_for(ITEM))
        assert rules.gap_s == (40 + 2 * size / 1024) / 1000
        assert rules.enter_again_s == (0.25, 0.5, 1.0, 1.5, 2.5, 3.5)
        assert rules.proof_s == 5.0
        blind = generic.typing_rules(prompt_for(ITEM))
        assert (blind.proof_s, blind.enter_again_s) == (0.0, SubmitRules().enter_again_s)


async def test_the_rules_of_the_gates_are_the_profiles() -> None:
    async with sight("claude") as claude, sight("generic") as generic:
        assert (claude.gate_rules.typing_quiet_s, claude.gate_rules.settled_s) == (0.5, 0.3)
        assert not claude.gate_rules.guesses_idle
        assert (generic.gate_rules.settled_s, generic.gate_rules.guesses_idle) == (0.7, True)


@on_virtual_time
async def test_a_prompt_that_a_person_sent_counts_as_a_turn_until_the_cli_had_time_to_say_so() -> None:
    async with sight("claude") as seen, sight("generic") as silent:
        for one in (seen, silent):
            draw(one, "")
            one.pane.count_keys(b"hello\r")
        sent = seen.pane.ledger.last_sent
        assert sent is not None
        opened = [
            one.snapshot(sent + after).is_turn_open
            for one in (seen, silent)
            for after in (1, AWAITED_S + 0.1)
        ]

        assert opened == [True, False, False, False]
        assert seen.next_look(sent + AWAITED_S - 0.5) == sent + AWAITED_S
        seen.turn_began = sent + 0.1
        assert not seen.snapshot(sent + 1).is_turn_open


@on_virtual_time
async def test_no_question_changes_what_is_known() -> None:
    async with sight() as seen:
        draw(seen, "a draft")
        seen.pane.count_keys(b"a draft")
        seen.observe()
        seen.pane.feed(b"\x1b[2J\x1b[H")
        state = {**vars(seen), "pane": dict(vars(seen.pane)), "typed": seen.pane.ledger.typed}
        now = time.monotonic()
        for later in (now, now + 100):
            seen.snapshot(later)
            seen.next_look(later)
            seen.is_waived(now, later)
            seen.works_too_long(later)
        _ = seen.is_busy, seen.is_at_rest, seen.is_working, seen.was_stopped(1.0), seen.has_rested(1.0)

        assert {**vars(seen), "pane": dict(vars(seen.pane)), "typed": seen.pane.ledger.typed} == state
        seen.observe()
        assert seen.pane.reading.composer is None


@on_virtual_time
async def test_the_known_end_of_a_turn_is_doubted_if_a_person_typed_in_it() -> None:
    async with sight() as seen:
        draw(seen, "")
        seen.turn_began, seen.is_end_known = time.monotonic(), True
        known = seen.snapshot(time.monotonic()).is_end_known
        seen.pane.count_keys(b"x")

        assert known
        assert not seen.snapshot(time.monotonic()).is_end_known


@on_virtual_time
async def test_a_turn_was_stopped_if_a_stop_key_came_in_it_and_it_rests_since() -> None:
    async with sight() as seen:
        draw(seen, "")
        seen.interrupted_at = time.monotonic()
        await asyncio.sleep(1)
        seen.turn_began = time.monotonic()
        seen.tracker.feed(Prompted(id="p", text="[from human #7]"))
        await asyncio.sleep(3)
        before = seen.was_stopped(1.5)
        seen.interrupt()
        await asyncio.sleep(1)
        early = seen.was_stopped(1.5)
        await asyncio.sleep(0.6)

        assert (before, early) == (False, False)
        assert seen.was_stopped(1.5)
        seen.pane.note_asked()
        assert not seen.was_stopped(1.5)
