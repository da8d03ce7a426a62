"""The tests of the id that a call has in common with its reply."""

import pytest

from csp.protocol.events import AgentResponse, TurnSignal
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import Play


@pytest.mark.parametrize("mode", ["round_robin", "autopilot", "debate"])
def test_a_call_and_its_reply_carry_the_same_call_id(mode: str) -> None:
    play = Play(CLAUDE, CODEX, GEMINI)
    play.start(mode)
    agent = play.waiting[0]
    play.reply(agent, "words")
    (call,) = [event for event in play.all(TurnSignal) if event.target == agent]
    (reply,) = [event for event in play.all(AgentResponse) if event.sender == agent]

    assert call.call_id is not None
    assert reply.call_id == call.call_id == call.turn


def test_each_call_has_an_id_of_its_own() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("autopilot")
    for _ in range(4):
        play.reply(play.waiting[0], f"words {len(play.all(TurnSignal))}")
    ids = [event.call_id for event in play.all(TurnSignal)]

    assert len(ids) == 5 and len(set(ids)) == 5
