"""What a demo agent gets to know of its turn: data of the room, never the wording of a prompt."""

from typing import Any

import msgspec
import pytest

from csp.agents.demo import demo_prompt
from csp.agents.demo.demo_prompt import DemoPrompt, Kind, Said, asked, message, read_prompt, turn_of
from csp.errors import Unreachable
from csp.protocol.enums import Mode
from csp.protocol.responses import ModeView
from tests.cli.recording import Recorded

TURN = "[YOUR TURN #t-17]\nGo on.\n[end #t-17]"
ENV = {"CSP_GATEWAY_URL": "http://127.0.0.1:9", "CSP_AUTH_TOKEN": "token"}
BOB = (Said(name="bob", text="Ship it."),)
HANDOFF = {"to": "ada", "task": "check it"}


def view(mode: Mode = Mode.DEBATE, phase: str = "turns", **fields: Any) -> ModeView:
    known: dict[str, Any] = {"topic": "tabs or spaces", "turn_order": ("ada", "bob", "cy")}
    return ModeView(mode=mode, phase=phase, **(known | fields))


@pytest.mark.parametrize(
    ("mode", "phase", "me", "kind"),
    [
        (Mode.DEBATE, "positions", "ada", Kind.POSITION),
        (Mode.DEBATE, "responses", "ada", Kind.REBUTTAL),
        (Mode.DEBATE, "ballot", "ada", Kind.VOTE),
        (Mode.CONSENSUS, "proposals", "ada", Kind.PROPOSAL),
        (Mode.CONSENSUS, "synthesis", "ada", Kind.SYNTHESIS),
        (Mode.COLLABORATE, "turns", "ada", Kind.WORK),
        (Mode.AUTOPILOT, "turns", "ada", Kind.WORK),
        (Mode.SINGLE, "turns", "ada", Kind.TALK),
        (Mode.SINGLE, "synthesis", "ada", Kind.SYNTHESIS),
        (Mode.ORCHESTRATOR, "turns", "ada", Kind.LEAD),
        (Mode.ORCHESTRATOR, "turns", "bob", Kind.WORK),
        (Mode.REVIEW, "plan", "ada", Kind.REVIEW),
    ],
)
def test_the_phase_decides_what_an_answer_has_to_be(mode: Mode, phase: str, me: str, kind: Kind) -> None:
    assert asked(TURN, me, view(mode, phase), (Said(name="cy", text="Hm."),)).kind is kind


@pytest.mark.parametrize("said", [(), (Said(name="human", text="be brief"),), (Said(name="ada", text="I?"),)])
def test_without_words_of_another_agent_a_position_is_due(said: tuple[Said, ...]) -> None:
    assert asked(TURN, "ada", view(phase="responses"), said).kind is Kind.POSITION


@pytest.mark.parametrize(
    ("mode", "me", "can_hand_over", "can_finish"),
    [
        (Mode.COLLABORATE, "ada", True, True),
        (Mode.AUTOPILOT, "ada", True, True),
        (Mode.ROUND_ROBIN, "ada", False, True),
        (Mode.ORCHESTRATOR, "bob", False, False),
    ],
)
def test_only_what_a_mode_acts_on_can_be_done(
    mode: Mode, me: str, can_hand_over: bool, can_finish: bool
) -> None:
    found = asked(TURN, me, view(mode))

    assert (found.can_hand_over, found.can_finish) == (can_hand_over, can_finish)


def test_a_turn_has_its_goal_round_options_and_others() -> None:
    proposals = {"A": {"agent": "", "text": "one"}, "B": {"agent": "", "text": "two"}}
    found = asked(TURN, "bob", view(phase="ballot", round=1, max_rounds=5, proposals=proposals), BOB)

    assert (found.text, found.topic, found.others) == ("Go on.", "tabs or spaces", ("ada", "cy"))
    assert (found.round, found.last_round, found.is_turn) == (2, 5, True)
    assert (found.options, found.theirs) == ((("A", "one"), ("B", "two")), ())


