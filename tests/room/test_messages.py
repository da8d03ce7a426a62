"""The tests of what happens to a message."""

import pytest

from csp.errors import BadInput, NotFound, Refused, TooMany
from csp.protocol.enums import (
    ALL,
    HUMAN,
    NO_TEXT,
    AgentId,
    ControlVerb,
    DeliveryState,
    HeldReason,
    MessageId,
    ParticipantKind,
)
from csp.protocol.events import (
    AgentCall,
    AgentResponse,
    ControlSent,
    DeliveryMoved,
    HumanMessage,
    Joined,
    KnownEvent,
    LateReply,
    MessageEvent,
    NoticePosted,
    Pruned,
    Redacted,
)
from csp.protocol.requests import Handoff, Usage
from csp.room.commands import (
    AnyCommand,
    CancelMessage,
    ControlAgent,
    Join,
    Leave,
    PostReply,
    Prune,
    RedactMessage,
    Rejoin,
    ReleaseMessage,
    Remove,
    ReportDelivery,
    Send,
    Tick,
)
from csp.room.messages import MAX_HOPS, MAX_QUEUED, MAX_QUEUED_CHARS, next_deadline
from tests.room.live import CLAUDE, CODEX, GEMINI, LiveRoom, one

S = DeliveryState


@pytest.fixture
def live() -> LiveRoom:
    return LiveRoom("claude", "codex", "gemini")


def steps(events: list[KnownEvent]) -> list[tuple[str, str, str]]:
    """Return message, recipient and new state of each delivery event."""
    return [(event.message, event.agent, event.state) for event in events if isinstance(event, DeliveryMoved)]


def chain(live: LiveRoom, length: int) -> MessageEvent:
    """Let claude and codex answer each other until `length` messages are said; return the last."""
    said = live.say(CLAUDE, CODEX)
    for _ in range(length - 1):
        said = live.say(said.target, said.sender, reply_to=said.id)
    return said


# --- routes --------------------------------------------------------------------------------------


def test_direct_message_goes_to_one(live: LiveRoom) -> None:
    said = live.say(CLAUDE, CODEX, "hi")

    assert (said.target, said.recipients) == (CODEX, (CODEX,))
    assert (live.due(CODEX), live.due(GEMINI)) == ([said.id], [])


def test_broadcast_never_echoes_to_the_sender(live: LiveRoom) -> None:
    said = live.say(CLAUDE, ALL)

    assert (said.target, said.recipients) == (ALL, (CODEX, GEMINI))
    assert live.due(CLAUDE) == []


def test_broadcast_goes_to_those_online(live: LiveRoom) -> None:
    live.do(Leave(agent=CODEX, reason="closed"))
    said = live.say(HUMAN, ALL)
    live.do(Rejoin(agent=CODEX))

    assert said.recipients == (CLAUDE, GEMINI)
    assert live.due(CODEX) == []


def test_broadcast_into_an_empty_room_is_kept() -> None:
    assert LiveRoom().say(HUMAN, ALL).recipients == ()


def test_broadcast_goes_in_the_order_of_joining() -> None:
    live = LiveRoom("zoe", "adam", "mia")

    assert live.say(HUMAN, ALL).recipients == ("zoe", "adam", "mia")


def test_direct_message_to_the_offline_waits(live: LiveRoom) -> None:
    live.do(Leave(agent=CODEX, reason="closed"))
    said = live.say(CLAUDE, CODEX)

    assert live.shown(said.id, CODEX) == "held(offline)"

    live.do(Rejoin(agent=CODEX))

    assert live.shown(said.id, CODEX) == "queued"
    assert live.due(CODEX) == [said.id]


def test_message_to_the_human_is_typed_nowhere(live: LiveRoom) -> None:
    said = live.say(CLAUDE, HUMAN)

    assert (said.target, said.recipients, said.expires) == (HUMAN, (), None)


def test_resend_narrows_a_broadcast(live: LiveRoom) -> None:
    command = Send(sender=HUMAN, to=ALL, text="hi", only=(CODEX, CLAUDE))

    assert one(live.do(command), MessageEvent).recipients == (CLAUDE, CODEX)


@pytest.mark.parametrize(
    ("to", "target"), [("Codex", CODEX), (" codex\n", CODEX), ("ALL", ALL), ("Human", HUMAN)]
)
def test_recipient_is_known_in_any_case(live: LiveRoom, to: str, target: AgentId) -> None:
    assert one(live.do(Send(sender=CLAUDE, to=to, text="hi")), MessageEvent).target == target


@pytest.mark.parametrize(
    ("to", "target", "recipients"),
    [
        ("codex, Claude,codex", "codex,claude", (CODEX, CLAUDE)),
        ("gemini,", "gemini", (GEMINI,)),
        ("codex,human", "codex,human", (CODEX,)),
        ("codex,all", ALL, (CLAUDE, CODEX, GEMINI)),
    ],
)
def test_one_message_goes_to_each_of_several(
    live: LiveRoom, to: str, target: str, recipients: tuple[AgentId, ...]
) -> None:
    live.do(Join(name="ann", kind=ParticipantKind.HUMAN))
    said = one(live.do(Send(sender=AgentId("ann"), to=to, text="hi")), MessageEvent)

    assert (said.target, tuple(agent for agent in said.recipients if agent != "ann")) == (target, recipients)
    assert [live.due(agent) for agent in recipients] == [[said.id]] * len(recipients)


