"""The brain as a whole: what it does at its start, at the end of its CLI, on what the room says."""

import asyncio
import json
import time
from pathlib import Path
from unittest import mock

import pytest

from csp.errors import CspError, StorageFull, TooMany, Unreachable
from csp.protocol.enums import ReportedAgentState
from csp.protocol.events import StateChanged
from csp.sidecar.brain import brain as brain_module
from csp.sidecar.brain import cli_outcomes, health_checks, relay_events
from csp.sidecar.brain.brain_init import BrainHandover
from csp.sidecar.brain.reconnect import RoomConnection
from csp.sidecar.capture.reply_poster import ReplyPoster
from csp.sidecar.run_record import SidecarRecord
from tests.sidecar.virtual import Desk, body, desk, on_virtual_time, said_by, until


def paused(agent: str, *, is_paused: bool | None) -> StateChanged:
    return StateChanged(**said_by(agent, paused=is_paused))


# --- pausing and the words of a person -----------------------------------------------------------


@on_virtual_time
async def test_a_pause_holds_what_comes_until_it_ends(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        scene.room.items.put_nowait(paused(scene.agent, is_paused=True))
        message = scene.send("one")
        await scene.wait_held(message, "paused")
        scene.room.items.put_nowait(paused("another", is_paused=False))
        scene.room.items.put_nowait(paused(scene.agent, is_paused=None))
        await asyncio.sleep(5)
        assert scene.prompts() == []
        scene.room.items.put_nowait(paused(scene.agent, is_paused=False))

        await scene.reply_to(message)


@on_virtual_time
async def test_a_pause_outlives_the_brain(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        await scene.wait_state("idle")
        before = scene.words.ours
        scene.room.items.put_nowait(paused(scene.agent, is_paused=True))
        await until(lambda: b"/resume" in scene.words.ours)
        await scene.replace_brain()
        message = scene.send("one")
        await scene.wait_held(message, "paused")
        await asyncio.sleep(5)

        assert before == (b"/share", b"/noshare", b"/pause")
        assert scene.words.ours == (b"/share", b"/noshare", b"/pause", b"/resume")
        assert scene.prompts() == []


@pytest.mark.parametrize("word", ["pause", "share", "noshare"])
@on_virtual_time
async def test_a_word_of_a_person_is_said_to_the_room(tmp_path: Path, word: str) -> None:
    said: list[tuple[str, str, str]] = []

    class FakeGateway:
        def __init__(self, url: str, token: str) -> None:
            self._token = token

        def post(self, path: str) -> None:
            said.append((self._token, "post", path))

    room = RoomConnection(url="http://127.0.0.1:9", token="human's")
    with (
        mock.patch.object(relay_events, "running_room", return_value=room),
        mock.patch.object(relay_events, "GatewayClient", FakeGateway),
    ):
        async with desk(tmp_path) as scene:
            await scene.wait_state("idle")
            scene.press(f"/{word}\r".encode())
            await until(lambda: said)
            await asyncio.sleep(1)

            assert said == [("human's", "post", f"/agents/tui/{word}")]
            assert scene.prompts() == []


@on_virtual_time
async def test_a_word_does_no_harm_without_a_room_or_where_it_is_refused(tmp_path: Path) -> None:
    room = RoomConnection(url="http://127.0.0.1:9", token="")
    refusing = mock.Mock()
    refusing.return_value.post.side_effect = CspError("no")
    with mock.patch.object(relay_events, "GatewayClient", refusing):
        async with desk(tmp_path) as scene:
            await scene.wait_state("idle")
            with mock.patch.object(relay_events, "running_room", return_value=None):
                scene.press(b"/pause\r")
                await asyncio.sleep(1)
            assert not refusing.called
            with mock.patch.object(relay_events, "running_room", return_value=room):
                scene.press(b"/pause\r")
                await until(lambda: refusing.called)
            await scene.reply_to(scene.send("one"))


# --- the end -------------------------------------------------------------------------------------


@on_virtual_time
async def test_the_last_words_of_a_cli_are_posted_before_the_brain_leaves(tmp_path: Path) -> None:
    async with desk(
        tmp_path, "--exit-on", "bye", "--exit-code", "3", "--busy-s", "5", keeps_record=True
    ) as scene:
        message = scene.send("bye")
        await scene.wait_brain()
        reply = await scene.reply_to(message)

        assert (reply["ending"], reply["text"]) == ("failed", "the CLI ended, with code 3")
        assert scene.room.left == [True]


@on_virtual_time
async def test_a_signal_is_named_as_what_ended_the_cli(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "60", keeps_record=True) as scene:
        message = scene.send("one")
        await scene.wait_for(message, "confirmed")
        scene.tell(b"X", b'{"signal": 9}')
        await scene.wait_brain()

        assert (await scene.reply_to(message))["text"] == "the CLI ended, killed by signal 9"


@on_virtual_time
async def test_a_relay_that_is_gone_is_a_pane_that_was_closed(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "60", keeps_record=True) as scene:
        message = scene.send("one")
        await scene.wait_for(message, "confirmed")
        with mock.patch.object(brain_module, "unwire") as unwired:
            scene.hang_up()
            await scene.wait_brain()

        assert (await scene.reply_to(message))["text"] == "the pane was closed"
        assert scene.room.left == [True]
        assert not unwired.called


@on_virtual_time
async def test_what_a_run_has_left_is_put_away_when_its_cli_has_ended(tmp_path: Path) -> None:
    with mock.patch.object(brain_module, "unwire", side_effect=OSError("full")) as unwired:
        async with desk(tmp_path, pid=77) as scene:
            await scene.wait_state("idle")
            scene.tell(b"X", b'{"code": 0}')
            await scene.wait_brain()

    assert unwired.call_args.args == (Path(scene.run.folder), 77)
    assert scene.room.left == [True]


@on_virtual_time
async def test_a_room_that_takes_nothing_does_not_keep_the_brain_for_ever(tmp_path: Path) -> None:
    async with desk(tmp_path, "--exit-on", "bye", keeps_record=True) as scene:
        message = scene.send("bye")
        await scene.wait_for(message, "typed", "confirmed")
        with mock.patch.object(ReplyPoster, "is_idle", False):
            began = asyncio.get_running_loop().time()
            await scene.wait_brain()

        assert 4.5 < asyncio.get_running_loop().time() - began < 8


# --- what is noticed on the way ------------------------------------------------------------------


@on_virtual_time
async def test_a_room_at_another_address_ends_the_brain_once_it_is_lost(tmp_path: Path) -> None:
    with mock.patch.object(health_checks, "has_moved", return_value=True):
        async with desk(tmp_path) as scene:
            await asyncio.sleep(20)
            await scene.reply_to(scene.send("connected"))
            scene.room.is_connected = False
            with pytest.raises(Unreachable, match="moved"):
                await scene.wait_brain()


@on_virtual_time
async def test_a_room_that_is_lost_but_has_not_moved_is_waited_for(tmp_path: Path) -> None:
    async with desk(tmp_path) as scene:
        scene.room.is_connected = False
        await asyncio.sleep(20)

        await scene.reply_to(scene.send("still there"))


@on_virtual_time
async def test_a_full_disk_is_told_once_each_time_it_fills(tmp_path: Path) -> None:
    with mock.patch.object(health_checks, "is_full", return_value=False) as full:
        async with desk(tmp_path) as scene:
            await asyncio.sleep(10)
            assert scene.room.notices == []
            full.return_value = True
            await asyncio.sleep(20)
            await scene.replace_brain()
            await asyncio.sleep(20)
            full.return_value = False
            await asyncio.sleep(10)
            full.return_value = True
            await asyncio.sleep(10)

            assert scene.room.notices == [("disk_full", scene.run.folder)] * 2
            assert scene.room.said == []


@on_virtual_time
async def test_a_turn_whose_end_no_hook_could_write_is_ended_by_its_rest(tmp_path: Path) -> None:
    with mock.patch.object(health_checks, "is_full", return_value=True):
        async with desk(tmp_path, "--busy-s", "1", keeps_record=True) as scene:
            assert scene._tui is not None
            message = scene.send("one")
            await scene.wait_for(message, "confirmed")
            scene._tui.wiring._record_path = ""
            reply = await scene.reply_to(message)

            assert reply["ending"] == "done"


@on_virtual_time
async def test_a_version_that_was_not_tested_is_told_once(tmp_path: Path) -> None:
    with (
        mock.patch.object(health_checks, "ask_version", return_value="9.9") as asked,
        mock.patch.object(health_checks, "untested", return_value="it is 9.9"),
    ):
        async with desk(tmp_path) as scene:
            await asyncio.sleep(4)
            assert not asked.called
            await asyncio.sleep(4)
            await scene.replace_brain()
            await asyncio.sleep(8)

            assert scene.room.notices == [("untested_version", "it is 9.9")]
            assert scene.room.said == [], "it is no message of the agent's"
            assert asked.call_count == 2
            assert len(list(Path(scene.run.folder).parent.glob("generic-*.seen"))) == 1


@on_virtual_time
async def test_a_tested_version_is_not_worth_a_word(tmp_path: Path) -> None:
    with mock.patch.object(health_checks, "ask_version", return_value="9.9"):
        async with desk(tmp_path) as scene:
            await asyncio.sleep(10)

            assert scene.room.notices == []
            assert list(Path(scene.run.folder).parent.glob("*.seen")) == []


@on_virtual_time
async def test_a_stop_key_that_no_record_tells_of_ends_the_turn_after_a_rest(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "60", keeps_record=True) as scene:
        assert scene._tui is not None
        message = scene.send("one")
        await scene.wait_for(message, "confirmed")
        scene._tui.wiring._record_path = ""
        await asyncio.sleep(1)
        pressed_at = asyncio.get_running_loop().time()
        scene.press(b"\x03")
        reply = await scene.reply_to(message)

        assert reply["ending"] == "interrupted"
        assert asyncio.get_running_loop().time() - pressed_at >= cli_outcomes.STOPPED_S
        await scene.wait_state("idle")


@on_virtual_time
async def test_transcripts_are_noted_for_a_sidecar_after_this_one(tmp_path: Path) -> None:
    async with desk(tmp_path, keeps_record=True) as scene:
        await scene.reply_to(scene.send("one"))
        await asyncio.sleep(1)
        found = SidecarRecord.load(Path(scene.run.folder))

        assert found is not None and found.transcripts == [scene.run.transcript]


@on_virtual_time
async def test_a_brain_after_this_one_neither_loses_nor_repeats_an_answer(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "2", keeps_record=True) as scene:
        first = scene.send("one")
        await scene.reply_to(first)
        await asyncio.sleep(1)
        await scene.replace_brain()
        second = scene.send("two")
        await scene.wait_for(second, "confirmed")
        await scene.replace_brain()
        await scene.reply_to(second)
        await asyncio.sleep(5)

        assert [one["reply_to"] for one in scene.replies()] == [first, second]
        assert [body(prompt) for prompt in scene.prompts()] == ["one", "two"]


@on_virtual_time
async def test_a_note_that_cannot_be_read_is_no_end(tmp_path: Path) -> None:
    async with desk(tmp_path, keeps_record=True) as scene:
        await scene.reply_to(scene.send("one"))
        await scene.kill_brain()
        for note in (b"nonsense", BrainHandover(follower=b"nonsense").dump()):
            scene.note = note
            await scene.start_brain()
            await scene.reply_to(scene.send("again"))
            await scene.kill_brain()


@on_virtual_time
async def test_a_limit_that_the_cli_tells_is_its_state_until_an_answer_is_done(tmp_path: Path) -> None:
    async with desk(tmp_path, keeps_record=True) as scene:
        await scene.reply_to(scene.send("one"))
        with open(scene.run.transcript, "a") as file:
            for line in (
                {"type": "prompt", "ts": time.time(), "text": "[from human #8]\nx\n[end #8]"},
                {"type": "end", "how": "limited", "text": "Out of tokens. Try again in 2h."},
            ):
                file.write(json.dumps(line) + "\n")
        _, detail, until_, _ = await scene.wait_state(ReportedAgentState.LIMITED)
        assert detail.startswith("Out of tokens")
        assert until_ is not None and abs(until_ - time.time() - 7200) < 90

        await scene.reply_to(scene.send("two"))
        await scene.wait_state("idle")


@on_virtual_time
async def test_the_size_of_the_pane_is_followed(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.watch()
        scene.write(b"> ")
        await until(lambda: scene.room.shown)
        scene.tell(b"W", (30).to_bytes(2, "big") + (77).to_bytes(2, "big"))
        await until(lambda: (scene.room.shown[-1].cols, len(scene.room.shown[-1].rows)) == (77, 30))


@on_virtual_time
async def test_output_that_was_lost_leaves_an_empty_screen_that_still_takes_pastes(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.watch()
        scene.write(b"\x1b[?2004hold words\r\n> ")
        await until(lambda: scene.room.shown and "old words" in str(scene.room.shown[-1]))
        scene.tell(b"G", (1000).to_bytes(8, "big"))
        scene.write(b"> ")
        await until(lambda: "old words" not in str(scene.room.shown[-1]))
        scene.send("one\ntwo")
        await until(lambda: scene.typed)

        assert scene.typed[0].startswith(b"\x1b[200~")


@on_virtual_time
async def test_a_turn_of_the_room_is_given_time_while_a_tool_runs(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "30", keeps_record=True) as scene:
        ask = scene.ask("crocuses", "t-1")
        await scene.wait_for(ask, "confirmed")
        with open(scene.run.transcript, "a") as file:
            file.write(json.dumps({"type": "tool", "name": "run", "arguments": {}}) + "\n")
        await asyncio.sleep(20)

        assert len([note for note in scene.room.works if note == ""]) >= 3


@on_virtual_time
async def test_a_message_is_not_worth_asking_for_time(tmp_path: Path) -> None:
    async with desk(tmp_path, "--busy-s", "30", keeps_record=True) as scene:
        await scene.wait_for(scene.send("crocuses"), "confirmed")
        with open(scene.run.transcript, "a") as file:
            file.write(json.dumps({"type": "tool", "name": "run", "arguments": {}}) + "\n")
        await asyncio.sleep(20)

        assert [note for note in scene.room.works if note == ""] == []


# --- the screen for those who watch --------------------------------------------------------------


@on_virtual_time
async def test_a_screen_is_shown_only_while_somebody_watches(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.write(b"one\r\n")
        await asyncio.sleep(3)
        assert scene.room.shown == []
        scene.watch()
        await until(lambda: len(scene.room.shown) == 1)
        await asyncio.sleep(5)
        assert len(scene.room.shown) == 1
        scene.watch()
        await until(lambda: len(scene.room.shown) == 2)
        scene.watch(is_watched=False)
        await asyncio.sleep(2)
        told = len(scene.room.shown)
        scene.write(b"two\r\n")
        await asyncio.sleep(3)

        assert len(scene.room.shown) == told


@on_virtual_time
async def test_screens_are_shown_at_most_ten_times_a_second(tmp_path: Path) -> None:
    async with desk(tmp_path, has_tui=False) as scene:
        scene.watch()
        for number in range(100):
            scene.write(b"%d\r\n" % number)
            await asyncio.sleep(0.01)
        await until(lambda: "99" in str(scene.room.shown[-1]), 2)

        assert 5 <= len(scene.room.shown) <= 14


@on_virtual_time
async def test_a_brain_with_a_wrong_line_dies_for_the_next(tmp_path: Path) -> None:
    """A line of the room that no brain can answer is the client's to report."""
    made = Desk(tmp_path)
    made.room.refusals["agents"] = [Unreachable("gone")]
    async with made as scene:
        await scene.reply_to(scene.send("who is here does not matter"))


@on_virtual_time
async def test_after_an_unasked_file_nothing_is_typed_until_a_person_says_so(
    tmp_path: Path,
) -> None:
    async with desk(tmp_path, "--busy-s", "3", keeps_record=True) as scene:
        assert scene._tui is not None
        first = scene.send("one")
        await scene.wait_for(first, "confirmed")
        with open(scene._tui.wiring._record_path, "a") as record:
            record.write(json.dumps({"type": "attached", "text": "/etc/passwd"}) + "\n")
        await scene.wait_state("needs_human")
        await scene.reply_to(first)
        second = scene.send("two")
        await scene.wait_held(second, "paused")
        await scene.replace_brain()
        await asyncio.sleep(30)

        assert scene.room.notices == [("file_attached", "/etc/passwd")]
        assert scene.room.state_of(second) == "held"
        scene.room.items.put_nowait(paused(scene.agent, is_paused=False))
        await scene.wait_for(second, "confirmed")


@on_virtual_time
async def test_a_notice_is_told_again_until_the_room_has_it(tmp_path: Path) -> None:
    with mock.patch.object(health_checks, "is_full", return_value=True):
        async with desk(tmp_path) as scene:
            scene.room.refusals["state"] = [StorageFull("full"), TooMany("many")]
            await until(lambda: scene.room.notices)

            assert scene.room.notices == [("disk_full", scene.run.folder)]
