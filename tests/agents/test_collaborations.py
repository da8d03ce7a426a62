"""Collaborations of API models: what seed 002 asks for, each of its measures of success."""

import itertools
import signal
import subprocess
from collections.abc import Iterator
from typing import Any, Final

import pytest

from csp.errors import BadInput, Forbidden, NotFound, Refused
from csp.http_client import GatewayClient
from tests.agents.api_room import ApiRoom, envelope
from tests.forks import Forked, run
from tests.models.rules import Endless, Fail, Pause, Text
from tests.waiting import wait_until_sync

TRIO: Final = ["claude", "gpt", "gem"]
DOZEN: Final = [*TRIO, *(f"llama-{number}" for number in range(9))]
POSTED: Final = "agent_call,agent_response,turn_signal,vote"

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("api")]


class Room(ApiRoom):
    """A room of twelve models; what it takes to have them collaborate."""

    def collaborate(self, objective: str = "a plan", **fields: Any) -> str:
        body = {"objective": objective, "models": TRIO} | fields
        answer = self.room.gateway.post("/collaborations", body)
        assert answer["success"] is True and answer["handle"] == answer["session"]
        return str(answer["handle"])

    def look(self, handle: str, **fields: Any) -> dict[str, Any]:
        view: dict[str, Any] = self.room.gateway.get(f"/collaborations/{handle}", **fields)
        return view

    def ended(self, handle: str) -> dict[str, Any]:
        view = self.look(handle, wait=60)
        assert view["status"] == "ended", view
        return view

    def told(self, thread: str = "default") -> list[dict[str, Any]]:
        """Return what stands in a thread."""
        items = self.room.gateway.get("/history", limit=1000)["items"]
        return [item for item in items if item["thread"] == thread]

    def said(self, handle: str) -> list[tuple[str, str]]:
        page = self.room.gateway.get("/history", session=handle, types="agent_response", limit=1000)
        return [(item["sender"], item["text"]) for item in page["items"]]

    def in_flight(self, names: list[str]) -> int:
        """Return how many calls of these models are under way."""
        return sum(exchange.ended == "open" for name in names for exchange in self.models.exchanges(name))

    def most_at_once(self, names: list[str], since: int = 0) -> int:
        """Return how many calls of these models were ever under way together."""
        calls = [one for name in names for one in self.models.exchanges(name) if one.number > since]
        moments = sorted([(one.at, 1) for one in calls] + [(one.ended_at, -1) for one in calls])
        return max(itertools.accumulate(step for _, step in moments))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with Room(tmp_path_factory.mktemp("collaborations")) as room:
        room.join_api("claude", "anthropic")
        room.join_api("gpt", "openai")
        room.join_api("gem", "gemini")
        for name in DOZEN[3:]:
            room.join_api(name, "openai-compatible")
        yield room


@pytest.fixture
def room(shared: Room) -> Iterator[Room]:
    yield shared
    shared.rest()


# --- turns, results, history ---------------------------------------------------------------------


def test_models_take_turns_and_the_caller_gets_the_result_once(room: Room) -> None:
    """Clean history: what they say to each other stands in a thread of its own."""
    room.script("claude", envelope("a draft"), envelope("The whole plan."))
    room.script("gpt", envelope("an edit"))
    room.script("gem", envelope("a check"))
    before = room.told()
    handle = room.collaborate("plan the move", max_steps=3)
    view = room.ended(handle)

    assert room.said(handle) == [
        ("claude", "a draft"),
        ("gpt", "an edit"),
        ("gem", "a check"),
        ("claude", "The whole plan."),
    ]
    assert (view["reason"], view["step"], view["max_steps"]) == ("done", 3, 3)
    assert (view["result"], view["failed"], view["speakers"]) == ("The whole plan.", [], TRIO)
    assert view["progress"][0] == "step 1 of 3: claude replied"
    assert view["progress"][-1] == "synthesis: claude replied"
    (only,) = room.told()[len(before) :]
    assert only["text"] == f"Collaboration {handle}: ROUND_ROBIN complete.\nThe whole plan."
    assert (only["type"], view["thread"]) == ("system", handle)


