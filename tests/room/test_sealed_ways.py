"""Every way by which an agent could tell others something in a sealed phase, one by one."""

from typing import Any

import pytest

from csp.protocol.enums import (
    ALL,
    HUMAN,
    AgentId,
    AgentState,
    DeliveryState,
    Ending,
    JoinRole,
    MessageId,
    ParticipantKind,
    SessionAction,
)
from csp.protocol.events import (
    AgentCall,
    AgentResponse,
    Left,
    NoteAdded,
    NoticePosted,
    StateChanged,
    TurnMoved,
)
from csp.protocol.requests import Handoff, Usage
from csp.room.commands import (
    Collaborate,
    ExtendTurn,
    Join,
    PostReply,
    Rejoin,
    ReleaseMessage,
    Send,
    SetMode,
    SetState,
    Stop,
    Summarise,
    WriteNote,
)
from csp.room.messages import MAX_HOPS
from csp.room.visibility import is_hidden, is_visible_to, may_watch, visible_spending
from tests.room.live import CLAUDE, CODEX, GEMINI, one
from tests.room.playing import BOSS, Play

GPT, QWEN = AgentId("gpt"), AgentId("qwen")
OPEN, SEALED = "dev", "default"


def sealed() -> Play:
    """A consensus of claude and codex in its sealed phase; gemini looks on."""
    play = Play()
    play.start("consensus", agents=(CLAUDE, CODEX))
    return play


def twice_sealed() -> Play:
    """Two debates in their sealed phases: gpt is in both, claude in one, codex in the other."""
    play = Play(CLAUDE, CODEX, GEMINI)
    play.do(Join(name=GPT, kind=ParticipantKind.API))
    play.do(SetMode(sender=HUMAN, mode="debate", topic="a", agents=(GPT, CLAUDE), rounds=1))
    play.do(SetMode(sender=HUMAN, mode="debate", topic="b", agents=(GPT, CODEX), rounds=1, thread="b"))
    return play


def reads(play: Play, reader: AgentId, word: str) -> bool:
    """Tell whether somebody finds a word in an event."""
    return any(
        word in repr(event) and is_visible_to(event, reader, play.room.sessions) for event in play.journal
    )


def finish(play: Play, thread: str) -> None:
    """Let everybody in a session's sealed phase reply."""
    session = play.room.sessions.newest_in(thread)
    assert session is not None
    for turn in session.turns.values():
        play.do(PostReply(sender=turn.agent, text="nothing", turn=turn.id))


# --- a model in two sealed sessions --------------------------------------------------------------


def test_word_of_a_model_in_two_sealed_sessions_waits_for_both() -> None:
    play = twice_sealed()
    sent = one(play.do(Send(sender=GPT, to=ALL, text="marzipan")), AgentCall)
    finish(play, "default")

    assert [play.shown(sent.id, agent) for agent in (CLAUDE, CODEX, GEMINI)] == ["held(turn)"] * 3
    assert not reads(play, CLAUDE, "marzipan") and not reads(play, CODEX, "marzipan")
    finish(play, "b")
    assert [play.shown(sent.id, agent) for agent in (CLAUDE, CODEX, GEMINI)] == ["queued"] * 3
    assert reads(play, CLAUDE, "marzipan") and reads(play, CODEX, "marzipan")


def test_word_sealed_twice_comes_with_no_turn_before_both_are_over() -> None:
    play = Play(CLAUDE, CODEX)
    play.do(Join(name=GPT, kind=ParticipantKind.API))
    play.do(SetMode(sender=HUMAN, mode="debate", topic="a", agents=(GPT, CLAUDE), rounds=3))
    play.do(SetMode(sender=HUMAN, mode="debate", topic="b", agents=(GPT, CODEX), rounds=1, thread="b"))
    sent = one(play.do(Send(sender=GPT, to=CLAUDE, text="marzipan")), AgentCall)
    finish(play, "default")
    play.reply(GPT)

    assert "marzipan" not in play.prompt(CLAUDE)
    finish(play, "b")
    assert play.shown(sent.id, CLAUDE) == "held(turn)"
    play.reply(CLAUDE)
    play.reply(GPT)
    assert "marzipan" in play.prompt(CLAUDE)


def test_stopped_session_withdraws_what_was_said_in_it() -> None:
    play = twice_sealed()
    sent = one(play.do(Send(sender=GPT, to=ALL, text="marzipan")), AgentCall)
    play.do(Stop(sender=HUMAN, thread="default"))

    assert play.shown(sent.id, GEMINI) == "withdrawn"