def test_a_request_of_the_room_is_answered_as_a_message() -> None:
    assert asked(TURN, "ada", view(Mode.SINGLE)).text == "tabs or spaces"


def test_our_own_lines_are_no_part_of_a_message() -> None:
    found = message("[from human #418]\nhello there\n[end #418; here: bob]", "ada")

    assert (found.text, found.sender, found.kind, found.is_turn) == ("hello there", "human", Kind.TALK, False)
    assert message("  [end #x] stays\n", "ada").text == "[end #x] stays"
    assert (turn_of(TURN), turn_of("[from human #4]\nx"), turn_of("hello")) == ("t-17", "", "")


# --- from the room -------------------------------------------------------------------------------


def session(name: str, status: str, turns: dict[str, str], **fields: Any) -> dict[str, Any]:
    """Return what GET /sessions/{id} answers."""
    short: dict[str, Any] = {
        "id": name,
        "thread": "default",
        "mode": "collaborate",
        "topic": "x y",
        "status": status,
    }
    short |= {"reason": None, "agents": ["ada", "bob"], "round": 0, "maxRounds": 6, "turns": 1, "tokens": 0}
    short |= {"cost_usd": 0.0, "startedAt": 0.0, "endedAt": None, "spent": [], "new": 0, "cached": 0}
    mode = ModeView(mode=Mode.COLLABORATE, topic="x y", turn_order=("ada", "bob"), phase="turns", turns=turns)
    mode = msgspec.structs.replace(mode, **fields)
    return {"session": short | {"output": 0}, "orchestration": msgspec.to_builtins(mode)}


def read(answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[DemoPrompt, list[str]]:
    room = Recorded(answers)
    monkeypatch.setattr(demo_prompt, "GatewayClient", lambda url, token: room)
    return read_prompt(TURN, "ada", ENV), [path for _, path, _ in room.asked]


def test_a_turn_is_looked_up_in_the_sessions_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = [
        session("s-1", "ended", {}),
        session("s-2", "running", {"ada": "t-17"}),
        session("s-3", "running", {}),
    ]
    answers: dict[str, Any] = {f"/sessions/{one['session']['id']}": one for one in sessions}
    answers["/sessions"] = {"items": [one["session"] for one in sessions]}
    answers["/history"] = {
        "items": [{"seq": 3, "sender": "bob", "text": "I did.", "handoff": HANDOFF}],
        "next": None,
    }
    monkeypatch.setattr(demo_prompt, "WINDOW", 1)
    found, paths = read(answers, monkeypatch)

    assert paths == ["/sessions", "/sessions/s-3", "/sessions/s-2", "/history"]
    assert (found.kind, found.topic, found.task) == (Kind.WORK, "x y", "check it")
    assert found.said == (Said(name="bob", text="I did.", to="ada", task="check it"),)


@pytest.mark.parametrize("answer", [{"items": []}, Unreachable("away"), {"things": 3}])
def test_a_turn_that_the_room_does_not_know_is_answered_as_a_message(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_prompt, "PATIENCE_S", 0.0)

    assert read({"/sessions": answer}, monkeypatch)[0] == message(TURN, "ada")


def test_a_room_that_is_away_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    running = session("s-2", "running", {"ada": "t-17"})
    answers: dict[str, Any] = {"/sessions": {"items": [running["session"]]}, "/sessions/s-2": running}
    answers["/history"] = {"items": [], "next": None}
    rooms = iter([Recorded({"/sessions": Unreachable("away")}), Recorded(answers)])
    pauses: list[float] = []
    monkeypatch.setattr(demo_prompt, "GatewayClient", lambda url, token: next(rooms))
    monkeypatch.setattr("csp.agents.demo.demo_prompt.time.sleep", pauses.append)

    assert read_prompt(TURN, "ada", ENV).kind is Kind.WORK
    assert len(pauses) == 1


def test_nobody_is_asked_about_a_message_or_without_a_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_prompt, "GatewayClient", None)

    assert read_prompt("[from human #4]\nhi\n[end #4]", "ada", ENV).sender == "human"
    assert read_prompt(TURN, "ada", {}) == message(TURN, "ada")
