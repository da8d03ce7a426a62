"""API models in a room without a mode, and what becomes of a session when their calls fail."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from csp.agents.api.agent_program import taken_up
from csp.agents.api.call_errors import ATTEMPTS
from csp.client import Client, Live
from csp.http_client import GatewayClient, Query
from tests.agents.api_room import KEY, ApiRoom, envelope
from tests.models.rules import Cut, Endless, Fail, Pause, Text
from tests.waiting import wait_until_sync

PAIR: Final = ["claude", "gpt"]
NAMES: Final = ("claude", "gpt", "gem", "llama")
GOAL: Final = "Plan a picnic."

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("api")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRoom]:
    with ApiRoom(tmp_path_factory.mktemp("api")) as room:
        room.join_api("claude", "anthropic")
        room.join_api("gpt", "openai")
        room.join_api("gem", "gemini")
        room.join_api("llama", "openai-compatible")
        # What would take five minutes takes two seconds here.
        room.join_api("hasty", "anthropic", timeout_s=2.0)
        yield room


@pytest.fixture
def room(shared: ApiRoom) -> Iterator[ApiRoom]:
    yield shared
    shared.rest()


def notices_with(room: ApiRoom, view: dict[str, Any], words: str) -> list[str]:
    return [text for text in room.notices(view) if words in text]


# --- without a mode ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_message_is_answered_to_who_asked(room: ApiRoom, name: str) -> None:
    room.script(name, f"hello from {name}")
    message = room.send(name, "hello there")
    reply = room.reply_to(message, name)

    assert (reply["text"], reply["target"]) == (f"hello from {name}", "human")
    assert room.state(message, name) == ("confirmed", None)
    assert reply["usage"]["input"] > 0 and not reply["usage"].get("estimated")
    assert "Now human says to you:\n\nhello there" in room.asked(name)[-1]
    assert room.agent(name)["kind"] == "api"


def test_an_answer_knows_what_was_said_before(room: ApiRoom) -> None:
    room.script("claude", "My favourite is teal.", "Teal, as I said.")
    room.reply_to(room.send("claude", "Which colour do you like?"), "claude")
    room.reply_to(room.send("claude", "Which one was it?"), "claude")
    asked = room.asked("claude")[-1]

    assert "human -> claude: Which colour do you like?" in asked
    assert "claude -> human: My favourite is teal." in asked
    assert asked.count("Which one was it?") == 1


def test_a_model_that_comes_back_knows_what_was_said_while_it_was_away(room: ApiRoom) -> None:
    room.join_api("guest", "anthropic")
    room.players["guest"].stop()
    wait_until_sync(lambda: not room.agent("guest")["online"], 90, "its end")
    room.send("all", "The picnic is on Sunday.")
    room.join_api("guest", "anthropic")
    room.reply_to(room.send("guest", "When is it?"), "guest")

    assert room.agent("guest-2") == {}, "it came back as somebody else"
    assert "human: The picnic is on Sunday." in room.asked("guest")[-1]
    room.players.pop("guest").stop()
    room.room.gateway.delete("/agents/guest")


def test_messages_are_answered_one_after_the_other(room: ApiRoom) -> None:
    room.script("gpt", [Pause(seconds=0.3), Text(text="first")], "second")
    one, two = room.send("gpt", "one?"), room.send("gpt", "two?")

    assert (room.reply_to(one, "gpt")["text"], room.reply_to(two, "gpt")["text"]) == ("first", "second")
    assert "gpt -> human: first" in room.asked("gpt")[-1]


def test_models_speak_to_each_other_by_command(room: ApiRoom) -> None:
    room.script("claude", "Let me ask.\n@send.gpt Is it raining?")
    room.script("gpt", "It is not.")
    room.always("claude", "NOOP", match="It is not.")
    room.send("claude", "How is the weather?")

    wait_until_sync(
        lambda: any(item["text"] == "It is not." for item in room.replies("gpt")), 20, "the answer"
    )
    wait_until_sync(lambda: "It is not." in room.asked("claude")[-1], 90, "its way back")


def test_a_call_that_fails_is_told_to_the_sender_and_is_no_message(room: ApiRoom) -> None:
    room.script("gpt", [Fail(kind="auth", text=f"Incorrect API key provided: {KEY}")])
    message = room.send("gpt", "hello?")
    reason = room.wait_for(message, "gpt", "failed")

    assert reason == "401: the key was refused"
    assert all(item.get("replyTo") != message for item in room.replies("gpt"))
    mark = "its last call failed: 401: the key was refused"
    wait_until_sync(lambda: room.agent("gpt")["detail"] == mark, 90, "the mark of the failure")
    room.script("gpt", "here I am")
    assert room.reply_to(room.send("gpt", "again?"), "gpt")["text"] == "here I am"
    wait_until_sync(lambda: room.agent("gpt")["detail"] == "", 90, "the mark to go")


def test_an_empty_answer_is_a_failure(room: ApiRoom) -> None:
    room.script("claude", " \n")

    assert room.wait_for(room.send("claude", "hello?"), "claude", "failed") == "its answer was empty"


def test_a_person_may_interrupt_an_answer(room: ApiRoom) -> None:
    room.always("claude", [Endless()])
    message = room.send("claude", "count for ever")
    wait_until_sync(lambda: room.asked("claude")[-1].endswith("count for ever"), 90, "the call")
    room.room.gateway.post("/agents/claude/interrupt", {})

    assert room.wait_for(message, "claude", "failed") == "it was interrupted"
    wait_until_sync(lambda: room.models.exchanges("claude")[-1].ended == "aborted", 90, "its end")


def test_a_model_has_no_dialog_to_approve(room: ApiRoom) -> None:
    control = room.room.gateway.post("/agents/claude/approve", {})["id"]
    found = wait_until_sync(
        lambda: room.state(control, "claude")[0] == "failed" and room.state(control, "claude"), 10, "no"
    )

    assert found == ("failed", "an API model has no dialog")


def test_a_message_that_is_withdrawn_is_not_answered(room: ApiRoom) -> None:
    room.room.gateway.post("/agents/gem/pause", {})
    before = room.calls("gem")
    message = room.send("gem", "never mind")
    room.room.gateway.post(f"/messages/{message}/cancel", {})
    room.room.gateway.post("/agents/gem/resume", {})
    room.reply_to(room.send("gem", "this one"), "gem")

    assert room.calls("gem") == before + 1


def test_watchers_hear_the_words_as_they_come(room: ApiRoom) -> None:
    room.script("claude", [Text(text='{"message": "one two three four"}', chunk_chars=4, delay_s=0.03)])

    async def heard() -> str:
        words: list[str] = []
        async with Client(room.room.url, room.room.token) as client:
            await client.watch_screen("claude")
            await client.send("claude", "speak")
            async for item in client:
                if isinstance(item, Live):
                    view = item.read()
                    words.append(view.text or "")
                    if "four" in "".join(words):
                        return "".join(words)
        return ""

    assert asyncio.run(asyncio.wait_for(heard(), 90)) == "one two three four"


def test_the_screen_of_a_model_can_be_asked_for(room: ApiRoom) -> None:
    room.script("gpt", "words on a screen")
    room.reply_to(room.send("gpt", "show yourself"), "gpt")
    rows = room.room.gateway.get("/agents/gpt/screen")["screen"]["rows"]

    assert ["words on a screen"] in [[run[0] for run in row] for row in rows]


# --- when calls fail in a session ----------------------------------------------------------------


@pytest.mark.parametrize(
    "trouble",
    [[Fail(kind="rate", after_s=0.2)], [Fail(kind="server")], [Text(text='{"message": "ha'), Cut()]],
    ids=["429", "500", "cut"],
)
@pytest.mark.parametrize("name", PAIR)
def test_trouble_that_passes_is_not_seen_in_the_session(room: ApiRoom, name: str, trouble: list[Any]) -> None:
    room.script(name, trouble, envelope("all is well", final=True))
    view = room.played("collaborate", GOAL, agents=[name, "llama"], first=name)

    assert (view["reason"], [item["text"] for item in room.items(view)]) == ("final", ["all is well"])
    assert notices_with(room, view, "failed") == []


def test_a_participant_whose_call_fails_is_skipped_and_tried_again_next_round(room: ApiRoom) -> None:
    room.script("claude", [Fail(kind="invalid", text="prompt is too long")], envelope("back again"))
    room.always("gpt", envelope("gpt speaks"))
    view = room.played("round_robin", GOAL, agents=PAIR, steps=4)

    assert room.speakers(view) == ["gpt", "claude", "gpt"]
    told = notices_with(room, view, "claude: its turn failed")
    assert told == [
        "claude: its turn failed, its answer was failed: 400: prompt is too long. The turn passes on."
    ]
    assert all("too long" not in item["text"] for item in room.items(view)), "an error became a message"


def test_a_room_in_which_all_fail_ends_the_session_with_the_reason(room: ApiRoom) -> None:
    for name in PAIR:
        room.always(name, [Fail(kind="invalid", text="no such model")])
    view = room.played("autopilot", GOAL, agents=PAIR)

    assert view["reason"] == "all_failed"
    assert len(notices_with(room, view, "no such model")) == 2
    assert room.items(view) == []


def test_a_reply_that_never_ends_passes_the_turn_on(room: ApiRoom) -> None:
    room.always("hasty", [Text(text='{"message": "'), Endless(delay_s=0.02)])
    room.always("gpt", envelope("gpt speaks"))
    view = room.played("round_robin", GOAL, agents=["hasty", "gpt"], steps=2)

    assert room.speakers(view) == ["gpt"]
    assert len(notices_with(room, view, "the reply was not complete within 2 s")) == 1
    spent = room.room.gateway.get(f"/sessions/{view['sessionId']}")["session"]["spent"]
    assert next(row for row in spent if row["agent"] == "hasty")["estimated"] == 1


def test_a_model_that_is_told_to_wait_long_is_passed_over_until_then(room: ApiRoom) -> None:
    room.script("hasty", [Fail(kind="rate", after_s=900)])
    room.always("gpt", envelope("gpt speaks"))
    began = time.time()
    view = room.played("round_robin", GOAL, agents=["hasty", "gpt"], steps=4)

    assert room.speakers(view) == ["gpt", "gpt"]
    assert notices_with(room, view, "was skipped") == ["hasty was skipped: it has reached its limit."]
    agent = room.agent("hasty")
    assert agent["state"] == "limited" and agent["until"] - began > 800


def _reach_limit(room: ApiRoom, *later: str) -> int:
    """Let claude's provider refuse all tries of a call for some seconds, and begin an autopilot.

    Return the number of calls so far.
    """

    def is_waiting() -> bool:
        return any(wait["until"] is not None for wait in room.mode()["waits"])

    tries: list[list[Any]] = [[Fail(kind="rate", after_s=0.1)]] * (ATTEMPTS - 1)
    room.script("claude", *tries, [Fail(kind="rate", after_s=8)], *later)
    before = room.calls()
    room.begin("autopilot", GOAL, agents=PAIR, limits={"turns": 1})
    wait_until_sync(is_waiting, 60, "the wait for the reset")
    assert room.calls() == before + ATTEMPTS
    return room.calls()


def test_a_model_at_its_limit_is_asked_once_after_the_reset(room: ApiRoom) -> None:
    """The gateway is killed meanwhile, and nothing is asked twice or forgotten."""
    before = _reach_limit(room, envelope("back to work"))
    room.room.kill9()
    room.room.start()
    view = room.wait_end()

    assert (room.speakers(view), view["reason"]) == (["claude"], "emergency_turns")
    assert room.calls() == before + 1
    assert len(notices_with(room, view, "is asked again")) == 1


@pytest.mark.full
def test_allstop_ends_the_wait_for_a_limit(room: ApiRoom) -> None:
    before = _reach_limit(room, "an answer to a person")
    room.room.gateway.post("/message", {"to": "all", "content": "Allstop"})
    assert room.mode()["reason"] == "stopped_by_user"

    # The limit passes, and the next thing that a model is asked is a message.
    wait_until_sync(lambda: room.agent("claude")["state"] == "idle", 60, "the reset")
    room.reply_to(room.send("claude", "are you there?"), "claude")
    assert room.calls() == before + 1


def test_an_error_in_the_connector_does_not_leave_the_session_open(
    room: ApiRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    from csp.agents.api import connector

    def broken(*_: object) -> None:
        raise ZeroDivisionError(f"with {KEY}")

    monkeypatch.setattr(connector, "without_nulls", broken)
    view = room.played("autopilot", GOAL, agents=PAIR)

    assert view["reason"] == "all_failed"
    assert len(notices_with(room, view, "an error in the connector")) == 2


def test_a_model_that_leaves_in_its_turn_gives_it_back(room: ApiRoom) -> None:
    room.join_api("guest", "openai")
    room.always("guest", [Endless()])
    room.always("gpt", envelope("gpt speaks"))
    before = room.calls("guest")
    view = room.begin("round_robin", GOAL, agents=["guest", "gpt"], steps=2)
    wait_until_sync(lambda: room.calls("guest") > before, 90, "its call")
    room.players.pop("guest").stop()
    view = room.wait_end()

    assert room.speakers(view) == ["gpt"]
    assert len(notices_with(room, view, "it has left the room")) == 1
    room.room.gateway.delete("/agents/guest")


class Overtaken(GatewayClient):
    """A gateway at which a session begins just before a connector's second question."""

    begin: Callable[[], object] | None = None

    def get(self, path: str, **query: Query) -> Any:
        answer = super().get(path, **query)
        begin, self.begin = self.begin, None
        if begin is not None:
            begin()
        return answer


