"""Sessions begun, watched, steered and stopped by clicks; the agents' words are the test's."""

import pytest
from playwright.async_api import Page, expect

from tests.rooms import LiveRoom
from tests.waiting import wait_until
from tests.web.browser import TIMEOUT_S
from tests.web.conftest import Enter
from tests.web.parts import (
    begin,
    begin_by_hand,
    messages,
    newest_session,
    see_chip,
    see_said,
    write,
)
from tests.web.puppet import Puppet

STOPPED = "Collaboration stopped by user (Allstop)."


async def _two(room: LiveRoom, page: Page, kind: str = "cli") -> tuple[Puppet, Puppet]:
    pair = Puppet(room, "gpt", kind=kind), Puppet(room, "claude", kind=kind)
    for agent in pair:
        await page.wait_for_selector(f"#mode-agents input[value={agent.id}]", state="attached")
    return pair


def _to(agent: str, task: str = "go on") -> dict[str, object]:
    return {"handoff": {"to": agent, "task": task}}


# --- seed 000: collaborate -----------------------------------------------------------------------


async def test_the_chip_counts_the_rounds_of_a_collaboration(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    goal = "Write a 2-paragraph fairy tale"
    await begin_by_hand(page, "collaborate", goal, rounds=6, first="claude")
    await see_chip(page, "Collab: 0/6")
    first = await claude.next()
    assert goal in first["text"]
    claude.say("Once upon a time", turn=first["turn"], **_to("gpt", "edit it"))
    await see_chip(page, "Collab: 1/6")
    await expect(page.locator(".handoff")).to_have_text("hands over to gpt: edit it")
    second = await gpt.next()
    assert "Once upon a time" in second["text"]
    gpt.say("The end", turn=second["turn"], final=True)

    await see_chip(page, "Collab: finished")
    assert newest_session(gateway)["reason"] == "final"


async def test_as_many_rounds_as_were_asked_for(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    await begin(page, "collaborate", "a task of many steps", rounds=2, first="gpt")
    await gpt.take_turn("step one", **_to("claude"))
    await claude.take_turn("step two", **_to("gpt"))

    await see_chip(page, "Collab: ended, all rounds done (2/2)")
    assert newest_session(gateway)["reason"] == "cap_reached"


async def test_stop_cancels_the_session(gateway: LiveRoom, page: Page) -> None:
    gpt, _ = await _two(gateway, page)
    await begin(page, "collaborate", "a long one", first="gpt")
    turn = (await gpt.next())["turn"]
    await page.click("#session-stop")

    await see_said(page, "Collaboration canceled by user.")
    await see_chip(page, "Collab: canceled")
    assert gpt.say("too late", turn=turn)["late"] is True
    assert newest_session(gateway)["reason"] == "canceled"


# --- seed 001: autopilot -------------------------------------------------------------------------


async def _autopilot(room: LiveRoom, page: Page) -> tuple[Puppet, Puppet]:
    gpt, claude = await _two(room, page)
    await begin(page, "autopilot", "Brainstorm features for a cozy bakery website", first="gpt")
    return gpt, claude


async def test_the_chip_counts_the_turns_of_an_autopilot(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _autopilot(gateway, page)
    await see_chip(page, "Autopilot: running (turn 1)")
    for number in range(12):
        # Nobody hands over, so the room alternates.
        await (gpt, claude)[number % 2].take_turn(f"idea {number}")
        await see_chip(page, f"Autopilot: running (turn {number + 2})")

    assert newest_session(gateway)["status"] == "running"


@pytest.mark.parametrize("by", ["button", "ALL-STOP", "/stop", "escape", "banner"])
async def test_allstop_is_the_same_by_every_way(gateway: LiveRoom, page: Page, by: str) -> None:
    gpt, claude = await _autopilot(gateway, page)
    await gpt.take_turn("a first idea", final=by == "banner")
    in_flight = (await claude.next())["turn"]
    await see_chip(page, "Autopilot: running (turn 2)")
    await _stop(page, by)
    await see_chip(page, "Autopilot: stopped")
    late = claude.say("an answer that was in flight", turn=in_flight)

    assert late["late"] is True
    await see_said(page, "Stopped (Allstop).")
    await _nothing_moves(gateway, page)
    assert "in flight" not in await page.inner_text("#log")


async def _stop(page: Page, by: str) -> None:
    match by:
        case "button":
            await page.click("#allstop")
        case "banner":
            await page.click("#banner button >> text=ALLSTOP")
        case "escape":
            await page.press("body", "Escape")
            await expect(page.locator("#escape-hint")).to_be_visible()
            await page.press("body", "Escape")
        case _:
            await write(page, by)


async def _nothing_moves(room: LiveRoom, page: Page) -> None:
    """Say something to the room; what the session had still to say would have come before it."""
    room.gateway.post("/message", {"to": "all", "content": "is anybody there?"})
    await see_said(page, "is anybody there?")
    session = newest_session(room)
    after = [item["type"] for item in messages(room, session=session["id"])]
    assert after[-1] == "system"
    assert (session["status"], session["reason"]) == ("ended", "stopped_by_user")
    assert [item["text"] for item in messages(room, types="system")].count(STOPPED) == 1


async def test_one_escape_stops_nothing(gateway: LiveRoom, page: Page) -> None:
    await _autopilot(gateway, page)
    await see_chip(page, "Autopilot: running")
    await page.click("#menu summary")
    await page.press("body", "Escape")  # closes the menu
    await page.press("body", "Escape")
    await expect(page.locator("#escape-hint")).to_be_visible()

    assert newest_session(gateway)["status"] == "running"


async def test_a_final_word_shows_the_banner_and_the_session_goes_on(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _autopilot(gateway, page)
    await expect(page.locator("#banner")).to_be_hidden()
    await gpt.take_turn("I think we are done", final=True)
    await expect(page.locator("#banner")).to_contain_text("gpt suggests finishing. Press ALLSTOP to end")
    await claude.next()
    assert newest_session(gateway)["status"] == "running"
    await page.get_by_role("button", name="Let them continue").click()

    await expect(page.locator("#banner")).to_be_hidden()
    assert newest_session(gateway)["status"] == "running"


async def test_respect_final_lets_an_agent_end_it(gateway: LiveRoom, page: Page) -> None:
    gpt, _ = await _two(gateway, page)
    await begin_by_hand(page, "autopilot", "Brainstorm", first="gpt", final=True)
    await gpt.take_turn("done", final=True)

    await see_chip(page, "Autopilot: finished")
    await expect(page.locator("#banner")).to_be_hidden()


async def test_a_limit_stops_it_and_says_which(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    await page.check("#mode-toggle input[value=autopilot]", force=True)
    await page.click("#field-limits summary")
    await page.fill("#limit-turns", "3")
    await begin(page, "autopilot", "three turns", first="gpt")
    for agent in (gpt, claude, gpt):
        await agent.take_turn("one more")

    await see_chip(page, "Autopilot: stopped by the turn limit")
    assert newest_session(gateway)["reason"] == "emergency_turns"


async def test_allstop_without_a_session_is_no_trouble(gateway: LiveRoom, page: Page) -> None:
    await write(page, "Allstop")
    await write(page, "/stop")
    await page.click("#allstop")
    gateway.gateway.post("/message", {"to": "all", "content": "still here"})

    await see_said(page, "still here")
    assert newest_session(gateway) == {}


async def test_an_asphalt_is_no_allstop(gateway: LiveRoom, page: Page) -> None:
    await _autopilot(gateway, page)
    await write(page, "asphalt stops nobody, say allstop for that")
    await see_said(page, "asphalt")

    assert newest_session(gateway)["status"] == "running"


# --- the other modes -----------------------------------------------------------------------------


async def test_a_debate_with_a_vote(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    await begin_by_hand(page, "debate", "Tabs or spaces?", rounds=2, ballot=True)
    await see_chip(page, "Debate: round 1/2 · gpt +1 ")
    await gpt.take_turn("Tabs, of course")
    await expect(page.locator(".mark.sealed")).to_have_count(1)
    await claude.take_turn("Spaces, of course")
    await see_chip(page, "Debate: round 2/2 · gpt ")
    await expect(page.locator(".mark.sealed")).to_have_count(0)
    for agent in (gpt, claude):
        await agent.take_turn("I stand by it")
    await see_chip(page, "Debate: ballot")
    await gpt.take_turn("VOTE: [A]\nREASON: it is shorter")
    await claude.take_turn("VOTE: [A]\nREASON: <i>it is fair</i>")
    await see_chip(page, "Debate: done")

    # One of the two voted for its own, which counts only where nobody else has votes.
    bar = page.locator("#votes [data-label=A]")
    await expect(bar.locator(".tally")).to_have_text("1 vote")
    await expect(bar.locator(".reasons")).to_contain_text("gpt it is shorter")
    await expect(bar.locator(".reasons")).to_contain_text("claude <i>it is fair</i>")
    await expect(bar.locator(".reasons li", has_text="for its own, so it does not count")).to_have_count(1)
    await expect(page.locator("#votes [data-label=B] .tally")).to_have_text("0 votes")


async def test_a_consensus(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    await begin(page, "consensus", "Which one?")
    for agent in (gpt, claude):
        await agent.take_turn(f"the plan of {agent.id}")
    await see_chip(page, "Consensus: ballot")
    await expect(page.locator("#votes .candidate .name")).to_have_count(0)
    for agent in (gpt, claude):
        await agent.take_turn("VOTE: [A]\nREASON: clear")

    await see_chip(page, "Consensus: done")
    await expect(page.locator("#votes [data-label=A] .tally")).to_have_text("1 vote")
    await expect(page.locator("#votes .candidate-head .name")).to_have_count(2)


async def test_round_robin_takes_steps(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    await begin(page, "round_robin", "one after the other", rounds=3, first="claude")
    await see_chip(page, "Round robin: step 1/3 · claude")
    for agent in (claude, gpt, claude):
        await agent.take_turn("my step")

    await see_chip(page, "Round robin: done")


async def test_single_asks_one_agent(gateway: LiveRoom, page: Page) -> None:
    _, claude = await _two(gateway, page)
    await begin(page, "single", "just answer", first="claude")
    await claude.take_turn("an answer")

    await see_chip(page, "Single: done")


async def test_only_those_who_were_chosen_take_part(gateway: LiveRoom, page: Page) -> None:
    await _two(gateway, page)
    Puppet(gateway, "third")
    await page.wait_for_selector("#mode-agents input[value=third]", state="attached")
    await begin_by_hand(page, "debate", "only two", agents=["gpt", "third"])
    await see_chip(page, "Debate")

    assert newest_session(gateway)["agents"] == ["gpt", "third"]


async def test_a_debate_of_one_is_refused_in_words(gateway: LiveRoom, page: Page) -> None:
    await _two(gateway, page)
    await begin(page, "debate", "alone", agents=["gpt"])

    await expect(page.locator("#mode-agents-error")).to_have_text("Pick at least 2 agents.")
    assert newest_session(gateway) == {}


async def test_a_mode_by_a_typed_command(gateway: LiveRoom, page: Page) -> None:
    await _two(gateway, page)
    await write(page, '/mode debate "Tabs or spaces?" --rounds 2 --agents claude,gpt --ballot')
    await see_chip(page, "Debate: round 1/2")
    session = newest_session(gateway)
    assert (session["agents"], session["topic"], session["maxRounds"]) == (
        ["claude", "gpt"],
        "Tabs or spaces?",
        2,
    )
    await write(page, "@router collaborate gpt claude: another goal")
    await expect(page.locator("#ask-text")).to_have_text(
        "Debate mode is running. Stop it and start the new one?"
    )
    await page.click("#ask-yes")

    await see_chip(page, "Collab: 0/6")
    assert newest_session(gateway)["topic"] == "another goal"


# --- steering ------------------------------------------------------------------------------------


async def test_pause_resume_next_skip_extend(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    await begin(page, "round_robin", "steered", rounds=3, first="gpt")
    await gpt.next()
    await page.click("#session-pause")
    await see_chip(page, "paused")
    await page.click("#session-resume")
    await see_chip(page, "Round robin: step 1/3 · gpt")
    await page.click("#session-next")
    await see_chip(page, "Round robin: step 2/3 · claude")
    await page.click("#session-skip")
    await see_chip(page, "Round robin: step 3/3 · gpt")
    await page.click("#session--1-round")
    await see_chip(page, "Round robin: step 3/4 · gpt")
    await gpt.take_turn("third")
    await claude.take_turn("fourth")

    await see_chip(page, "Round robin: done")


async def test_the_turns_are_drawn_along_time(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    await begin(page, "round_robin", "drawn", rounds=2, first="gpt")
    await gpt.take_turn("one")
    await expect(page.locator("#timeline rect.replied")).to_have_count(1)
    await claude.take_turn("two")

    await expect(page.locator("#timeline rect.replied")).to_have_count(2)
    await expect(page.locator("#timeline .lane-name")).to_have_text(["gpt", "claude"])


async def test_tokens_and_money_of_each_agent(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page)
    usage = {"input": 1000, "output": 234, "cache_read": 100, "cost_usd": 0.0123, "model": "gpt-x"}
    await begin(page, "round_robin", "costly", rounds=2, first="gpt")
    await gpt.take_turn("one", usage=usage)
    await claude.take_turn("two", usage={"input": 10, "output": 5})

    rows = page.locator("#spending .spent")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("1,134 new tokens (234 output), 100 cached, 1 reply")
    await expect(rows.first).to_contain_text("$0.0123")
    await expect(rows.last).to_contain_text("no known price")
    await expect(page.locator("#spending-total")).to_have_text(
        "1,149 new tokens (239 output), 100 cached, $0.0123"
    )
    await expect(page.locator(".message .cost").first).to_have_text(
        "1,134 new tokens (234 output), 100 cached, $0.0123"
    )


# --- threads -------------------------------------------------------------------------------------


async def test_two_sessions_side_by_side_and_one_of_them_alone(gateway: LiveRoom, page: Page) -> None:
    gpt, claude = await _two(gateway, page, kind="api")
    await begin_by_hand(page, "collaborate", "the first goal", first="gpt", thread=True)
    await gpt.take_turn("words of the first", **_to("claude"))
    await see_chip(page, "Collab: 1/6")
    await begin(page, "collaborate", "the second goal", first="claude", thread=True)
    first, second = await wait_until(lambda: _running(gateway, 2), TIMEOUT_S, "two sessions")
    # Of the first session claude has a turn to take, too; only that of the second is answered.
    await wait_until(
        lambda: claude.say("words of the second", turn=_turn(gateway, second, "claude"), **_to("gpt")),
        TIMEOUT_S,
    )
    await see_said(page, "words of the second")
    await page.select_option("#view-choice", first)
    await see_said(page, "words of the first")
    await expect(page.locator("#log")).not_to_contain_text("words of the second")
    await write(page, "Allstop")
    await see_chip(page, "Collab: stopped")

    assert _running(gateway, 1) == [second]


@pytest.mark.parametrize("by", ["button", "Allstop", "escape"])
async def test_allstop_ends_every_session_that_runs(gateway: LiveRoom, page: Page, by: str) -> None:
    await _two(gateway, page, kind="api")
    for number in range(3):
        body = {"mode": "autopilot", "topic": f"goal {number}", "agents": ["gpt", "claude"]}
        gateway.gateway.post("/sessions", body)
    await expect(page.locator("#view-choice option", has_text="●")).to_have_count(3)
    await _stop(page, by)
    await expect(page.locator("#view-choice option", has_text="●")).to_have_count(0)

    ended = [(item["status"], item["reason"]) for item in gateway.gateway.get("/sessions")["items"]]
    assert ended == [("ended", "stopped_by_user")] * 3


def _ids(room: LiveRoom) -> list[str]:
    return [item["id"] for item in room.gateway.get("/sessions")["items"] if item["status"] != "ended"]


def _running(room: LiveRoom, number: int) -> list[str]:
    return _ids(room) if len(_ids(room)) == number else []


def _turn(room: LiveRoom, session: str, agent: str) -> str:
    return str(room.gateway.get(f"/sessions/{session}")["orchestration"]["turns"][agent])


async def test_a_page_that_comes_later_sees_where_things_stand(
    gateway: LiveRoom, page: Page, enter: Enter
) -> None:
    gpt, _ = await _two(gateway, page)
    await begin(page, "autopilot", "go on", first="gpt")
    await gpt.take_turn("the first")
    later = await enter(gateway)

    await see_chip(later, "Autopilot: running (turn 2)")
    await see_said(later, "the first")
    await expect(later.locator("#timeline rect.replied")).to_have_count(1)
