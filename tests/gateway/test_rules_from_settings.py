"""The prompts of the modes are files in which nothing is missing."""

import re

import pytest

from csp.config import Settings
from csp.gateway.rules_from_settings import load_rules
from csp.prompt_files import load_prompts
from csp.protocol.enums import ALL, HUMAN, ParticipantKind, SessionId
from csp.protocol.session_parts import Limits
from csp.room.runs.run_state import ReviewRun, run_values
from csp.room.sessions.modes import MODES
from csp.room.sessions.turn_prompt import prompt, prompt_values
from tests.room.live import CLAUDE, CODEX
from tests.room.playing import Play

PROMPTS = load_prompts()
#: What is asked of an agent, in every mode.
ASKED = sorted({phase.prompt for row in MODES.values() for phase in row.phases if phase.prompt} | {"assist"})
RUN = ReviewRun(
    id="run-1",
    session=SessionId("s-1"),
    thread="default",
    goal="g",
    builder=CLAUDE,
    reviewer=CODEX,
    started_at=0.0,
    first_seq=1,
    seq=1,
)
FINAL_WORDS = {
    ParticipantKind.API: "Return JSON only per schema, no extra text.",
    ParticipantKind.CLI: "nothing after it.",
}


def rendered(name: str, kind: ParticipantKind) -> str:
    play = Play(CLAUDE, CODEX)
    play.start("debate", topic="the {goal} of all", rounds=2)
    play.reply_all("position of {0}")
    play.say(HUMAN, ALL, "a word from a person")
    values = prompt_values(play.session, CLAUDE, kind, 2)
    values |= run_values(RUN, CLAUDE)
    values |= {"proposals": "Proposal A:\nx", "labels": "A, B", "votes": ""}
    return prompt(PROMPTS, name, values)


@pytest.mark.parametrize("kind", [ParticipantKind.API, ParticipantKind.CLI])
@pytest.mark.parametrize("name", ASKED)
def test_prompt_has_goal_window_round_and_the_final_instruction(name: str, kind: ParticipantKind) -> None:
    text = rendered(name, kind)

    assert "the {goal} of all" in text
    assert "human: a word from a person" in text
    assert "Round 2 of 2" in text
    assert text.endswith(FINAL_WORDS[kind])
    assert not re.search(r"\{(?!goal)[a-z_]+\}", text)


def test_name_hint_and_rules_of_the_first_seed_are_there() -> None:
    text = rendered("collaborate", ParticipantKind.API)

    for words in ("turn-based session", "`claude`", "one-sentence task", "final", "concise", "JSON"):
        assert words in text


def test_response_is_asked_for_with_the_positions_of_the_others() -> None:
    assert "codex said:\nposition of codex" in rendered("respond", ParticipantKind.CLI)


def test_ballot_asks_for_a_line_that_is_no_vote_itself() -> None:
    text = rendered("ballot", ParticipantKind.CLI)

    assert "VOTE: [X]" in text and "one of A, B" in text


@pytest.mark.parametrize("name", ["repair_vote", "repair_envelope"])
def test_second_chance_says_what_was_wrong(name: str) -> None:
    assert rendered(name, ParticipantKind.API).startswith("Your answer")


def test_second_chance_in_a_run_says_what_was_wrong() -> None:
    play = Play(CLAUDE, CODEX)
    play.start("review", topic="t")
    values = (
        prompt_values(play.session, CLAUDE, ParticipantKind.CLI, 1)
        | run_values(RUN, CLAUDE)
        | {"problem": "no plan"}
    )
    text = prompt(PROMPTS, "repair_review", values)

    assert "Your answer was rejected: no plan." in text
    assert "PLAN: the plan in one sentence" in text and "run_id" in text


def test_rules_are_those_of_the_settings() -> None:
    rules = load_rules(Settings(turn_warn_ms=1500, turn_timeout_ms=3000, max_cost_usd=2.5, max_turns=7))

    assert (rules.warn_s, rules.timeout_s, rules.prompts) == (1.5, 3.0, PROMPTS)
    assert rules.limits == Limits(turns=7, tokens=1_000_000, minutes=20.0, cost=2.5)
