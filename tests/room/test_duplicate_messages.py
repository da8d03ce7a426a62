"""What an agent sends by tool is not sent again when it prints the same."""

import pytest

from csp.protocol.enums import ALL, HUMAN, AgentId, DeliveryState, HeldReason, MessageId
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    HumanMessage,
    KeptPrivate,
    KnownEvent,
    NoticePosted,
)
from csp.room.commands import PostReply, RedactMessage, ReportDelivery, Send
from csp.room.messages import MAX_HOPS
from csp.room.room_reducer import replay
from csp.room.room_state import KEPT_SENT, dump, fingerprints, load
from tests.room.live import CLAUDE, CODEX, LiveRoom, one
from tests.room.playing import Play

S = DeliveryState


@pytest.fixture
def live() -> LiveRoom:
    """A room in which claude works on a message of the human."""
    live = LiveRoom("claude", "codex", "gemini")
    prompt(live)
    return live


def prompt(live: LiveRoom, agent: AgentId = CLAUDE, sender: AgentId = HUMAN) -> str:
    message = live.say(sender, agent, "do it").id
    for state in (S.TYPED, S.CONFIRMED):
        live.do(ReportDelivery(agent=agent, message=message, state=state))
    return message


def write(live: LiveRoom, text: str, **fields: object) -> list[KnownEvent]:
    return live.do(PostReply(sender=CLAUDE, text=text, **fields))  # type: ignore[arg-type]  # as a test gives them


def calls(events: list[KnownEvent]) -> list[tuple[str, str]]:
    return [(event.target, event.text) for event in events if isinstance(event, AgentCall)]


# --- by tool, then in words ----------------------------------------------------------------------


def test_a_printed_command_after_the_same_by_tool_is_dropped_with_a_mark(live: LiveRoom) -> None:
    sent = live.say(CLAUDE, CODEX, "please review\nit all ")
    events = write(live, "I told codex.\n\n@send.codex please review\nit all\n\nBye.")

    assert calls(events) == []
    notice = one(events, NoticePosted)
    assert notice.repeats == sent.id
    assert notice.text == f"claude: @send.codex is a duplicate of {sent.id}, not sent"
    assert live.due(CODEX) == [sent.id]


@pytest.mark.parametrize(
    "line", ["@send.codex please review!", "@send.gemini please review", "@all please review"]
)
def test_another_text_or_another_target_is_sent(live: LiveRoom, line: str) -> None:
    live.say(CLAUDE, CODEX, "please review")

    assert len(calls(write(live, line))) == 1


def test_what_all_were_told_by_tool_is_not_printed_to_all_again(live: LiveRoom) -> None:
    live.say(CLAUDE, ALL, "ready")

    assert calls(write(live, "@all ready")) == []


def test_each_message_is_matched_once(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "ping")

    assert calls(write(live, "@send.codex ping\n@send.codex ping")) == [("codex", "ping")]


def test_each_message_is_matched_once_over_all_blocks(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "ping")
    first = write(live, "text\n@send.codex ping", activity=True)
    second = write(live, "@send.codex ping", activity=True)

    assert (calls(first), calls(second)) == ([], [("codex", "ping")])


def test_two_by_tool_are_two(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "ping")
    live.say(CLAUDE, CODEX, "ping")

    assert calls(write(live, "@send.codex ping\n@send.codex ping")) == []
    assert len(live.due(CODEX)) == 2


def test_the_first_paragraph_of_a_long_message_is_known_again(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "first\n\nsecond")

    assert calls(write(live, "@send.codex first\n\nsecond")) == []


# --- in words, then by tool ----------------------------------------------------------------------


def test_a_tool_after_the_same_words_sends_nothing(live: LiveRoom) -> None:
    printed = one(write(live, "I will ask.\n\n@send.codex ping", activity=True), AgentCall)
    events = live.do(Send(sender=CLAUDE, to="codex", text="ping", id=MessageId("by-tool")))

    assert [type(event) for event in events] == [NoticePosted] and one(
        events, NoticePosted
    ).repeats == printed.id
    assert live.due(CODEX) == [printed.id]
    assert live.say(CLAUDE, CODEX, "ping").id != printed.id


def test_words_that_ended_a_prompt_are_no_reason_to_drop_the_next_message(live: LiveRoom) -> None:
    write(live, "@send.codex ping")

    assert live.say(CLAUDE, CODEX, "ping").text == "ping"


# --- until the prompt is over --------------------------------------------------------------------


def test_the_same_for_another_prompt_is_sent(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "ping")
    write(live, "done")

    assert calls(write(live, "@send.codex ping")) == [("codex", "ping")]


def test_a_new_prompt_ends_the_one_before(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "ping")
    prompt(live)

    assert calls(write(live, "@send.codex ping")) == [("codex", "ping")]


