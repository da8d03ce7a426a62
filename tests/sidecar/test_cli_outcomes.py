"""What becomes of what a CLI says of itself, and of turns of which it says nothing."""

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, PropertyMock

import pytest

from csp.clis.profile import load_profile
from csp.protocol.enums import Ending
from csp.sidecar.brain.cli_outcomes import STOPPED_S, CliOutcomes
from csp.terminal import reply_tracker as tracker
from csp.terminal.gates import DraftTracker
from csp.terminal.returned_prompt import PastedPrompt
from csp.terminal.screen_reader import Composer

REPLY = tracker.CapturedReply(id="r", text="done", tag="7")
PASTED = PastedPrompt(tag="7", line_breaks=16, pasted_at=40.0)


class Brain:
    """The parts around the outcomes, all of them doubles."""

    def __init__(self, *, proof: str = "transcript", has_follower: bool = True) -> None:
        self.cli = Mock()
        self.cli.profile = SimpleNamespace(
            delivery=SimpleNamespace(proof=proof), keys=SimpleNamespace(clear=("\x15", "x"))
        )
        self.cli.profile.rules = load_profile("claude").rules
        self.cli.pane.has_session = False
        self.cli.pane.ledger = DraftTracker()
        self.cli.tracker.is_open, self.cli.tracker.tags, self.cli.stopped_at = False, ("7",), 50.0
        self.follower = Mock() if has_follower else None
        self.progress, self.injector, self.poster, self.reporter = Mock(), Mock(), Mock(), Mock()
        self.progress.pasted, self.progress.is_touching = {"7": PASTED}, False
        self.on_applied = Mock()
        self.outcomes = CliOutcomes(
            self.cli,
            self.follower,
            self.progress,
            self.injector,
            self.poster,
            self.reporter,
            self.on_applied,
            "s-1",
        )

    async def watch(self, times: int = 1) -> None:
        """Look for stops so many times."""
        waits = iter(range(times))

        async def wait(until: float | None) -> None:
            if next(waits, None) is None:
                raise asyncio.CancelledError

        self.cli.wait = wait
        with pytest.raises(asyncio.CancelledError):
            await self.outcomes.watch_for_stops()


def test_a_prompt_that_the_cli_has_is_proven_unless_its_word_counts_for_nothing() -> None:
    sure, unsure = Brain(), Brain(proof="none")
    for brain in (sure, unsure):
        brain.outcomes.apply([tracker.Confirmed(tag="7")])

    sure.injector.prove.assert_called_once_with("7")
    unsure.injector.prove.assert_not_called()


@pytest.mark.parametrize("is_open", [True, False])
def test_the_state_of_a_turn_is_noted(is_open: bool) -> None:
    brain = Brain()
    brain.outcomes.apply([tracker.TurnState(is_open=is_open)])

    brain.cli.note_turn.assert_called_once_with(is_open=is_open)


def test_a_session_that_has_begun_is_past_its_start() -> None:
    brain = Brain()
    brain.outcomes.apply([tracker.Started()])

    assert brain.cli.pane.has_session is True


def test_activity_and_replies_are_posted_in_their_order() -> None:
    brain = Brain()
    activity = tracker.CapturedActivity(id="a", text="looking", tag="7")
    brain.outcomes.apply([activity, REPLY])

    assert [call.args for call in brain.poster.post.call_args_list] == [(activity,), (REPLY,)]


def test_a_reply_answers_what_was_asked_and_may_tell_of_a_limit() -> None:
    brain = Brain()
    brain.outcomes.apply([REPLY])

    brain.cli.pane.note_answered.assert_called_once_with()
    brain.reporter.note_reply.assert_called_once_with(REPLY)


def test_a_question_waits_for_a_person_until_its_tool_has_returned() -> None:
    brain = Brain()
    asked = tracker.Asked(tool="shell", arguments="{}")
    brain.outcomes.apply([asked])

    brain.reporter.note_asked.assert_called_once_with(asked)
    brain.cli.pane.note_asked.assert_called_once_with()
    brain.cli.pane.note_answered.assert_not_called()
    brain.outcomes.apply([tracker.Returned(id="a")])
    brain.cli.pane.note_answered.assert_called_once_with()


def test_the_session_is_the_one_that_the_cli_is_in_now() -> None:
    brain = Brain()
    before = brain.outcomes.session
    brain.outcomes.apply([tracker.Switched(session="s-2", path="p")])

    assert (before, brain.outcomes.session) == ("s-1", "s-2")


@pytest.mark.parametrize(
    "outcome", [tracker.Attached(id="7", path="/etc/hosts"), tracker.Bypassed(id="7", to="other")]
)
def test_what_goes_past_the_room_is_warned_of(outcome: Any) -> None:
    brain = Brain()
    brain.outcomes.apply([outcome])

    brain.reporter.warn.assert_called_once_with(outcome)


def test_others_hear_of_each_change_once_all_of_it_is_applied() -> None:
    brain = Brain()
    brain.on_applied.side_effect = lambda: seen.append(brain.outcomes.session)
    seen: list[str] = []
    brain.outcomes.apply([tracker.Started(), tracker.Switched(session="s-2", path="p")])

    assert seen == ["s-2"]
    brain.cli.changed.assert_called_once_with()


def test_what_the_record_does_not_say_goes_to_whoever_reads_it() -> None:
    with_record, without = Brain(), Brain(has_follower=False)
    assert with_record.follower is not None
    with_record.follower.feed.return_value = [REPLY]
    without.cli.tracker.feed.return_value = [REPLY]
    for brain in (with_record, without):
        brain.outcomes.feed([tracker.Ended()])
        brain.poster.post.assert_called_once_with(REPLY)

    with_record.follower.feed.assert_called_once_with(tracker.Ended())
    with_record.cli.tracker.feed.assert_not_called()


