"""Autopilot: what it has to do to be accepted, one test for each demand, then its guards."""

import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from csp.http_client import GatewayClient
from tests.modes.acceptance import POSTED, ModeRoom
from tests.waiting import wait_until_sync

BAKERY: Final = "Brainstorm features for a cozy bakery website; keep alternating improvements indefinitely."
STOPPED: Final = "Collaboration stopped by user (Allstop)."

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("modes autopilot")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModeRoom]:
    with ModeRoom(tmp_path_factory.mktemp("autopilot")) as room:
        room.join("ada")
        room.join("bob")
        # At this speed an answer takes a minute: there is always one in flight.
        room.join("slow", "cy", speed="0.01")
        room.ready()
        yield room


@pytest.fixture
def room(shared: ModeRoom) -> Iterator[ModeRoom]:
    yield shared
    shared.quiet()


def running(room: ModeRoom, turns: int, topic: str = BAKERY, **fields: Any) -> dict[str, Any]:
    """Begin an autopilot of ada and bob; return when so many turns are over."""
    view = room.begin("autopilot", topic, agents=["ada", "bob"], **fields)
    wait_until_sync(lambda: len(room.items(view)) >= turns, 60, f"{turns} turns")
    return view


def in_flight(room: ModeRoom) -> dict[str, Any]:
    """Begin an autopilot; return when the slow agent is at its answer."""
    view = room.begin("autopilot", BAKERY, agents=["slow", "ada"])
    wait_until_sync(lambda: room.prompts("slow", view), 60, "the first prompt")
    wait_until_sync(lambda: room.agent("slow")["state"] == "busy", 60, "an answer on its way")
    return view


def posted(room: ModeRoom, view: dict[str, Any]) -> list[str]:
    return [item["id"] for item in room.items(view, POSTED)]


def assert_stopped(room: ModeRoom, view: dict[str, Any], before: list[str], given: float) -> None:
    """The session was over when the stop was acknowledged, and nothing came in between or afterwards.

    `given` is when the stop was given. The room's own clock says when the session ended.
    """
    acknowledged = time.time()
    assert (room.mode()["status"], room.mode()["reason"]) == ("ended", "stopped_by_user")
    (end,) = [item for item in room.items(view, "mode") if item["change"] == "ended"]
    assert given <= end["ts"] <= acknowledged
    assert STOPPED in room.notices(view)
    room.ready()
    asked = [item for item in room.items(view, "turn_signal") if item["ts"] > given]
    assert (asked, posted(room, view)) == ([], before)
    late = room.room.gateway.get("/history", types="late", session=view["sessionId"])["items"]
    assert [item["sender"] for item in late] in ([], ["slow"])
    assert all(item["seq"] > end["seq"] for item in late)


def assert_prompt(room: ModeRoom, given: float) -> None:
    """A command that stops takes about as long as one that only looks: it waits for nothing."""
    stopping_s = time.time() - given
    began = time.time()
    room.csp("agents")
    looking_s = time.time() - began
    assert stopping_s < 1.0 + 8 * looking_s, f"it took {stopping_s:.2f} s, a look {looking_s:.2f} s"


# --- the definition of done ----------------------------------------------------------------------


def test_autopilot_runs_past_former_bounds(room: ModeRoom) -> None:
    """More than ten turns, and no stop."""
    view = running(room, 14)

    assert room.mode()["status"] == "running"
    assert [item["round"] for item in room.items(view)][:14] == list(range(1, 15))
    assert "Round: 14 (Autopilot)" in [prompt.splitlines()[1] for prompt in both(room, view)]


def both(room: ModeRoom, view: dict[str, Any]) -> list[str]:
    return room.prompts("ada", view) + room.prompts("bob", view)


def test_without_a_handoff_the_other_agent_follows(room: ModeRoom) -> None:
    """Some turns of the demo agents hand over, some do not: each is followed as it has to be."""
    view = running(room, 20)
    said = room.items(view)
    free = [at for at, item in enumerate(said[:-1]) if not item.get("handoff")]

    assert free and len(free) < len(said) - 1
    assert all(said[at + 1]["sender"] != said[at]["sender"] for at in free)
    handed = [at for at, item in enumerate(said[:-1]) if item.get("handoff")]
    assert all(said[at + 1]["sender"] == said[at]["handoff"]["to"] for at in handed)


@pytest.mark.parametrize(
    "word", ["Allstop", "allstop", "all stop", "ALL-STOP!", "  All Stop. ", "«all–stop»"]
)
def test_typed_allstop_ends_it_before_anything_else_happens(room: ModeRoom, word: str) -> None:
    view = in_flight(room)
    before = posted(room, view)
    given = time.time()
    room.send("all", word)

    assert_stopped(room, view, before, given)
    said = room.room.gateway.get("/history", types="human_message", limit=1)["items"][-1]
    (end,) = [item for item in room.items(view, "mode") if item["change"] == "ended"]
    assert said["text"] == word
    assert 0 <= end["ts"] - said["ts"] < 1.0, "by the room's own clock"


@pytest.mark.parametrize("line", ["Allstop", "/stop", "@slow all stop"])
def test_allstop_in_the_human_pane_does_the_same(room: ModeRoom, line: str) -> None:
    view = in_flight(room)
    before = posted(room, view)
    given = time.time()
    room.chat(line)

    assert_stopped(room, view, before, given)


def test_the_human_pane_stops_without_a_wait(room: ModeRoom) -> None:
    in_flight(room)
    given = time.time()
    room.chat("Allstop")

    assert_prompt(room, given)


def test_allstop_button_does_the_same(room: ModeRoom) -> None:
    view = in_flight(room)
    before = posted(room, view)
    given = time.time()
    room.room.gateway.post("/stop", {})

    assert_stopped(room, view, before, given)


