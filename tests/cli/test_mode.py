"""csp mode and csp stop against a real gateway."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.live import Place


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    place = Place(tmp_path_factory.mktemp("shared"))
    place.gateway()
    yield place
    place.close()


@pytest.fixture
def place(shared: Place) -> Iterator[Place]:
    """A room with claude and codex in it, in freeform."""
    shared.agent("claude")
    shared.agent("codex")
    yield shared
    shared.csp("stop", "--all")
    shared.empty()


def test_mode_is_set_shown_passed_on_and_ended(place: Place) -> None:
    options = ("--rounds", "2", "--agents", "codex,claude")
    begun = place.csp("mode", "set", "debate", "tabs", "or", "spaces", *options)
    assert (begun.code, begun.err) == (0, "the mode is debate, waiting for codex, claude\n")

    shown = place.csp("mode", "show")
    assert shown.out.splitlines()[:4] == [
        "mode: debate",
        "topic: tabs or spaces",
        "round: 1/2  phase: positions",
        "waiting for: codex, claude",
    ]
    assert place.csp("mode", "next").err == "round 1: claude\n"
    assert place.csp("mode", "end").err == "the mode is freeform\n"
    assert "ended (canceled)" in place.csp("mode").out


def test_mode_goes_to_its_end_by_next(place: Place) -> None:
    place.csp("mode", "set", "round_robin", "--rounds", "1", "--first", "codex", "--synth", "claude")

    assert place.csp("mode", "show", "--json").json["currentTurn"] == "codex"
    assert place.csp("mode", "next").err == "round 1: claude\n"
    assert place.csp("mode", "next").err == "the mode is complete\n"
    failed = place.csp("mode", "next")
    assert (failed.code, failed.err) == (2, "csp: Not in structured mode (set a mode first)\n")


def test_mode_of_another_thread(place: Place) -> None:
    answer = place.csp("mode", "set", "autopilot", "--thread", "dev", "--respect-final", "--json").json

    assert answer["orchestration"]["mode"] == "autopilot"
    assert place.csp("mode", "show", "--json").json["mode"] == "freeform"
    assert place.csp("mode", "next", "--thread", "dev", "--json").json["currentTurn"] == "codex"
    assert "mode: autopilot" in place.csp("mode", "show", "--thread", "dev").out


def test_votes_are_shown_with_their_reasons(place: Place) -> None:
    agents = [place.agent(name) for name in ("ada", "bob")]
    place.csp("mode", "set", "consensus", "which name", "--agents", "ada,bob")
    for text in ("call it {0}", "VOTE: [A]\nREASON: {0} is sure"):
        for agent in agents:
            agent.reply(agent.next_item(), text.format(agent.id))

    assert [line for line in place.csp("mode").out.splitlines() if line.startswith("vote: ")] == [
        "vote: ada -> A: ada is sure",
        "vote: bob -> A: bob is sure",
    ]


def test_stop_ends_the_mode(place: Place) -> None:
    session = place.csp("mode", "set", "autopilot", "--json").json["orchestration"]["sessionId"]

    assert place.csp("stop").err == f"stopped {session}\n"
    assert place.csp("stop").err == "no mode was running; csp interrupt AGENT stops an agent\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("set",), 2, "expected a mode"),
        (("dance",), 2, "unknown form 'dance' of mode"),
        (("show", "me"), 2, "csp mode show takes no further words"),
        (("set", "debat"), 2, "unknown mode 'debat'"),
        (("set", "debate", "--agents", "claude"), 2, "debate takes at least 2 agents"),
    ],
)
def test_misuse_is_told(place: Place, words: tuple[str, ...], code: int, says: str) -> None:
    done = place.csp("mode", *words)

    assert done.code in (1, code)
    assert says in done.err


def test_mode_without_a_session_is_freeform(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.gateway()
    try:
        assert place.csp("mode").out == "mode: freeform\n"
    finally:
        place.close()
