"""Debates, ballots, turn signals, the orchestrator: what they have to do to be accepted, one test each."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from csp.http_client import GatewayClient
from tests.modes.acceptance import ModeRoom
from tests.waiting import wait_until_sync

TOPIC: Final = "Best approach to fix X: tabs or spaces?"
PAIR: Final = ["claude", "codex"]
TRIO: Final = [*PAIR, "claude-2"]
#: How long a turn of the room may take before it is warned of, before it is over.
WARN_MS: Final = 1000
TIMEOUT_MS: Final = 2500

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("modes orchestration")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModeRoom]:
    env = {"CSP_TURN_WARN_MS": "20000", "CSP_TURN_TIMEOUT_MS": "40000"}
    with ModeRoom(tmp_path_factory.mktemp("orchestration"), env) as room:
        room.join("claude", "ada")
        room.join("codex", "bob")
        # A second one that calls itself Claude gets a name of its own.
        room.join("claude-2", "cy", "--name", "Claude")
        room.join("orchestrator", "conductor", "--name", "Orchestrator", "--role", "orchestrator")
        room.ready()
        yield room


@pytest.fixture
def room(shared: ModeRoom) -> Iterator[ModeRoom]:
    yield shared
    shared.quiet()


# --- names, addresses, history -------------------------------------------------------------------


def test_agents_shows_a_number_behind_the_name_of_a_second_one(room: ModeRoom) -> None:
    token = room.room.gateway.post("/register", {"agentId": "CLAUDE"})
    shown = [agent["id"] for agent in room.room.gateway.get("/agents")]
    listed = room.csp("agents")
    room.room.gateway.delete(f"/agents/{token['agentId']}")

    assert {"claude", "claude-2", "claude-3"} <= set(shown)
    assert all(name in listed for name in ("claude", "claude-2", "claude-3"))


def test_send_to_a_name_with_a_dash_works(room: ModeRoom) -> None:
    agent = GatewayClient(room.room.url, room.room.gateway.post("/register", {"agentId": "mallory"})["token"])
    agent.post("/agent-output", {"content": "@send.claude-2 hello over there"})
    asked = "[from mallory #"

    wait_until_sync(lambda: any(asked in prompt for prompt in room.prompts("claude-2")), 30, "the message")
    assert any("hello over there" in prompt for prompt in room.prompts("claude-2"))
    room.ready()
    room.room.gateway.delete("/agents/mallory")


def test_history_survives_a_restart_of_the_gateway(room: ModeRoom) -> None:
    room.reply_to(room.send("codex", "Remember the milk, please."), "codex")
    room.room.restart()
    texts = [item["text"] for item in room.room.gateway.get("/history", limit=1000)["items"]]

    assert "Remember the milk, please." in texts
    assert any("Remember the milk" in text for text in texts if text != "Remember the milk, please.")
    wait_until_sync(lambda: all(room.agent(name)["online"] for name in room.seats), 30, "all back again")


def test_a_message_is_delivered_and_answered_without_control_characters(room: ModeRoom) -> None:
    message = room.send("claude", "Is the sky blue?")
    answer = room.reply_to(message, "claude")["text"]

    assert room.state(message, "claude") == ("confirmed", None)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]|\[\d+m|\?\d+[hl]", answer)


def test_share_and_noshare_work(room: ModeRoom) -> None:
    seat = room.seats["codex"]
    posted = len(room.replies("codex"))

    def typed(text: str) -> None:
        asked = len(room.prompts("codex"))
        seat.type(text)
        seat.keys("Enter")
        wait_until_sync(lambda: len(room.prompts("codex")) > asked, 20, "the prompt")
        seat.wait_ready()

    room.room.gateway.post("/agents/codex/share", {})
    typed("said with the door open")
    wait_until_sync(lambda: len(room.replies("codex")) == posted + 1, 20, "what is shared")
    room.room.gateway.post("/agents/codex/noshare", {})
    typed("said with the door shut")
    room.reply_to(room.send("codex", "hello"), "codex")

    shared = [item["text"] for item in room.replies("codex")][posted:]
    assert len(shared) == 2
    assert "door open" in shared[0] and not any("door shut" in text for text in shared)


# --- the mode over HTTP, in the human pane -------------------------------------------------------


def test_mode_is_set_by_curl(room: ModeRoom) -> None:
    body = '{"mode":"debate","topic":"test","agents":["claude","codex"]}'
    command = ["curl", "-s", "-X", "POST", f"{room.room.url}/mode", "-d", body]
    done = subprocess.run(
        [*command, "-H", f"X-Auth-Token: {room.room.token}"], capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)

    assert answer["success"] is True
    assert {
        "mode": "debate",
        "topic": "test",
        "maxRounds": 3,
        "turnOrder": PAIR,
        "round": 0,
    }.items() <= answer["orchestration"].items()
    assert room.wait_end()["reason"] == "done"


def test_human_starts_a_debate_and_sees_the_turns_announced(room: ModeRoom) -> None:
    said = room.chat_until(f'/mode debate "{TOPIC}" --agents claude,codex', "DEBATE complete.")
    view = room.wait_end()

    assert view["topic"] == TOPIC
    for text in ("Mode: DEBATE", f"Topic: {TOPIC}", "@claude - Your turn.", "@codex - Your turn."):
        assert text in room.notices(view)
    assert said.count("@claude - Your turn.") == 3


def test_human_sees_the_status_goes_on_to_the_next_turn_ends_the_mode(room: ModeRoom) -> None:
    room.begin("collaborate", "Take your time with it.", agents=PAIR)
    assert re.search(r"(?i)collaborate.*Take your time.*claude", room.chat("/status"), re.DOTALL)
    room.chat("/next")
    assert room.mode()["completedTurns"] == ["claude_round0"]
    said = room.chat("/end")

    assert "freeform" in said.lower()
    assert (room.mode()["mode"], room.mode()["reason"]) == ("freeform", "canceled")


def test_help_names_the_commands_of_the_modes(room: ModeRoom) -> None:
    said = room.chat("/help")

    assert all(command in said for command in ("/mode", "/status", "/next", "/end", "/stop"))


# --- the phases of a debate, of a ballot ---------------------------------------------------------


def test_debate_has_positions_then_responses_then_a_synthesis(room: ModeRoom) -> None:
    view = room.played("debate", TOPIC, agents=TRIO, rounds=2)
    said = room.items(view)

    assert view["reason"] == "done"
    assert sorted(item["sender"] for item in said[:3]) == sorted(TRIO)
    assert [item["sender"] for item in said[3:]] == [*TRIO, "orchestrator"]
    assert [item["round"] for item in said[:6]] == [1, 1, 1, 2, 2, 2]
    positions = {item["sender"]: item["text"].splitlines()[0] for item in said[:3]}
    for name in TRIO:
        first, second = room.prompts(name, view)
        assert not any(text in first for text in positions.values())
        others = [text for other, text in positions.items() if other != name]
        assert all(text in second for text in others[:1])
        assert "The others' latest positions:" in second
        assert set(view["roundOutputs"][name]) == {"round0", "round1"}
    notices = room.notices(view)
    assert ("Round 2" in notices, "DEBATE complete." in notices) == (True, True)


def test_consensus_has_proposals_then_votes_then_a_synthesis(room: ModeRoom) -> None:
    view = room.played("consensus", TOPIC, agents=TRIO)

    assert view["reason"] in ("done", "tie")
    assert set(view["votes"]) == set(TRIO)
    assert {vote["label"] for vote in view["votes"].values()} <= set(view["proposals"])
    assert sorted(one["agent"] for one in view["proposals"].values()) == sorted(TRIO)
    ballot = room.prompts("claude", view)[1]
    assert not any(re.search(rf"\b{name}\b", ballot.partition("Question:")[2]) for name in TRIO[1:])
    assert any(text.startswith("Votes: ") for text in room.notices(view))
    assert room.speakers(view)[-1] == "orchestrator"


def test_a_debate_may_end_with_a_ballot(room: ModeRoom) -> None:
    view = room.played("debate", TOPIC, agents=TRIO, rounds=1, ballot=True)

    assert set(view["votes"]) == set(TRIO)
    assert len(room.items(view, "vote")) >= 3


# --- the orchestrator ----------------------------------------------------------------------------


def test_orchestrator_sets_the_mode_and_turns_are_announced(room: ModeRoom) -> None:
    room.send("orchestrator", 'Start a debate about "tabs or spaces" in 2 rounds.')
    wait_until_sync(lambda: room.mode()["topic"] == "tabs or spaces", 30, "the debate")
    view = room.wait_end()

    assert (view["maxRounds"], view["turnOrder"]) == (2, ["claude", "codex", "claude-2"])
    assert "@claude - Your turn." in room.notices(view)


def test_orchestrator_asks_for_the_mode_and_is_told(room: ModeRoom) -> None:
    room.send("orchestrator", "What is the mode?")

    wait_until_sync(
        lambda: any("[CSP: " in prompt and "freeform" in prompt for prompt in room.prompts("orchestrator")),
        30,
        "the answer",
    )


def test_agents_may_not_set_the_mode(room: ModeRoom) -> None:
    agent = GatewayClient(room.room.url, room.room.gateway.post("/register", {"agentId": "mallory"})["token"])
    agent.post("/agent-output", {"content": '@mode.set debate "coup" --agents claude,codex'})
    room.room.gateway.delete("/agents/mallory")

    assert room.mode()["topic"] != "coup"


def test_orchestrator_mode_gives_each_agent_a_task_then_sums_up(room: ModeRoom) -> None:
    view = room.played("orchestrator", TOPIC, agents=TRIO)
    said = room.items(view)

    assert view["reason"] == "final"
    assert [item["sender"] for item in said[::2]] == ["orchestrator"] * 4
    assert sorted(item["sender"] for item in said[1::2]) == sorted(TRIO)
    assert all(
        item["handoff"]["to"] == after["sender"] for item, after in zip(said[::2], said[1::2], strict=False)
    )
    assert all(name in said[-1]["text"] for name in TRIO)


def test_round_robin_takes_turns_in_order_then_the_orchestrator_sums_up(room: ModeRoom) -> None:
    view = room.played("round_robin", "Go on without end.", agents=TRIO, steps=5)

    assert room.speakers(view) == ["claude", "codex", "claude-2", "claude", "codex", "orchestrator"]
    assert view["reason"] == "done"


# --- turn signals --------------------------------------------------------------------------------


def test_agents_see_your_turn_when_it_is(room: ModeRoom) -> None:
    view = room.played("debate", TOPIC, agents=PAIR, rounds=2)

    for name in PAIR:
        asked = room.prompts(name, view)
        assert len(asked) == 2
        assert all(re.match(r"\[YOUR TURN #t-\d+\]\n", prompt) for prompt in asked)
    signals = room.items(view, "turn_signal")
    assert [(one["currentAgent"], one["waitingFor"]) for one in signals[:2]] == [
        ("claude", ["claude"]),
        ("codex", PAIR),
    ]


def test_a_word_of_the_human_reaches_one_who_waits_at_once(room: ModeRoom) -> None:
    view = room.begin("collaborate", "Take your time with it.", agents=PAIR)
    room.reply_to(room.send("codex", "You may get your coffee now."), "codex")

    assert room.prompts("codex", view) == []
    assert room.mode()["currentTurn"] == "claude"


# --- timers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModeRoom]:
    """A room in which a turn is soon over."""
    env = {"CSP_TURN_WARN_MS": str(WARN_MS), "CSP_TURN_TIMEOUT_MS": str(TIMEOUT_MS)}
    with ModeRoom(tmp_path_factory.mktemp("hasty"), env) as room:
        room.join("claude", "ada")
        room.join("codex", "bob")
        room.ready()
        yield room
        room.quiet()


def agents_own(room: ModeRoom, name: str) -> GatewayClient:
    """Return the way to the gateway that the program in a pane has."""
    variables = Path(f"/proc/{room.seats[name].cli}/environ").read_bytes().split(b"\0")
    env = dict(one.decode().split("=", 1) for one in variables if b"=" in one)
    return GatewayClient(room.room.url, env["CSP_AUTH_TOKEN"])


def begun(room: ModeRoom) -> dict[str, Any]:
    """Begin a session in which claude was asked; on a busy machine its time may be over before that."""

    def asked() -> dict[str, Any] | None:
        view = room.begin("round_robin", "Take your time with it.", agents=PAIR, steps=2)
        has_come = wait_until_sync(
            lambda: ["yes"] if room.prompts("claude", view) else _undelivered(room, view), 60, "the turn"
        )
        if has_come == ["yes"]:
            return view
        room.quiet()
        return None

    view = wait_until_sync(asked, 240, "a turn that is delivered in time")
    assert view is not None
    return view


def _undelivered(room: ModeRoom, view: dict[str, Any]) -> list[str]:
    return [text for text in room.notices(view) if text.startswith("claude: its turn failed, undelivered")]


def test_turn_warning_and_timeout_use_ascii_then_the_turn_passes_on(hasty: ModeRoom) -> None:
    view = begun(hasty)
    wait_until_sync(lambda: any("timed out" in text for text in hasty.notices(view)), 30, "the timeout")
    notices = hasty.notices(view)

    warned = f"claude has been at its turn for {WARN_MS / 1000:g} s."
    passed = f"claude: timed out, no reply in {TIMEOUT_MS / 1000:g} s. The turn passes on."
    assert [text for text in notices if text in (warned, passed, "@codex - Your turn.")] == [
        *(warned, passed, "@codex - Your turn."),
    ], notices
    assert all(text.isascii() for text in notices)
    hasty.quiet()


def test_working_resets_the_timer_of_the_active_agent(hasty: ModeRoom) -> None:
    view = begun(hasty)
    claude, codex = agents_own(hasty, "claude"), agents_own(hasty, "codex")
    began = float(view["startedAt"])
    deadlines: list[float] = []

    def kept() -> bool:
        claude.post("/turn/working", {"note": "still at it"})
        deadlines.append(float(hasty.mode()["deadline"]))
        return deadlines[-1] - began > (TIMEOUT_MS + WARN_MS) / 1000

    wait_until_sync(kept, 30, "a turn longer than its time")
    assert hasty.mode()["currentTurn"] == "claude"
    assert deadlines == sorted(deadlines)
    assert not any("timed out" in text or "at its turn" in text for text in hasty.notices(view))
    wait_until_sync(lambda: not codex.post("/turn/working", {})["extended"], 5, "codex waits")
    wait_until_sync(lambda: any("timed out" in text for text in hasty.notices(view)), 30, "the timeout")
    hasty.quiet()


def test_working_in_an_answer_to_somebody_else_keeps_the_turn_too(hasty: ModeRoom) -> None:
    begun(hasty)
    claude = agents_own(hasty, "claude")
    before = hasty.mode()["deadline"]
    claude.post("/agent-output", {"content": "WORKING still at it"})

    assert hasty.mode()["deadline"] > before
    hasty.quiet()
