"""One word ends a session; no other word does."""

import pytest

from csp.protocol.enums import ALL, HUMAN, AgentId, MessageId, ParticipantKind
from csp.protocol.events import AgentCall, HumanMessage
from csp.room.commands import Join, Send
from csp.room.human_input import StopLine, read_line
from tests.room.live import CLAUDE, one
from tests.room.playing import BOSS, Play


@pytest.fixture
def play() -> Play:
    play = Play()
    play.start("autopilot")
    return play


@pytest.mark.parametrize(
    "text", ["allstop", "Allstop", "ALL-STOP!", "all stop", " All Stop. ", "A l l s t o p"]
)
def test_the_word_however_it_is_spelt(play: Play, text: str) -> None:
    play.say(HUMAN, ALL, text)

    assert play.ended == "stopped_by_user"


@pytest.mark.parametrize(
    "text", ["allstop", "allstop \u505c\u6b62", "all\u00e9stop", "allstop" + "!" * 94, "stop"]
)
def test_a_typed_line_and_a_message_follow_one_rule(play: Play, text: str) -> None:
    play.say(HUMAN, ALL, text)

    assert (play.ended is not None) == (read_line(text) == StopLine())


@pytest.mark.parametrize(
    "text", ["asphalt", "the all stops train", "please allstop", "allstops", "all-stop now", "alt stop", ""]
)
def test_other_words_stop_nothing(play: Play, text: str) -> None:
    play.say(HUMAN, ALL, text)

    assert play.ended is None


def test_the_word_is_kept_but_typed_nowhere(play: Play) -> None:
    said = play.say(HUMAN, CLAUDE, "Allstop")

    assert isinstance(said, HumanMessage)
    assert (said.recipients, said.session_id, said.text) == ((), None, "Allstop")


def test_the_word_counts_whoever_it_is_sent_to(play: Play) -> None:
    play.do(Send(sender=HUMAN, to="nobody-there", text="allstop"))

    assert play.ended == "stopped_by_user"


def test_the_word_counts_once(play: Play) -> None:
    play.say(HUMAN, ALL, "allstop", id="mine")

    assert play.do(Send(sender=HUMAN, to=ALL, text="allstop", id=MessageId("mine"))) == []


def test_the_word_is_for_its_own_thread(play: Play) -> None:
    play.do(Send(sender=HUMAN, to=ALL, text="allstop", thread="dev"))

    assert play.ended is None
    assert play.notices[-1] == "Allstop: no session is running in thread dev."


def test_orchestrator_may_say_it(play: Play) -> None:
    play.join_boss()
    said = one(play.do(Send(sender=BOSS, to=ALL, text="allstop")), AgentCall)

    assert (play.ended, said.recipients) == ("stopped_by_user", ())


def test_any_person_may_say_it(play: Play) -> None:
    play.do(Join(name="paul", kind=ParticipantKind.HUMAN))
    play.say(AgentId("paul"), ALL, "allstop")

    assert play.ended == "stopped_by_user"


def test_without_a_session_it_is_a_word() -> None:
    play = Play()
    play.say(HUMAN, ALL, "allstop")

    assert play.notices == ["Allstop: no session is running in thread default."]
