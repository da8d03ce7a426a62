"""Bounded collaboration: what it has to do to be accepted, one test for each demand.

The agents answer in lines of text; API models, which answer in envelopes, take the same tests in
tests/gateway/test_acceptance.py.
"""

import itertools
from collections.abc import Iterator
from typing import Final

import pytest

from tests.modes.acceptance import ModeRoom
from tests.waiting import wait_until_sync

TALE: Final = "Write a 2‑paragraph fairy tale—Claude drafts, GPT edits, alternate until done (≤4 rounds)."
HIKE: Final = "Collaborate to outline and refine a 5‑step plan for a weekend hiking trip. Keep it concise."
SENTENCE: Final = "Summarize this in 1 sentence, then stop."
ENDLESS: Final = "Improve the plan step by step, indefinitely."

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("modes bounded")]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModeRoom]:
    with ModeRoom(tmp_path_factory.mktemp("bounded")) as room:
        for name, persona in (("claude", "ada"), ("gpt", "bob"), ("kimi", "cy"), ("qwen", "ada")):
            room.join(name, persona)
        room.ready()
        yield room


@pytest.fixture
def room(shared: ModeRoom) -> Iterator[ModeRoom]:
    yield shared
    shared.quiet()


PAIR: Final = ["claude", "gpt"]


# --- the definition of done ----------------------------------------------------------------------


