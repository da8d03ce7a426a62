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


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path, rows=24, cols=80) as stage:
        yield stage


def seat(stage: Stage, name: str, speed: str = "0") -> Seat:
    argv = [sys.executable, "-P", "-m", "csp.cli", "demo", name]
    return stage.seat(name, argv, "--profile", "demo", env={"CSP_DEMO_SPEED": speed})


def test_hello_to_all_is_answered_by_each(stage: Stage) -> None:
    for name in NAMES:
        seat(stage, name)
    message = stage.send("all", "hello")

    for name in NAMES:
        assert name in stage.reply_to(message, name)["text"]
        assert stage.state(message, name) == ("confirmed", None)


def test_messages_arrive_once_in_order_exact(stage: Stage) -> None:
    one = seat(stage, "ada")
    texts = [f"remark number {number}\n\n{'long ' * number * 20}\n\tdone 日本 🎉" for number in range(20)]
    messages = [stage.send("ada", text) for text in texts]
    replies = [stage.reply_to(message, "ada") for message in messages]

    assert [re.findall(r'"(remark number \d+)"', reply["text"]) for reply in replies] == [
        [f"remark number {number}"] for number in range(20)
    ]
    assert len(stage.replies("ada")) == 20
    transcript = (one.folder / "transcript.jsonl").read_text("utf-8")
    assert transcript.count('"type": "prompt"') == 20
    assert all(f"number {number}\\n" in transcript for number in range(20))
    assert transcript.count("\\n\\tdone 日本 🎉\\n[end #") == 20


def test_an_urgent_message_interrupts_an_answer(stage: Stage) -> None:
    seat(stage, "cy", speed="0.6")
    slow = stage.send("cy", "What is the slowest way to answer this?")
    stage.wait_for(slow, "cy", "confirmed")
    urgent = stage.send("cy", "Stop that at once, please.", urgent=True)

    assert stage.reply_to(slow, "cy")["ending"] == "interrupted"
    assert "Stop that at once" in stage.reply_to(urgent, "cy")["text"]


def test_an_agent_that_is_started_again_goes_on(stage: Stage) -> None:
    one = seat(stage, "bob")
    stage.reply_to(stage.send("bob", "the first remark of all"), "bob")
    before = one.cli
    stage.room.gateway.post("/agents/bob/restart", {})
    wait_until_sync(lambda: before not in one.pids() and one.cli, 20.0, "another process")

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
    wait_until_sync(lambda: "❯ Say something" in one.screen(), what="the composer")
    one.type("between the two of us")
    one.keys("Enter")
    wait_until_sync(lambda: '"between the two of us"' in one.screen(), what="the answer")
    stage.reply_to(stage.send("ada", "hello"), "ada")

    assert len(stage.replies("ada")) == 1


def test_an_agent_is_told_who_has_come_or_gone_with_its_next_message(stage: Stage) -> None:
    ada = seat(stage, "ada")
    stage.reply_to(stage.send("ada", "one"), "ada")
    bob = seat(stage, "bob")
    for text in ("two", "three"):
        stage.reply_to(stage.send("ada", text), "ada")
    wait_until_sync(lambda: "Say something" in bob.screen(), what="bob")
    bob.keys("C-d")
    wait_until_sync(lambda: not stage.agent("bob")["online"], what="the end of bob")
    stage.reply_to(stage.send("ada", "four"), "ada")
    lines = (ada.folder / "transcript.jsonl").read_text("utf-8").splitlines()
    prompts = [entry["text"] for entry in map(json.loads, lines) if entry["type"] == "prompt"]

    ends = [re.sub(r"\d+", "N", prompt.splitlines()[-1]) for prompt in prompts]
    assert ends == ["[end #N]", "[end #N; here: bob]", "[end #N]", "[end #N; here: nobody else]"]
