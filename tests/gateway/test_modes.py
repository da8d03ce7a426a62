"""Modes over HTTP: begin, reply, steer, stop, come back."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from csp.room.commands import Tick
from tests.gateway.debaters import Debaters
from tests.gateway.served import Clock, ServedRoom, served
from tests.waiting import wait_until


@pytest.fixture
async def pair(room: ServedRoom) -> Debaters:
    pair = Debaters(room)
    await pair.join("claude", "codex")
    return pair


@pytest.fixture
async def still_pair(still_room: ServedRoom) -> Debaters:
    pair = Debaters(still_room)
    await pair.join("claude", "codex")
    return pair


# --- the seed's own calls ------------------------------------------------------------------------


async def test_debate_of_two_rounds_is_walked_by_next(pair: Debaters) -> None:
    view = await pair.start(agents=["claude", "codex"], rounds=2)
    answers = [await pair.room.post("/turn/next") for _ in range(4)]

    assert (view["mode"], view["topic"], view["maxRounds"]) == ("debate", "tabs", 2)
    assert (view["turnOrder"], view["currentTurn"]) == (["claude", "codex"], "claude")
    assert [(one.get("currentTurn"), one.get("round")) for one in answers[:3]] == [
        *(("codex", 0), ("claude", 1), ("codex", 1)),
    ]
    assert answers[0] == {"success": True, "currentTurn": "codex", "round": 0}
    assert answers[3] == {"complete": True}
    assert (await pair.mode())["mode"] == "freeform"
    assert (await pair.room.call("POST", "/turn/next")).status == 400


async def test_unknown_mode_names_the_valid_ones(pair: Debaters) -> None:
    answer = await pair.room.call("POST", "/mode", {"mode": "debat"})

    assert answer.status == 400
    assert "debate, consensus" in answer.data["hint"]


@pytest.mark.parametrize(
    "fields",
    [
        {"rounds": 0},
        {"rounds": -1},
        {"rounds": "3"},
        {"agents": []},
        {"agents": ["mallory"]},
        {"agents": ["claude", "claude"]},
        {"agents": ["human", "claude"]},
        {"limits": {"turns": 0}},
    ],
)
async def test_bad_terms_leave_the_room_as_it_was(pair: Debaters, fields: dict[str, Any]) -> None:
    before = await pair.mode()
    answer = await pair.room.call("POST", "/mode", {"mode": "debate", **fields})

    assert answer.status == 400
    assert await pair.mode() == before


# --- replies -------------------------------------------------------------------------------------


async def test_debate_runs_by_replies_alone(pair: Debaters) -> None:
    await pair.start(rounds=2)
    for name in ("claude", "codex", "claude", "codex"):
        await pair.reply(name, f"{name} speaks")
    view = await pair.mode()

    assert (view["status"], view["reason"]) == ("ended", "done")
    assert view["roundOutputs"]["codex"] == {"round0": "codex speaks", "round1": "codex speaks"}
    replies = await pair.room.history(f"?session={view['sessionId']}&types=agent_response")
    assert [item["sender"] for item in replies] == ["claude", "codex", "claude", "codex"]
    assert [item["round"] for item in replies] == [1, 1, 2, 2]
    assert "DEBATE complete." in await pair.notices()


async def test_ask_is_a_delivery_with_its_turn(pair: Debaters) -> None:
    view = await pair.start("collaborate")
    claude = pair.members["claude"]
    (item,) = (await pair.room.get("/inbox/claude", claude.token))["items"]

    assert (item["kind"], item["turn"], item["from"]) == ("turn", view["turn"], "system")
    assert (item["turnSignal"], item["currentTurn"]) == ("your_turn", "claude")
    assert "tabs" in item["text"] and "Round 1 of 6" in item["text"]


async def test_message_to_one_who_waits_says_whose_turn_it_is(pair: Debaters) -> None:
    await pair.start("collaborate")
    await pair.room.send("codex", "a word")
    (item,) = (await pair.room.get("/inbox/codex", pair.members["codex"].token))["items"]

    assert (item["kind"], item["turnSignal"], item["currentTurn"]) == ("message", "turn_wait", "claude")


async def test_reply_with_the_wrong_turn_is_late(pair: Debaters) -> None:
    await pair.start("collaborate")
    answer = await pair.reply("claude", "hm", turn="t-1")

    assert answer["late"]
    assert (await pair.mode())["currentTurn"] == "claude"
    assert [item["text"] for item in await pair.room.history("?types=late")] == ["hm"]


async def test_second_of_two_replies_moves_nothing(pair: Debaters) -> None:
    view = await pair.start("autopilot")
    answers = [await pair.reply("claude", text, turn=view["turn"]) for text in ("one", "two")]
    shown = await pair.room.history("?types=agent_response")

    assert (await pair.mode())["currentTurn"] == "codex"
    assert [item.get("late", False) for item in shown] == [False, True]
    assert [answer.get("late", False) for answer in answers] == [False, True]


@pytest.mark.parametrize("text", ["NOOP", "  "])
async def test_words_that_are_not_posted_are_not_answered_with_the_next_ask(
    pair: Debaters, text: str
) -> None:
    await pair.start("autopilot")
    answer = await pair.reply("claude", text)

    assert (await pair.mode())["currentTurn"] == "codex"
    assert (answer["id"], answer["recipients"], answer["posted"]) == ("", [], False)


async def test_working_is_for_an_open_turn(pair: Debaters) -> None:
    await pair.start("collaborate")
    claude, codex = pair.members["claude"], pair.members["codex"]

    assert (await pair.room.post("/turn/working", {"note": "x"}, claude.token))["extended"]
    assert not (await pair.room.post("/turn/working", {}, codex.token))["extended"]


async def test_watchers_see_a_session_from_its_start_to_its_end(pair: Debaters) -> None:
    socket = await pair.room.connect()
    await pair.start("single")
    await pair.reply("claude", "done")
    await wait_until(lambda: any(event.get("change") == "ended" for event in socket.events))

    types = [event["type"] for event in socket.events if event["type"] != "system"]
    assert types[:4] == ["mode", "mode", "turn_signal", "delivery"]
    signal = next(event for event in socket.events if event["type"] == "turn_signal")
    assert (signal["currentAgent"], signal["waitingFor"], signal["round"]) == ("claude", ["claude"], 1)


async def test_agent_over_a_websocket_is_asked_and_answers(pair: Debaters) -> None:
    claude = await pair.room.connect(pair.members["claude"].token)
    await pair.start("single")
    await wait_until(lambda: bool(claude.delivers))
    ask = claude.delivers[0]
    answer = await claude.ask("output", content="here", turn=ask["turn"])

    assert (answer["ok"], ask["kind"]) == (True, "turn")
    assert (await pair.mode())["reason"] == "done"


# --- the clock -----------------------------------------------------------------------------------


async def test_turn_times_out_by_itself(tmp_path: Path) -> None:
    async with served(tmp_path / "room", turn_warn_ms=50, turn_timeout_ms=100) as room:
        pair = Debaters(room)
        await pair.join("claude", "codex")
        await pair.start("debate", rounds=1)

        await room.until(lambda: _is_over(pair), "nobody answers")
        assert (await pair.mode())["reason"] == "all_failed"


async def test_benched_agent_is_shown_as_such(still_pair: Debaters, clock: Clock) -> None:
    await still_pair.start("round_robin")
    claude = still_pair.members["claude"]
    for number in range(2):
        (ask,) = await still_pair.room.inbox(claude)
        await still_pair.room.post("/delivery", {"id": ask, "state": "confirmed"}, claude.token)
        clock.now += 120
        await still_pair.room.gateway.submit(Tick())
        await still_pair.reply("codex", f"step {number}")

    await still_pair.room.get("/agents", claude.token)

    assert (await still_pair.room.agent("claude"))["state"] == "benched"
    assert (await still_pair.room.agent("codex"))["state"] == "idle"


async def _is_over(pair: Debaters) -> bool:
    return bool((await pair.mode())["status"] == "ended")


async def test_restart_goes_on_with_the_same_turn(still_pair: Debaters, clock: Clock) -> None:
    await still_pair.start(rounds=2)
    await still_pair.reply("claude", "a position")
    before = await still_pair.mode()
    clock.now += 50
    await still_pair.room.restart()

    assert await still_pair.mode() == before
    assert before["deadline"] == clock.now + 70
    await still_pair.reply("codex", "another one")
    (item,) = (await still_pair.room.get("/inbox/claude", still_pair.members["claude"].token))["items"]
    assert "another one" in item["text"]


# --- stop and steer ------------------------------------------------------------------------------


async def test_stop_ends_all_that_a_session_does(pair: Debaters) -> None:
    view = await pair.start("autopilot")
    assert (await pair.room.post("/stop"))["stopped"] == [view["sessionId"]]
    await pair.reply("claude", "too late", turn=view["turn"])

    assert (await pair.mode())["reason"] == "stopped_by_user"
    assert "Collaboration stopped by user (Allstop)." in await pair.notices()
    assert await pair.room.history("?types=agent_response,agent_call,vote") == []
    assert await pair.room.inbox(pair.members["claude"]) == []
    assert await pair.room.post("/stop") == {"success": True, "stopped": []}


async def test_typed_allstop_interrupts_the_turn_that_runs(pair: Debaters) -> None:
    view = await pair.start("autopilot")
    claude = pair.members["claude"]
    (ask,) = await pair.room.inbox(claude)
    await pair.room.post("/delivery", {"id": ask, "state": "confirmed"}, claude.token)
    await pair.room.send("all", "ALL-STOP!")
    (item,) = (await pair.room.get("/inbox/claude", claude.token))["items"]

    assert (item["kind"], item["control"], item["turn"]) == ("control", "interrupt", view["turn"])


async def test_stop_of_all_threads(pair: Debaters) -> None:
    first = await pair.start("single", agents=["claude"])
    other = await pair.room.post("/sessions", {"mode": "single", "agents": ["codex"]})

    stopped = (await pair.room.post("/stop", {"all": True}))["stopped"]
    assert stopped == [first["sessionId"], other["id"]]


async def test_stop_of_all_ends_every_session_whoever_is_asked_there(pair: Debaters) -> None:
    await pair.join("gemini", "gpt")
    begun = [await pair.start("autopilot", agents=["claude"], thread="one")]
    begun += [await pair.start("single", agents=["codex"], thread="two")]
    begun += [await pair.start("debate", agents=["gemini", "gpt"], thread="three")]
    ids = [view["sessionId"] for view in begun]

    stopped = (await pair.room.post("/stop", {"all": True}))["stopped"]
    left = (await pair.room.get("/sessions"))["items"]

    assert stopped == ids
    assert [(one["id"], one["status"]) for one in left] == [(one, "ended") for one in ids]
    assert [await pair.room.inbox(member) for member in pair.members.values()] == [[], [], [], []]


async def test_stop_of_a_thread_leaves_the_others_running(pair: Debaters) -> None:
    first = await pair.start("single", agents=["claude"], thread="one")
    second = await pair.start("single", agents=["codex"], thread="two")

    stopped = (await pair.room.post("/stop", {"thread": "one"}))["stopped"]

    assert stopped == [first["sessionId"]]
    assert (await pair.room.get(f"/sessions/{second['sessionId']}"))["session"]["status"] == "running"


async def test_allstop_typed_over_a_websocket_stops_its_thread(pair: Debaters) -> None:
    first = await pair.start("single", agents=["claude"], thread="one")
    second = await pair.start("single", agents=["codex"], thread="two")
    socket = await pair.room.connect()
    await socket.ask("message", to="all", content="Allstop", thread="one")
    items = {one["id"]: one["status"] for one in (await pair.room.get("/sessions"))["items"]}

    assert items == {first["sessionId"]: "ended", second["sessionId"]: "running"}


async def test_session_of_its_own_thread_is_steered_by_its_id(pair: Debaters) -> None:
    begun = await pair.room.post("/sessions", {"mode": "debate", "topic": "spaces"})
    path = f"/sessions/{begun['id']}"

    assert begun["thread"] == begun["id"]
    assert (await pair.mode())["mode"] == "freeform"
    for action, status in (("pause", "paused"), ("resume", "running"), ("extend", "running")):
        assert (await pair.room.post(f"{path}/{action}"))["session"]["status"] == status
    skipped = await pair.room.post(f"{path}/skip", {"agent": "codex"})
    assert skipped["session"]["status"] == "running"
    assert (await pair.room.get(path))["orchestration"]["waitingFor"] == ["claude"]
    kicked = await pair.room.post(f"{path}/kick", {"agent": "codex"})
    assert kicked["session"]["reason"] == "too_few"
    assert (await pair.room.call("POST", f"{path}/stop")).status == 409
    assert [one["id"] for one in (await pair.room.get("/sessions"))["items"]] == [begun["id"]]


@pytest.mark.parametrize("path", ["/sessions/s-0", "/sessions/s-0/pause", "/sessions/s-0/dance"])
async def test_what_is_not_there_is_not_found(pair: Debaters, path: str) -> None:
    method = "GET" if path.count("/") == 2 else "POST"

    answer = await pair.room.call(method, path)

    assert (answer.status, b"joined" in answer.raw) == (404, False)


async def test_agent_in_another_session_is_refused_by_name(pair: Debaters) -> None:
    view = await pair.start("autopilot")
    answer = await pair.room.call("POST", "/sessions", {"mode": "single", "agents": ["codex"]})

    assert answer.status == 409
    assert answer.data["error"] == f"codex is in session {view['sessionId']} (autopilot)"


async def test_orchestrator_sets_the_mode_by_its_token(pair: Debaters) -> None:
    boss = await pair.room.join("orchestrator", role="orchestrator")
    await pair.room.post("/agent-output", {"content": '@mode.set debate "tabs" --rounds 2'}, boss.token)

    assert (await pair.mode())["waitingFor"] == ["claude", "codex"]


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[Debaters]:
    async with served(tmp_path / "room", max_turns=3, soft_turns=2) as room:
        pair = Debaters(room)
        await pair.join("claude", "codex")
        yield pair


async def test_limits_come_from_the_settings(quick: Debaters) -> None:
    await quick.start("autopilot")
    for name in ("claude", "codex", "claude"):
        await quick.reply(name, f"{name} goes on")

    assert (await quick.mode())["reason"] == "emergency_turns"
    notices = await quick.notices()
    assert "Autopilot running. Say 'Allstop' to end." in notices
    assert "Emergency cap: the session has reached its limit of 3 turns." in notices


async def test_summary_is_part_of_the_history(pair: Debaters) -> None:
    view = await pair.start("single")
    await pair.reply("claude", "short and sweet")
    (summary,) = await pair.room.history(f"?q=Summary&session={view['sessionId']}")

    assert "- claude: short and sweet" in summary["text"]