def test_each_turn_has_the_objective_and_what_was_said_last(room: Room) -> None:
    room.script("claude", envelope("the violet draft"))
    before = room.calls("gpt")
    room.ended(room.collaborate("plan the move to Ulm", max_steps=2, user_input="no vans"))

    asked = room.asked("gpt")[before]
    assert "plan the move to Ulm" in asked
    assert "claude: the violet draft" in asked and "human: no vans" in asked


def test_agents_in_panes_and_models_collaborate(room: Room) -> None:
    room.join("ada")
    room.ready()
    view = room.ended(room.collaborate(models=["ada", "claude"], max_steps=4))

    assert view["speakers"] == ["ada", "claude"]
    assert view["reason"] in ("done", "final")


def test_demo_agents_are_free(room: Room) -> None:
    """What costs nothing is known to cost nothing: no limit keeps it from speaking."""
    handle = room.collaborate(models=["ada"], max_steps=1, cost_limit_usd=0.001)
    view = room.ended(handle)

    assert (view["speakers"], view["cost_usd"]) == (["ada"], 0.0)
    assert not any("No price for" in text for text in notices(room, handle))


def test_participant_that_knows_only_the_protocol_needs_no_adapter(room: Room) -> None:
    """No adapter is made for collaborations: whoever answers turns can take part."""
    joined = room.room.gateway.post("/register", {"agentId": "plain", "kind": "mcp"})
    plain = GatewayClient(room.room.url, joined["token"])
    handle = room.collaborate(models=["plain", "claude"], max_steps=2)
    (item,) = plain.get("/inbox/plain", wait=20)["items"]
    plain.post("/agent-output", {"content": "by hand", "turn": item["turn"]})
    wait_until_sync(lambda: plain.get("/inbox/plain", wait=1)["items"], 90, "the synthesis")
    (item,) = plain.get("/inbox/plain")["items"]
    plain.post("/agent-output", {"content": "the whole by hand", "turn": item["turn"]})

    assert room.ended(handle)["result"] == "the whole by hand"


# --- the whiteboard --------------------------------------------------------------------------------


def test_models_share_what_stands_on_the_whiteboard(room: Room) -> None:
    """What left the window long ago, or was noted by a person, comes back where it matters."""
    room.room.gateway.post("/board", {"text": "The piano needs PIANO_LIFT_7 and two people."})
    room.script("claude", envelope("The cellar key is under the zebra statue."))
    words = "boxes and more boxes, all of them labelled "
    for name in TRIO:
        room.always(name, envelope(words * 20))
    room.script("claude", envelope("The cellar key is under the zebra statue."))
    handle = room.collaborate("move the house", max_steps=13)
    room.ended(handle)
    room.models.reset()
    more: dict[str, Any] = {"objective": "", "models": None, "session_id": handle, "max_steps": 2}
    room.collaborate(user_input="how is PIANO_LIFT_7 done, where is the cellar key?", **more)
    room.ended(handle)
    asked = room.asked("gpt")[-1]
    window, _, board = asked.partition("notes on the whiteboard")

    assert "zebra statue" not in window, "it left the window long ago"
    assert "zebra statue" in board and "PIANO_LIFT_7" in board
    notes = room.room.gateway.get("/board", session=handle, limit=1000)["items"]
    assert [note["idx"] for note in notes] == list(range(len(notes))) and len(notes) == 17
    assert notes[0]["author"] == "claude"


