"""The acceptance tests of the plans, in their words, for API models among agents in panes."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.agents.api_room import ApiRoom, envelope
from tests.models.rules import Endless, Pause, Text
from tests.modes.acceptance import POSTED
from tests.review.repository import RIGHT, TEST, make_repository
from tests.waiting import wait_until_sync

TALE: Final = "Write a 2‑paragraph fairy tale—Claude drafts, GPT edits, alternate until done (≤4 rounds)."
HIKE: Final = "Collaborate to outline and refine a 5‑step plan for a weekend hiking trip. Keep it concise."
SENTENCE: Final = "Summarize this in 1 sentence, then stop."
BAKERY: Final = "Brainstorm features for a cozy bakery website; keep alternating improvements indefinitely."
STOPPED: Final = "Collaboration stopped by user (Allstop)."
PAIR: Final = ["claude", "gpt"]
#: A model among two agents in panes.
MIXED: Final = ["claude", "ada", "gpt"]

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("api")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiRoom]:
    with ApiRoom(tmp_path_factory.mktemp("api")) as room:
        room.join_api("claude", "anthropic")
        room.join_api("gpt", "openai")
        room.join_api("gem", "gemini")
        room.join_api("llama", "openai-compatible")
        room.join("ada")
        room.ready()
        yield room


@pytest.fixture
def room(shared: ApiRoom) -> Iterator[ApiRoom]:
    yield shared
    shared.rest()


def texts(room: ApiRoom, view: dict[str, Any]) -> list[str]:
    return [item["text"] for item in room.items(view)]


# --- bounded collaboration: the definition of done -----------------------------------------------


def test_context_sharing_works(room: ApiRoom) -> None:
    """Claude drafts, GPT edits, they alternate to a final answer; each call has all that was said."""
    room.script("claude", envelope("Once upon a time", "gpt", "edit it"), envelope("They lived on", "gpt"))
    room.script("gpt", envelope("Once, long ago", "claude", "write on"), envelope("The end.", final=True))
    before = {name: room.calls(name) for name in PAIR}
    view = room.played("collaborate", TALE, agents=PAIR, rounds=4, first="claude")

    assert room.speakers(view) == ["claude", "gpt", "claude", "gpt"]
    assert texts(room, view) == ["Once upon a time", "Once, long ago", "They lived on", "The end."]
    assert view["reason"] == "final"
    asked = {name: room.asked(name)[before[name] :] for name in PAIR}
    assert all(TALE in text for name in PAIR for text in asked[name])
    assert "claude: Once upon a time" in asked["gpt"][0]
    assert "router -> gpt: edit it" in asked["gpt"][0], "the task never entered the transcript"
    assert "gpt: Once, long ago" in asked["claude"][1] and "router -> claude: write on" in asked["claude"][1]
    assert [text.partition("\n")[0] for text in asked["gpt"]] == ["Round 2 of 4", "Round 4 of 4"]


def test_bounded_rounds(room: ApiRoom) -> None:
    room.always("claude", envelope("more", "gpt"))
    room.always("gpt", envelope("and more", "claude"))
    view = room.played("collaborate", HIKE, agents=PAIR, rounds=2)

    assert (view["reason"], room.speakers(view)) == ("cap_reached", PAIR)


def test_mixed_envelopes_a_handoff_goes_on_a_final_ends(room: ApiRoom) -> None:
    room.script("claude", envelope("one", "gpt"))
    room.script("gpt", envelope("two", "claude", final=True))
    view = room.played("collaborate", HIKE, agents=PAIR)

    assert (texts(room, view), view["reason"]) == (["one", "two"], "final")
    assert "handoff" not in room.items(view)[1], "who is done hands nothing over"


@pytest.mark.parametrize("name", ["claude", "gpt", "llama"])
def test_malformed_json_is_repaired_once_then_a_plain_message_that_ends_the_session(
    room: ApiRoom, name: str
) -> None:
    odd = 'Sure! {"message": "x", "handoff": {"to": "gpt"'
    room.script(name, "Sure! Here you are.", odd)
    before = room.calls(name)
    view = room.played("collaborate", HIKE, agents=[name, "ada"], first=name)
    (only,) = room.items(view)

    assert (only["text"], view["reason"], only.get("handoff")) == (odd, "malformed", None)
    assert any(f"{name}'s reply was malformed" in notice for notice in room.notices(view))
    assert "reply malformed" in room.room.said()
    repair = room.models.exchanges(name)[before + 1]
    assert "Sure! Here you are." in str(repair.body), "it is shown what it had said"
    assert HIKE in str(repair.body)


def test_an_answer_that_is_repaired_goes_on_as_if_nothing_had_been(room: ApiRoom) -> None:
    room.script("claude", "Sure!", envelope("mended", final=True))
    view = room.played("collaborate", HIKE, agents=PAIR)

    assert (texts(room, view), view["reason"]) == (["mended"], "final")


def test_manual_stop_ends_the_session_with_a_cancellation_notice(room: ApiRoom) -> None:
    room.always("claude", [Endless()])
    before = room.calls("claude")
    view = room.begin("collaborate", HIKE, agents=PAIR)
    wait_until_sync(lambda: room.calls("claude") > before, 90, "a call")
    room.room.gateway.post(f"/sessions/{view['sessionId']}/stop", {})

    assert room.mode()["reason"] == "canceled"
    assert "Collaboration canceled by user." in room.notices(view)
    wait_until_sync(lambda: room.models.exchanges("claude")[-1].ended == "aborted", 90, "its end")
    assert room.items(view) == []


# --- the prompts to be used exactly --------------------------------------------------------------


def test_hiking_plan_alternates_to_a_final_answer_within_six_rounds(room: ApiRoom) -> None:
    room.script("claude", envelope("a plan", "gpt"), envelope("refined", "gpt"))
    room.script("gpt", envelope("shorter", "claude"), envelope("done", final=True))
    view = room.played("collaborate", HIKE, agents=PAIR)
    said = room.speakers(view)

    assert (view["reason"], len(said)) == ("final", 4)
    assert all(one != other for one, other in itertools.pairwise(said))


def test_summary_in_one_sentence_is_final_in_the_first_reply(room: ApiRoom) -> None:
    room.script("claude", envelope("It is short.", final=True))
    view = room.played("collaborate", SENTENCE, agents=PAIR)

    assert (room.speakers(view), view["reason"]) == (["claude"], "final")


def test_two_requests_back_to_back_do_not_interfere(room: ApiRoom) -> None:
    """The same two models in two sessions at once: each answer finds its own way."""
    goals = ("Tune the piano.", "Paint the fence.")
    for goal in goals:
        room.always("claude", [Pause(seconds=0.3), Text(text=envelope(f"on: {goal}", "gpt"))], match=goal)
        room.always("gpt", [Pause(seconds=0.2), Text(text=envelope(f"yes: {goal}", final=True))], match=goal)
    before = {name: room.calls(name) for name in PAIR}
    begun = [
        room.room.gateway.post("/sessions", {"mode": "collaborate", "topic": goal, "agents": PAIR})
        for goal in goals
    ]
    views = [room.wait_end(one["thread"]) for one in begun]

    for view, goal in zip(views, goals, strict=True):
        assert (view["reason"], texts(room, view)) == ("final", [f"on: {goal}", f"yes: {goal}"])
    for name in PAIR:
        for asked in room.asked(name)[before[name] :]:
            assert sum(goal in asked for goal in goals) == 1


def test_prose_around_the_json_is_taken_as_it_is_then_the_room_goes_on(room: ApiRoom) -> None:
    prose = f"Sure, here you are: {envelope('inside', final=True)} Is that all?"
    room.script("claude", prose, prose)
    view = room.played("collaborate", HIKE, agents=PAIR)
    assert (view["reason"], texts(room, view)) == ("malformed", [prose])
    room.script("claude", envelope("It is short.", final=True))

    assert room.played("collaborate", SENTENCE, agents=PAIR)["reason"] == "final"


# --- models among agents in panes ----------------------------------------------------------------


def test_models_and_agents_in_panes_take_turns(room: ApiRoom) -> None:
    room.always("claude", envelope("words of claude"))
    room.always("gpt", envelope("words of gpt"))
    view = room.played("round_robin", BAKERY, agents=MIXED, steps=6)

    assert room.speakers(view) == MIXED * 2
    assert any("claude: words of claude" in prompt for prompt in room.prompts("ada", view))


def test_debate_of_models_and_an_agent_in_a_pane(room: ApiRoom) -> None:
    for name in ("claude", "llama"):
        room.always(name, f'{{"message": "{name} holds tabs", "final": null}}')
    view = room.played("debate", "Tabs or spaces?", agents=["claude", "ada", "llama"], rounds=2)

    assert sorted(room.speakers(view)) == sorted(["claude", "ada", "llama"] * 2)
    assert view["reason"] == "done"
    assert "claude said:\nclaude holds tabs" in room.asked("llama")[-1]


def test_consensus_of_models_and_an_agent_in_a_pane(room: ApiRoom) -> None:
    for name in ("claude", "gpt", "gem"):
        room.always(name, f"I propose what {name} likes.", match="Propose one solution")
        room.always(name, '{"message": "VOTE: [A]\\nREASON: it is short"}', match="Vote on the proposals")
    view = room.played("consensus", "Which colour?", agents=["claude", "ada", "gpt", "gem"])

    assert {name: vote["label"] for name, vote in view["votes"].items() if name != "ada"} == {
        "claude": "A",
        "gpt": "A",
        "gem": "A",
    }
    assert view["status"] == "ended"


# --- autopilot -----------------------------------------------------------------------------------


def running(room: ApiRoom, turns: int, agents: list[str], **fields: Any) -> dict[str, Any]:
    view = room.begin("autopilot", BAKERY, agents=agents, **fields)
    wait_until_sync(lambda: len(room.items(view)) >= turns, 60, f"{turns} turns")
    return view


def numbered(room: ApiRoom, name: str, count: int = 40, **fields: Any) -> None:
    room.script(name, *(envelope(f"{name} has idea {number}", **fields) for number in range(count)))


def test_autopilot_runs_past_former_bounds_and_alternates_without_a_handoff(room: ApiRoom) -> None:
    for name in PAIR:
        numbered(room, name)
    before = room.calls("gpt")
    view = running(room, 12, PAIR)

    assert room.mode()["status"] == "running"
    assert room.speakers(view)[:12] == PAIR * 6
    assert room.asked("gpt")[before + 5].startswith("Round: 12 (Autopilot)")


def test_autopilot_follows_a_handoff_wherever_it_goes(room: ApiRoom) -> None:
    room.script("claude", envelope("one", "gpt"), envelope("three", "claude"), envelope("four", "gpt"))
    room.script("gpt", envelope("two", "claude"), envelope("five", "ada"))
    view = running(room, 6, MIXED)

    assert room.speakers(view)[:6] == ["claude", "gpt", "claude", "claude", "gpt", "ada"]


@pytest.mark.parametrize("word", ["Allstop", "all stop", "ALL-STOP!", "/stop"])
def test_allstop_ends_at_once_and_drops_what_is_in_flight(room: ApiRoom, word: str) -> None:
    room.always("claude", [Text(text='{"message": "half'), Endless()])
    before = room.calls("claude")
    view = room.begin("autopilot", BAKERY, agents=["claude", "ada"])
    wait_until_sync(lambda: room.calls("claude") > before, 90, "a call in flight")
    posted = [item["id"] for item in room.items(view, POSTED)]
    if word == "/stop":
        room.room.gateway.post("/stop", {})
    else:
        room.send("all", word)

    assert room.mode()["reason"] == "stopped_by_user"
    call = room.models.exchanges("claude")[-1]
    wait_until_sync(lambda: call.ended == "aborted", 90, "the end of a call that has none by itself")
    assert STOPPED in room.notices(view)
    assert [item["id"] for item in room.items(view, POSTED)] == posted


def test_allstop_with_four_calls_in_flight_posts_none_of_them(room: ApiRoom) -> None:
    """Four models are at their positions at once; all are stopped, none is posted."""
    names = ["claude", "gpt", "gem", "llama"]
    for name in names:
        room.always(name, [Text(text='{"message": "my position'), Endless()])
    before = room.calls()
    view = room.begin("debate", "Tabs or spaces?", agents=names)
    wait_until_sync(lambda: room.calls() == before + 4, 90, "four calls in flight")
    room.send("all", "Allstop")

    assert room.mode()["reason"] == "stopped_by_user"
    wait_until_sync(
        lambda: all(exchange.ended == "aborted" for exchange in room.models.exchanges()[before:]),
        90,
        "the end of all calls",
    )
    assert room.items(view) == []
    late = room.room.gateway.get("/history", types="late", session=view["sessionId"])["items"]
    assert all(item["text"] == "" and item["usage"]["estimated"] for item in late), (
        "only what they took is told"
    )


@pytest.mark.parametrize("word", ["asphalt", "do not say allstop", "allstops"])
def test_other_words_stop_nothing(room: ApiRoom, word: str) -> None:
    for name in PAIR:
        numbered(room, name)
    view = running(room, 1, PAIR)
    room.send("ada", word)
    seen = len(room.items(view))
    wait_until_sync(lambda: len(room.items(view)) > seen, 90, "another turn")

    assert room.mode()["status"] == "running"


def test_final_is_ignored_by_default_with_a_banner(room: ApiRoom) -> None:
    for name in PAIR:
        numbered(room, name, final=True)
    view = running(room, 4, PAIR)

    assert room.mode()["status"] == "running"
    assert any(text.startswith("Agent suggests finish") for text in room.notices(view))


def test_emergency_cutoff_says_which_guard_it_was(room: ApiRoom) -> None:
    for name in PAIR:
        numbered(room, name)
    view = room.begin("autopilot", BAKERY, agents=PAIR, limits={"turns": 3})
    view = room.wait_end()

    assert (view["reason"], len(room.items(view))) == ("emergency_turns", 3)
    assert "Emergency cap: the session has reached its limit of 3 turns." in room.notices(view)


def test_allstop_without_a_session_is_a_no_op(room: ApiRoom) -> None:
    before = room.calls()
    room.send("all", "Allstop")
    room.room.gateway.post("/stop", {})

    assert room.calls() == before
    assert "no-op" in room.room.said()


# --- budgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", [60, pytest.param(200, marks=pytest.mark.full)])
def test_many_turns_cost_the_same_at_the_end_as_at_the_beginning(room: ApiRoom, turns: int) -> None:
    """Neither an end at turn 50, nor calls that grow with the session; and every token is counted."""
    words = "an idea of some length, to be read by the next speaker, " * 4
    for name in PAIR:
        room.script(name, *(envelope(f"{number}: {words}") for number in range(turns // 2)))
    before = room.calls()
    limits = {"turns": turns, "tokens": 10**9}
    room.begin("autopilot", BAKERY, agents=PAIR, limits=limits)
    view = room.wait_end(timeout_s=120)
    used = [item["usage"]["input"] for item in room.items(view)]

    assert (view["reason"], len(used)) == ("emergency_turns", turns)
    assert room.calls() - before == turns
    early, late = sum(used[20:40]) / 20, sum(used[-20:]) / 20
    assert late < early * 1.1, f"a turn took {early:.0f} tokens at first, {late:.0f} at last"
    session = room.room.gateway.get(f"/sessions/{view['sessionId']}")["session"]
    counted = [item["usage"]["input"] + item["usage"]["output"] for item in room.items(view)]
    assert session["tokens"] == sum(counted)
    assert {row["agent"] for row in session["spent"]} == set(PAIR)


def test_a_limit_of_money_warns_at_80_percent_and_stops_before_the_next_call(room: ApiRoom) -> None:
    for name in PAIR:
        numbered(room, name)
    free = room.played("autopilot", BAKERY, agents=PAIR, limits={"turns": 4})
    first = [item["usage"]["cost_usd"] for item in room.items(free)]
    limit = sum(first) * 3
    before = room.calls()
    room.begin("autopilot", BAKERY, agents=PAIR, limits={"cost": limit, "turns": 200})
    view = room.wait_end()
    costs = [item["usage"]["cost_usd"] for item in room.items(view)]
    notices = room.notices(view)

    assert view["reason"] == "emergency_cost"
    assert sum(costs) >= limit > sum(costs[:-1]), "it stopped one call too late, or too early"
    assert room.calls() - before == len(costs)
    assert sum("US dollars are used" in notice for notice in notices) == 1
    assert any(f"limit of {limit:g} US dollars" in notice for notice in notices)
    assert "AUTOPILOT stopped: emergency cap of cost." in notices


def test_a_limit_of_tokens_stops_by_its_name(room: ApiRoom) -> None:
    for name in PAIR:
        numbered(room, name)
    view = room.begin("autopilot", BAKERY, agents=PAIR, limits={"tokens": 600})
    view = room.wait_end()

    assert view["reason"] == "emergency_tokens"
    assert any("tokens are used" in notice for notice in room.notices(view))


# --- builder with reviewer -----------------------------------------------------------------------


def test_models_carry_a_run_from_plan_to_branch(room: ApiRoom, tmp_path: Path) -> None:
    """Both answer in the envelope; one answer is no message of a run, so it is asked for once more."""
    repository = make_repository(tmp_path / "repository")
    verdict = {"decision": "accept", "rationale": "the check passes"}
    message = json.dumps({"message_type": "review.decision", "body": verdict})
    room.script("gpt", envelope("ACK: ready"), envelope("RISK: low"), envelope(f"```json\n{message}\n```"))
    plan, done, end = "PLAN: it\n1. write maths.py", "DONE: wrote maths.py", "END: it doubles"
    room.script("claude", envelope("I would write it"), *map(envelope, (plan, done, end)))
    body = {"goal": "double", "builder": "claude", "reviewer": "gpt", "test": TEST, "approve": True}
    begun = room.room.gateway.post("/runs", body | {"dir": str(repository)})
    run_id = begun["run"]["id"]

    def run() -> dict[str, Any]:
        found: dict[str, Any] = room.room.gateway.get(f"/runs/{run_id}")
        return found

    wait_until_sync(lambda: run()["run"]["phase"] == "approval", 90, "approval")
    # An API model has no hands.
    (Path(run()["context"]["worktree"]) / "maths.py").write_text(RIGHT)
    room.room.gateway.post(f"/runs/{run_id}/go")
    wait_until_sync(lambda: run()["run"].get("branch"), 90, "branch")

    assert (run()["run"]["reason"], run()["update"]["tests"]["passed"]) == ("accepted", True)
    repairs = [asked for asked in room.asked("claude") if "Your answer was rejected" in asked]
    assert len(repairs) == 1 and "it contains no message" in repairs[0]
