"""What the typist does with a message: when it waits, what it presses, what the room is told."""

import asyncio
from pathlib import Path

import pytest

from csp.errors import Refused, StorageFull, TooMany
from csp.protocol.enums import ControlVerb, DeliveryState
from csp.protocol.events import DeliveryMoved
from csp.sidecar.brain.brain_init import BrainHandover
from csp.sidecar.inject.injector import RETRY_S
from csp.sidecar.relay import relay_frames
from csp.sidecar.relay.relay_frames import MAX_NOTE_BYTES
from tests.sidecar.virtual import Desk, body, changed_profile, desk, on_virtual_time, said_by, until


def moved(message: str, agent: str, state: DeliveryState) -> DeliveryMoved:
    """Return what the room says of a message on its way to an agent."""
    return DeliveryMoved(**said_by("system", message=message, agent=agent, state=state))


@on_virtual_time
async def test_a_guess_of_work_is_waived_after_the_injection_timeout(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False, injection_timeout_s=3.0) as scene:
        scene.write(b"> ")
        await scene.wait_state("idle")
        scene.write(b"\rWorking (esc to interrupt)\r\n> ")
        message = scene.send()
        await scene.wait_held(message, "busy")
        held_at = asyncio.get_running_loop().time()
        await until(lambda: scene.typed)

        assert 2.5 < asyncio.get_running_loop().time() - held_at < 6


SIGNS = {
    "above": ("--working", "{spinner} Trying to exit Vim... (esc to cancel)"),
    "below": ("--working", "● Working · {spinner} B esc esc interrupt", "--work-below"),
    "stop": ("--working", "{spinner} ctrl+c to stop", "--work-below", "--alternate", "--frame", "rules"),
    "spinner": ("--working", "{spinner} Thinking"),
}


@pytest.mark.parametrize("sign", SIGNS)
@on_virtual_time
async def test_a_program_that_shows_work_is_not_typed_into_however_long_it_takes(
    tmp_path: Path, sign: str
) -> None:
    """Its sign of work moves, so it is no leftover; Enter would stop the answer."""
    knobs = ("--busy-s", "40", "--spinner-ms", "1500", "--busy-enter", "abort", "--reply", "answer {n}")
    async with desk(tmp_path, *SIGNS[sign], *knobs, injection_timeout_s=5.0) as scene:
        first = scene.send("one")
        await scene.wait_for(first, "submitted")
        second = scene.send("two")
        await scene.wait_held(second, "busy")
        await scene.reply_to(second, within_s=120)

        assert not scene.events("aborted")
        assert [each["text"].strip("* ") for each in scene.replies()] == ["answer 1", "answer 2"]
        assert [each["reply_to"] for each in scene.replies()] == [first, second]


@pytest.mark.parametrize("sign", SIGNS)
@on_virtual_time
async def test_a_sign_of_work_that_always_shows_holds_no_message_for_ever(tmp_path: Path, sign: str) -> None:
    """It shows before anybody has asked anything, and moves; the room is told what is waited for."""
    knobs = ("--works-always", "--spinner-ms", "700", "--reply", "answer {n}")
    async with desk(tmp_path, *SIGNS[sign], *knobs, injection_timeout_s=5.0) as scene:
        messages = [scene.send("one"), scene.send("two")]
        await scene.wait_held(messages[0], "busy")
        await scene.wait_state("busy")
        said = [detail for state, detail, *_ in scene.room.states if state == "busy"]
        assert said and len(set(said)) == len(said) and said[0].startswith("its screen shows ")
        for message in messages:
            await scene.reply_to(message, within_s=120)

        assert [body(prompt) for prompt in scene.prompts()] == ["one", "two"]
        assert [each["text"].strip("* ") for each in scene.replies()] == ["answer 1", "answer 2"]


@on_virtual_time
async def test_a_brain_that_is_replaced_knows_which_sign_of_work_means_nothing(tmp_path: Path) -> None:
    knobs = ("--works-always", "--spinner-ms", "700")
    async with desk(tmp_path, *knobs, injection_timeout_s=5.0) as scene:
        await scene.reply_to(scene.send("one"), within_s=120)
        await scene.replace_brain()

        await scene.reply_to(scene.send("two"))


@on_virtual_time
async def test_a_sign_of_work_that_never_goes_fails_what_waits_for_it(tmp_path: Path) -> None:
    knobs = ("--working", "{spinner} Working (esc to interrupt)", "--busy-s", "100000", "--spinner-ms", "700")
    async with desk(tmp_path, *knobs, injection_timeout_s=1.0) as scene:
        await scene.wait_for(scene.send("one"), "submitted")
        second, third = scene.send("two"), scene.send("three")
        await scene.wait_held(second, "busy")
        reason = await scene.wait_for(second, "failed", within_s=300)
        await scene.wait_for(third, "failed")

        assert reason.startswith("its screen has shown 'Working esc to interrupt' continuously for 3 minutes")
        assert [body(prompt) for prompt in scene.prompts()] == ["one"]


