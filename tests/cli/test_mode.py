"""csp mode and csp stop against a real gateway."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csp.cli.mode import view_lines
from csp.errors import Refused
from csp.http_client import GatewayClient
from tests.cli.live import Place
from tests.cli.recording import Recorded, run


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
    assert re.fullmatch(r"no mode is running \(the last session, s-\d+: canceled\)\n", place.csp("mode").out)


def test_mode_goes_to_its_end_by_next(place: Place) -> None:
    place.csp("mode", "set", "round_robin", "go", "--rounds", "1", "--first", "codex", "--synth", "claude")

    assert place.csp("mode", "show", "--json").json["currentTurn"] == "codex"
    assert place.csp("mode", "next").err == "round 1: claude\n"
    assert place.csp("mode", "next").err == "the mode is complete\n"
    failed = place.csp("mode", "next")
    assert (failed.code, failed.err) == (2, "csp: Not in structured mode (set a mode first)\n")


def test_mode_of_another_thread(place: Place) -> None:
    answer = place.csp("mode", "set", "autopilot", "go", "--thread", "dev", "--respect-final", "--json").json

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
    session = place.csp("mode", "set", "autopilot", "go", "--json").json["orchestration"]["sessionId"]

    assert place.csp("stop").err == f"stopped {session}\n"
    assert place.csp("stop").err == "No mode is running. To stop an agent: csp interrupt AGENT\n"


def test_a_mode_is_paused_resumed_extended_skipped_stopped(place: Place) -> None:
    begun = place.csp(
        "mode", "set", "round_robin", "go", "--steps", "3", "--agents", "claude,codex", "--json"
    )
    session = begun.json["orchestration"]["sessionId"]

    assert place.csp("mode", "pause").err == "round_robin is paused\n"
    assert place.csp("mode", "pause").err == "round_robin is paused already\n"
    assert f"session: {session}  paused" in place.csp("mode").out
    assert place.csp("mode", "resume", "--json").json["session"]["status"] == "running"
    assert place.csp("mode", "extend", "--rounds", "2").err == "extended round_robin by 2 rounds\n"
    assert place.csp("mode", "show", "--json").json["maxRounds"] == 5
    assert place.csp("mode", "extend", "--minutes", "1.5").err == "extended round_robin by 1.5 minutes\n"
    assert place.csp("mode", "extend").err == "the open turns were given more time\n"
    assert place.csp("mode", "skip", "claude").err == "skipped claude\n"
    assert place.csp("mode", "skip").err == "skipped codex\n"
    assert place.csp("mode", "show", "--json").json["currentTurn"] == "claude"
    wrong = place.csp("mode", "skip", "cluade")
    assert (wrong.code, wrong.err) == (
        1,
        "csp: agent 'cluade' is not in this round_robin (did you mean 'claude'?)\n",
    )
    assert place.csp("mode", "stop").err == f"ended round_robin ({session})\n"
    assert place.csp("mode", "show", "--json").json["reason"] == "canceled"


def test_the_limits_of_a_mode_reach_the_room(place: Place) -> None:
    options = ("--turns", "1", "--tokens", "9000", "--minutes", "0.5", "--cost", "0.25", "--soft-turns")
    at_limits = ("--on-limit", "stop", "--on-hard-limit", "stop")
    begun = place.csp("mode", "set", "autopilot", "go", "--agents", "claude,codex", *options, *at_limits)
    assert begun.code == 0, begun.err

    room = place.room()
    items = GatewayClient(room.url, room.token).get("/history", types="mode")["items"]
    setup = [item for item in items if item["change"] == "started"][-1]["setup"]
    assert setup["limits"] == {"turns": 1, "tokens": 9000, "minutes": 0.5, "cost": 0.25}
    assert setup["soft_turns"] is True
    assert setup["on_limit"] == "stop"
    assert place.csp("mode", "next").err == "the mode is complete\n"
    assert "stopped by the turn limit)" in place.csp("mode").out


def test_votes_are_shown_as_the_pane_shows_them(place: Place) -> None:
    agents = [place.agent(name) for name in ("ada", "bob")]
    place.csp("mode", "set", "consensus", "which name", "--agents", "ada,bob")
    assert place.csp("mode", "votes").out == "there are no votes to show\n"
    for text in ("call it {0}", "VOTE: [A]\nREASON: {0} is sure"):
        for agent in agents:
            agent.reply(agent.next_item(), text.format(agent.id))

    lines = place.csp("mode", "votes").out.splitlines()
    assert lines[0].startswith("votes: A (")
    assert [line for line in lines if " voted A" in line and line.endswith(" is sure")] == lines[-2:]
    said = place.csp("mode", "votes", "--json").json
    assert set(said) == {"proposals", "votes"}
    assert set(said["votes"]) == {"ada", "bob"}
    assert "call it ada" in str(said["proposals"])


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("set",), 2, "expected a mode"),
        (("dance",), 2, "unknown form 'dance' of mode"),
        (("dabate",), 2, "unknown form 'dabate' of mode"),
        (("debate", "tabs"), 2, "start it with: csp mode set debate"),
        (("resum",), 2, "(did you mean 'resume'?)"),
        (("show", "me"), 2, "csp mode show does not accept 'me'"),
        (("pause", "--rounds", "2"), 2, "csp mode pause does not accept --rounds"),
        (("extend", "--soft-turns"), 2, "csp mode extend does not accept --soft-turns"),
        (("extend", "--rounds", "0"), 2, "expected a whole number"),
        (("pause",), 1, "no mode is running (start one: csp mode set debate"),
        (("skip",), 1, "no mode is running"),
        (("set", "debat"), 2, "unknown mode 'debat'"),
        (("set", "debate"), 1, "debate needs a topic (for example: csp mode set debate"),
        (("set", "debate", "x", "--agents", "claude"), 2, "debate needs at least 2 agents"),
    ],
)
def test_misuse_is_told(place: Place, words: tuple[str, ...], code: int, says: str) -> None:
    done = place.csp("mode", *words)

    assert done.code == code
    assert says in done.err


def test_mode_without_a_session_is_freeform(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.gateway()
    try:
        assert place.csp("mode").out == "no mode is running\n"
    finally:
        place.close()


# --- without a room ------------------------------------------------------------------------------

VIEW = {"sessionId": "s-1", "mode": "debate", "status": "running", "turnOrder": ["ann"], "currentTurn": "ann"}


def test_every_option_of_a_mode_reaches_the_room() -> None:
    gateway = Recorded({"/mode": {"orchestration": {"mode": "debate", "waitingFor": []}}})
    names = ("--agents", "a,,b", "--first", "a", "--synth", "b", "--thread", "side")
    numbers = (
        "--rounds",
        "2",
        "--steps",
        "3",
        "--turns",
        "4",
        "--tokens",
        "5",
        "--minutes",
        "6",
        "--cost",
        "7",
    )
    switches = ("--ballot", "--respect-final", "--soft-turns")

    assert run(gateway, "mode", "set", "debate", "tabs", "or", "spaces", *names, *numbers, *switches) == 0
    assert gateway.asked[1:] == [
        (
            "POST",
            "/mode",
            {
                "mode": "debate",
                "topic": "tabs or spaces",
                "agents": ["a", "b"],
                "first": "a",
                "synth": "b",
                "thread": "side",
                "rounds": 2,
                "steps": 3,
                "ballot": True,
                "respect_final": True,
                "soft_turns": True,
                "limits": {"turns": 4, "tokens": 5, "minutes": 6.0, "cost": 7.0},
            },
        )
    ]
    run(gateway, "mode", "set", "debate", "x")
    assert gateway.bodies[-1] == {"mode": "debate", "topic": "x"}, "what was left out is left to the room"


@pytest.mark.parametrize(
    ("words", "path", "body"),
    [
        (("pause",), "/sessions/s-1/pause", {}),
        (("resume",), "/sessions/s-1/resume", {}),
        (
            ("extend", "--rounds", "2", "--minutes", "3"),
            "/sessions/s-1/extend",
            {"rounds": 2, "minutes": 3.0},
        ),
        (("skip",), "/sessions/s-1/skip", {}),
        (("skip", "ann"), "/sessions/s-1/skip", {"agent": "ann"}),
        (("stop",), "/sessions/s-1/stop", {}),
        (("end",), "/mode", {"mode": "freeform", "thread": "side"}),
        (("next",), "/turn/next", {"thread": "side"}),
    ],
)
def test_each_form_steers_the_mode_of_its_thread(
    words: tuple[str, ...], path: str, body: dict[str, Any]
) -> None:
    gateway = Recorded({"/mode": VIEW, path: VIEW | {"round": 0}})

    assert run(gateway, "mode", *words, "--thread", "side") == 0
    assert gateway.asked[-1] == ("POST", path, body)
    if len(gateway.asked) > 1:
        assert gateway.asked[0] == ("GET", "/mode", {"thread": "side"})


@pytest.mark.parametrize("view", [{"sessionId": None, "status": "running"}, VIEW | {"status": "ended"}])
def test_nothing_that_has_ended_is_steered(view: dict[str, Any]) -> None:
    for form in ("pause", "resume", "extend", "skip", "stop"):
        gateway = Recorded({"/mode": view})
        with pytest.raises(Refused, match="no mode is running"):
            run(gateway, "mode", form)
        assert len(gateway.asked) == 1


@pytest.mark.parametrize(
    ("status", "form", "said"),
    [
        ("running", "pause", "debate is paused\n"),
        ("paused", "pause", "debate is paused already\n"),
        ("paused", "resume", "debate is running\n"),
        ("running", "resume", "debate is running already\n"),
    ],
)
def test_what_is_so_already_is_said(
    status: str, form: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run(Recorded({"/mode": VIEW | {"status": status}, f"/sessions/s-1/{form}": {}}), "mode", form)

    assert capsys.readouterr().err == said


def test_what_a_session_has_nothing_of_is_a_dash() -> None:
    view = {
        "mode": "single",
        "sessionId": "s-1",
        "round": 0,
        "phase": "work",
        "status": "running",
        "waitingFor": [],
    }

    assert list(view_lines(view | {"votes": {}})) == [
        "mode: single",
        "topic: -",
        "round: 1/-  phase: work",
        "waiting for: -",
        "session: s-1  running",
    ]
    ended = view | {"status": "ended", "reason": "accepted", "votes": {"ada": {"label": "A"}}}
    assert list(view_lines(ended)) == [
        "no mode is running (the last session, s-1: accepted)",
        "vote: ada -> A",
    ]


@pytest.mark.parametrize(
    ("view", "options", "code"),
    [
        ({"sessionId": "s-1", "mode": "debate", "status": "running"}, (), 1),
        ({"sessionId": "s-1", "mode": "debate", "status": "paused"}, (), 1),
        ({"sessionId": "s-1", "mode": "debate", "status": "running"}, ("--replace",), 0),
        ({"sessionId": "s-1", "mode": "debate", "status": "ended"}, (), 0),
        ({"sessionId": None, "mode": "freeform"}, (), 0),
    ],
)
def test_a_mode_that_runs_is_ended_only_if_that_is_said(
    view: dict[str, Any], options: tuple[str, ...], code: int
) -> None:
    gateway = Recorded({"/mode": view | {"orchestration": {"mode": "autopilot", "waitingFor": []}}})
    refused = pytest.raises(Refused, match="debate is running") if code else contextlib.nullcontext()
    with refused:
        run(gateway, "mode", "set", "autopilot", "go", *options)

    asked = [method for method, path, _ in gateway.asked if method == "POST"]
    assert asked == ([] if code else ["POST"])
