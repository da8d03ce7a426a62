"""The tests of who may read an event."""

from typing import Any, cast, get_args

import msgspec
import pytest

from csp.protocol.enums import ALL, HUMAN, AgentId, MessageId
from csp.protocol.events import (
    Activity,
    AgentCall,
    AgentResponse,
    AnyEvent,
    Event,
    KnownEvent,
    RunEvent,
    StateChanged,
    Unknown,
    Voted,
    type_of,
)
from csp.room.commands import Stop
from csp.room.sessions.session_reducer import Sessions
from csp.room.visibility import is_visible_to
from tests.room.examples import EVENTS
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import BOSS, Play

SENDER = AgentId("claude")
TARGET = AgentId("codex")
LISTED = AgentId("gemini")
OTHER = AgentId("mallory")

# Who reads an event from claude to codex, with gemini among the recipients if it has any.
RUN_EVENTS = {type_of(event) for event in EVENTS if isinstance(event, RunEvent)}
READERS: dict[str, set[AgentId]] = {
    "turn_signal": {SENDER, TARGET, LISTED},
    "mode": {SENDER, TARGET, LISTED, OTHER},
    "turn": {SENDER, TARGET, LISTED, OTHER},
    "vote": {SENDER, TARGET, LISTED, OTHER},
    "usage": {SENDER},
    "note": {SENDER, TARGET},
    "board": set(),
    "human_message": {SENDER, TARGET, LISTED},
    "agent_call": {SENDER, TARGET, LISTED},
    "agent_response": {SENDER, TARGET, LISTED},
    "activity": {SENDER, TARGET, LISTED},
    "kept": {SENDER, TARGET, LISTED},
    "answer": {SENDER, TARGET, LISTED},
    "query": {SENDER},
    "system": {TARGET},
    "delivery": {SENDER, TARGET},
    "joined": {SENDER, TARGET, LISTED, OTHER},
    "left": {SENDER, TARGET, LISTED, OTHER},
    # The state of the example has a dialog, which is for nobody else.
    "state": {SENDER},
    "control": {SENDER, TARGET},
    "late": set(),
    "call": set(),
    "redacted": {SENDER, TARGET, LISTED, OTHER},
    "pruned": {SENDER, TARGET, LISTED, OTHER},
    "base": set(),
    **{name: {SENDER, TARGET, LISTED, OTHER} for name in RUN_EVENTS},
    "run.later": set(),
}
# Who reads the same event when its target is all.
PUBLIC = {"human_message", "agent_call", "agent_response", "activity", "kept", "answer", "system"}
PUBLIC |= RUN_EVENTS
PUBLIC |= {"joined", "left", "redacted", "pruned", "mode", "turn", "vote", "turn_signal", "note"}
ALL_EVENTS: tuple[AnyEvent, ...] = (
    *EVENTS,
    Unknown(8, 1.0, "run.later", MessageId("e-8"), SENDER, TARGET),
)


@pytest.mark.parametrize("agent", [SENDER, TARGET, LISTED, OTHER])
@pytest.mark.parametrize("event", ALL_EVENTS, ids=type_of)
def test_agent_reads_what_concerns_it(event: AnyEvent, agent: AgentId) -> None:
    assert is_visible_to(event, agent, Sessions()) == (agent in READERS[type_of(event)])


@pytest.mark.parametrize("event", EVENTS, ids=type_of)
def test_stranger_reads_what_is_for_all(event: KnownEvent) -> None:
    kind, fields = type(event), {name: getattr(event, name) for name in event.__struct_fields__}

    assert is_visible_to(kind(**(fields | {"target": ALL})), OTHER, Sessions()) == (type_of(event) in PUBLIC)


@pytest.mark.parametrize("agent", [SENDER, TARGET, OTHER])
def test_everybody_reads_a_state_without_a_dialog(agent: AgentId) -> None:
    (event,) = (event for event in EVENTS if isinstance(event, StateChanged))

    assert is_visible_to(msgspec.structs.replace(event, dialog=None), agent, Sessions())


def test_table_has_every_kind_of_event() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(KnownEvent))
    assert {type_of(event) for event in ALL_EVENTS} == set(READERS)


# --- sealed phases -------------------------------------------------------------------------------


@pytest.fixture
def sealed() -> Play:
    play = Play()
    play.start("consensus")
    play.reply(CLAUDE, "my plan\n@send.codex psst")
    return play


def read_by(play: Play, agent: AgentId) -> list[str]:
    said = (AgentResponse, AgentCall, Activity, Voted)
    return [
        event.text
        for event in play.journal
        if isinstance(event, said) and is_visible_to(event, agent, play.room.sessions)
    ]


def test_sealed_words_are_read_by_their_author_alone(sealed: Play) -> None:
    assert read_by(sealed, CLAUDE) == ["my plan\n@send.codex psst", "psst"]
    assert read_by(sealed, CODEX) == []


def test_words_are_read_once_their_phase_is_over(sealed: Play) -> None:
    sealed.reply(CODEX, "another plan")
    sealed.reply(GEMINI, "no plan")

    assert read_by(sealed, GEMINI) == ["my plan\n@send.codex psst", "another plan", "no plan"]


def test_votes_are_sealed_until_all_are_in(sealed: Play) -> None:
    sealed.reply(CODEX)
    sealed.reply(GEMINI)
    sealed.reply(CLAUDE, "VOTE: [A]", activity=True)

    assert "VOTE: [A]" in read_by(sealed, CLAUDE)
    assert "VOTE: [A]" not in read_by(sealed, CODEX)


def test_end_of_a_session_opens_its_seals(sealed: Play) -> None:
    sealed.do(Stop(sender=HUMAN))

    assert "my plan\n@send.codex psst" in read_by(sealed, CODEX)


def test_words_of_a_session_nobody_remembers_are_open(sealed: Play) -> None:
    (reply,) = sealed.all(AgentResponse)

    assert is_visible_to(reply, CODEX, Sessions())


def test_sealed_words_wait_for_everybody_even_outside(sealed: Play) -> None:
    sealed.join_boss()
    sent = sealed.say(CODEX, BOSS, "between us")

    assert sealed.shown(sent.id, BOSS) == "held(turn)"
    sealed.reply(CODEX)
    sealed.reply(GEMINI)
    assert sealed.shown(sent.id, BOSS) == "queued"


def test_event_of_no_known_kind_is_a_fault_of_ours() -> None:
    odd = Event(1, 1.0, MessageId("e-1"), SENDER, TARGET, "default", "words")

    with pytest.raises(AssertionError):
        is_visible_to(cast(Any, odd), SENDER, Sessions())