@pytest.mark.parametrize("fields", [{}, {"local": True}])
def test_an_answer_that_is_not_posted_ends_it_too(live: LiveRoom, fields: dict[str, bool]) -> None:
    live.say(CLAUDE, CODEX, "ping")
    ended = write(live, "just talk" if fields else "NOOP", **fields)

    assert [type(event) for event in ended] == [KeptPrivate]
    assert calls(write(live, "@send.codex ping", **fields)) == [("codex", "ping")]
    assert write(live, "NOOP") == []


def test_words_in_the_pane_from_the_midst_of_work_end_nothing(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "ping")

    assert write(live, "thinking", local=True, activity=True) == []
    assert calls(write(live, "@send.codex ping", local=True)) == []


def test_a_turn_with_nothing_to_say_ends_it() -> None:
    play = Play()
    play.start("round_robin", steps=3)
    play.say(CLAUDE, CODEX, "ping")
    play.reply(CLAUDE, "NOOP")

    assert play.agent(CLAUDE).sent == ()


def test_no_more_than_the_last_messages_are_remembered(live: LiveRoom) -> None:
    for number in range(KEPT_SENT + 5):
        live.say(CLAUDE, HUMAN, f"{number}")

    assert len(live.agent(CLAUDE).sent) == KEPT_SENT


def test_the_memory_is_in_the_snapshot_and_in_the_journal_alike(live: LiveRoom) -> None:
    sent = live.say(CLAUDE, CODEX, "ping")

    assert load(dump(live.room)).participants[CLAUDE].sent == live.agent(CLAUDE).sent != ()
    assert dump(replay(live.journal)) == dump(live.room)
    live.do(RedactMessage(message=sent.id))
    assert live.agent(CLAUDE).sent == ()


# --- the answer itself ---------------------------------------------------------------------------


def test_an_answer_that_was_sent_by_tool_is_posted_but_not_typed_again(live: LiveRoom) -> None:
    asked = prompt(live, CLAUDE, CODEX)
    sent = live.say(CLAUDE, CODEX, "42")
    said = live.answer(CLAUDE, asked, "42\n")

    assert isinstance(said, AgentResponse) and (said.recipients, said.repeats) == ((), sent.id)
    assert live.due(CODEX) == [sent.id]


def test_another_answer_is_typed(live: LiveRoom) -> None:
    asked = prompt(live, CLAUDE, CODEX)
    live.say(CLAUDE, CODEX, "42")

    assert live.answer(CLAUDE, asked, "It is 42.").recipients == (CODEX,)


def test_a_turn_that_says_what_all_were_told_stands_once_in_the_window() -> None:
    play = Play()
    play.start("round_robin", steps=3)
    play.say(CLAUDE, ALL, "my view")
    said = one(play.reply(CLAUDE, "my view"), AgentResponse)

    assert said.repeats is not None
    assert [item.text for item in play.session.items].count("my view") == 1
    assert "window=claude: my view positions" in play.prompt(CODEX)


# --- because of what ------------------------------------------------------------------------------


def test_the_loop_guard_counts_messages_by_tool(live: LiveRoom) -> None:
    speaker, other = CLAUDE, CODEX
    message = live.say(CLAUDE, CODEX, "0")
    for number in range(MAX_HOPS):
        speaker, other = other, speaker
        for state in (S.TYPED, S.CONFIRMED):
            live.do(ReportDelivery(agent=speaker, message=message.id, state=state))
        message = live.say(speaker, other, f"{number + 1}")

    assert message.held == HeldReason.LOOP


def test_scripts_that_only_take_messages_may_send_for_ever(live: LiveRoom) -> None:
    speaker, other = CLAUDE, CODEX
    message = live.say(CLAUDE, CODEX, "0")
    for number in range(2 * MAX_HOPS):
        speaker, other = other, speaker
        live.do(ReportDelivery(agent=speaker, message=message.id, state=S.CONFIRMED))
        message = live.say(speaker, other, f"{number + 1}")

    assert (message.held, message.hops) == ("", 1)


def test_a_message_by_tool_stays_in_the_thread_of_its_prompt(live: LiveRoom) -> None:
    said = one(live.do(Send(sender=HUMAN, to="claude", text="x", thread="dev")), HumanMessage)
    live.do(ReportDelivery(agent=CLAUDE, message=said.id, state=S.TYPED))

    assert live.say(CLAUDE, CODEX).thread == "dev"
    write(live, "done", reply_to=said.id)
    assert live.say(CLAUDE, CODEX).thread == "default"


def test_marks_do_not_mind_blanks_at_the_ends() -> None:
    assert fingerprints(" a \nb\n") == fingerprints("a\nb")
    assert fingerprints("a\nb") != fingerprints("a b")


def test_activity_is_not_over(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, "ping")
    assert isinstance(write(live, "hm", activity=True)[0], Activity)

    assert calls(write(live, "@send.codex ping")) == []