def test_board_of_a_collaboration_is_summed_up_at_its_own_threshold(room: Room) -> None:
    room.always("claude", envelope("Summed up: forty boxes."), match="Summarise the notes")
    handle = room.collaborate("count the boxes", max_steps=6, summarization_threshold=4)
    room.ended(handle)
    summaries = wait_until_sync(
        lambda: room.room.gateway.get("/board", session=handle, kind="summary")["items"], 30, "a summary"
    )

    assert summaries[0]["author"] == "claude" and len(summaries[0]["stands_for"]) >= 4


# --- led by one ------------------------------------------------------------------------------------


def test_lead_chooses_who_is_next_until_it_is_done(room: Room) -> None:
    room.script(
        "claude",
        envelope("let us see", "gem", "count the boxes"),
        envelope("and now", "gpt", "book it"),
        envelope("Forty boxes, booked.", final=True),
    )
    room.always("gem", envelope("forty"))
    room.always("gpt", envelope("booked"))
    handle = room.collaborate(mode="orchestrator")
    view = room.ended(handle)

    assert [sender for sender, _ in room.said(handle)] == ["claude", "gem", "claude", "gpt", "claude"]
    assert (view["reason"], view["result"]) == ("final", "Forty boxes, booked.")


def test_lead_that_stalls_is_asked_for_a_synthesis(room: Room) -> None:
    room.script("claude", *[envelope(f"hm {number}") for number in range(3)], envelope("What we know."))
    view = room.ended(room.collaborate(mode="orchestrator"))

    assert (view["reason"], view["result"]) == ("no_handoff", "What we know.")


# --- several at once -------------------------------------------------------------------------------


def test_calls_of_a_group_are_in_flight_together_never_more(room: Room) -> None:
    since = len(room.models.exchanges())
    for name in DOZEN[:6]:
        room.always(name, [Pause(seconds=0.8), Text(text=envelope(f"{name} thinks"))])
    names = DOZEN[:6]
    handle = room.collaborate(models=names, parallel=3, max_steps=6)
    view = room.ended(handle)

    assert room.most_at_once(names, since) == 3
    assert sorted(sender for sender, _ in room.said(handle)[:6]) == sorted(names)
    synthesis = room.asked("claude")[-1]
    assert all(f"{name} thinks" in synthesis for name in names)
    assert view["reason"] == "done"


def test_twelve_models_in_one_collaboration(room: Room) -> None:
    since = len(room.models.exchanges())
    for name in DOZEN:
        room.always(name, [Pause(seconds=0.8), Text(text=envelope(f"{name} was here"))])
    handle = room.collaborate(models=DOZEN, parallel=12, max_steps=24)
    wait_until_sync(lambda: room.in_flight(DOZEN) == 12, 90, "twelve calls at once")
    view = room.ended(handle)

    assert room.most_at_once(DOZEN, since) == 12
    assert (view["step"], view["speakers"], view["failed"]) == (24, DOZEN, [])
    assert len(room.said(handle)) == 25


# --- what goes wrong -------------------------------------------------------------------------------


def test_model_that_fails_is_skipped_and_named(room: Room) -> None:
    """Error recovery: the others go on, and it is left out once it has failed twice."""
    room.always("gpt", [Fail(kind="auth")])
    handle = room.collaborate(max_steps=7)
    view = room.ended(handle)

    assert (view["reason"], view["failed"], view["speakers"]) == ("done", ["gpt"], ["claude", "gem"])
    failures = [line for line in view["progress"] if "gpt failed" in line]
    assert failures[0].startswith("step 2 of 7: gpt failed: its answer was failed:")
    asked = room.room.gateway.get("/history", session=handle, types="turn_signal")["items"]
    assert [item["target"] for item in asked].count("gpt") == 2