def test_a_resend_goes_to_some_of_several(live: LiveRoom) -> None:
    command = Send(sender=HUMAN, to="codex,claude", text="hi", only=(CLAUDE,))

    assert one(live.do(command), MessageEvent).recipients == (CLAUDE,)


def test_one_unknown_name_among_several_sends_nothing(live: LiveRoom) -> None:
    assert (
        live.refuse(Send(sender=HUMAN, to="codex,cluade", text="hi"), NotFound).hint
        == "did you mean 'claude'?"
    )
    assert (
        "expected a recipient, got ','"
        in live.refuse(Send(sender=HUMAN, to=",", text="hi"), BadInput).message
    )


@pytest.mark.parametrize("sender", [CLAUDE, HUMAN])
def test_message_to_oneself_is_refused(live: LiveRoom, sender: AgentId) -> None:
    live.refuse(Send(sender=sender, to=sender, text="hi"), BadInput)
    live.refuse(Send(sender=sender, to=sender.upper(), text="hi"), BadInput)


@pytest.mark.parametrize(
    ("to", "hint"),
    [
        ("cluade", "did you mean 'claude'?"),
        ("humann", "did you mean 'human'?"),
        ("xyz", "known are: claude, codex, gemini, human, all"),
        ("system", "known are: claude, codex, gemini, human, all"),
        ("", "known are: claude, codex, gemini, human, all"),
    ],
)
def test_unknown_recipient_is_not_found(live: LiveRoom, to: str, hint: str) -> None:
    assert live.refuse(Send(sender=HUMAN, to=to, text="hi"), NotFound).hint == hint


@pytest.mark.parametrize(
    ("sender", "reply_to", "kind"),
    [
        (HUMAN, None, HumanMessage),
        (HUMAN, "m-4", HumanMessage),
        (CLAUDE, None, AgentCall),
        (CLAUDE, "m-4", AgentResponse),
        (CLAUDE, "m-999", AgentResponse),
    ],
)
def test_kind_of_speech(
    live: LiveRoom, sender: AgentId, reply_to: str | None, kind: type[MessageEvent]
) -> None:
    live.say(CODEX, CLAUDE)

    assert type(live.say(sender, GEMINI, reply_to=reply_to)) is kind


def test_person_beside_the_human_speaks_as_a_person(live: LiveRoom) -> None:
    live.do(Join(name="Ada", kind=ParticipantKind.HUMAN))
    said = live.say(AgentId("ada"), CLAUDE)

    assert (type(said), said.hops) == (HumanMessage, 0)


def test_message_carries_what_the_sender_gave(live: LiveRoom) -> None:
    live.say(CODEX, CLAUDE)
    command = Send(
        sender=CLAUDE,
        to=CODEX,
        text="hi",
        thread="parser",
        reply_to=MessageId("m-4"),
        urgent=True,
        id=MessageId("mine"),
        ttl_s=60.0,
    )
    said = one(live.do(command), AgentResponse)

    assert (said.sender, said.target, said.text, said.thread) == (CLAUDE, CODEX, "hi", "parser")
    assert (said.reply_to, said.urgent, said.id, said.expires) == ("m-4", True, "mine", 1060.0)


@pytest.mark.parametrize(
    ("asked_in", "given", "thread"),
    [
        (None, None, "default"),
        ("parser", None, "parser"),
        ("parser", "tests", "tests"),
        (None, "tests", "tests"),
    ],
)
def test_answer_stays_in_its_thread(
    live: LiveRoom, asked_in: str | None, given: str | None, thread: str
) -> None:
    asked = one(live.do(Send(sender=CODEX, to=CLAUDE, text="?", thread=asked_in)), MessageEvent)

    for command in (
        Send(sender=CLAUDE, to=CODEX, text="!", reply_to=asked.id, thread=given),
        PostReply(sender=CLAUDE, text="!", reply_to=asked.id, thread=given),
    ):
        assert one(live.do(command), MessageEvent).thread == thread


# --- the same message twice ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [
        Send(sender=CLAUDE, to=CODEX, text="hi", id=MessageId("mine")),
        Send(sender=CLAUDE, to=ALL, text="something else", id=MessageId("mine")),
        Send(sender=CLAUDE, to="unknown", text="hi", id=MessageId("mine")),
        PostReply(sender=CLAUDE, text="hi", id=MessageId("mine")),
        PostReply(sender=CLAUDE, text="hi", turn="t-1", id=MessageId("mine")),
    ],
)
def test_same_id_from_the_same_sender_is_one_message(live: LiveRoom, again: AnyCommand) -> None:
    live.say(CLAUDE, CODEX, id="mine")

    assert live.do(again) == []
    assert live.due(CODEX) == ["mine"]