def test_what_is_written_until_now_is_applied_at_once() -> None:
    brain = Brain()
    assert brain.follower is not None
    brain.follower.catch_up.return_value = [REPLY]
    brain.outcomes.catch_up()
    brain.outcomes.look_for_transcripts()

    brain.poster.post.assert_called_once_with(REPLY)
    brain.follower.look.assert_called_once_with()
    # A CLI without a record has nothing to look at.
    silent = Brain(has_follower=False)
    silent.outcomes.catch_up()
    silent.outcomes.look_for_transcripts()
    silent.on_applied.assert_not_called()


async def test_a_turn_that_the_screen_calls_stopped_is_interrupted() -> None:
    brain = Brain(has_follower=False)
    brain.cli.was_stopped.return_value = True
    brain.cli.tracker.feed.return_value = []
    brain.cli.pane.reading.composer = None
    await brain.watch()

    brain.cli.was_stopped.assert_called_with(STOPPED_S)
    brain.cli.tracker.feed.assert_called_once_with(tracker.Ended(how=Ending.INTERRUPTED))
    assert brain.cli.is_end_known is False
    assert cleared(brain) == []


def showing(text: str) -> Composer:
    return Composer(text=text, is_empty=not text)


def cleared(brain: Brain) -> list[str]:
    """Return the keys that were pressed to clear the composer."""
    return [call.args[1].decode() for call in brain.cli.port.write_unless.call_args_list]


@pytest.mark.parametrize(
    ("text", "is_proven", "keys"),
    [
        ("[from human #7] hello [end #7]", True, ["\x15"]),
        ("[from human #7] hello [end #7]", False, []),
        ("[Pasted text #8 +16 lines]", True, ["\x15"]),
        ("[Pasted text #8 +16 lines]", False, []),
        ("[Pasted text #8 +17 lines]", True, []),
        ("what a person has typed", True, []),
    ],
)
async def test_only_a_prompt_of_ours_that_was_put_back_is_cleared_away(
    text: str, is_proven: bool, keys: list[str]
) -> None:
    brain = Brain(has_follower=False)
    brain.cli.was_stopped.return_value = True
    brain.cli.tracker.feed.return_value = []
    brain.cli.pane.reading.composer = showing(text)
    brain.progress.is_proven = lambda tag: is_proven and tag == "7"
    await brain.watch()

    assert cleared(brain) == keys


async def test_a_prompt_may_be_put_back_late_and_is_cleared_away_once() -> None:
    brain = Brain(has_follower=False)
    brain.cli.was_stopped.side_effect = [True, False, False, False]
    brain.cli.is_disk_full = False
    brain.cli.tracker.feed.return_value = []
    shown = iter(
        [None, showing(""), showing("[Pasted text #8 +16 lines]"), showing("[Pasted text #8 +16 lines]")]
    )
    type(brain.cli.pane.reading).composer = PropertyMock(side_effect=lambda: next(shown))
    await brain.watch(4)

    assert cleared(brain) == ["\x15"]


@pytest.mark.parametrize("how", ["turn", "paste", "time"])
async def test_what_comes_after_the_stop_is_not_taken_for_it(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = Brain(has_follower=False)
    brain.cli.was_stopped.return_value = True
    brain.cli.tracker.feed.return_value = []
    brain.cli.tracker.is_open = how == "turn"
    brain.progress.is_touching = how == "paste"
    if how == "time":
        monkeypatch.setattr("csp.sidecar.brain.cli_outcomes.RETURNED_S", 0.0)
    brain.cli.pane.reading.composer = showing("[Pasted text #8 +16 lines]")
    await brain.watch()

    assert cleared(brain) == []


@pytest.mark.parametrize(
    ("is_full", "lacks_ends", "has_rested", "ends"),
    [
        (True, False, True, 1),
        (False, True, True, 1),
        (True, True, False, 0),
        (False, False, True, 0),
    ],
)
async def test_rest_ends_a_turn_whose_end_no_hook_reports(
    is_full: bool, lacks_ends: bool, has_rested: bool, ends: int
) -> None:
    brain = Brain()
    assert brain.follower is not None
    brain.follower.lacks_ends = lacks_ends
    brain.follower.feed.return_value = brain.follower.catch_up.return_value = []
    brain.cli.tracker.is_open = True
    brain.cli.was_stopped.return_value = False
    brain.cli.is_disk_full = is_full
    brain.cli.has_rested.return_value = has_rested
    await brain.watch()

    assert brain.follower.feed.call_args_list == [((tracker.Ended(),),)] * ends


async def test_an_end_that_was_only_read_late_is_not_given_again() -> None:
    brain = Brain()
    assert brain.follower is not None
    brain.follower.lacks_ends = brain.cli.tracker.is_open = True
    brain.cli.was_stopped.return_value, brain.cli.has_rested.return_value = False, True

    def read_end() -> list[tracker.Outcome]:
        brain.cli.tracker.is_open = False
        return [REPLY]

    brain.follower.catch_up.side_effect = read_end
    await brain.watch()

    brain.follower.feed.assert_not_called()
    brain.poster.post.assert_called_once_with(REPLY)


def test_what_the_cli_does_is_noted_for_its_state() -> None:
    brain = Brain()
    called = tracker.CapturedActivity(id="1", text="So.", tag="7", tool="Bash", arguments="{}")
    brain.outcomes.apply([called, returned := tracker.Returned(id="1", ending="exit 1")])

    brain.reporter.note_tool.assert_called_once_with(called)
    brain.poster.post.assert_called_once_with(called)
    brain.reporter.note_returned.assert_called_once_with(returned)
