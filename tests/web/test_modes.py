"""modes.js: what the chip says of a session, and how a session ended."""

from typing import Any

from tests.web.modules import Parts

CHIP = "const { chipText } = await load('modes'); return given.map(([shown, now]) => chipText(shown, now))"


def _shown(mode: str, **fields: Any) -> dict[str, Any]:
    orchestration = {"waitingFor": [], **fields.pop("orchestration", {})}
    session = {"mode": mode, "status": "running", "round": 0, "maxRounds": 0, "turns": 0, **fields}
    return {"session": session, "orchestration": orchestration}


async def test_the_chip_of_a_running_session(parts: Parts) -> None:
    two = {"currentTurn": "gpt", "waitingFor": ["gpt", "claude"], "deadline": 142}
    one = {"currentTurn": "gpt", "waitingFor": ["gpt"], "deadline": 142}
    cases = {
        "Freeform": None,
        "Collab: 2/6": _shown("collaborate", round=2, maxRounds=6, orchestration=one),
        "Autopilot: running (turn 17)": _shown("autopilot", round=16, orchestration=one),
        "Autopilot: paused (turn 17)": _shown("autopilot", round=16, status="paused"),
        "Debate: round 2/3 · gpt 0:42": _shown("debate", round=1, maxRounds=3, orchestration=one),
        "Debate: round 2/3 · gpt +1 0:42": _shown("debate", round=1, maxRounds=3, orchestration=two),
        "Debate: round 2/3, paused · gpt": _shown(
            "debate", round=1, maxRounds=3, status="paused", orchestration=one
        ),
        "Round robin: step 1/10": _shown("round_robin", maxRounds=10),
        "Debate: ballot": _shown("debate", round=2, maxRounds=3, orchestration={"phase": "ballot"}),
        "Consensus: synthesis, paused": _shown(
            "consensus", maxRounds=2, status="paused", orchestration={"phase": "synthesis"}
        ),
        "Review: building, paused": _shown("review", status="paused", orchestration={"phase": "building"}),
        "Review: running": _shown("review"),
        "unheard_of: running (turn 1)": _shown("unheard_of"),
    }

    said = await parts.run(CHIP, [[shown, 100] for shown in cases.values()])

    assert said == list(cases)


async def test_the_chip_of_a_session_that_has_ended(parts: Parts) -> None:
    cases = {
        "Collab: finished (3/6)": _shown("collaborate", status="ended", reason="final", turns=3, maxRounds=6),
        "Autopilot: stopped (turn 12)": _shown(
            "autopilot", status="ended", reason="stopped_by_user", turns=12
        ),
        "Debate: ended in a tie": _shown("debate", status="ended", reason="tie"),
    }

    assert await parts.run(CHIP, [[shown, 100] for shown in cases.values()]) == list(cases)


async def test_every_end_has_its_words(parts: Parts) -> None:
    said = await parts.run(
        "const { endOf } = await load('modes'); return given.map((reason) => endOf(reason))",
        [
            "no_handoff",
            "malformed",
            "cap_reached",
            "canceled",
            "emergency_turns",
            "emergency_tokens",
            "emergency_minutes",
            "emergency_cost",
            "too_few",
            "all_failed",
            "done",
            "no_quorum",
            "superseded",
            "accepted",
            "aborted",
            "halted",
            "some_new_one",
            None,
        ],
    )

    assert said == [
        "ended, no next speaker was named",
        "ended, the answer could not be parsed",
        "ended, all rounds done",
        "canceled",
        "stopped by the turn limit",
        "stopped by the token limit",
        "stopped by the time limit",
        "stopped by the cost limit",
        "ended, too few agents",
        "ended, all agents failed",
        "done",
        "ended without a quorum",
        "replaced",
        "accepted",
        "aborted",
        "ended after a halt",
        "some new one",
        "ended",
    ]


async def test_seconds_are_shown_as_a_clock(parts: Parts) -> None:
    said = await parts.run(
        "const { minutes } = await load('modes'); return given.map((seconds) => minutes(seconds))",
        [0, 42, 59.6, 60, 61, 600, 3599, 3600, 3725, -5],
    )

    assert said == ["0:00", "0:42", "1:00", "1:00", "1:01", "10:00", "59:59", "1:00:00", "1:02:05", "0:00"]


async def test_the_form_offers_what_each_mode_has(parts: Parts) -> None:
    rows = await parts.run(
        """const { unitOf } = await load("modes"); const { catalogue } = await load("catalogue");
        return catalogue.modes.map((row) => [row.id, unitOf(row), row.options.join()])"""
    )

    assert rows == [
        ["debate", "rounds", "synth,ballot"],
        ["consensus", "", "synth"],
        ["collaborate", "rounds", "first"],
        ["autopilot", "", "first,respect_final,limits"],
        ["round_robin", "steps", "first,synth"],
        ["orchestrator", "", "limits,lead"],
        ["single", "", "first"],
        ["review", "", "roles"],
    ]