def test_same_id_is_one_message_after_its_end(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX, id="mine")
    live.report(CODEX, "mine", S.CONFIRMED)

    assert live.do(Send(sender=CLAUDE, to=CODEX, text="hi", id=MessageId("mine"))) == []


@pytest.mark.parametrize(
    "command",
    [
        Send(sender=GEMINI, to=CODEX, text="hi", id=MessageId("mine")),
        Send(sender=HUMAN, to=CODEX, text="hi", id=MessageId("mine")),
        PostReply(sender=GEMINI, text="hi", id=MessageId("mine")),
    ],
)
def test_id_of_another_sender_is_refused(live: LiveRoom, command: AnyCommand) -> None:
    live.say(CLAUDE, CODEX, id="mine")

    message = live.refuse(command, Refused).message
    assert "'mine' is already used" in message
    assert "claude" not in message


@pytest.mark.parametrize("message_id", ["m-1", "m-99999", "e-4", "s-1", "t-17"])
def test_id_in_the_rooms_own_form_is_refused(live: LiveRoom, message_id: str) -> None:
    live.refuse(Send(sender=CLAUDE, to=CODEX, text="hi", id=MessageId(message_id)), BadInput)
    live.refuse(PostReply(sender=CLAUDE, text="hi", id=MessageId(message_id)), BadInput)


@pytest.mark.parametrize("message_id", ["m-", "m-1x", "xm-1", "m1", "a-1", "M-1"])
def test_id_that_only_looks_alike_is_taken(live: LiveRoom, message_id: str) -> None:
    assert live.say(CLAUDE, CODEX, id=message_id).id == message_id


# --- full queues ---------------------------------------------------------------------------------


