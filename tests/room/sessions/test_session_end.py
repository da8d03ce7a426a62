"""What a session came to."""

import pytest

from csp.protocol.enums import HUMAN
from csp.protocol.notices import NoticeCode
from csp.protocol.requests import Usage
from csp.protocol.session_parts import EndReason
from csp.room.commands import Stop
from tests.room.live import CLAUDE, CODEX, GEMINI
from tests.room.playing import Play


@pytest.mark.parametrize("reason", EndReason)
def test_every_reason_has_its_line(reason: EndReason) -> None:
    assert NoticeCode[f"ENDED_{reason.name}"](mode="DEBATE").text[-1] == "."


def test_summary_says_who_said_what_for_how_much() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("debate", rounds=1)
    play.now += 65
    play.reply(CLAUDE, "tabs\n are  better", usage=Usage(input=1000, output=200, cost_usd=0.5))
    play.reply(CODEX, "x" * 500, usage=Usage(input=10, output=2, model="small"))

    assert play.notices[-1].split("\n") == [
        f"Summary of {play.session.id} (debate): done after 2 replies, "
        "1,212 new tokens (202 output), 0 cached, 65 s.",
        "Cost: 0.5000 USD (claude 0.5000, codex at an unknown price with small).",
        "- claude: tabs are better",
        f"- codex: {'x' * 194} [cut]",
    ]


def test_summary_of_a_stop_shows_what_was_sealed() -> None:
    play = Play()
    play.start("consensus")
    play.reply(CLAUDE, "my plan")
    play.do(Stop(sender=HUMAN))

    assert "- claude: my plan" in play.notices[-1]
    assert "Votes" not in play.notices[-1]


def test_summary_shows_proposals_and_votes_apart() -> None:
    play = Play()
    play.start("consensus")
    play.reply_all("plan of {0}")
    for agent in (CLAUDE, CODEX, GEMINI):
        play.reply(agent, "VOTE: [A]", usage=Usage(model="large"))
    winner = play.session.counted[0].agent

    assert f"- {winner}: plan of {winner}" in play.notices[-1]
    assert f"Winner: A ({winner})." in play.notices[-1]
    assert "Dissent: none." in play.notices[-1]
    assert f"- {winner} voted A (its own)" in play.notices[-1]
    assert "All voters run the same model, large." in play.notices[-1]


def test_voters_of_different_models_need_no_warning() -> None:
    play = Play()
    play.start("consensus")
    play.reply_all("plan of {0}")
    for agent in (CLAUDE, CODEX, GEMINI):
        play.reply(agent, "VOTE: [A]", usage=Usage(model=f"model of {agent}"))

    assert "same model" not in play.notices[-1]


def test_ballot_without_votes_says_so() -> None:
    play = Play()
    play.start("consensus")
    play.reply_all()
    play.wait(120)

    assert "Votes: none." in play.notices[-1]
