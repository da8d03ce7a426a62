"""Replies over HTTP to a real gateway: only the first to an open turn moves it.

What a reply in turn, one with a wrong turn, one that comes twice do is tested in tests/gateway/test_modes.py,
with what a bad request for a mode is answered.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from csp.oneshot import Gateway
from tests.modes.acceptance import ModeRoom
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("modes replies")]

NAMES: Final = ("claude", "codex", "gemini", "kimi", *(f"model-{number}" for number in range(8)))


class Table:
    """A room of agents that speak HTTP."""

    def __init__(self, room: LiveRoom) -> None:
        self.room = room
        self.agents = {
            name: Gateway(room.url, room.gateway.post("/register", {"agentId": name})["token"])
            for name in NAMES
        }

    def begin(self, mode: str, **fields: Any) -> dict[str, Any]:
        view: dict[str, Any] = self.room.gateway.post("/mode", {"mode": mode, **fields})["orchestration"]
        return view

    def mode(self, thread: str = "default") -> dict[str, Any]:
        view: dict[str, Any] = self.room.gateway.get("/mode", thread=thread)
        return view

    def reply(self, name: str, text: str, turn: str, **fields: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.agents[name].post(
            "/agent-output", {"content": text, "turn": turn, **fields}
        )
        return answer

    def take(self, name: str) -> None:
        """Say that the ask of an agent has arrived."""
        items = self.agents[name].get(f"/inbox/{name}")["items"]
        self.agents[name].post("/delivery", {"id": items[-1]["id"], "state": "confirmed"})

    def items(self, view: dict[str, Any], types: str = "agent_response") -> list[dict[str, Any]]:
        page = self.room.gateway.get("/history", session=view["sessionId"], types=types, limit=1000)
        items: list[dict[str, Any]] = page["items"]
        return items

    def notices(self, view: dict[str, Any]) -> list[str]:
        return [item["text"] for item in self.items(view, "system")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    with LiveRoom(tmp_path_factory.mktemp("replies") / "room") as room:
        yield Table(room)


@pytest.fixture
def table(shared: Table) -> Iterator[Table]:
    yield shared
    shared.room.gateway.post("/stop", {"all": True})


@pytest.fixture(scope="module")
def hasty_table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A room for tests that wait until a turn is over; the next one must last until they have looked."""
    env = {"CSP_TURN_WARN_MS": "2000", "CSP_TURN_TIMEOUT_MS": "4000"}
    with LiveRoom(tmp_path_factory.mktemp("replies") / "hasty", env=env) as room:
        yield Table(room)


# --- which replies count -------------------------------------------------------------------------


def test_two_replies_at_the_same_time_move_the_turn_once(table: Table) -> None:
    view = table.begin("autopilot", agents=["claude", "codex", "gemini"])
    with ThreadPoolExecutor(8) as pool:
        sent = [pool.submit(table.reply, "claude", f"reply {n}", view["turn"]) for n in range(8)]
        answers = [one.result() for one in sent]

    assert len(answers) == 8
    assert table.mode()["currentTurn"] == "codex"
    late = [item.get("late", False) for item in table.items(view)]
    assert sorted(late) == [False] + [True] * 7
    assert table.mode()["roundOutputs"].keys() == {"claude"}


def test_a_reply_to_an_older_turn_does_not_answer_the_open_one(table: Table) -> None:
    first = table.begin("autopilot", agents=["claude", "codex"])
    table.reply("claude", "one", first["turn"])
    table.reply("codex", "two", table.mode()["turn"])
    now = table.mode()
    table.reply("claude", "one again", first["turn"])

    assert (now["currentTurn"], table.mode()["turn"]) == ("claude", now["turn"])
    assert [item.get("late", False) for item in table.items(first)] == [False, False, True]


def test_the_turn_of_another_is_not_answered(table: Table) -> None:
    view = table.begin("autopilot", agents=["claude", "codex"])
    table.reply("codex", "let me", view["turn"])

    assert table.mode()["currentTurn"] == "claude"
    assert table.items(view) == []


def test_words_out_of_turn_are_posted_with_a_mark_and_move_nothing(table: Table) -> None:
    view = table.begin("autopilot", agents=["claude", "codex"])
    table.agents["codex"].post("/agent-output", {"content": "by the way"})

    assert table.mode()["currentTurn"] == "claude"
    (item,) = table.items(view)
    assert (item["text"], item["out_of_turn"]) == ("by the way", True)


def test_a_reply_after_the_timeout_is_shown_as_late_and_moves_nothing(hasty_table: Table) -> None:
    view = hasty_table.begin("round_robin", agents=["claude", "codex"], steps=3)
    hasty_table.take("claude")
    wait_until_sync(lambda: hasty_table.mode()["currentTurn"] == "codex", 60, "the timeout")
    hasty_table.reply("claude", "sorry, I was away", view["turn"])

    assert hasty_table.mode()["currentTurn"] == "codex"
    (item,) = hasty_table.items(view)
    assert (item["text"], item["late"]) == ("sorry, I was away", True)


def test_a_reply_after_the_end_is_in_the_journal_alone(table: Table) -> None:
    view = table.begin("autopilot", agents=["claude", "codex"])
    table.room.gateway.post("/stop", {})
    answer = table.reply("claude", "words nobody waits for", view["turn"])

    assert answer["late"]
    assert table.items(view) == []
    assert [item["text"] for item in table.items(view, "late")] == ["words nobody waits for"]


def test_the_same_reply_again_is_the_same_reply(table: Table) -> None:
    view = table.begin("autopilot", agents=["claude", "codex"])
    answers = [table.reply("claude", "once", view["turn"], id="reply-1") for _ in range(2)]

    assert answers[0]["seq"] == answers[1]["seq"]
    assert len(table.items(view)) == 1


