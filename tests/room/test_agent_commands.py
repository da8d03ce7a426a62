"""The tests of what comes of an agent's words."""

import pytest

from csp.errors import TooMany
from csp.protocol.enums import (
    ALL,
    HUMAN,
    SYSTEM,
    AgentId,
    ControlVerb,
    DeliveryState,
    Ending,
    JoinRole,
    MessageId,
    ParticipantKind,
)
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    DeliveryMoved,
    HumanMessage,
    KeptPrivate,
    KnownEvent,
    LateReply,
    LogRequested,
    MessageEvent,
    NoticePosted,
    SystemReply,
    type_of,
)
from csp.protocol.requests import Handoff
from csp.room.agent_commands import MAX_COMMANDS
from csp.room.commands import AnswerQuery, ControlAgent, Join, Leave, PostReply, Remove, Send
from csp.room.messages import MAX_HOPS, pending
from csp.room.room_reducer import replay
from csp.room.room_state import Room, dump, load
from tests.room.live import CLAUDE, CODEX, GEMINI, LiveRoom, one

S = DeliveryState
BOSS = AgentId("orchestrator")


@pytest.fixture
def live() -> LiveRoom:
    return LiveRoom("claude", "codex", "gemini")


def say(live: LiveRoom, text: str, sender: AgentId = CLAUDE, **fields: object) -> list[KnownEvent]:
    return live.do(PostReply(sender=sender, text=text, **fields))  # type: ignore[arg-type]  # as a test gives them


def types(events: list[KnownEvent]) -> list[str]:
    return [type_of(event) for event in events]


def calls(events: list[KnownEvent]) -> list[tuple[str, str]]:
    return [(event.target, event.text) for event in events if isinstance(event, AgentCall)]


def notices(events: list[KnownEvent]) -> list[NoticePosted]:
    return [event for event in events if isinstance(event, NoticePosted)]


# --- messages to others --------------------------------------------------------------------------


def test_send_reaches_its_recipient_after_the_words_themselves(live: LiveRoom) -> None:
    text = "Done.\n\n@send.codex please review\nit all\n\nBye."
    words, call = say(live, text)

    assert (type(words), words.text, words.target) == (AgentResponse, text, ALL)
    assert isinstance(call, AgentCall)
    assert (call.sender, call.target, call.recipients) == (CLAUDE, CODEX, (CODEX,))
    assert (call.text, call.reply_to, call.id) == ("please review\nit all", None, f"m-{call.seq}")
    assert live.due(CODEX) == [call.id]


def test_commands_are_run_in_the_order_of_the_text(live: LiveRoom) -> None:
    events = say(live, "@send.gemini one\n@all two\n@send.codex three\n@send.human four")

    assert calls(events) == [(GEMINI, "one"), (ALL, "two"), (CODEX, "three"), (HUMAN, "four")]
    assert types(events)[0] == "agent_response"


def test_command_without_any_prose_is_an_answer_too(live: LiveRoom) -> None:
    asked = live.say(HUMAN, CLAUDE)
    events = say(live, "@send.codex hi", reply_to=asked.id)

    assert types(events) == ["delivery", "agent_response", "agent_call"]


def test_all_reaches_everybody_else_who_is_online(live: LiveRoom) -> None:
    live.do(Leave(agent=GEMINI, reason="closed"))
    (_, call) = say(live, "@all hi")

    assert isinstance(call, AgentCall)
    assert (call.target, call.recipients) == (ALL, (CODEX,))


def test_send_to_the_offline_waits(live: LiveRoom) -> None:
    live.do(Leave(agent=CODEX, reason="closed"))
    (_, call) = say(live, "@send.codex hi")

    assert live.shown(call.id, CODEX) == "held(offline)"


def test_call_stays_in_the_thread_of_what_is_answered(live: LiveRoom) -> None:
    asked = one(live.do(Send(sender=HUMAN, to=CLAUDE, text="?", thread="parser")), MessageEvent)
    events = say(live, "@send.codex hi", reply_to=asked.id)

    assert {event.thread for event in events} == {"parser"}


def test_call_has_the_term_of_the_words(live: LiveRoom) -> None:
    call = one(say(live, "@send.codex hi", ttl_s=60.0), AgentCall)

    assert call.expires == live.now + 60.0