def test_blank_synthesis_does_not_replace_a_good_one(room: Room) -> None:
    room.script("claude", envelope("one"), envelope("A good synthesis."), envelope("   "), match="")
    handle = room.collaborate(models=["claude"], max_steps=1)
    assert room.ended(handle)["result"] == "A good synthesis."
    room.models.reset()
    room.always("claude", envelope("  "), match="You write its synthesis")
    room.always("claude", envelope("two"), match="You take turns")
    room.collaborate(objective="", models=None, session_id=handle, max_steps=1)
    view = room.ended(handle)

    assert view["result"] == "A good synthesis."
    assert view["progress"][-1].startswith("synthesis: claude failed")


def test_step_that_takes_too_long_is_skipped(room: Room) -> None:
    room.always("claude", [Endless()])
    handle = room.collaborate(max_steps=2, timeout_per_step=0.5)
    view = room.ended(handle)

    assert view["progress"][0] == "step 1 of 2: claude timed out: no reply in 0.5 s"
    # On a busy machine half a second may be too short for its reply too.
    assert view["progress"][1].startswith("step 2 of 2: gpt ")
    wait_until_sync(lambda: room.models.exchanges("claude")[-1].ended == "aborted", 90, "its end")


@pytest.mark.parametrize("way", ["allstop", "stop", "button"])
def test_stop_ends_it_at_once_and_nothing_more_is_posted(room: Room, way: str) -> None:
    for name in TRIO:
        room.always(name, [Endless()])
    handle = room.collaborate(parallel=3)
    wait_until_sync(lambda: room.in_flight(TRIO) == 3, 90, "three calls")
    if way == "allstop":
        room.room.gateway.post("/message", {"to": "all", "content": "Allstop!"})
    elif way == "stop":
        room.room.gateway.post("/stop", {})
    else:
        room.room.gateway.post(f"/collaborations/{handle}/stop", {})
    view = room.look(handle)

    assert (view["status"], view["reason"], view["result"]) == ("ended", "stopped_by_user", None)
    wait_until_sync(lambda: room.in_flight(TRIO) == 0, 90, "the end of the calls")
    assert room.said(handle) == []
    assert room.look(handle, wait=0)["reason"] == "stopped_by_user"


@pytest.mark.parametrize(
    ("fields", "problem", "hint"),
    [
        ({"models": ["claude", "gpt-9"]}, "unknown agent 'gpt-9'", "gpt"),
        ({"models": None}, "no models were named", "llama-8"),
        ({"mode": "brawl"}, "unknown mode 'brawl'", "round_robin"),
        ({"objective": ""}, "objective is empty", ""),
        ({"parallel": 0}, "Expected `int` >= 1 - at `$.parallel`", ""),
        ({"max_steps": 0}, "Expected `int` >= 1 - at `$.max_steps`", ""),
    ],
)
def test_odd_wish_is_refused_with_a_hint(room: Room, fields: dict[str, Any], problem: str, hint: str) -> None:
    with pytest.raises(BadInput) as caught:
        room.collaborate(**fields)

    assert problem.lower() in caught.value.message.lower()
    assert hint in caught.value.hint


def test_unknown_handle_is_told_with_those_that_there_are(room: Room) -> None:
    handle = room.collaborate(max_steps=1)
    room.ended(handle)
    for act in (lambda: room.look("s-1"), lambda: room.collaborate(session_id="s-1")):
        with pytest.raises(NotFound) as caught:
            act()
        assert "unknown collaboration 's-1'" in caught.value.message


def test_agents_may_look_but_not_begin(room: Room) -> None:
    handle = room.collaborate(max_steps=1)
    joined = room.room.gateway.post("/register", {"agentId": "onlooker", "kind": "api"})
    agent = GatewayClient(room.room.url, joined["token"])

    assert agent.get(f"/collaborations/{handle}")["handle"] == handle
    with pytest.raises(Forbidden):
        agent.post("/collaborations", {"objective": "mine", "models": ["claude"]})
    with pytest.raises(Forbidden):
        agent.post(f"/collaborations/{handle}/stop", {})