def test_a_turn_that_nobody_has_taken_up_is_not_given_back(room: ApiRoom) -> None:
    token = room.room.gateway.post("/register", {"agentId": "guest", "kind": "api"})["token"]
    gateway = Overtaken(room.room.url, token)
    gateway.begin = lambda: room.begin("round_robin", GOAL, agents=["guest", "gpt"], steps=2)
    during = taken_up(gateway, "guest")
    behind = taken_up(gateway, "guest")
    (item,) = room.room.gateway.get("/inbox/guest")["items"]
    gateway.post("/delivery", {"id": item["id"], "state": "submitted"})
    taken = taken_up(gateway, "guest")
    room.room.gateway.delete("/agents/guest")

    assert (during, behind, taken) == ([], [], [item["turn"]])


# --- a room that goes away -----------------------------------------------------------------------


def test_a_model_finds_its_room_again_after_a_restart(room: ApiRoom) -> None:
    room.room.restart()
    room.script("claude", "still here")

    assert room.reply_to(room.send("claude", "hello?"), "claude")["text"] == "still here"


def test_a_model_follows_its_room_to_another_port(room: ApiRoom) -> None:
    room.room.move()
    room.script("claude", "found you")

    assert room.reply_to(room.send("claude", "hello?"), "claude")["text"] == "found you"
    assert f"the room has moved to {room.room.url}" in room.players["claude"].screen


