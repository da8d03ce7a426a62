"""The demo agents in a real room: behind real sidecars, in real tmux panes."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sidecar.stage import Seat, Stage
from tests.waiting import wait_until_sync

NAMES = ("ada", "bob", "cy")

pytestmark = pytest.mark.xdist_group("demo room")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One room for all tests; each has agents of its own or uses those whom all may use."""
    with Stage(tmp_path_factory.mktemp("demo"), rows=24, cols=80) as stage:
        yield stage


@pytest.fixture
def own_stage(tmp_path: Path) -> Iterator[Stage]:
    """A room that nobody else has come to or left."""
    with Stage(tmp_path, rows=24, cols=80) as stage:
        yield stage


def seat(stage: Stage, name: str, speed: str = "0") -> Seat:
    """Return the agent of this name, who is started if it is not there yet."""
    if name in stage.seats:
        return stage.seats[name]
    argv = [sys.executable, "-P", "-m", "csp.cli", "demo", name.partition("-")[0]]
    return stage.seat(name, argv, "--profile", "demo", env={"CSP_DEMO_SPEED": speed})


def prompts(one: Seat) -> list[str]:
    """Return what an agent has been asked."""
    lines = (one.folder / "transcript.jsonl").read_text("utf-8").splitlines()
    return [entry["text"] for entry in map(json.loads, lines) if entry["type"] == "prompt"]


def test_hello_to_all_is_answered_by_each(stage: Stage) -> None:
    for name in NAMES:
        seat(stage, name)
    message = stage.send("all", "hello")

    for name in NAMES:
        assert name in stage.reply_to(message, name)["text"]
        assert stage.state(message, name) == ("confirmed", None)


def test_messages_arrive_once_in_order_exact(stage: Stage) -> None:
    one = seat(stage, "ada")
    before = len(stage.replies("ada"))
    texts = [f"remark number {number}\n\n{'long ' * number * 20}\n\tdone 日本 🎉" for number in range(8)]
    messages = [stage.send("ada", text) for text in texts]
    replies = [stage.reply_to(message, "ada") for message in messages]

    assert [re.findall(r'"(remark number \d+)"', reply["text"]) for reply in replies] == [
        [f"remark number {number}"] for number in range(8)
    ]
    assert len(stage.replies("ada")) - before == 8
    asked = prompts(one)
    assert [sum(f"]\n{text}\n[end #" in prompt for prompt in asked) for text in texts] == [1] * 8


def test_an_urgent_message_interrupts_an_answer(stage: Stage) -> None:
    seat(stage, "cy-slow", speed="0.6")
    slow = stage.send("cy-slow", "What is the slowest way to answer this?")
    stage.wait_for(slow, "cy-slow", "confirmed")
    urgent = stage.send("cy-slow", "Stop that at once, please.", urgent=True)

    assert stage.reply_to(slow, "cy-slow")["ending"] == "interrupted"
    assert "Stop that at once" in stage.reply_to(urgent, "cy-slow")["text"]


def test_an_agent_that_is_started_again_goes_on(stage: Stage) -> None:
    one = seat(stage, "bob")
    stage.reply_to(stage.send("bob", "the first remark of all"), "bob")
    before = one.cli
    stage.room.gateway.post("/agents/bob/restart", {})
    wait_until_sync(lambda: before not in one.pids() and one.cli, 60.0, "another process")

    assert "the second remark" in stage.reply_to(stage.send("bob", "the second remark of all"), "bob")["text"]


def test_a_draft_holds_messages_back_a_resize_does_not(stage: Stage) -> None:
    one = seat(stage, "ada")
    stage.reply_to(stage.send("ada", "hello"), "ada")
    one.type("a draft of mine")
    held = stage.send("ada", "This one has to wait for me.")
    assert wait_until_sync(lambda: stage.state(held, "ada") == ("held", "draft"), what="held for the draft")
    one.resize(15, 60)
    wait_until_sync(lambda: "─" * 60 in one.screen() and "─" * 61 not in one.screen(), what="the new size")
    one.keys("C-c")

    assert "This one has to wait" in stage.reply_to(held, "ada")["text"]
    wait_until_sync(lambda: one.screen().count("❯") == 1, what="one composer")


def test_what_is_typed_in_the_pane_stays_there(stage: Stage) -> None:
    one = seat(stage, "ada")
    one.wait_ready()
    before = len(stage.replies("ada"))
    wait_until_sync(lambda: "❯ Say something" in one.screen(), what="the composer")
    one.type("between the two of us")
    one.keys("Enter")
    wait_until_sync(lambda: '"between the two of us"' in one.screen(), what="the answer")
    stage.reply_to(stage.send("ada", "hello"), "ada")

    assert len(stage.replies("ada")) == before + 1


def test_an_agent_is_told_who_has_come_or_gone_with_its_next_message(own_stage: Stage) -> None:
    stage = own_stage
    ada = seat(stage, "ada")
    stage.reply_to(stage.send("ada", "one"), "ada")
    bob = seat(stage, "bob")
    for text in ("two", "three"):
        stage.reply_to(stage.send("ada", text), "ada")
    wait_until_sync(lambda: "Say something" in bob.screen(), what="bob")
    bob.keys("C-d")
    wait_until_sync(lambda: not stage.agent("bob")["online"], what="the end of bob")
    stage.reply_to(stage.send("ada", "four"), "ada")

    ends = [re.sub(r"\d+", "N", prompt.splitlines()[-1]) for prompt in prompts(ada)]
    assert ends == ["[end #N]", "[end #N; here: bob]", "[end #N]", "[end #N; here: nobody else]"]