def test_one_that_takes_part_begins_no_other(room: Room) -> None:
    """No collaboration within a collaboration: each would wait for the next without end."""
    joined = room.room.gateway.post("/register", {"agentId": "boss", "kind": "api", "role": "orchestrator"})
    boss = GatewayClient(room.room.url, joined["token"])
    handle = str(
        boss.post("/collaborations", {"objective": "x", "models": ["claude"], "max_steps": 1})["handle"]
    )
    room.ended(handle)
    outer = room.collaborate(models=["boss", "claude"], max_steps=1)
    with pytest.raises(Refused, match=f"boss takes part in collaboration {outer}"):
        boss.post("/collaborations", {"objective": "deeper", "models": ["claude"]})

    room.room.gateway.post(f"/collaborations/{outer}/stop", {})
    room.room.gateway.delete("/agents/boss")


# --- following it ----------------------------------------------------------------------------------


def test_wait_returns_with_the_next_line_or_at_the_end(room: Room) -> None:
    room.always("gpt", [Endless()])
    handle = room.collaborate(max_steps=2)
    first = room.look(handle, after=0, wait=30)

    assert first["progress"] == ["step 1 of 2: claude replied"]
    second = room.look(handle, after=first["lines"], wait=0.2)
    assert (second["progress"], second["lines"]) == ([], 1)
    assert (second["waiting"], second["status"], second["result"]) == (["gpt"], "running", None)


# --- going on --------------------------------------------------------------------------------------


def test_finished_collaboration_goes_on(room: Room) -> None:
    """Same thread, same index, all that was said; the result is told once more."""
    room.script("claude", envelope("the first word"))
    before = len(room.told())
    handle = room.collaborate(max_steps=2)
    first = room.ended(handle)
    again = room.collaborate(
        objective="", models=None, session_id=handle, user_input="and by train", max_steps=2
    )
    view = room.ended(handle)

    assert (again, view["thread"]) == (handle, first["thread"])
    turns = [line for line in view["progress"] if line.startswith("step")]
    assert [line.split()[4] for line in turns] == ["claude", "gpt", "gem", "claude"]
    assert (view["step"], view["max_steps"]) == (4, 4)
    asked = room.asked("gem")[-1]
    assert "human: and by train" in asked and "the first word" in asked
    assert len(room.told()) == before + 2


def test_running_collaboration_gets_more_steps(room: Room) -> None:
    room.always("gpt", [Pause(seconds=1.0), Text(text=envelope("slow"))])
    handle = room.collaborate(max_steps=2)
    wait_until_sync(lambda: room.look(handle)["waiting"] == ["gpt"], 90, "gpt's turn")
    room.collaborate(objective="", models=None, session_id=handle, user_input="one more", max_steps=1)
    view = room.ended(handle)

    assert (view["step"], view["max_steps"]) == (3, 3)
    assert "human: one more" in room.asked("gem")[-1]


def test_name_of_ones_own_begins_and_goes_on(room: Room) -> None:
    handle = room.collaborate(session_id="moving-house", max_steps=1)
    room.ended("moving-house")
    again = room.collaborate(session_id="moving-house", objective="", models=None, max_steps=1)

    assert again == handle
    assert room.ended("moving-house")["step"] == 2


# --- what it costs ---------------------------------------------------------------------------------


def notices(room: Room, handle: str) -> list[str]:
    page = room.room.gateway.get("/history", session=handle, types="system", limit=1000)
    return [item["text"] for item in page["items"]]


@pytest.mark.parametrize("parallel", [1, 3])
def test_three_cents_stop_it_before_the_call_that_would_pass_them(room: Room, parallel: int) -> None:
    """Cost controls: what was charged never passes the limit, and no call is made for nothing."""
    for name in TRIO:
        room.always(name, envelope("word " * 500))
    since = len(room.models.exchanges())
    handle = room.collaborate(max_steps=50, parallel=parallel, cost_limit_usd=0.03)
    view = room.ended(handle)
    calls = room.models.exchanges()[since:]

    assert view["reason"] == "emergency_cost"
    assert 0.01 < view["cost_usd"] <= view["cost_limit_usd"] == 0.03
    assert len(calls) == len(room.said(handle)) == view["step"], "no call was thrown away"
    (stopped,) = [text for text in notices(room, handle) if text.startswith("Cost limit:")]
    assert "could pass the limit, so the call is not made" in stopped
    assert "emergency cap of cost" in room.told()[-1]["text"]


