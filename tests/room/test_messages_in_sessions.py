"""What is said beside the turns of a session: whose it is, who waits for it, what is sealed."""

from csp.protocol.enums import ALL, HUMAN, AgentId
from csp.protocol.events import AgentCall
from csp.room.commands import Send, SetMode
from tests.room.live import CLAUDE, CODEX, GEMINI, one
from tests.room.playing import Play

MISTRAL, QWEN = AgentId("mistral"), AgentId("qwen")


def sealed_debate_beside_an_autopilot() -> Play:
    """A debate in its sealed phase in a thread of its own; other agents work in the room's thread."""
    play = Play(CLAUDE, CODEX, GEMINI, MISTRAL, QWEN)
    play.do(SetMode(sender=HUMAN, mode="autopilot", topic="build", agents=(GEMINI, MISTRAL)))
    play.do(SetMode(sender=HUMAN, mode="debate", topic="tabs", agents=(CLAUDE, CODEX), thread="debate"))
    return play


def send(play: Play, sender: AgentId, to: AgentId, thread: str = "default") -> AgentCall:
    return one(play.do(Send(sender=sender, to=to, text="words", thread=thread)), AgentCall)


def test_word_of_a_member_is_sealed_in_every_thread() -> None:
    play = sealed_debate_beside_an_autopilot()
    debate = play.room.sessions.live_in("debate")
    assert debate is not None and debate.seal

    for thread in ("default", "debate", "elsewhere"):
        sent = send(play, CLAUDE, ALL, thread)

        assert (sent.session_id, sent.sealed) == (debate.id, debate.seal)
        for agent in (CODEX, GEMINI, MISTRAL, QWEN):
            assert play.shown(sent.id, agent) == "held(turn)"


def test_word_of_an_outsider_is_not_sealed() -> None:
    play = sealed_debate_beside_an_autopilot()

    for thread in ("default", "debate", "elsewhere"):
        assert send(play, QWEN, ALL, thread).sealed == 0


def test_later_word_of_an_outsider_does_not_overtake_the_first() -> None:
    play = Play(CLAUDE, CODEX, GEMINI, QWEN)
    play.do(SetMode(sender=HUMAN, mode="debate", topic="tabs", agents=(CLAUDE, CODEX), thread="debate"))
    first = send(play, QWEN, ALL)
    second = send(play, QWEN, GEMINI)

    assert play.due(GEMINI) == [first.id, second.id]
    assert play.shown(first.id, CLAUDE) == "held(turn)"
