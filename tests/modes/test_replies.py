"""Replies over HTTP to a real gateway: only the first to an open turn moves it.

What a reply in turn, one with a wrong turn, one that comes twice do is tested in tests/gateway/test_modes.py,
with what a bad request for a mode is answered.
"""

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from csp.http_client import GatewayClient
from csp.room.commands import Tick
from tests.gateway.debaters import Debaters
from tests.gateway.served import Clock, ServedRoom, served
from tests.rooms import LiveRoom

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("modes replies")]

NAMES: Final = ("claude", "codex", "gemini", "kimi", *(f"model-{number}" for number in range(8)))


class Table:
    """A room of agents that speak HTTP."""

    def __init__(self, room: LiveRoom) -> None:
        self.room = room
        self.agents = {
            name: GatewayClient(room.url, room.gateway.post("/register", {"agentId": name})["token"])
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


class StillPair(Debaters):
    """claude and codex in a room whose clock stands still until a test moves it."""

    def __init__(self, room: ServedRoom, clock: Clock) -> None:
        super().__init__(room)
        self._clock = clock

    async def take(self, name: str) -> None:
        """Say that the ask of an agent has arrived."""
        (ask,) = await self.room.inbox(self.members[name])
        await self.room.post("/delivery", {"id": ask, "state": "confirmed"}, self.members[name].token)

    async def time_out(self) -> None:
        """Let the time of a turn go by."""
        self._clock.now += 120
        await self.room.gateway.submit(Tick())


@pytest.fixture
async def still_pair(tmp_path: Path) -> AsyncIterator[StillPair]:
    clock = Clock()
    async with served(tmp_path / "room", clock) as room:
        pair = StillPair(room, clock)
        await pair.join("claude", "codex")
        yield pair


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


async def test_a_reply_after_the_timeout_is_shown_as_late_and_moves_nothing(still_pair: StillPair) -> None:
    view = await still_pair.start("round_robin", agents=["claude", "codex"], steps=3)
    await still_pair.take("claude")
    await still_pair.time_out()
    assert (await still_pair.mode())["currentTurn"] == "codex"
    await still_pair.reply("claude", "sorry, I was away", turn=view["turn"])

    assert (await still_pair.mode())["currentTurn"] == "codex"
    (item,) = await still_pair.room.history("?types=agent_response")
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


@pytest.mark.parametrize("is_gone", [False, True])
async def test_one_who_is_not_delivered_to_passes_its_turn_on_with_the_reason(
    still_pair: StillPair, is_gone: bool
) -> None:
    if is_gone:
        await still_pair.room.post("/state", {"state": "offline"}, still_pair.members["claude"].token)
    view = await still_pair.start("round_robin", agents=["claude", "codex"], steps=2)
    await still_pair.time_out()

    assert (await still_pair.mode())["currentTurn"] == "codex"
    reason = "offline" if is_gone else "queued"
    failures = [text for text in await still_pair.notices() if "claude: its turn failed" in text]
    assert failures == [f"claude: its turn failed, undelivered: {reason}. The turn passes on."]
    await still_pair.reply("claude", "too late", turn=view["turn"])
    assert (await still_pair.mode())["currentTurn"] == "codex"
    await still_pair.reply("codex", "here I am")
    said = await still_pair.room.history("?types=agent_response")
    assert [item["text"] for item in said if not item.get("late")] == ["here I am"]
    assert (await still_pair.mode())["status"] == "ended"


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
    assert notices.count("claude repeated itself.") == 1
    assert notices.count("codex repeated itself.") == 1


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