def test_answers_are_kept_to_what_is_left(room: Room) -> None:
    since = len(room.models.exchanges())
    room.ended(room.collaborate(max_steps=3, cost_limit_usd=0.05))
    bodies = [exchange.body for exchange in room.models.exchanges()[since:]]
    most = [
        next(body[name] for name in ("max_tokens", "max_output_tokens") if name in body) for body in bodies
    ]

    assert len(most) >= 3 and all(0 < tokens <= 400_000 for tokens in most)
    assert most[0] < 8192, "five cents are less than the longest answer"


def test_limit_that_lets_no_call_be_made_says_so(room: Room) -> None:
    before = room.calls()
    handle = room.collaborate(cost_limit_usd=0.0001)
    view = room.ended(handle)

    assert (view["reason"], view["step"], view["cost_usd"]) == ("emergency_cost", 0, 0.0)
    assert room.calls() == before


def test_unknown_price_is_told(room: Room) -> None:
    handle = room.collaborate(models=["llama-0", "claude"], max_steps=2, cost_limit_usd=0.5)
    room.ended(handle)

    assert any("No price for llama-0;" in text for text in notices(room, handle))
    assert any("The limit of 1,000,000 new tokens applies." in text for text in notices(room, handle))


@pytest.mark.parametrize("turns", [36, pytest.param(110, marks=pytest.mark.full)])
def test_prompts_stay_as_long_as_they_are_however_many_turns(room: Room, turns: int) -> None:
    """Token budgets remain predictable: the window is what it is, whatever has been said before."""
    words = "and a further word of what was said " * 40
    for name in TRIO:
        room.script(name, *(envelope(f"{number}: {words}") for number in range(turns // 3 + 3)))
    since = {name: room.calls(name) for name in TRIO}
    view = room.ended(room.collaborate(max_steps=turns))
    calls = [call for name in TRIO for call in room.models.exchanges(name)[since[name] :]]
    steps = [call.ask.tokens for call in calls if "You take turns" in call.ask.governing]
    of_gpt = [call.ask.tokens for call in calls if call.client == "gpt"]
    (synthesis,) = [call.ask.tokens for call in calls if "You write its synthesis" in call.ask.governing]

    assert view["step"] == len(steps) == turns
    assert max(steps) < 2500 + 800 + 1000, "the window, the whiteboard, the rules"
    assert synthesis < 2500 + 8000 + 800 + 1000, "the last word of each besides"
    third = turns // 9
    early, late = sum(of_gpt[third : 2 * third]) / third, sum(of_gpt[-third:]) / third
    assert late < early * 1.1, f"a turn took {early:.0f} tokens at first, {late:.0f} at last"


def polling(room: Room, handle: str) -> Forked:
    """Wait for a collaboration at a command line."""
    return Forked(["collaborate", "--poll", handle], room.room.dir, room.room.env)


# --- restart ---------------------------------------------------------------------------------------


def test_gateway_that_is_killed_goes_on_where_it_was(room: Room) -> None:
    """Collaborations survive a restart: nobody is asked twice, nothing said is lost."""
    handle = room.collaborate(max_steps=1)
    room.ended(handle)
    for name in TRIO:
        room.always(name, [Pause(seconds=1.5), Text(text=envelope(f"{name} speaks"))])
    before = {name: room.calls(name) for name in TRIO}
    room.collaborate(objective="", models=None, session_id=handle, parallel=2, max_steps=4)
    with polling(room, handle) as watcher:
        assert watcher.stderr is not None and watcher.stderr.readline() == "step 1 of 5: claude replied\n"
        wait_until_sync(lambda: room.in_flight(TRIO) == 2, 90, "two calls")
        room.room.kill9()
        room.room.start()
        view = room.ended(handle)
        printed, _ = watcher.communicate(timeout=90)

    assert (view["reason"], view["step"], view["failed"]) == ("done", 5, [])
    assert sorted(sender for sender, _ in room.said(handle)[2:6]) == ["claude", "gem", "gpt", "gpt"]
    calls = {name: room.calls(name) - before[name] for name in TRIO}
    assert calls == {"claude": 2, "gpt": 2, "gem": 1}, "a step with the synthesis, two steps, one"
    assert printed == "claude speaks\n", "whoever waits at the command line gets the result all the same"


# --- the command line ------------------------------------------------------------------------------


def csp(room: Room, *argv: str) -> subprocess.CompletedProcess[str]:
    return run(["collaborate", *argv], room.room.dir, room.room.env)


def test_command_prints_the_result_and_talks_of_the_progress(room: Room) -> None:
    room.script("claude", envelope("one"), envelope("The whole."))
    done = csp(room, "plan", "it", "--models", "claude,gpt", "--max-steps", "2", "--parallel", "2")

    assert (done.returncode, done.stdout) == (0, "The whole.\n")
    assert "step 1 of 2: claude replied" in done.stderr and "step 2 of 2: gpt replied" in done.stderr
    assert "ended: done after 2 steps" in done.stderr


def test_command_goes_on_polls_and_stops(room: Room) -> None:
    begun = csp(room, "plan it", "--models", "claude,gpt", "--max-steps", "1", "--no-wait")
    handle = begun.stdout.strip()
    polled = csp(room, "--poll", handle, "--json")
    room.always("gpt", [Endless()])
    more = csp(room, "shorter please", "--continue", handle, "--max-steps", "1", "--no-wait")
    far = csp(room, "--poll", handle, "--no-wait")
    stopped = csp(room, "--stop", handle)

    assert handle.startswith("s-") and '"reason": "done"' in polled.stdout
    assert more.stdout.strip() == handle
    assert f"csp collaborate --poll {handle}" in far.stderr and far.returncode == 0
    assert (stopped.returncode, room.look(handle)["reason"]) == (0, "stopped_by_user")


@pytest.mark.parametrize(
    ("argv", "code", "problem"),
    [
        ((), 2, "expected an objective"),
        (("plan it",), 2, "expected --models"),
        (("plan it", "--models", "claude,nobody"), 2, "unknown agent 'nobody'"),
        (("--poll", "s-1"), 1, "unknown collaboration 's-1'"),
        (("--poll", "s-1", "--stop", "s-1"), 2, "got both"),
        (("--poll", "s-1", "--parallel", "2"), 2, "--poll excludes 'parallel'"),
        (("plan it", "--models", "claude", "--cost-limit", "-1"), 2, "--cost-limit"),
    ],
)
def test_misuse_is_told(room: Room, argv: tuple[str, ...], code: int, problem: str) -> None:
    done = csp(room, *argv)

    assert problem in done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)


def test_ctrl_c_leaves_it_running_and_says_how_to_go_on(room: Room) -> None:
    room.always("claude", [Endless()])
    process = Forked(["collaborate", "plan it", "--models", "claude"], room.room.dir, room.room.env)
    assert process.stderr is not None
    handle = process.stderr.readline().split()[1]
    wait_until_sync(lambda: room.in_flight(["claude"]) == 1, 60, "a call")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)

    assert process.returncode == 1
    assert f"wait for it: csp collaborate --poll {handle}" in said
    assert f"stop it: csp collaborate --stop {handle}" in said
    assert room.look(handle)["status"] == "running"