@on_virtual_time
async def test_a_text_that_grows_without_a_sign_of_work_is_waited_for(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False, injection_timeout_s=3.0) as scene:
        scene.write(b"> ")
        await scene.wait_state("idle")
        scene.write(b"\r")
        message = scene.send()
        for number in range(40):
            scene.write(b"line %d\r\n> \r" % number)
            await asyncio.sleep(0.5)
            assert not scene.typed

        await until(lambda: scene.typed, 10)
        assert scene.room.state_of(message) == "typed"


@on_virtual_time
async def test_the_word_of_the_cli_that_it_works_is_never_waived(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "30", keeps_record=True, injection_timeout_s=2.0) as scene:
        await scene.wait_for(scene.send("one"), "confirmed")
        second = scene.send("two")
        await scene.wait_held(second, "busy")
        await asyncio.sleep(20)
        assert len(scene.prompts()) == 1
        await scene.wait_prompts(2)


@on_virtual_time
async def test_messages_are_typed_in_the_order_of_the_journal_urgent_ones_first(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "2") as scene:
        await scene.wait_for(scene.send("first"), "submitted")
        scene.send("third", seq=30, id="m30")
        scene.send("second", seq=20, id="m20")
        prompts = await scene.wait_prompts(3)

        assert [body(prompt) for prompt in prompts] == ["first", "second", "third"]


@on_virtual_time
async def test_an_urgent_message_stops_the_answer_once_and_overtakes_those_that_wait(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "20", keeps_record=True) as scene:
        await scene.wait_for(scene.send("first"), "confirmed")
        waiting = scene.send("patient")
        await scene.wait_held(waiting, "busy")
        urgent = scene.send("now", urgent=True)
        await scene.wait_for(urgent, "confirmed", within_s=10)

        assert [body(prompt) for prompt in scene.prompts()] == ["first", "now"]
        assert len(scene.events("interrupted")) == 1
        assert scene.typed.count(b"\x03") == 1


@on_virtual_time
async def test_a_proof_confirms_and_a_message_without_any_is_merely_submitted(tmp_path: Path) -> None:
    async with desk(tmp_path, keeps_record=True) as scene:
        message = scene.send("one")
        await scene.reply_to(message)

        assert scene.room.states_of(message)[-2:] == ["typed", "confirmed"]


@on_virtual_time
async def test_a_proof_that_comes_late_is_told_after_all(tmp_path: Path) -> None:
    async with desk(tmp_path, "--swallow-first", "0", keeps_record=True) as scene:
        assert scene._tui is not None
        record, scene._tui.wiring._record_path = scene._tui.wiring._record_path, ""
        message = scene.send("one")
        await scene.wait_for(message, "submitted", within_s=90)
        scene._tui.wiring._record_path = record
        scene._tui.wiring.log("submitted", text=scene.prompts()[0])
        await scene.wait_for(message, "confirmed")


@on_virtual_time
async def test_a_message_that_the_room_has_ended_is_not_typed(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "3") as scene:
        await scene.wait_for(scene.send("one"), "submitted")
        gone = scene.send("gone")
        await scene.wait_held(gone, "busy")
        ended = moved(gone, scene.agent, DeliveryState.WITHDRAWN)
        scene.room.items.put_nowait(ended)
        await scene.reply_to(scene.send("three"))

        assert [body(prompt) for prompt in scene.prompts()] == ["one", "three"]


@pytest.mark.parametrize("state", [DeliveryState.QUEUED, DeliveryState.HELD, DeliveryState.TYPED])
@on_virtual_time
async def test_a_message_that_is_still_on_its_way_is_typed(tmp_path: Path, state: DeliveryState) -> None:
    async with desk(tmp_path, "--busy-s", "1") as scene:
        await scene.wait_for(scene.send("one"), "submitted")
        message = scene.send("two")
        await scene.wait_held(message, "busy")
        scene.room.items.put_nowait(moved(message, scene.agent, state))
        await scene.reply_to(message)


@on_virtual_time
async def test_what_became_of_anothers_message_changes_nothing(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "1") as scene:
        await scene.wait_for(scene.send("one"), "submitted")
        message = scene.send("two")
        await scene.wait_held(message, "busy")
        scene.room.items.put_nowait(moved(message, "other", DeliveryState.WITHDRAWN))
        await scene.reply_to(message)