def test_a_model_that_is_removed_ends(room: ApiRoom) -> None:
    player = room.join_api("guest", "anthropic")
    room.room.gateway.delete("/agents/guest")
    wait_until_sync(lambda: player.why is not None, 90, "its end")

    assert player.why == "it was removed from the room, or its name was taken"
    room.players.pop("guest").stop()


# --- secrets -------------------------------------------------------------------------------------


def test_no_key_is_in_any_file_or_on_any_screen(room: ApiRoom) -> None:
    """All of the trouble above has left its traces; the key is in none of them."""
    room.script("gpt", [Fail(kind="invalid", text=f"{KEY} is odd")])
    room.wait_for(room.send("gpt", "hello?"), "gpt", "failed")
    found = [
        path
        for path, _, names in os.walk(room.folder)
        for name in names
        if KEY.encode() in _read(Path(path) / name)
    ]

    assert found == []
    assert all(KEY not in player.screen for player in room.players.values())
    assert KEY not in str(room.room.gateway.get("/agents"))
    assert any(KEY in str(exchange.headers) for exchange in room.models.exchanges()), "it was used at all"


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def test_usage_is_told_by_agent_and_model_with_the_list_of_prices(room: ApiRoom) -> None:
    for name in NAMES:
        room.reply_to(room.send(name, "count"), name)
    told = room.room.gateway.get("/usage")
    rows = {row["agent"]: row for row in told["items"] if row["model"]}

    assert told["prices"].startswith("genai-prices ")
    assert all(rows[name]["cost_usd"] > 0 for name in ("claude", "gpt", "gem"))
    assert (rows["llama"]["cost_usd"], rows["llama"]["unpriced"]) == (None, rows["llama"]["replies"])
    for shown in (room.csp("status"), room.chat("/status")):
        assert "claude (claude-sonnet-5): " in shown
        assert "(llama-at-home): " in shown and "price unknown" in shown
        assert f"prices: {told['prices']}" in shown


def test_a_model_at_home_is_not_priced_like_one_of_that_name_elsewhere(room: ApiRoom) -> None:
    room.join_api("guest", "openai-compatible", model="gpt-5")
    reply = room.reply_to(room.send("guest", "count"), "guest")

    assert (reply["usage"]["model"], reply["usage"].get("cost_usd")) == ("gpt-5", None)
    room.players.pop("guest").stop()
    room.room.gateway.delete("/agents/guest")