def test_context_sharing_works(room: ModeRoom) -> None:
    """Claude drafts, GPT edits, they alternate to a final answer; nobody asks which story is meant."""
    view = room.played("collaborate", TALE, agents=PAIR, rounds=4, first="claude")
    said = room.items(view)

    assert [item["sender"] for item in said] == ["claude", "gpt", "claude", "gpt"]
    assert (view["reason"], said[-1]["final"]) == ("final", True)
    for name in PAIR:
        assert all(TALE in prompt for prompt in room.prompts(name, view))
    for before, item in itertools.pairwise(said):
        asked = room.prompts(item["sender"], view)[(item["round"] - 1) // 2]
        assert f"{before['sender']}: {before['text'].splitlines()[0]}" in asked
        assert f"router -> {item['sender']}: {before['handoff']['task']}" in asked
        assert f'{before["sender"]} said "{" ".join(before["text"].split()[:3])}' in item["text"]


def test_bounded_rounds(room: ModeRoom) -> None:
    """With a cap of two there are exactly two turns, then the end: cap reached."""
    view = room.played("collaborate", ENDLESS, agents=PAIR, rounds=2)

    assert (view["reason"], len(room.speakers(view))) == ("cap_reached", 2)
    assert "COLLABORATE ended: cap reached." in room.notices(view)


def test_a_message_with_a_handoff_is_shown_then_the_next_turn_comes(room: ModeRoom) -> None:
    view = room.played("collaborate", f"Answer in JSON. {ENDLESS}", agents=PAIR, rounds=2)
    first, second = room.items(view)

    assert (first["sender"], first["handoff"]["to"], second["sender"]) == ("claude", "gpt", "gpt")
    assert not first["text"].startswith("{")


def test_a_message_with_final_is_shown_then_the_session_ends_at_once(room: ModeRoom) -> None:
    view = room.played("collaborate", f"Answer in JSON. {SENTENCE}", agents=PAIR)
    (only,) = room.items(view)

    assert (only["final"], view["reason"]) == (True, "final")
    assert not only["text"].startswith("{")
    assert room.prompts("gpt", view) == []


def test_malformed_json_is_a_plain_message_that_ends_the_session_with_a_warning(room: ModeRoom) -> None:
    view = room.played("collaborate", "Answer in malformed JSON.", agents=PAIR)
    (only,) = room.items(view)

    assert (view["reason"], only.get("handoff")) == ("malformed", None)
    assert only["text"].startswith('{"message": ')
    assert any("claude's reply was malformed" in notice for notice in room.notices(view))
    assert "reply malformed" in room.room.said()


def test_manual_stop_ends_the_session_with_a_cancellation_notice(room: ModeRoom) -> None:
    view = room.begin("collaborate", ENDLESS, agents=PAIR, rounds=100)
    wait_until_sync(lambda: room.items(view), 30, "the first turn")
    room.room.gateway.post(f"/sessions/{view['sessionId']}/stop", {})
    said = room.speakers(view)

    assert room.mode()["reason"] == "canceled"
    assert "Collaboration canceled by user." in room.notices(view)
    room.ready()
    assert room.speakers(view) == said


# --- the prompts to be used exactly --------------------------------------------------------------


def test_hiking_plan_alternates_to_a_final_answer_within_six_rounds(room: ModeRoom) -> None:
    view = room.played("collaborate", HIKE, agents=PAIR)
    said = room.speakers(view)

    assert view["reason"] == "final"
    assert 1 < len(said) <= 6
    assert all(one != other for one, other in itertools.pairwise(said))
    assert "Round 1 of 6" in room.prompts("claude", view)[0]


def test_fairy_tale_is_started_from_the_command_line(room: ModeRoom) -> None:
    said = room.csp("mode", "set", "collaborate", TALE, "--agents", "claude,gpt", "--first", "gpt")
    view = room.wait_end()

    assert "waiting for gpt" in said
    assert (view["topic"], view["reason"]) == (TALE, "final")
    assert room.speakers(view) == ["gpt", "claude", "gpt", "claude"]


def test_fairy_tale_is_started_by_asking_the_router(room: ModeRoom) -> None:
    room.chat(f"@router collaborate claude gpt: {TALE}")
    view = room.wait_end()

    assert (view["topic"], view["reason"], view["turnOrder"]) == (TALE, "final", PAIR)


def test_summary_in_one_sentence_is_final_in_the_first_reply(room: ModeRoom) -> None:
    view = room.played("collaborate", SENTENCE, agents=PAIR)

    assert (room.speakers(view), view["reason"]) == (["claude"], "final")


def test_two_requests_back_to_back_do_not_interfere(room: ModeRoom) -> None:
    goals = ("Tune the piano (≤4 rounds).", "Paint the fence (≤4 rounds).")
    pairs = (PAIR, ["kimi", "qwen"])
    begun = [
        room.room.gateway.post("/sessions", {"mode": "collaborate", "topic": goal, "agents": pair})
        for goal, pair in zip(goals, pairs, strict=True)
    ]
    views = [room.wait_end(one["thread"]) for one in begun]

    for view, goal, other, pair in zip(views, goals, reversed(goals), pairs, strict=True):
        assert (view["reason"], set(room.speakers(view))) == ("final", set(pair))
        for name in pair:
            asked = room.prompts(name, view)
            assert asked and all(goal in prompt and other not in prompt for prompt in asked)


def test_prose_around_the_json_is_taken_as_it_is_then_the_room_goes_on(room: ModeRoom) -> None:
    room.played("collaborate", "Answer in malformed JSON, with prose.", agents=PAIR)

    assert room.played("collaborate", SENTENCE, agents=PAIR)["reason"] == "final"


# --- what events say, what a call has in it ------------------------------------------------------


def test_events_of_a_session_have_its_id_the_round_the_cap(room: ModeRoom) -> None:
    view = room.played("collaborate", ENDLESS, agents=PAIR, rounds=3)
    for types in ("agent_response", "turn_signal"):
        items = room.items(view, types)
        assert [(item["round"], item["max_rounds"]) for item in items] == [(1, 3), (2, 3), (3, 3)]
        assert {item["session_id"] for item in items} == {view["sessionId"]}


def test_a_call_has_goal_window_round_name(room: ModeRoom) -> None:
    view = room.played("collaborate", f"{ENDLESS}\n\nAnd keep   the spaces.", agents=PAIR, rounds=12)
    asked = room.prompts("gpt", view)[-1]

    assert f"{ENDLESS}\n\nAnd keep   the spaces." in asked
    assert "Round 12 of 12" in asked
    assert "Your name is `gpt`." in asked
    items = [line for line in asked.splitlines() if line.startswith(("claude: ", "gpt: ", "router -> "))]
    assert 6 <= len(items) <= 8
    assert items[-1].startswith("router -> gpt: ")


def test_single_call_is_answered_by_one(room: ModeRoom) -> None:
    view = room.played("single", "Should we paint the bike shed green?", agents=PAIR)

    assert (room.speakers(view), view["reason"]) == (["claude"], "done")


def test_stop_in_the_human_pane_ends_the_session(room: ModeRoom) -> None:
    view = room.begin("collaborate", ENDLESS, agents=PAIR, rounds=100)
    room.chat("/end")

    assert room.mode()["reason"] == "canceled"
    assert "Collaboration canceled by user." in room.notices(view)