def test_call_has_one_hop_more_than_what_is_answered(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    events = say(live, "@send.gemini hi", reply_to=asked.id)
    call = one(events, AgentCall)

    assert (asked.hops, one(events, AgentResponse).hops, call.hops) == (1, 2, 2)
    assert one(say(live, "@all hi", sender=GEMINI, reply_to=call.id), AgentCall).hops == 3


def test_loop_of_commands_is_held(live: LiveRoom) -> None:
    said: MessageEvent = live.say(CLAUDE, CODEX)
    for _ in range(MAX_HOPS - 1):
        other = CLAUDE if said.target == CODEX else CODEX
        said = one(say(live, f"@send.{other} again", sender=said.target, reply_to=said.id), AgentCall)
    assert (said.hops, said.held) == (MAX_HOPS, "")

    other = CLAUDE if said.target == CODEX else CODEX
    events = say(live, f"ok\n@send.{other} again", sender=said.target, reply_to=said.id)

    assert [event.held for event in events if isinstance(event, MessageEvent)] == ["loop", "loop"]
    assert [notice.target for notice in notices(events)] == [HUMAN, HUMAN]


def test_words_with_the_same_id_run_nothing_again(live: LiveRoom) -> None:
    first = say(live, "@send.codex hi\n@query.log", id="mine")
    again = say(live, "@send.codex hi\n@query.log", id="mine")

    assert types(first) == ["agent_response", "agent_call", "query"]
    assert again == []


def test_late_words_run_nothing(live: LiveRoom) -> None:
    assert types(say(live, "@send.codex hi", turn="t-1")) == ["late"]
    assert one(live.journal, LateReply).text == "@send.codex hi"


@pytest.mark.parametrize("sender", [HUMAN, AgentId("ann")])
def test_words_of_a_person_have_no_commands(live: LiveRoom, sender: AgentId) -> None:
    live.do(Join(name="ann", kind=ParticipantKind.HUMAN))
    (said,) = say(live, "@send.codex hi\n@sned.x hi\nNOOP", sender=sender)

    assert isinstance(said, HumanMessage)


def test_message_has_no_commands(live: LiveRoom) -> None:
    assert types(live.do(Send(sender=CLAUDE, to=CODEX, text="@send.gemini hi"))) == ["agent_call"]


@pytest.mark.parametrize(
    "kind",
    [
        ParticipantKind.CLI,
        ParticipantKind.API,
        ParticipantKind.MCP,
        ParticipantKind.DEMO,
        ParticipantKind.WEB,
    ],
)
def test_words_of_every_kind_of_agent_have_commands(live: LiveRoom, kind: ParticipantKind) -> None:
    live.do(Join(name="zoe", kind=kind))

    assert calls(say(live, "@send.codex hi", sender=AgentId("zoe"))) == [(CODEX, "hi")]


def test_allstop_of_an_agent_is_text(live: LiveRoom) -> None:
    assert types(say(live, "allstop")) == ["agent_response"]
    assert calls(say(live, "@all allstop")) == [(ALL, "allstop")]


# --- refusals ------------------------------------------------------------------------------------

REFUSED = {
    "@send.claude hi": "to yourself",
    "@send.nobody hi": "unknown recipient 'nobody'",
    "@send.codexx hi": "did you mean 'codex'?",
    "@handoff.nobody do it": "unknown agent 'nobody'",
    "@sned.codex hi": "write it as @send.codex",
    "@send codex hi": "write it as @send.codex",
    "@send human hi": "write it as @send.human",
    "@send all hi": "write it as @send.all",
    "@all": "add a text",
    "@mode.status": "orchestrator",
    '@mode.set debate "x"': "orchestrator",
}


@pytest.mark.parametrize(("line", "why"), REFUSED.items())
def test_refused_command_costs_one_notice_but_not_the_words(live: LiveRoom, line: str, why: str) -> None:
    text = f"Hello.\n{line}\n\n@send.gemini hi"
    said, notice, call = say(live, text)

    assert (type(said), said.text) == (AgentResponse, text)
    assert isinstance(notice, NoticePosted)
    assert why in notice.text and line.split()[0] in notice.text and notice.text.startswith("claude: ")
    assert (notice.sender, notice.target) == (SYSTEM, CLAUDE)
    assert isinstance(call, AgentCall)
    assert (live.due(CLAUDE), live.due(CODEX)) == ([], [])


def test_prose_about_sending_is_no_miss(live: LiveRoom) -> None:
    assert types(say(live, "@send is a command for agents")) == ["agent_response"]


def test_full_queue_refuses_the_command_alone(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED", 2)
    live.say(HUMAN, CODEX)
    events = say(live, "@send.codex one\n@send.codex two\n@send.gemini three")

    assert calls(events) == [(CODEX, "one"), (GEMINI, "three")]
    assert "@send.codex was not run: codex has 2 messages waiting" in notices(events)[0].text


def test_full_queue_of_one_refuses_a_command_to_all(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED", 1)
    live.say(HUMAN, CODEX)

    assert "@all was not run: codex has 1 messages waiting" in notices(say(live, "@all hi"))[0].text


def test_queue_counts_the_characters_of_a_batch(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED_CHARS", 10)

    assert calls(say(live, "@send.codex 123456\n@send.codex 12345\n@send.codex 1234")) == [
        (CODEX, "123456"),
        (CODEX, "1234"),
    ]


def test_so_many_commands_are_run_no_more(live: LiveRoom) -> None:
    events = say(live, "\n".join(f"@send.codex {n}" for n in range(MAX_COMMANDS + 3)) + "\n@final")

    assert calls(events) == [(CODEX, str(n)) for n in range(MAX_COMMANDS)]
    assert [notice.text for notice in notices(events)] == [
        "claude: 3 commands were not run: a text may contain 20"
    ]


# --- what a turn says of itself ------------------------------------------------------------------


def test_handoff_stands_in_the_event_of_the_words(live: LiveRoom) -> None:
    (said,) = say(live, "Over to you.\n@handoff.codex fix it\n\n@handoff.gemini test it")

    assert isinstance(said, AgentResponse)
    assert (said.handoff, said.final) == (Handoff(to="gemini", task="test it"), False)


def test_handoff_to_nobody_leaves_the_one_before(live: LiveRoom) -> None:
    said = one(say(live, "@handoff.codex fix it\n@handoff.nobody test it"), AgentResponse)

    assert said.handoff == Handoff(to="codex", task="fix it")


def test_handoff_of_the_body_comes_before_that_of_the_text(live: LiveRoom) -> None:
    given = Handoff(to="codex", task="x")

    assert one(say(live, "@handoff.gemini y", handoff=given), AgentResponse).handoff == given


def test_final_wins_over_a_handoff(live: LiveRoom) -> None:
    said = one(say(live, "@handoff.codex fix it\n@final"), AgentResponse)

    assert (said.handoff, said.final) == (None, True)


def test_final_of_the_body_stays(live: LiveRoom) -> None:
    assert one(say(live, "done", final=True), AgentResponse).final


@pytest.mark.parametrize("text", ["VOTE: [A]\nREASON: x", "AGREE", "@final", "I am @working"])
def test_what_only_modes_act_on_is_an_answer(live: LiveRoom, text: str) -> None:
    assert types(say(live, text)) == ["agent_response"]


@pytest.mark.parametrize("text", ["@working", "WORKING on it", "@working\nstill", "@working\n\nWORKING a\n"])
def test_working_alone_is_no_answer(live: LiveRoom, text: str) -> None:
    asked = live.say(CODEX, CLAUDE)
    confirmed, activity = say(live, text, reply_to=asked.id)
    answered = live.answer(CLAUDE, asked.id)

    assert isinstance(confirmed, DeliveryMoved) and confirmed.state is S.CONFIRMED
    assert isinstance(activity, Activity)
    assert (activity.text, activity.target, activity.recipients) == (text, CODEX, ())
    assert answered.recipients == (CODEX,)


def test_working_beside_words_is_an_answer(live: LiveRoom) -> None:
    assert types(say(live, "Half of it is done.\n@working")) == ["agent_response"]


@pytest.mark.parametrize("text", ["NOOP", "NOOP\n", "\nNOOP\n\nNOOP"])
def test_noop_posts_nothing_but_confirms(live: LiveRoom, text: str) -> None:
    asked = live.say(CODEX, CLAUDE)
    events = say(live, text, reply_to=asked.id, id="mine")

    assert types(events) == ["delivery"]
    assert live.shown(asked.id, CLAUDE) == "confirmed"
    assert say(live, text, reply_to=asked.id, id="mine") == []


@pytest.mark.parametrize("text", ["NOOP\nbut", "NOOP\n@send.codex hi"])
def test_noop_beside_anything_is_an_answer(live: LiveRoom, text: str) -> None:
    assert types(say(live, text))[0] == "agent_response"


# --- activity, endings, sharing ------------------------------------------------------------------


def test_activity_is_no_answer_but_runs_its_commands(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    events = say(live, "I look.\n@send.gemini hi", reply_to=asked.id, activity=True, id="a")

    assert types(events) == ["delivery", "activity", "agent_call"]
    activity = one(events, Activity)
    assert (activity.id, activity.target, activity.recipients, activity.reply_to) == (
        "a",
        CODEX,
        (),
        asked.id,
    )
    assert live.shown(asked.id, CLAUDE) == "confirmed"
    assert live.answer(CLAUDE, asked.id).recipients == (CODEX,)


def test_activity_is_taken_once(live: LiveRoom) -> None:
    say(live, "I look.\n@send.gemini hi", activity=True, id="a")

    assert say(live, "I look.\n@send.gemini hi", activity=True, id="a") == []


@pytest.mark.parametrize("ending", list(Ending))
def test_ending_of_a_turn_is_told(live: LiveRoom, ending: Ending) -> None:
    asked = live.say(CODEX, CLAUDE)
    said = one(say(live, "", reply_to=asked.id, ending=ending), AgentResponse)
    (deliver,) = pending(live.room, CODEX)

    assert (said.ending, said.text, said.recipients) == (ending, "", (CODEX,))
    assert deliver.ending == ending


@pytest.mark.parametrize("text", ["NOOP", "@working", "@query.log"])
def test_turn_that_broke_off_is_an_answer_whatever_it_says(live: LiveRoom, text: str) -> None:
    assert types(say(live, text, ending=Ending.FAILED))[0] == "agent_response"


def test_words_for_the_pane_are_not_posted(live: LiveRoom) -> None:
    assert say(live, "my secret", local=True, id="mine") == []
    assert "my secret" not in dump(live.room).decode()


def test_words_for_the_pane_are_posted_if_it_is_shared(live: LiveRoom) -> None:
    live.do(ControlAgent(agent=CLAUDE, verb=ControlVerb.SHARE))

    (said,) = say(live, "no secret", local=True)

    assert (type(said), said.target) == (AgentResponse, ALL)


def test_words_for_the_pane_run_their_commands_once(live: LiveRoom) -> None:
    text = "my secret\n@send.codex hi"
    kept, call = say(live, text, local=True, id="mine")

    assert isinstance(kept, KeptPrivate)
    assert (kept.id, kept.text, kept.target, kept.recipients) == ("mine", "", SYSTEM, ())
    assert (type(call), call.text) == (AgentCall, "hi")
    assert say(live, text, local=True, id="mine") == []


@pytest.mark.parametrize("text", ["a\n@final", "VOTE: [A]", "NOOP", "@working"])
def test_words_for_the_pane_that_command_nothing_leave_nothing(live: LiveRoom, text: str) -> None:
    assert say(live, text, local=True, id="mine") == []


def test_human_has_no_pane_to_share(live: LiveRoom) -> None:
    assert say(live, "hi", sender=HUMAN, local=True) == []


# --- questions to the room -----------------------------------------------------------------------


@pytest.mark.parametrize(("line", "count"), [("@query.log", 20), ("@query.log 5", 5)])
def test_query_waits_in_the_room_for_its_answer(live: LiveRoom, line: str, count: int) -> None:
    asked = live.say(CODEX, CLAUDE)
    events = say(live, line, reply_to=asked.id)
    query = one(events, LogRequested)

    assert types(events) == ["delivery", "activity", "query"]
    assert (query.sender, query.target, query.count, query.reply_to, query.hops) == (
        *(CLAUDE, SYSTEM, count, asked.id),
        2,
    )
    assert list(load(dump(live.room)).queries) == [query.id]
    assert live.due(CLAUDE) == []


def test_answer_of_the_room_is_one_delivery_for_the_one_who_asked(live: LiveRoom) -> None:
    query = one(say(live, "@query.log"), LogRequested)
    (told,) = live.do(AnswerQuery(query=query.id, text="[CSP: " + "x" * 3000, ttl_s=60.0))

    assert isinstance(told, SystemReply)
    assert (told.sender, told.target, told.recipients, told.query) == (SYSTEM, CLAUDE, (CLAUDE,), query.id)
    assert (len(told.text), told.hops, told.expires) == (2000, 1, live.now + 60.0)
    assert live.due(CLAUDE) == [told.id]
    assert live.room.queries == {}
    assert live.do(AnswerQuery(query=query.id, text="again")) == []


def test_answer_of_the_room_into_a_full_queue_ends_the_question(
    live: LiveRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = one(say(live, "@query.log"), LogRequested)
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED", 0)
    (told,) = live.do(AnswerQuery(query=query.id, text="[CSP: x]", ttl_s=60.0))

    assert isinstance(told, SystemReply)
    assert (told.recipients, told.expires, live.room.queries) == ((), None, {})


def test_questions_of_the_removed_are_forgotten(live: LiveRoom) -> None:
    first, second = [one(say(live, "@query.log", sender=agent), LogRequested) for agent in (CLAUDE, CODEX)]
    live.do(Remove(agent=CLAUDE))

    assert list(live.room.queries) == [second.id]
    assert live.do(AnswerQuery(query=first.id, text="x")) == []


def test_question_of_somebody_unknown_is_passed_over(live: LiveRoom) -> None:
    query = one(say(live, "@query.log"), LogRequested)

    assert replay([query], Room()).queries == {}


def test_what_follows_the_rooms_answer_goes_to_whoever_had_asked(live: LiveRoom) -> None:
    asked = live.say(CODEX, CLAUDE)
    query = one(say(live, "@query.log", reply_to=asked.id), LogRequested)
    told = one(live.do(AnswerQuery(query=query.id, text="[CSP: x]")), SystemReply)
    confirmed, said = say(live, "It was gemini.", reply_to=told.id)

    assert isinstance(confirmed, DeliveryMoved) and (confirmed.message, confirmed.state) == (
        told.id,
        S.CONFIRMED,
    )
    assert isinstance(said, AgentResponse)
    assert (said.target, said.recipients, said.reply_to, said.hops) == (CODEX, (CODEX,), asked.id, 3)
    assert live.answer(CLAUDE, asked.id).recipients == ()


def test_what_follows_an_answer_to_an_own_question_is_for_the_human(live: LiveRoom) -> None:
    query = one(say(live, "@query.log"), LogRequested)
    told = one(live.do(AnswerQuery(query=query.id, text="[CSP: x]")), SystemReply)
    said = one(say(live, "Aha.", reply_to=told.id), AgentResponse)

    assert (said.target, said.recipients, said.reply_to) == (HUMAN, (), told.id)


def test_endless_questions_are_held(live: LiveRoom) -> None:
    reply_to = live.say(HUMAN, CLAUDE).id
    for _ in range(MAX_HOPS):
        query = one(say(live, "@query.log", reply_to=reply_to), LogRequested)
        told = one(live.do(AnswerQuery(query=query.id, text="[CSP: x]")), SystemReply)
        assert told.held == ""
        reply_to = told.id

    query = one(say(live, "@query.log", reply_to=reply_to), LogRequested)
    events = live.do(AnswerQuery(query=query.id, text="[CSP: x]"))

    assert one(events, SystemReply).held == "loop"
    assert one(events, NoticePosted).target == HUMAN


# --- modes ---------------------------------------------------------------------------------------


@pytest.fixture
def led(live: LiveRoom) -> LiveRoom:
    live.do(Join(name="orchestrator", role=JoinRole.ORCHESTRATOR))
    return live


@pytest.mark.parametrize("line", ["@mode.status", "@mode.set freeform"])
def test_orchestrator_is_told_the_mode(led: LiveRoom, line: str) -> None:
    asked = led.say(HUMAN, BOSS)
    events = say(led, line, sender=BOSS, reply_to=asked.id, ttl_s=60.0)
    told = one(events, SystemReply)

    assert types(events)[1] == ("activity" if line == "@mode.status" else "agent_response")
    assert told.text == "[CSP: the mode is freeform; no session is running]"
    assert (told.recipients, told.reply_to, told.hops, told.expires) == ((BOSS,), asked.id, 1, led.now + 60.0)
    assert notices(events) == []


def test_question_that_is_refused_is_an_answer(live: LiveRoom) -> None:
    assert types(say(live, "@mode.status")) == ["agent_response", "system"]


def test_unknown_mode_is_refused_with_the_known_ones(led: LiveRoom) -> None:
    events = say(led, '@mode.set debat "x"', sender=BOSS)

    assert types(events) == ["agent_response", "system"]
    assert (
        "@mode.set was not run: unknown mode 'debat' (expected one of: freeform, " in notices(events)[0].text
    )


def test_orchestrator_sets_a_mode(led: LiveRoom) -> None:
    events = say(led, '@mode.set debate "tabs" --rounds 2 --agents codex,claude', sender=BOSS)
    session = led.room.sessions.live_in("default")

    assert session is not None
    assert (session.setup.topic, session.setup.rounds, session.agents) == ("tabs", 2, (CODEX, CLAUDE))
    assert one(events, SystemReply).text == (
        "[CSP: the mode is debate on 'tabs'; s-6 is running, in positions; it waits for codex, claude]"
    )


def test_words_into_a_full_queue_are_refused_whole(live: LiveRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = live.say(CODEX, CLAUDE)
    monkeypatch.setattr("csp.room.messages.MAX_QUEUED", 0)
    live.refuse(PostReply(sender=CLAUDE, text="@send.gemini hi", reply_to=MessageId(asked.id)), TooMany)