def test_other_session_that_is_stopped_lets_go_of_it() -> None:
    play = twice_sealed()
    sent = one(play.do(Send(sender=GPT, to=ALL, text="marzipan")), AgentCall)
    finish(play, "default")
    play.do(Stop(sender=HUMAN, thread="b"))

    assert play.shown(sent.id, GEMINI) == "queued"


def test_word_for_members_with_soft_turns_is_let_go() -> None:
    play = Play(CLAUDE, CODEX)
    play.do(Join(name=GPT, kind=ParticipantKind.API))
    play.do(SetMode(sender=HUMAN, mode="debate", topic="a", agents=(GPT, CLAUDE), rounds=3, soft_turns=True))
    play.do(SetMode(sender=HUMAN, mode="debate", topic="b", agents=(GPT, CODEX), rounds=1, thread="b"))
    sent = one(play.do(Send(sender=GPT, to=CLAUDE, text="marzipan")), AgentCall)
    finish(play, "default")
    finish(play, "b")

    assert play.shown(sent.id, CLAUDE) == "queued"


# --- words beside messages -----------------------------------------------------------------------


def test_note_is_sealed_with_its_writer() -> None:
    play = sealed()
    note = one(play.do(WriteNote(sender=CLAUDE, text="marzipan", tags=("sweets",))), NoteAdded)

    assert not reads(play, CODEX, "marzipan") and not reads(play, GEMINI, "sweets")
    assert is_visible_to(note, CLAUDE, play.room.sessions)
    finish(play, "default")
    assert reads(play, CODEX, "marzipan")


def test_summary_is_sealed_with_its_writer() -> None:
    play = sealed()
    ask = Summarise(by=CLAUDE, session="room", text="sum it up", stands_for=(MessageId("n-1"),))
    asked = play.do(ask)[0]
    play.do(PostReply(sender=CLAUDE, text="marzipan", reply_to=asked.id))

    assert [event.text for event in play.all(NoteAdded)] == ["marzipan"]
    assert not reads(play, CODEX, "marzipan")


def test_detail_of_a_state_is_sealed() -> None:
    play = sealed()
    changed = one(play.do(SetState(agent=CLAUDE, state=AgentState.BUSY, detail="marzipan")), StateChanged)
    claude, sessions = play.agent(CLAUDE), play.room.sessions

    assert not is_visible_to(changed, CODEX, sessions) and is_visible_to(changed, CLAUDE, sessions)
    assert [is_hidden(claude.seals, CLAUDE, who, sessions) for who in (CODEX, CLAUDE, None)] == [1, 0, 0]
    finish(play, "default")
    assert not is_hidden(claude.seals, CLAUDE, CODEX, play.room.sessions)


def test_state_without_a_detail_is_seen_by_all() -> None:
    play = sealed()
    changed = one(play.do(SetState(agent=CLAUDE, state=AgentState.BUSY)), StateChanged)

    assert is_visible_to(changed, CODEX, play.room.sessions)


def test_reason_for_leaving_is_for_people() -> None:
    play = sealed()
    events = play.do(SetState(agent=CLAUDE, state=AgentState.OFFLINE, detail="marzipan"))

    assert one(events, Left).reason == "closed"
    assert [(event.target, event.text) for event in events if isinstance(event, NoticePosted)] == [
        (HUMAN, "claude left: marzipan")
    ]
    assert play.do(SetState(agent=CLAUDE, state=AgentState.OFFLINE, detail="marzipan")) == []


def test_reason_for_leaving_is_told_outside_a_sealed_phase() -> None:
    play = sealed()

    assert one(play.do(SetState(agent=GEMINI, state=AgentState.OFFLINE, detail="bye")), Left).reason == "bye"
    assert one(play.do(SetState(agent=CODEX, state=AgentState.OFFLINE)), Left).reason == "closed"


def test_reason_of_a_failed_delivery_is_for_people() -> None:
    play = Play()
    asked = play.say(GEMINI, CODEX)
    play.start("consensus", agents=(CLAUDE, CODEX))
    play.report(CODEX, asked.id, DeliveryState.FAILED, "marzipan")

    assert not reads(play, GEMINI, "marzipan")
    assert f"{asked.id} to codex failed: marzipan" in play.notices
    assert play.shown(asked.id, CODEX) == "failed(sealed)"


def test_reason_of_a_broken_turn_is_for_people() -> None:
    play = sealed()
    play.reply(CLAUDE, "", ending=Ending.FAILED, reason="marzipan")

    assert not reads(play, CODEX, "marzipan")
    assert "claude: its answer was failed: marzipan" in play.notices


