"""The acceptance tests of the plans this project grew from, one test each, in their words."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from csp.room.commands import Tick
from tests.gateway.debaters import Debaters
from tests.gateway.served import Clock, ServedRoom, served

TALE = "Write a 2‑paragraph fairy tale—Claude drafts, GPT edits, alternate until done (≤4 rounds)."
BAKERY = "Brainstorm features for a cozy bakery website; keep alternating improvements indefinitely."


def envelope(message: str, to: str = "", task: str = "go on", *, final: bool = False) -> str:
    said: dict[str, Any] = {"message": message}
    if to:
        said["handoff"] = {"to": to, "task": task}
    return json.dumps(said | ({"final": True} if final else {}))


@pytest.fixture
async def pair(room: ServedRoom) -> Debaters:
    """Two agents behind an API, which answer in envelopes."""
    pair = Debaters(room)
    for name in ("claude", "gpt"):
        pair.members[name] = await room.join(name, kind="api")
    return pair


async def prompt(pair: Debaters, name: str) -> str:
    """Return what an agent is asked right now."""
    items = (await pair.room.get(f"/inbox/{name}", pair.members[name].token))["items"]
    return str(items[-1]["text"])


async def replies(pair: Debaters) -> list[str]:
    return [item["text"] for item in await pair.room.history("?types=agent_response&limit=1000")]


# --- bounded collaboration -----------------------------------------------------------------------


async def test_context_sharing_works(pair: Debaters) -> None:
    await pair.start("collaborate", topic=TALE, rounds=4, first="claude")
    await pair.reply("claude", envelope("Once upon a time", "gpt", "edit it"))
    asked = await prompt(pair, "gpt")
    assert TALE in asked and "claude: Once upon a time" in asked and "router -> gpt: edit it" in asked
    await pair.reply("gpt", envelope("Once, long ago", "claude"))
    await pair.reply("claude", envelope("and they lived on", "gpt"))
    await pair.reply("gpt", envelope("The end.", final=True))

    assert (await pair.mode())["reason"] == "final"
    assert await replies(pair) == ["Once upon a time", "Once, long ago", "and they lived on", "The end."]


async def test_bounded_rounds(pair: Debaters) -> None:
    await pair.start("collaborate", rounds=2, first="claude")
    await pair.reply("claude", envelope("one", "gpt"))
    await pair.reply("gpt", envelope("two", "claude"))

    assert ((await pair.mode())["reason"], await replies(pair)) == ("cap_reached", ["one", "two"])


async def test_mixed_envelope_behaviour(pair: Debaters) -> None:
    await pair.start("collaborate", first="claude")
    await pair.reply("claude", envelope("one", "gpt"))
    assert (await pair.mode())["currentTurn"] == "gpt"
    await pair.reply("gpt", envelope("two", "claude", final=True))

    assert (await pair.mode())["reason"] == "final"


async def test_malformed_json_handling(pair: Debaters) -> None:
    await pair.start("collaborate", first="claude")
    await pair.reply("claude", "Sure! Here is my answer.")
    assert "JSON" in await prompt(pair, "claude")
    await pair.reply("claude", 'Sure! {"message": "x"')

    assert ((await pair.mode())["reason"], await replies(pair)) == ("malformed", ['Sure! {"message": "x"'])


async def test_manual_stop(pair: Debaters) -> None:
    view = await pair.start("collaborate")
    await pair.room.post(f"/sessions/{view['sessionId']}/stop")

    assert "Collaboration canceled by user." in await pair.notices()


async def test_final_in_the_first_reply(pair: Debaters) -> None:
    await pair.start("collaborate", topic="Summarize this in 1 sentence, then stop.", first="claude")
    await pair.reply("claude", envelope("It is short.", final=True))

    assert ((await pair.mode())["reason"], len(await replies(pair))) == ("final", 1)


async def test_two_requests_back_to_back_do_not_interfere(pair: Debaters) -> None:
    begun = [await pair.room.post("/sessions", {"mode": "collaborate", "topic": f"goal {n}"}) for n in (1, 2)]
    for number, session in enumerate(begun, start=1):
        turn = session["orchestration"]["turns"]["claude"]
        await pair.reply("claude", envelope(f"words {number}", "gpt"), turn=turn)
    views = [(await pair.room.get(f"/sessions/{one['id']}"))["orchestration"] for one in begun]

    assert [view["roundOutputs"]["claude"]["round0"] for view in views] == ["words 1", "words 2"]
    assert [view["currentTurn"] for view in views] == ["gpt", "gpt"]


async def test_context_packaging(pair: Debaters) -> None:
    await pair.start("collaborate", topic=TALE, first="claude")
    asked = await prompt(pair, "claude")

    assert "Round 1 of 6" in asked
    assert "Your name is `claude`" in asked
    assert asked.endswith("Return JSON only per schema, no extra text.")


# --- autopilot -----------------------------------------------------------------------------------


async def test_autopilot_runs_past_former_bounds_and_alternates(pair: Debaters) -> None:
    await pair.start("autopilot", topic=BAKERY, first="claude")
    for number in range(12):
        name = (await pair.mode())["currentTurn"]
        assert name == ("claude", "gpt")[number % 2]
        await pair.reply(name, envelope(f"idea {number}"))

    assert (await pair.mode())["status"] == "running"


@pytest.mark.parametrize("word", ["Allstop", "all stop", "ALL-STOP!"])
async def test_allstop_typed(pair: Debaters, word: str) -> None:
    view = await pair.start("autopilot")
    await pair.room.send("all", word)
    late = await pair.reply("claude", envelope("in flight"), turn=view["turns"][view["currentTurn"]])

    assert late["late"]
    assert await replies(pair) == []
    assert "Collaboration stopped by user (Allstop)." in await pair.notices()


async def test_allstop_button(pair: Debaters) -> None:
    view = await pair.start("autopilot")

    assert (await pair.room.post("/stop"))["stopped"] == [view["sessionId"]]


async def test_final_is_ignored_by_default(pair: Debaters) -> None:
    await pair.start("autopilot", first="claude")
    await pair.reply("claude", envelope("done, I think", final=True))

    assert (await pair.mode())["currentTurn"] == "gpt"
    assert any(text.startswith("Agent suggests finish") for text in await pair.notices())


@pytest.fixture
async def tight(tmp_path: Path) -> AsyncIterator[Debaters]:
    async with served(tmp_path / "room", max_turns=3) as room:
        pair = Debaters(room)
        await pair.join("claude", "gpt")
        yield pair


async def test_emergency_cutoff(tight: Debaters) -> None:
    await tight.start("autopilot")
    for number in range(3):
        await tight.reply((await tight.mode())["currentTurn"], f"idea {number}")

    assert (await tight.mode())["reason"] == "emergency_turns"
    assert "AUTOPILOT stopped: emergency cap of turns." in await tight.notices()


async def test_allstop_without_a_session(pair: Debaters) -> None:
    await pair.room.send("all", "Allstop")

    assert await pair.room.inbox(pair.members["claude"]) == []
    assert (await pair.mode())["mode"] == "freeform"


# --- orchestration -------------------------------------------------------------------------------


async def test_mode_debate_by_curl(pair: Debaters) -> None:
    body = b'{"mode":"debate","topic":"test","agents":["claude","gpt"]}'
    answer = await pair.room.call("POST", "/mode", data=body)

    assert (answer.status, answer.data["success"]) == (200, True)
    assert answer.data["orchestration"]["maxRounds"] == 3


async def test_turn_announcements_appear(pair: Debaters) -> None:
    await pair.start("debate", topic="Best approach to fix X")
    notices = await pair.notices()

    assert notices == [
        *("Mode: DEBATE", "Topic: Best approach to fix X", "@claude - Your turn.", "@gpt - Your turn."),
    ]


async def test_orchestrator_can_drive_mode_changes(pair: Debaters) -> None:
    boss = await pair.room.join("Orchestrator", role="orchestrator")
    await pair.room.post("/agent-output", {"content": '@mode.set debate "topic"'}, boss.token)

    assert "@claude - Your turn." in await pair.notices()


@pytest.fixture
async def slow(still_room: ServedRoom) -> Debaters:
    slow = Debaters(still_room)
    await slow.join("claude", "codex")
    return slow


async def test_working_resets_the_timer_of_the_active_agent(slow: Debaters, clock: Clock) -> None:
    await slow.start("round_robin")
    claude = slow.members["claude"]
    (ask,) = await slow.room.inbox(claude)
    await slow.room.post("/delivery", {"id": ask, "state": "confirmed"}, claude.token)
    for _ in range(5):
        clock.now += 80
        await slow.room.post("/turn/working", {"note": "still at it"}, claude.token)
        await slow.room.gateway.submit(Tick())
    assert (await slow.mode())["currentTurn"] == "claude"
    assert not any("at its turn" in text for text in await slow.notices())
    clock.now += 90
    await slow.room.gateway.submit(Tick())
    assert "claude has been at its turn for 90 s." in await slow.notices()
    clock.now += 30
    await slow.room.gateway.submit(Tick())
    assert (await slow.mode())["currentTurn"] == "codex"