@pytest.mark.parametrize("error", [StorageFull("no space"), TooMany("slower")])
@on_virtual_time
async def test_a_room_that_cannot_write_now_is_told_again(
    tmp_path: Path, error: StorageFull | TooMany
) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        scene.room.refusals["report"] = [error, error]
        sent_at = asyncio.get_running_loop().time()
        message = scene.send("one")
        await scene.wait_for(message, "typed", "submitted")

        assert asyncio.get_running_loop().time() - sent_at >= 2 * RETRY_S
        await scene.reply_to(message)
        assert len(scene.prompts()) == 1


@on_virtual_time
async def test_a_message_that_the_room_refuses_to_have_typed_is_left_out(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        scene.room.refusals["report"] = [Refused("it has ended")]
        scene.send("one")
        await until(lambda: not scene.room.refusals["report"])
        await scene.reply_to(scene.send("two"))

        assert [body(prompt) for prompt in scene.prompts()] == ["two"]


@on_virtual_time
async def test_keys_are_held_for_a_paste_and_released_after_it(tmp_path: Path) -> None:
    async with desk(tmp_path, "--swallow-ms", "1200") as scene:
        await scene.wait_state("idle")
        message = scene.send("one")
        await until(lambda: scene.holds)
        scene.press(b"mine")
        await scene.wait_for(message, "submitted")
        await until(lambda: scene.released)
        await asyncio.sleep(0.5)

        assert scene.holds == [1.5]
        assert body(scene.prompts()[0]) == "one"
        assert scene.typed[-1] == b"mine"


@on_virtual_time
async def test_a_key_that_crosses_the_paste_keeps_it_out(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        scene._keys_told += 1
        message = scene.send("one")
        await scene.wait_held(message, "typing")

        assert scene.typed == []
        assert scene.released


@on_virtual_time
async def test_the_composer_is_cleared_by_the_next_key_if_one_does_not_help(tmp_path: Path) -> None:
    profile = changed_profile(
        tmp_path, ('clear = ["\\u0015", "{backspaces}"]', 'clear = ["\\u001b[A", "{backspaces}"]')
    )
    async with desk(tmp_path, "--swallow-ms", "-1", profile=profile) as scene:
        await scene.wait_for(scene.send("one"), "failed")

        clears = [keys for keys in scene.typed if keys != b"\r"][1:]
        assert clears == [b"\x1b[A", b"\x7f" * len("[from human #1]\none\n[end #1]")]


async def _typed(scene: Desk, keys: bytes) -> None:
    await until(lambda: keys in scene.typed if keys else bool(scene.typed))


@on_virtual_time
async def test_the_gap_before_enter_grows_with_the_message(tmp_path: Path) -> None:
    times: dict[int, float] = {}
    for size in (10, 100_000):
        (folder := tmp_path / str(size)).mkdir()
        async with desk(folder) as scene:
            await scene.wait_state("idle")
            scene.send("x" * size)
            await _typed(scene, b"")
            pasted_at = asyncio.get_running_loop().time()
            await _typed(scene, b"\r")
            times[size] = asyncio.get_running_loop().time() - pasted_at

    assert 0.15 <= times[10] < 0.4
    assert times[100_000] >= 0.6


@on_virtual_time
async def test_a_brain_that_takes_over_does_not_paste_again_what_stands_there(tmp_path: Path) -> None:
    async with desk(tmp_path, "--swallow-ms", "3000") as scene:
        await scene.wait_state("idle")
        message = scene.send("one")
        await until(lambda: scene.events("swallowed"))
        await scene.replace_brain()
        await scene.reply_to(message)

        assert [body(prompt) for prompt in scene.prompts()] == ["one"]
        assert sum(keys.startswith(b"\x1b[200~") for keys in scene.typed) == 1


@on_virtual_time
async def test_a_new_cli_is_not_given_again_what_the_last_one_may_have_taken(tmp_path: Path) -> None:
    """Without a transcript to look into nobody knows; with one that has it, it counts as confirmed."""
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text('{"text": "[from human #2] hello"}')
    async with desk(tmp_path, earlier=[str(earlier)]) as scene:
        typed = {"state": DeliveryState.TYPED}
        lost, known = scene.send("a", seq=1, id="m1", **typed), scene.send("b", seq=2, id="m2", **typed)
        await scene.wait_for(known, "confirmed")
        await scene.reply_to(lost)
        assert [body(prompt) for prompt in scene.prompts()] == ["a"]
    (other := tmp_path / "other").mkdir()
    async with desk(other) as scene:
        assert await scene.wait_for(scene.send("a", state=DeliveryState.TYPED), "failed") == "unknown"
        assert scene.prompts() == []


@on_virtual_time
async def test_a_message_too_long_for_a_note_is_still_typed(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        for number in range(3):
            await scene.reply_to(scene.send(f"number {number}"))

        found = BrainHandover.load(scene.note)
        assert found is not None and len(scene.note) < MAX_NOTE_BYTES
        assert set(found.tags) == {"1", "2", "3"}
        assert found.is_ready and found.has_had_composer and found.modes == (True, False)


@on_virtual_time
async def test_news_of_who_is_here_is_told_again_until_it_is_proven(tmp_path: Path) -> None:
    made = Desk(tmp_path, "--swallow-ms", "-1", keeps_record=True)
    made.room.agents = [{"id": "ada", "online": True}]
    async with made as scene:
        await scene.wait_for(scene.send("one"), "failed")
        scene._knobs.swallow_ms = 0
        for _ in range(2):
            await scene.reply_to(scene.send("again"))

        first, second = scene.prompts()
        assert first.endswith("[end #2; here: ada]")
        assert second.endswith("[end #3]")


@on_virtual_time
async def test_news_of_who_is_here_go_with_the_message_that_overtakes(tmp_path: Path) -> None:
    made = Desk(tmp_path, keeps_record=True)
    made.room.agents = [{"id": "ada", "online": True}]
    async with made as scene:
        await scene.wait_state("idle")
        scene.press(b"a draft")
        waiting = scene.send("patient")
        await until(lambda: scene.room.state_of(waiting) == "held")
        urgent = scene.send("now", urgent=True)
        await until(lambda: scene.room.state_of(urgent) == "held")
        scene.press(b"\x7f" * len("a draft"))
        for message in (urgent, waiting):
            await scene.wait_for(message, "confirmed", within_s=60)

        first, second = scene.prompts()
        assert (body(first), body(second)) == ("now", "patient")
        assert "; here: ada]" in first and "here:" not in second


@on_virtual_time
async def test_what_stands_in_a_cli_that_is_started_again_is_typed_again(tmp_path: Path) -> None:
    async with desk(tmp_path, "--swallow-ms", "-1", argv=["/bin/echo", "tui"]) as scene:
        await scene.wait_state("idle")
        message = scene.send("one")
        await until(lambda: scene.events("swallowed"))
        again = scene.control(ControlVerb.RESTART)
        await until(lambda: scene.restarts)
        assert scene._playing is not None
        scene._playing.cancel()
        scene._knobs.swallow_ms = 0
        scene.tell(b"P", b"restarted")
        scene.start_tui()

        assert await scene.wait_control(again) == ("confirmed", "")
        assert scene.restarts == [["/bin/echo", "tui"]]
        await scene.reply_to(message)
        assert [body(prompt) for prompt in scene.prompts()] == ["one"]


@on_virtual_time
async def test_what_an_unknown_cli_may_have_taken_before_it_ended_is_not_typed_again(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        # It shows what is pasted, and nothing any more once Enter is pressed.
        scene.echo = lambda keys: b"" if keys == b"\r" else keys.replace(b"\r", b"\r\n")
        scene.write(b"> ")
        await scene.wait_state("idle")
        message = scene.send("once")
        await until(lambda: b"\r" in scene.typed)
        scene.tell(relay_frames.PHASE, relay_frames.RESTARTED)
        scene.write(b"\x1b[2J\x1b[H> ")
        await scene.wait_for(message, "failed")

        assert sum(b"once" in typed for typed in scene.typed) == 1
        assert "may have arrived" in scene.room.reason_of(message)


@pytest.mark.parametrize("echo_ms", [3000, 6000, 15000])
@on_virtual_time
async def test_a_cli_that_is_slow_to_draw_gets_a_message_once(tmp_path: Path, echo_ms: int) -> None:
    """As on a busy machine, where a CLI reads its keys at once and acts on them seconds later."""
    slow = ("--frame", "rules", "--prompt-sign", "❯ ", "--echo-ms", str(echo_ms))
    async with desk(tmp_path, *slow, profile="claude") as scene:
        for text in ("one", "two"):
            await scene.wait_for(scene.send(text), "submitted", within_s=300)

        assert [prompt.count(text) for prompt, text in zip(scene.prompts(), ("one", "two"), strict=True)] == [
            1,
            1,
        ]


@pytest.mark.parametrize("deaf_ms", [25000, 40000])
@on_virtual_time
async def test_a_cli_that_draws_before_it_acts_on_a_paste_gets_it_once(tmp_path: Path, deaf_ms: int) -> None:
    """A busy CLI draws other things before it draws the paste."""
    slow = ("--frame", "rules", "--prompt-sign", "❯ ", "--deaf-ms", str(deaf_ms), "--chatter-ms", "300")
    async with desk(tmp_path, *slow, profile="claude") as scene:
        await scene.wait_for(scene.send("one"), "submitted", within_s=300)

        assert [prompt.count("[from human") for prompt in scene.prompts()] == [1]