def test_stop_command_does_the_same(room: ModeRoom) -> None:
    view = in_flight(room)
    before = posted(room, view)
    given = time.time()
    said = room.csp("stop")

    assert_prompt(room, given)
    assert f"stopped {view['sessionId']}" in said
    assert_stopped(room, view, before, given)


def test_the_answer_in_flight_is_interrupted_in_its_pane(room: ModeRoom) -> None:
    in_flight(room)
    room.send("all", "Allstop")

    wait_until_sync(lambda: "Interrupted by you" in room.seats["slow"].screen(), 20, "the interrupt")
    room.ready()


def test_final_is_ignored_by_default_with_a_banner(room: ModeRoom) -> None:
    view = running(room, 4, "Summarize this in 1 sentence, then stop.")

    assert room.mode()["status"] == "running"
    assert [item["final"] for item in room.items(view)][:4] == [True] * 4
    assert any(text.startswith("Agent suggests finish") for text in room.notices(view))


def test_final_is_respected_where_that_is_wished(room: ModeRoom) -> None:
    topic = "Summarize this in 1 sentence, then stop."
    view = room.played("autopilot", topic, agents=["ada", "bob"], respect_final=True)

    assert (view["reason"], len(room.items(view))) == ("final", 1)


def test_emergency_cutoff_says_which_guard_it_was(room: ModeRoom) -> None:
    view = room.played("autopilot", BAKERY, agents=["ada", "bob"], limits={"turns": 3})

    assert (view["reason"], len(room.items(view))) == ("emergency_turns", 3)
    assert "Emergency cap: the session has reached its limit of 3 turns." in room.notices(view)


def test_allstop_without_a_session_is_a_no_op(room: ModeRoom) -> None:
    asked = {name: len(room.prompts(name)) for name in room.seats}
    said = room.chat("Allstop", "/stop")
    room.send("all", "allstop")
    room.room.gateway.post("/stop", {})

    assert said.count("No mode is running") == 2
    assert "no-op" in room.room.said()
    assert {name: len(room.prompts(name)) for name in room.seats} == asked
    assert room.room.gateway.get("/health")


# --- what stops nothing --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["asphalt", "the all stops train", "do not say allstop", "allstops", "all stop now", "stop"]
)
def test_other_words_stop_nothing(room: ModeRoom, text: str) -> None:
    view = running(room, 1)
    room.send("ada", text)
    seen = len(room.items(view))

    wait_until_sync(lambda: len(room.items(view)) > seen, 30, "another turn")
    assert room.mode()["status"] == "running"


def test_an_agent_that_says_allstop_stops_nothing(room: ModeRoom) -> None:
    token = room.room.gateway.post("/register", {"agentId": "mallory"})["token"]
    agent = GatewayClient(room.room.url, token)
    view = running(room, 1)
    agent.post("/message", {"to": "bob", "content": "Allstop"})
    agent.post("/agent-output", {"content": "ALL-STOP!"})
    seen = len(room.items(view))
    wait_until_sync(lambda: len(room.items(view)) > seen, 30, "another turn")

    assert room.mode()["status"] == "running"
    room.room.gateway.delete("/agents/mallory")


# --- guards --------------------------------------------------------------------------------------


def test_autopilot_runs_to_the_cap_it_was_given(room: ModeRoom) -> None:
    runs_to_cap(room, 62)


@pytest.mark.full
def test_autopilot_runs_over_260_turns_with_a_raised_cap(room: ModeRoom) -> None:
    """The cap is 200 turns unless a session is given another one."""
    runs_to_cap(room, 262)


def runs_to_cap(room: ModeRoom, turns: int) -> None:
    """Let an autopilot run to a cap of so many turns: each is asked for once, and prompts do not grow."""
    view = room.begin("autopilot", BAKERY, agents=["ada", "bob"], limits={"turns": turns, "tokens": 10**9})
    view = room.wait_end(timeout_s=180)
    said = room.items(view)

    assert view["reason"] == "emergency_turns"
    assert len(said) == turns
    assert len({item["turn"] for item in said}) == turns
    asked = [len(room.prompts(name, view)) for name in ("ada", "bob")]
    assert sum(asked) == turns
    assert room.notices(view).count("Autopilot running. Say 'Allstop' to end.") >= turns // 25
    assert max(len(prompt) for prompt in both(room, view)) < 15_000


@pytest.mark.parametrize(
    ("limits", "reason", "says"),
    [
        ({"turns": 2}, "emergency_turns", "limit of 2 turns"),
        ({"tokens": 50}, "emergency_tokens", "limit of 50 new tokens"),
        ({"minutes": 0.01}, "emergency_minutes", "limit of 0.01 minutes"),
    ],
)
def test_each_guard_ends_the_session_by_its_name(
    room: ModeRoom, limits: dict[str, Any], reason: str, says: str
) -> None:
    view = room.played("autopilot", BAKERY, agents=["ada", "bob"], limits=limits)
    notices = room.notices(view)

    assert view["reason"] == reason
    assert any(says in notice for notice in notices)
    assert f"AUTOPILOT stopped: emergency cap of {reason.removeprefix('emergency_')}." in notices


def test_minutes_end_a_turn_that_is_under_way(room: ModeRoom) -> None:
    view = room.begin("autopilot", BAKERY, agents=["slow", "ada"], limits={"minutes": 0.02})
    view = room.wait_end()

    assert (view["reason"], room.items(view)) == ("emergency_minutes", [])


def test_rounds_are_ignored_with_a_notice(room: ModeRoom) -> None:
    view = running(room, 4, rounds=2)

    assert room.mode()["status"] == "running"
    assert any("rounds" in notice and "ignored" in notice for notice in room.notices(view))