def test_full_queue_refuses_the_next_message(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED", 2)
    live.say(HUMAN, CODEX)
    last = live.say(HUMAN, CODEX)

    for to in (CODEX, ALL):
        error = live.refuse(Send(sender=HUMAN, to=to, text="hi"), TooMany)
        assert "codex has 2 messages waiting" in error.message

    live.report(CODEX, last.id, S.CONFIRMED)
    live.say(HUMAN, CODEX)


def test_queue_counts_characters_too(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED_CHARS", 10)
    live.say(HUMAN, CODEX, "x" * 4)
    live.refuse(Send(sender=HUMAN, to=CODEX, text="x" * 7), TooMany)
    live.say(HUMAN, CODEX, "x" * 6)

    assert live.agent(CODEX).queued_chars == 10


def test_a_room_full_of_messages_takes_more_from_people_alone(
    live: LiveRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED_BY_AGENTS", 2)
    live.say(HUMAN, CODEX)
    live.say(CODEX, CLAUDE)
    error = live.refuse(Send(sender=CLAUDE, to=CODEX, text="hi"), TooMany)
    live.say(HUMAN, CODEX)

    assert "2 messages are waiting in this room" in error.message


def test_answer_into_a_full_queue_is_refused(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = live.say(CODEX, CLAUDE)
    live.say(HUMAN, CODEX)
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED", 1)

    live.refuse(PostReply(sender=CLAUDE, text="hi", reply_to=asked.id), TooMany)


def test_message_to_nobody_fits_always(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED", 0)

    assert live.say(CLAUDE, HUMAN).recipients == ()


def test_queues_are_long_but_bounded() -> None:
    assert (MAX_QUEUED, MAX_QUEUED_CHARS) == (20_000, 16 * 2**20)


# --- answers -------------------------------------------------------------------------------------


def test_answer_goes_to_the_agent_that_asked(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    answer = live.answer(CLAUDE, asked.id)

    assert (type(answer), answer.target, answer.recipients) == (AgentResponse, CODEX, (CODEX,))
    assert answer.reply_to == asked.id


def test_second_answer_is_posted_but_typed_nowhere(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    first = live.answer(CLAUDE, asked.id)
    second = live.answer(CLAUDE, asked.id)

    assert (second.target, second.recipients) == (CODEX, ())
    assert live.due(CODEX) == [first.id]


def test_each_recipient_of_a_broadcast_answers_once(live: LiveRoom) -> None:
    asked = live.say(CODEX, ALL)
    answers = [live.answer(agent, asked.id) for agent in (CLAUDE, GEMINI, CLAUDE, GEMINI)]

    assert [answer.recipients for answer in answers] == [(CODEX,), (CODEX,), (), ()]


def test_message_sent_to_the_asker_is_its_answer(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    live.say(CLAUDE, CODEX, reply_to=asked.id)

    assert live.answer(CLAUDE, asked.id).recipients == ()


def test_message_sent_to_a_third_leaves_the_answer_to_come(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    live.say(CLAUDE, GEMINI, reply_to=asked.id)

    assert live.answer(CLAUDE, asked.id).recipients == (CODEX,)


def test_answer_to_the_human_is_typed_nowhere(live: LiveRoom) -> None:
    asked = live.say(HUMAN, CLAUDE)
    answer = live.answer(CLAUDE, asked.id)

    assert (answer.target, answer.recipients) == (HUMAN, ())


def test_answer_to_the_removed_is_typed_nowhere(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    live.do(Remove(agent=CODEX))
    answer = live.answer(CLAUDE, asked.id)

    assert (answer.target, answer.recipients) == (CODEX, ())


def test_answer_to_the_offline_waits(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    live.do(Leave(agent=CODEX, reason="closed"))
    answer = live.answer(CLAUDE, asked.id)

    assert live.shown(answer.id, CODEX) == "held(offline)"


def test_answer_of_somebody_who_came_after_the_question_is_typed_nowhere(live: LiveRoom) -> None:
    asked = live.say(CLAUDE, ALL)
    newcomer = one(live.do(Join(name="newcomer")), Joined).sender

    assert live.answer(newcomer, asked.id).recipients == ()


def test_answer_of_somebody_not_asked_is_typed_nowhere(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)

    assert live.answer(GEMINI, asked.id).recipients == ()


def test_answer_to_nothing_is_posted_to_all(live: LiveRoom) -> None:
    answer = one(live.do(PostReply(sender=CLAUDE, text="hi")), AgentResponse)

    assert (answer.target, answer.recipients, answer.reply_to) == (ALL, (), None)


def test_answer_to_something_forgotten_is_for_the_human_alone(live: LiveRoom) -> None:
    answer = live.answer(CLAUDE, "m-999")

    assert (answer.target, answer.recipients, answer.reply_to) == (HUMAN, (), "m-999")


def test_answer_carries_what_the_participant_gave(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    handoff, usage = Handoff(to="gemini", task="look"), Usage(input=3)
    command = PostReply(
        sender=CLAUDE,
        text="hi",
        reply_to=asked.id,
        handoff=handoff,
        final=True,
        usage=usage,
        id=MessageId("mine"),
        ttl_s=60.0,
    )
    answer = one(live.do(command), AgentResponse)

    assert (answer.handoff, answer.final, answer.usage) == (handoff, True, usage)
    assert (answer.id, answer.expires) == ("mine", 1060.0)


@pytest.mark.parametrize("state", [None, S.TYPED, S.SUBMITTED])
def test_answer_confirms_what_it_answers(live: LiveRoom, state: DeliveryState | None) -> None:
    asked = live.say(CODEX, CLAUDE)
    if state is not None:
        live.report(CLAUDE, asked.id, state)
    events = live.do(PostReply(sender=CLAUDE, text="hi", reply_to=asked.id))

    assert steps(events) == [(asked.id, CLAUDE, "confirmed")]
    assert live.due(CLAUDE) == []


def test_an_answer_without_text_confirms_nothing(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    live.report(CLAUDE, asked.id, S.SUBMITTED)
    events = live.do(PostReply(sender=CLAUDE, text=NO_TEXT, reply_to=asked.id))

    assert steps(events) == []
    assert one(events, AgentResponse).text == NO_TEXT


def test_sending_with_a_reply_to_confirms_too(live: LiveRoom) -> None:
    asked = live.say(HUMAN, CLAUDE)
    events = live.do(Send(sender=CLAUDE, to=GEMINI, text="hi", reply_to=asked.id))

    assert steps(events) == [(asked.id, CLAUDE, "confirmed")]


@pytest.mark.parametrize("state", [S.CONFIRMED, S.FAILED])
def test_late_answer_does_not_move_an_end(live: LiveRoom, state: DeliveryState) -> None:
    asked = live.say(CODEX, CLAUDE)
    live.report(CLAUDE, asked.id, state)
    events = live.do(PostReply(sender=CLAUDE, text="hi", reply_to=asked.id))

    assert steps(events) == []
    assert one(events, AgentResponse).recipients == (CODEX,)


def test_answer_confirms_for_nobody_else(live: LiveRoom) -> None:
    asked = live.say(CODEX, ALL)

    assert steps(live.do(PostReply(sender=HUMAN, text="hi", reply_to=asked.id))) == []


def test_answer_to_a_turn_that_is_not_open_moves_nothing(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    events = live.do(
        PostReply(sender=CLAUDE, text="too late", turn="t-17", reply_to=asked.id, thread="parser")
    )
    (late,) = events

    assert isinstance(late, LateReply)
    assert (late.sender, late.target, late.turn, late.text, late.thread) == (
        CLAUDE,
        HUMAN,
        "t-17",
        "too late",
        "parser",
    )
    assert live.due(CLAUDE) == [asked.id]


def test_late_answer_without_a_thread_is_in_the_default_one(live: LiveRoom) -> None:
    assert one(live.do(PostReply(sender=CLAUDE, text="too late", turn="t-17")), LateReply).thread == "default"


# --- the loop guard ------------------------------------------------------------------------------


def test_hops_count_answers(live: LiveRoom) -> None:
    asked = live.say(HUMAN, CLAUDE)
    call = live.say(CLAUDE, CODEX, reply_to=asked.id)
    answer = live.answer(CODEX, call.id)

    assert [asked.hops, call.hops, answer.hops] == [0, 1, 2]


def test_an_answer_to_an_answer_wakes_nobody(live: LiveRoom) -> None:
    call = live.say(CLAUDE, CODEX)
    answer = live.answer(CODEX, call.id)
    thanks = live.answer(CLAUDE, answer.id)

    assert answer.recipients == (CLAUDE,)
    assert (thanks.recipients, thanks.target) == ((), CODEX)


def test_call_out_of_the_blue_has_one_hop(live: LiveRoom) -> None:
    assert live.say(CLAUDE, CODEX).hops == 1


def test_answer_to_the_forgotten_has_one_hop(live: LiveRoom) -> None:
    assert live.say(CLAUDE, CODEX, reply_to="m-999").hops == 1


def test_eighth_hop_is_delivered(live: LiveRoom) -> None:
    last = chain(live, 8)

    assert MAX_HOPS == 8
    assert (last.hops, last.held) == (8, "")
    assert live.due(last.target) == [last.id]


def test_ninth_hop_is_held(live: LiveRoom) -> None:
    last = chain(live, 9)

    assert (last.hops, last.held, last.recipients) == (9, "loop", (CODEX,))
    assert live.shown(last.id, CODEX) == "held(loop)"
    assert live.due(CODEX) == []


def test_human_is_asked_about_the_ninth_hop(live: LiveRoom) -> None:
    asked = chain(live, 8)
    events = live.do(Send(sender=CLAUDE, to=CODEX, text="again", reply_to=asked.id))
    notice, said = one(events, NoticePosted), one(events, MessageEvent)

    assert notice.target == HUMAN
    assert f"csp continue {said.id}" in notice.text


def test_nobody_is_asked_about_the_eighth_hop(live: LiveRoom) -> None:
    chain(live, 8)

    assert not any(isinstance(event, NoticePosted) for event in live.journal)


def test_ninth_hop_to_the_human_is_not_held(live: LiveRoom) -> None:
    said = live.say(CLAUDE, HUMAN, reply_to=chain(live, 8).id)

    assert (said.hops, said.held) == (9, "")


def test_human_resets_the_hops(live: LiveRoom) -> None:
    last = chain(live, 8)
    said = live.say(HUMAN, CODEX, reply_to=last.id)

    assert said.hops == 0
    assert live.answer(CODEX, said.id).hops == 1


def test_continue_releases(live: LiveRoom) -> None:
    last = chain(live, 9)
    events = live.do(ReleaseMessage(message=last.id))

    assert steps(events) == [(last.id, CODEX, "queued")]
    assert live.due(CODEX) == [last.id]


def test_continue_resets_the_hops(live: LiveRoom) -> None:
    last = chain(live, 9)
    live.do(ReleaseMessage(message=last.id))
    following = live.answer(CODEX, last.id)

    assert (following.hops, following.held) == (1, "")


def test_continue_releases_for_all_who_wait(live: LiveRoom) -> None:
    said = live.say(CLAUDE, ALL, reply_to=chain(live, 8).id)

    assert said.held == "loop"

    live.do(ReleaseMessage(message=said.id))

    assert [live.shown(said.id, agent) for agent in (CODEX, GEMINI)] == ["queued", "queued"]


def test_continue_keeps_the_order_of_the_queue(live: LiveRoom) -> None:
    held = chain(live, 9)
    later = live.say(HUMAN, CODEX)
    live.do(ReleaseMessage(message=held.id))

    assert live.due(CODEX) == [held.id, later.id]


@pytest.mark.parametrize("is_held", [True, False])
def test_continue_of_what_no_guard_holds_is_refused(live: LiveRoom, is_held: bool) -> None:
    said = live.say(HUMAN, CODEX)
    if is_held:
        live.report(CODEX, said.id, S.HELD, "busy")

    live.refuse(ReleaseMessage(message=said.id), Refused)


def test_continue_after_the_end_is_refused(live: LiveRoom) -> None:
    held = chain(live, 9)
    live.do(CancelMessage(message=held.id))

    live.refuse(ReleaseMessage(message=held.id), Refused)


@pytest.mark.parametrize("state", [S.TYPED, S.SUBMITTED, S.CONFIRMED, S.FAILED, S.HELD])
def test_what_the_guard_holds_cannot_be_reported_on(live: LiveRoom, state: DeliveryState) -> None:
    held = chain(live, 9)
    command = ReportDelivery(agent=CODEX, message=held.id, state=state, reason="busy")

    assert f"csp continue {held.id}" in live.refuse(command, Refused).hint


def test_what_the_guard_holds_is_not_proved_by_an_answer(live: LiveRoom) -> None:
    held = chain(live, 9)
    live.answer(CODEX, held.id)

    assert live.room.message(held.id).deliveries[CODEX].state is S.HELD  # type: ignore[union-attr]  # it is there


def test_what_the_guard_holds_can_be_withdrawn(live: LiveRoom) -> None:
    held = chain(live, 9)

    assert steps(live.do(CancelMessage(message=held.id))) == [(held.id, CODEX, "withdrawn")]


def test_what_the_guard_holds_expires(live: LiveRoom) -> None:
    asked = chain(live, 8)
    held = live.say(CLAUDE, CODEX, reply_to=asked.id, ttl_s=60.0)
    live.now += 60.0

    assert held.held == "loop"
    assert steps(live.do(Tick())) == [(held.id, CODEX, "expired")]


# --- reports -------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.TYPED, S.SUBMITTED, S.CONFIRMED])
def test_report_moves_the_delivery_and_tells_the_sender(live: LiveRoom, state: DeliveryState) -> None:
    said = live.say(CLAUDE, CODEX)
    (event,) = live.do(ReportDelivery(agent=CODEX, message=said.id, state=state, reason="ignored"))

    assert isinstance(event, DeliveryMoved)
    assert (event.sender, event.target, event.text) == (CODEX, CLAUDE, state)
    assert (event.message, event.agent, event.state, event.reason) == (said.id, CODEX, state, "")


@pytest.mark.parametrize(("given", "reason"), [("no composer", "no composer"), ("", "unknown")])
def test_failure_is_told_to_the_sender(live: LiveRoom, given: str, reason: str) -> None:
    said = live.say(CLAUDE, CODEX)
    events = live.do(ReportDelivery(agent=CODEX, message=said.id, state=S.FAILED, reason=given))

    assert live.shown(said.id, CODEX) == f"failed({reason})"
    assert one(events, NoticePosted).target == CLAUDE
    assert one(events, NoticePosted).text == f"{said.id} to codex failed: {reason}"


@pytest.mark.parametrize("reason", ["starting", "busy", "dialog", "typing", "draft", "paused", "stuck"])
def test_sidecar_may_hold_for_this_reason(live: LiveRoom, reason: str) -> None:
    said = live.say(CLAUDE, CODEX)
    live.report(CODEX, said.id, S.HELD, reason)

    assert live.shown(said.id, CODEX) == f"held({reason})"
    assert live.due(CODEX) == [said.id]


@pytest.mark.parametrize("reason", ["", "offline", "turn", "loop", "tired"])
def test_sidecar_may_not_hold_for_that_reason(live: LiveRoom, reason: str) -> None:
    said = live.say(CLAUDE, CODEX)
    error = live.refuse(ReportDelivery(agent=CODEX, message=said.id, state=S.HELD, reason=reason), BadInput)

    assert error.hint == "expected one of: busy, covered, dialog, draft, paused, starting, stuck, typing"


def test_every_reason_to_hold_is_the_sidecars_or_the_rooms() -> None:
    sidecar = {"starting", "busy", "dialog", "typing", "draft", "paused", "stuck", "covered"}

    assert set(HeldReason) == sidecar | {"offline", "turn", "loop"}


def test_another_reason_to_hold_is_an_event(live: LiveRoom) -> None:
    said = live.say(CLAUDE, CODEX)
    live.report(CODEX, said.id, S.HELD, "busy")
    again = live.do(ReportDelivery(agent=CODEX, message=said.id, state=S.HELD, reason="draft"))

    assert steps(again) == [(said.id, CODEX, "held")]


@pytest.mark.parametrize(
    ("state", "reason"),
    [(S.HELD, "busy"), (S.TYPED, ""), (S.SUBMITTED, ""), (S.CONFIRMED, ""), (S.FAILED, ""), (S.FAILED, "x")],
)
def test_same_report_twice_is_one_event(live: LiveRoom, state: DeliveryState, reason: str) -> None:
    said = live.say(CLAUDE, CODEX)
    live.report(CODEX, said.id, state, reason)

    assert live.do(ReportDelivery(agent=CODEX, message=said.id, state=state, reason=reason)) == []


@pytest.mark.parametrize("end", [S.SUBMITTED, S.CONFIRMED, S.FAILED])
@pytest.mark.parametrize("state", [S.HELD, S.TYPED, S.SUBMITTED, S.CONFIRMED, S.FAILED])
def test_no_way_back_from_an_end(live: LiveRoom, end: DeliveryState, state: DeliveryState) -> None:
    said = live.say(CLAUDE, CODEX)
    live.report(CODEX, said.id, end, "one reason")
    command = ReportDelivery(agent=CODEX, message=said.id, state=state, reason="busy")

    if (end, state) == (S.SUBMITTED, S.CONFIRMED) or (end == state and end is not S.FAILED):
        live.do(command)
    else:
        assert "csp resend" in live.refuse(command, Refused).hint


def test_report_on_what_is_for_another_tells_as_little_as_one_on_nothing(live: LiveRoom) -> None:
    said = live.say(CLAUDE, CODEX)
    errors = [
        live.refuse(ReportDelivery(agent=GEMINI, message=message_id, state=S.TYPED), NotFound)
        for message_id in (said.id, "m-999")
    ]

    assert errors[0].message.replace(said.id, "m-999") == errors[1].message
    assert errors[0].hint == errors[1].hint


def test_answer_to_what_was_between_others_learns_nothing(live: LiveRoom) -> None:
    said = one(live.do(Send(sender=CLAUDE, to=CODEX, text="private", thread="plans")), MessageEvent)
    answer = live.answer(GEMINI, said.id)

    assert (answer.target, answer.thread, answer.recipients) == (HUMAN, "default", ())
    assert live.answer(CODEX, said.id).thread == "plans"


def test_report_moves_one_recipient_alone(live: LiveRoom) -> None:
    said = live.say(CLAUDE, ALL)
    live.report(CODEX, said.id, S.CONFIRMED)

    assert (live.due(CODEX), live.due(GEMINI)) == ([], [said.id])


def test_button_is_reported_on_like_a_message(live: LiveRoom) -> None:
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.APPROVE)), ControlSent)
    live.report(CODEX, button.id, S.CONFIRMED)

    assert (live.due(CODEX), live.agent(CODEX).controls) == ([], {})


def test_resend_waits_for_those_it_is_for_wherever_they_are(live: LiveRoom) -> None:
    live.do(Leave(agent=CODEX, reason="closed"))
    again = Send(sender=HUMAN, to=ALL, text="again", only=(CODEX, GEMINI))

    assert one(live.do(again), MessageEvent).recipients == (CODEX, GEMINI)


# --- withdrawals ---------------------------------------------------------------------------------


def test_cancel_withdraws_what_nobody_has_typed(live: LiveRoom) -> None:
    said = live.say(HUMAN, ALL)
    live.report(CODEX, said.id, S.TYPED)
    live.report(GEMINI, said.id, S.HELD, "busy")
    events = live.do(CancelMessage(message=said.id))

    assert steps(events) == [(said.id, CLAUDE, "withdrawn"), (said.id, GEMINI, "withdrawn")]
    assert live.due(CODEX) == [said.id]


@pytest.mark.parametrize("state", [S.TYPED, S.SUBMITTED, S.CONFIRMED, S.FAILED])
def test_cancel_of_what_was_typed_is_refused(live: LiveRoom, state: DeliveryState) -> None:
    said = live.say(HUMAN, CODEX)
    live.report(CODEX, said.id, state)

    has_it = "failed" if state is S.FAILED else "has already received it"
    assert f"codex {has_it}" in live.refuse(CancelMessage(message=said.id), Refused).message


def test_what_is_cancelled_is_not_cancelled_again(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX)
    live.do(CancelMessage(message=said.id))

    assert live.refuse(CancelMessage(message=said.id), Refused).message == f"#{said.seq} is already cancelled"


def test_cancel_of_what_is_stuck_in_the_composer_is_refused(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX, ttl_s=60.0)
    live.report(CODEX, said.id, S.HELD, "stuck")
    live.now += 60.0

    live.refuse(CancelMessage(message=said.id), Refused)
    assert live.do(Tick()) == []


def test_cancel_of_what_nobody_got_is_refused(live: LiveRoom) -> None:
    said = live.say(CLAUDE, HUMAN)

    assert "no recipient is waiting for it" in live.refuse(CancelMessage(message=said.id), Refused).message


# --- deadlines -----------------------------------------------------------------------------------


def test_message_that_nobody_took_expires(live: LiveRoom) -> None:
    said = live.say(CLAUDE, CODEX, ttl_s=60.0)
    live.now += 59.9

    assert live.do(Tick()) == []

    live.now = 1060.0
    events = live.do(Tick())

    assert steps(events) == [(said.id, CODEX, "expired")]
    assert one(events, NoticePosted).target == CLAUDE
    assert one(events, NoticePosted).text == f"{said.id} to codex expired: it was not accepted in time"


def test_message_without_a_term_never_expires(live: LiveRoom) -> None:
    live.say(CLAUDE, CODEX)
    live.now = 1e12

    assert live.do(Tick()) == []


def test_button_expires_by_its_name(live: LiveRoom) -> None:
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.APPROVE)), ControlSent)
    live.now += 30.0
    events = live.do(Tick())

    assert steps(events) == [(button.id, CODEX, "expired")]
    assert one(events, NoticePosted).text == "approve to codex expired: it was not accepted in time"


@pytest.mark.parametrize("state", [S.TYPED, S.SUBMITTED])
def test_what_was_typed_never_expires(live: LiveRoom, state: DeliveryState) -> None:
    said = live.say(CLAUDE, CODEX, ttl_s=60.0)
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.APPROVE)), ControlSent)
    live.report(CODEX, said.id, state)
    live.report(CODEX, button.id, state)
    live.now = 1e12

    assert next_deadline(live.room) is None
    assert live.do(Tick()) == []


def test_all_whose_time_is_over_expire_at_once(live: LiveRoom) -> None:
    said = live.say(HUMAN, ALL, ttl_s=60.0)
    second = live.say(HUMAN, CODEX, ttl_s=60.0)
    live.now += 1.0
    live.say(HUMAN, CODEX, ttl_s=60.0)
    live.now += 59.0
    events = live.do(Tick())

    assert steps(events) == [
        (said.id, CLAUDE, "expired"),
        (said.id, CODEX, "expired"),
        (second.id, CODEX, "expired"),
        (said.id, GEMINI, "expired"),
    ]
    assert next_deadline(live.room) == 1061.0


def test_message_expires_behind_one_without_a_term(live: LiveRoom) -> None:
    live.say(HUMAN, CODEX)
    said = live.say(HUMAN, CODEX, ttl_s=60.0)
    live.now += 60

    assert next_deadline(live.room) == live.now
    assert steps(live.do(Tick())) == [(said.id, CODEX, "expired")]


def test_message_expires_behind_one_that_was_typed(live: LiveRoom) -> None:
    first = live.say(HUMAN, CODEX, ttl_s=60.0)
    second = live.say(HUMAN, CODEX, ttl_s=60.0)
    live.report(CODEX, first.id, S.TYPED)
    live.now += 60.0

    assert steps(live.do(Tick())) == [(second.id, CODEX, "expired")]


# --- taking out ----------------------------------------------------------------------------------


def test_redaction_withdraws_what_waits_and_empties_what_was_typed(live: LiveRoom) -> None:
    said = live.say(HUMAN, ALL, "my password")
    live.report(CODEX, said.id, S.TYPED)
    live.report(GEMINI, said.id, S.CONFIRMED)
    events = live.do(RedactMessage(message=said.id))
    message = live.room.message(said.id)

    assert steps(events) == [(said.id, CLAUDE, "withdrawn")]
    assert message is not None and message.text == ""
    assert live.shown(said.id, CODEX) == "typed"


def test_redaction_is_told_without_the_text(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX, "my password")
    event = one(live.do(RedactMessage(message=said.id)), Redacted)

    assert (event.sender, event.target, event.message) == (HUMAN, ALL, said.id)
    assert event.text == f"the text of {said.id} was removed"


def test_redaction_of_what_has_ended_is_one_event(live: LiveRoom) -> None:
    said = live.say(HUMAN, CODEX)
    live.report(CODEX, said.id, S.CONFIRMED)

    assert [type(event) for event in live.do(RedactMessage(message=said.id))] == [Redacted]


def test_redaction_of_what_is_forgotten_is_one_event(live: LiveRoom) -> None:
    assert [type(event) for event in live.do(RedactMessage(message="long-ago"))] == [Redacted]


def test_pruning_is_told(live: LiveRoom) -> None:
    event = one(live.do(Prune(before=2)), Pruned)

    assert (event.sender, event.target, event.before) == (HUMAN, ALL, 2)
    assert event.text == "the history before 2 was removed"


@pytest.mark.parametrize(("before", "is_refused"), [(3, False), (4, True), (99, True)])
def test_pruning_past_the_end_is_refused(before: int, is_refused: bool) -> None:
    live = LiveRoom("claude", "codex", "gemini")
    if is_refused:
        assert live.refuse(Prune(before=before), BadInput).message == "the journal ends at 3"
    else:
        live.do(Prune(before=before))


def test_pruning_of_what_somebody_waits_for_is_refused(live: LiveRoom) -> None:
    live.say(CLAUDE, HUMAN)
    ended = live.say(HUMAN, CODEX)
    live.report(CODEX, ended.id, S.CONFIRMED)
    waiting = live.say(HUMAN, CODEX)
    live.say(CLAUDE, HUMAN)
    error = live.refuse(Prune(before=waiting.seq + 1), Refused)

    assert error.message == f"{waiting.id} still waits for codex"
    assert error.hint == f"withdraw it with: csp cancel {waiting.id}"

    live.do(Prune(before=waiting.seq))


# --- the clock ------------------------------------------------------------------------------------


def test_clock_set_back_makes_no_time_fall(live: LiveRoom) -> None:
    live.say(HUMAN, CODEX)
    live.now = 10.0
    said = live.say(HUMAN, CODEX, ttl_s=60.0)

    assert (said.ts, live.room.ts) == (1000.0, 1000.0)


def test_clock_set_back_makes_no_button_live_longer(live: LiveRoom) -> None:
    live.now = 10.0
    button = one(live.do(ControlAgent(agent=CODEX, verb=ControlVerb.APPROVE)), ControlSent)
    live.now = 40.0

    assert button.expires == 40.0
    assert steps(live.do(Tick())) == [(button.id, CODEX, "expired")]


def test_a_message_behind_another_waits_for_what_that_one_waits_for(live: LiveRoom) -> None:
    first, second = live.say(HUMAN, CLAUDE), live.say(HUMAN, CLAUDE)
    assert live.shown(second.id, CLAUDE) == "queued"

    live.do(ReportDelivery(agent=CLAUDE, message=first.id, state=DeliveryState.HELD, reason="dialog"))
    assert live.shown(second.id, CLAUDE) == "held(dialog)"
    live.do(ReportDelivery(agent=CLAUDE, message=first.id, state=DeliveryState.TYPED))
    assert live.shown(second.id, CLAUDE) == "held(busy)"
    live.do(ReportDelivery(agent=CLAUDE, message=first.id, state=DeliveryState.CONFIRMED))
    assert live.shown(second.id, CLAUDE) == "queued"