# --- who cannot be asked -------------------------------------------------------------------------


def test_one_who_is_never_delivered_to_passes_its_turn_on_with_the_reason(hasty_table: Table) -> None:
    view = hasty_table.begin("round_robin", agents=["claude", "codex"], steps=2)
    wait_until_sync(lambda: hasty_table.mode()["currentTurn"] == "codex", 60, "the next turn")

    reasons = [text for text in hasty_table.notices(view) if "claude: its turn failed, undelivered: " in text]
    assert len(reasons) == 1
    hasty_table.agents["claude"].post("/agent-output", {"content": "too late", "turn": view["turn"]})
    assert hasty_table.mode()["currentTurn"] == "codex"


def test_one_who_is_offline_passes_its_turn_on_with_the_reason(tmp_path: Path) -> None:
    env = {"CSP_TURN_WARN_MS": "500", "CSP_TURN_TIMEOUT_MS": "1000"}
    with ModeRoom(tmp_path, env) as room:
        for name in ("ada", "bob"):
            room.join(name)
        room.ready()
        wait_until_sync(lambda: "Say something" in room.seats["ada"].screen(), 20, "the composer")
        room.seats["ada"].keys("C-d")
        wait_until_sync(lambda: not room.agent("ada")["online"], 20, "the end of ada")
        view = room.begin("round_robin", "Go on without end.", agents=["ada", "bob"], steps=2)
        view = room.wait_end()

        assert room.speakers(view) == ["bob"]
        assert "ada: its turn failed, undelivered: offline. The turn passes on." in room.notices(view)


# --- two sessions --------------------------------------------------------------------------------


def test_two_threads_do_not_interfere(table: Table) -> None:
    one = table.begin("autopilot", agents=["claude", "codex"], topic="one", thread="first")
    two = table.begin("autopilot", agents=["gemini", "kimi"], topic="two", thread="second")
    table.reply("claude", "for one", one["turn"])
    table.reply("kimi", "not mine", one["turn"])
    assert table.mode("second")["currentTurn"] == "gemini"
    table.room.gateway.post("/message", {"to": "all", "content": "Allstop", "thread": "first"})

    assert (table.mode("first")["reason"], table.mode("second")["status"]) == ("stopped_by_user", "running")
    table.reply("gemini", "for two", two["turn"])
    assert table.mode("second")["currentTurn"] == "kimi"
    assert [item["text"] for item in table.items(two)] == ["for two"]
    answer = table.room.gateway.post("/stop", {"thread": "second"})
    assert answer["stopped"] == [two["sessionId"]]


def test_a_debate_of_a_dozen_agents_gives_each_its_turn(table: Table) -> None:
    view = table.begin("debate", agents=list(NAMES), rounds=2, ballot=True)
    while (now := table.mode())["status"] == "running":
        name = now["currentTurn"]
        text = "VOTE: [A]" if now["phase"] == "ballot" else f"{name} in round {now['round']}"
        table.reply(name, text, now["turn"])

    assert now["reason"] == "done"
    assert len(table.items(view)) >= 3 * len(NAMES)
    assert set(now["proposals"]) == set("ABCDEFGHIJKL")


# --- guards that only a counted usage or an equal text sets off ----------------------------------


def test_cost_ends_the_session_by_its_name(table: Table) -> None:
    view = table.begin("autopilot", agents=["claude", "codex"], limits={"cost": 0.05})
    for number, name in enumerate(("claude", "codex", "claude")):
        turn = table.mode()["turn"]
        usage = {"input": 10, "output": 10, "cost_usd": 0.02}
        table.reply(name, f"step {number}", turn, usage=usage)

    assert table.mode()["reason"] == "emergency_cost"
    assert any("Cost: 0.0600 USD (claude 0.0400, codex 0.0200)" in text for text in table.notices(view))
    assert "Emergency cap: the session has reached its limit of 0.05 US dollars." in table.notices(view)


def test_one_who_repeats_itself_is_named_once(table: Table) -> None:
    view = table.begin("autopilot", agents=["claude", "codex"])
    for number in range(6):
        current = table.mode()
        text = "  The SAME   again" if number > 2 else "the same again"
        table.reply(current["currentTurn"], text, current["turn"])

    notices = table.notices(view)
    assert notices.count("claude said the same as before.") == 1
    assert notices.count("codex said the same as before.") == 1


def test_a_lead_that_goes_in_circles_is_asked_to_conclude(table: Table) -> None:
    view = table.begin("orchestrator", agents=["claude", "codex"], first="claude", synth="codex")
    for _ in range(12):
        current = table.mode()
        if current["status"] == "ended" or current["phase"] == "synthesis":
            break
        name = current["currentTurn"]
        fields = {"handoff": {"to": "codex", "task": "again"}} if name == "claude" else {}
        table.reply(name, "once more", current["turn"], **fields)
    current = table.mode()
    assert (current["phase"], current["currentTurn"]) == ("synthesis", "codex")
    table.reply("codex", "they went in circles", current["turn"])

    assert table.mode()["reason"] == "no_handoff"
    assert len(table.items(view)) <= 9


def test_cap_elsewhere_leaves_one_turn_for_the_synthesis(table: Table) -> None:
    view = table.begin("debate", agents=["claude", "codex"], synth="gemini", limits={"turns": 2})
    for name in ("claude", "codex"):
        table.reply(name, f"position of {name}", table.mode()["turns"][name])
    current = table.mode()
    assert (current["phase"], current["currentTurn"]) == ("synthesis", "gemini")
    table.reply("gemini", "that was short", current["turn"])

    assert table.mode()["reason"] == "emergency_turns"
    assert table.items(view)[-1]["sender"] == "gemini"