def test_note_about_work_is_told_in_no_session() -> None:
    play = twice_sealed()
    finish(play, "b")
    play.do(SetMode(sender=HUMAN, mode="autopilot", topic="c", agents=(GPT,), thread="c"))
    play.do(ExtendTurn(agent=GPT, note="marzipan"))

    assert [event.reason for event in play.all(TurnMoved) if event.reason == "marzipan"] == []


def test_capabilities_stay_as_they_were() -> None:
    play = sealed()
    play.do(Rejoin(agent=CLAUDE, capabilities=["marzipan"]))
    play.do(Rejoin(agent=GEMINI, capabilities=["nougat"]))

    assert (play.agent(CLAUDE).capabilities, play.agent(GEMINI).capabilities) == (None, ["nougat"])


def test_task_of_a_handoff_is_sealed() -> None:
    play = sealed()
    play.do(PostReply(sender=CLAUDE, text="go on", handoff=Handoff(to="codex", task="marzipan")))
    play.reply(CODEX, "my plan")
    (item,) = [item for item in play.session.items if item.text == "marzipan"]

    assert item.sealed == play.session.seal


def test_spending_of_a_sealed_agent_is_hidden_from_others() -> None:
    play = sealed()
    play.reply(CLAUDE, "my plan", usage=Usage(input=1, output=1, model="marzipan"))
    room = play.room

    assert visible_spending(room.spent, CODEX, room.sessions) == ()
    assert [row.model for row in visible_spending(room.spent, CLAUDE, room.sessions)] == ["marzipan"]
    assert visible_spending(room.spent, None, room.sessions) == room.spent
    play.do(Stop(sender=HUMAN))
    assert visible_spending(play.room.spent, CODEX, play.room.sessions)


@pytest.mark.parametrize(("reader", "expected"), [(None, True), (CLAUDE, True), (CODEX, False)])
def test_screen_is_for_people_and_its_owner(reader: AgentId | None, expected: bool) -> None:
    assert may_watch(CLAUDE, reader) is expected


def test_kicked_agent_keeps_to_itself_until_the_phase_is_over() -> None:
    play = Play()
    play.start("consensus")
    play.reply(CLAUDE, "my plan")
    play.steer(SessionAction.KICK, agent=CLAUDE)
    play.do(Send(sender=CLAUDE, to=ALL, text="marzipan", thread="elsewhere"))

    assert not reads(play, CODEX, "marzipan")
    finish(play, "default")
    assert reads(play, CODEX, "marzipan")


# --- what an orchestrator in a sealed phase may begin --------------------------------------------


def led() -> Play:
    play = Play()
    play.do(Join(name=BOSS, role=JoinRole.ORCHESTRATOR))
    play.start("consensus", agents=(CLAUDE, BOSS))
    return play


@pytest.mark.parametrize(
    "command",
    [
        SetMode(sender=BOSS, mode="single", topic="marzipan", agents=(CODEX,), thread="dev"),
        Collaborate(sender=BOSS, objective="marzipan", agents=(CODEX,)),
    ],
    ids=["mode", "collaboration"],
)
def test_who_is_in_a_sealed_phase_begins_nothing(command: Any) -> None:
    assert led().refused(command).startswith("orchestrator is in a sealed phase of s-")


def test_sealed_session_itself_may_be_replaced_by_its_lead() -> None:
    play = led()
    play.do(SetMode(sender=BOSS, mode="single", topic="nougat", agents=(CODEX,)))

    assert play.session.setup.topic == "nougat"


def test_allstop_in_another_thread_is_sealed() -> None:
    play = led()
    play.do(Send(sender=BOSS, to=ALL, text="Allstop 4711", thread="dev"))

    assert not reads(play, CODEX, "4711")


# --- what was held back --------------------------------------------------------------------------


def test_released_message_still_waits_for_its_seal() -> None:
    play = sealed()
    heard = play.say(GEMINI, CLAUDE, "hello")
    play.room.messages[heard.id].hops = MAX_HOPS
    held = one(play.do(Send(sender=CLAUDE, to=GEMINI, text="marzipan", reply_to=heard.id)), AgentResponse)
    assert play.shown(held.id, GEMINI) == "held(loop)"
    play.do(ReleaseMessage(message=held.id))

    assert play.shown(held.id, GEMINI) == "held(turn)"
    finish(play, "default")
    assert play.shown(held.id, GEMINI) == "queued"


def test_word_sent_with_the_last_reply_does_not_wait_for_ever() -> None:
    play = Play()
    play.start("round_robin", agents=(CLAUDE, CODEX), steps=1)
    play.reply(CLAUDE, "done\n@send.codex marzipan")
    (sent,) = play.all(AgentCall)

    assert play.session.is_over
    assert play.shown(sent.id, CODEX) == "queued"
